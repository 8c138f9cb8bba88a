//! Tools that come and go while a chat runs, as those of another program do.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use super::chat::{Chat, asks_for, says};
use crate::tool::call::{CallResult, LookingCall, PlannedCall};
use crate::tool::context::{CallContext, CallHalt};
use crate::tool::event::ShownCall;
use crate::tool::schema::{BadCall, Tool};
use co_llm::ToolSpec;
use co_llm::scripted::Scripted;
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

    fn rule_names(&self) -> Vec<String> {
        vec!["mcp:e".to_owned(), "mcp:e:echo".to_owned()]
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

    async fn look(self, _: &CallContext) -> Result<CallResult, CallHalt> {
        Ok(CallResult {
            ok: true,
            ..CallResult::answer(format!("said {}", self.0))
        })
    }
}

#[tokio::test]
async fn the_model_does_not_learn_of_a_tool_that_a_deny_rule_names_as_a_whole() {
    let questions = json!({ "questions": [{ "question": "Which?", "choices": [{ "label": "a" }, { "label": "b" }] }] });
    let model = [
        says("one"),
        asks_for("1", "ask_person", questions),
        says("two"),
        says("three"),
    ];
    let mut chat = Chat::with(Scripted::new(model), |config| {
        config.policy.deny = vec![
            "editor_context".into(),
            "edit_file **".into(),
            "search docs".into(),
        ];
    });
    let has = |chat: &Chat, name: &str| {
        let request = chat.last_request();
        let described = request.tools.iter().any(|spec| spec.name == name);
        // What is not described is not named either.
        assert!(described || !request.system.contains(name), "{name}");
        described
    };
    assert_eq!(chat.turn("a").await, "done");
    assert!(!has(&chat, "editor_context") && !has(&chat, "edit_file"));
    assert!(has(&chat, "search") && has(&chat, "ask_person") && has(&chat, "write_file"));
    // A rule of the workspace counts from the next turn on.
    let rules = chat.work.join(".co/policy.toml");
    std::fs::create_dir(chat.work.join(".co")).unwrap();
    std::fs::write(&rules, "deny = ['ask_person']").unwrap();
    assert_eq!(chat.turn("b").await, "done");
    assert!(!has(&chat, "ask_person"));
    chat.assert_told("1", "There is no tool called ask_person.");
    std::fs::remove_file(&rules).unwrap();
    assert_eq!(chat.turn("c").await, "done");
    assert!(has(&chat, "ask_person"));
}

#[tokio::test]
async fn a_tool_of_a_server_that_a_deny_rule_names_is_not_described() {
    for rule in ["mcp:e", "mcp:e:echo", "mcp:e:other"] {
        let model = Scripted::new([says("one"), says("two")]);
        let mut chat = Chat::with(model, |config| config.policy.deny = vec![rule.into()]);
        assert_eq!(chat.turn("a").await, "done");
        // It comes while the chat runs, as those of servers do.
        chat.tools().add(Echo::tool());
        assert_eq!(chat.turn("b").await, "done");
        let is_there = tools(&chat).contains("Returns a text.");
        assert_eq!(is_there, rule == "mcp:e:other", "{rule}");
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
