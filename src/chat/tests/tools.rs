//! Tools that come and go while a chat runs, as those of another program do.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::chat::{Chat, asks_for, says};
use crate::tool::call::{CallResult, LookingCall, PlannedCall};
use crate::tool::context::{CallContext, Halt};
use crate::tool::event::ShownCall;
use crate::tool::schema::{BadCall, Tool};
use co_llm::ToolSpec;
use co_llm::transcript::Call;

/// A tool that returns its text.
struct Echo(ToolSpec);

#[derive(Clone)]
struct EchoCall(String);

impl Echo {
    fn tool() -> Arc<dyn Tool> {
        Arc::new(Self(ToolSpec {
            name: "echo".to_owned(),
            description: "Returns a text.".to_owned(),
            schema: json!({ "type": "object", "properties": { "text": { "type": "string" } } }),
        }))
    }
}

impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn parse(&self, call: &Call) -> Result<Box<dyn PlannedCall>, BadCall> {
        let text = call.arguments["text"].as_str().unwrap_or_default();
        Ok(Box::new(EchoCall(text.to_owned())))
    }

    fn shown_unread(&self, _line: &str) -> Option<ShownCall> {
        None
    }
}

#[async_trait]
impl LookingCall for EchoCall {
    fn shown(&self) -> ShownCall {
        ShownCall::Query(format!("say {}", self.0))
    }

    async fn look(self, _: &CallContext) -> Result<CallResult, Halt> {
        Ok(CallResult {
            ok: true,
            ..CallResult::answer(format!("said {}", self.0))
        })
    }
}

/// Returns the tools of the last request, as text.
fn tools(chat: &Chat) -> String {
    format!("{:?}", chat.last_request().tools)
}

#[tokio::test]
async fn a_tool_comes_and_goes_between_requests() {
    let mut chat = Chat::new([
        says("one"),
        asks_for("1", "echo", json!({ "text": "hi" })),
        says("two"),
        says("three"),
        asks_for("2", "echo", json!({ "text": "ho" })),
        says("four"),
    ]);
    assert_eq!(chat.turn("a").await, "done");
    let before = tools(&chat);
    chat.tools().add(Echo::tool());
    assert_eq!(chat.turn("b").await, "done");
    chat.assert_told("1", "said hi");
    chat.assert_shown("say hi");
    let with = tools(&chat);
    assert!(with.contains("Returns a text.") && !before.contains("Returns a text."));
    assert_eq!(chat.turn("c").await, "done");
    assert_eq!(tools(&chat), with);
    chat.tools().remove("echo");
    assert_eq!(chat.turn("d").await, "done");
    chat.assert_told("2", "There is no tool called echo.");
    assert_eq!(tools(&chat), before);
    // The other chat never had the tool.
    let resumed = chat.resumed().await;
    for call in [r#"echo {"text":"hi"}"#, r#"echo {"text":"ho"}"#] {
        assert!(resumed.contains(call), "{call} is not in\n{resumed}");
    }
}
