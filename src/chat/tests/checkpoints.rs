//! The changes of each call, and the way back.

use serde_json::json;

use super::chat::{Chat, calls, done, eventually, says, tool};
use crate::checkpoint::{By, Change, Record};
use crate::protocol::{Answer, ToEditor};
use co_llm::transcript::Decision;

/// Waits until the first checkpoint was made.
async fn prepared(chat: &mut Chat) {
    chat.until(|message| matches!(message, ToEditor::NoUndo { why: None, .. }).then_some(()))
        .await;
}

fn records(chat: &Chat) -> Vec<Record> {
    chat.services.checkpoints.records(&chat.id())
}

fn paths(changes: &[Change]) -> Vec<&str> {
    changes.iter().map(|it| it.path.to_str().unwrap()).collect()
}

#[tokio::test]
async fn each_call_that_changes_files_is_kept_with_its_approval() {
    let mut chat = Chat::new([
        vec![
            tool("1", "write_file", json!({ "path": "new", "text": "x\n" })),
            tool(
                "2",
                "run_shell_command",
                json!({ "cmd": "echo 1 >> a; rm b; false" }),
            ),
            tool(
                "3",
                "run_shell_command",
                json!({ "cmd": "true > /dev/null; : x" }),
            ),
            done(),
        ],
        says("Done."),
    ]);
    chat.write("a", "0\n");
    chat.write("b", "0\n");
    chat.say("go");
    prepared(&mut chat).await;
    for _ in 0..3 {
        let ask = chat.asked().await;
        assert_eq!(ask.no_undo, None);
        chat.answer(ask.id, Answer::Once);
    }
    assert_eq!(chat.ended().await, "done");
    let records = records(&chat);
    let by = |what: &str, command| By::Call {
        what: what.to_owned(),
        decision: Decision::Approved,
        command,
    };
    assert_eq!(
        records.len(),
        2,
        "the last one changed nothing: {records:?}"
    );
    assert_eq!(records[0].by, by("write_file new", false));
    assert_eq!(paths(&records[0].changes), ["new"]);
    assert_eq!(records[1].by, by("echo 1 >> a; rm b; false", true));
    assert_eq!(paths(&records[1].changes), ["a", "b"]);
}
