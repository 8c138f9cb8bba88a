//! `/commit`: the model writes a commit message.

use super::chat::{Chat, done, says, text};
use crate::chat::Msg;
use crate::protocol::ToEditor;
use co_llm::scripted::Part;
use co_llm::transcript::Usage;
use co_llm::{Delta, Fault, Stop};

const PASSWORD: &str = "correct-horse_battery/staple";

/// Asks for a message for these changes. Returns it, or the reason why there is none.
async fn written(chat: &mut Chat, changes: &str) -> Result<String, String> {
    chat.send(Msg::WriteCommit(changes.to_owned()));
    let written = chat.until(
        pick!(ToEditor::CommitMessage { text, problem, .. } => (text.clone(), problem.clone())),
    );
    match written.await {
        (Some(text), None) => Ok(text),
        (text, problem) => Err(problem.unwrap_or_else(|| panic!("no reason with {text:?}"))),
    }
}

#[tokio::test]
async fn it_is_written_without_tools_and_without_secrets() {
    let mut chat = Chat::new([says("```\nAdd the password\n```")]);
    chat.write(".env", format!("DB_PASSWORD={PASSWORD}\n"));
    let message = written(&mut chat, &format!("+DB_PASSWORD={PASSWORD}\n")).await;
    assert_eq!(message.as_deref(), Ok("Add the password"));
    let request = chat.last_request();
    assert!(request.tools.is_empty() && !request.may_call);
    let sent = serde_json::to_string(&*request.items).unwrap();
    assert!(sent.contains("[redacted: secret value]"), "{sent}");
    assert!(!chat.work.with_file_name("data").join("chats").exists());
}

#[tokio::test]
async fn one_that_cannot_be_written_gives_the_reason() {
    let mut chat = Chat::new([]);
    let problem = written(&mut chat, "+a\n").await.unwrap_err();
    assert!(problem.contains("the script is at its end"), "{problem}");
}

#[tokio::test]
async fn it_is_asked_for_again_after_a_fault_and_its_tokens_count() {
    let used = |output| -> Part {
        let usage = Usage {
            input: 10,
            output,
            ..Usage::default()
        };
        Delta::Usage(usage).into()
    };
    let mut chat = Chat::new([
        vec![used(1), Part::Fault(Fault::Cut)],
        vec![used(2), text("Add it"), done()],
        vec![used(4), text("```\n```"), done()],
        vec![text("Add it beca"), Delta::Stop(Stop::Length).into()],
    ]);
    assert_eq!(written(&mut chat, "+a\n").await.as_deref(), Ok("Add it"));
    let problem = written(&mut chat, "+a\n").await.unwrap_err();
    assert_eq!(problem, "the model wrote no text; /commit asks again");
    let problem = written(&mut chat, "+a\n").await.unwrap_err();
    assert!(
        problem.starts_with("it reached the model's output limit"),
        "{problem}"
    );
    let told = chat.command_says("usage", "").await.1;
    assert!(told.starts_with("30 tokens in (0 cached), 7 out"), "{told}");
}
