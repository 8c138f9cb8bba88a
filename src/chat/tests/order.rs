//! The calls of a step run in their order, and so do their results.

use serde_json::json;

use super::chat::{Chat, call, calls, done, says, tool, unread};
use crate::protocol::Answer;
use co_llm::scripted::Scripted;
use co_llm::transcript::Item;

/// The calls that the items answer, in the order of the answers.
fn answered(items: &[Item]) -> Vec<String> {
    let outcomes = items
        .iter()
        .filter_map(pick!(Item::Outcome(outcome) => outcome.call.clone()));
    outcomes.collect()
}

#[tokio::test]
async fn a_read_that_follows_a_write_sees_what_was_written() {
    let mut chat = Chat::new([calls(&[("1", "echo new > v"), ("2", "cat v")]), says("ok")]);
    chat.write("v", "old\n");
    chat.say("go");
    chat.approve().await;
    assert_eq!(chat.ended().await, "done");
    chat.assert_told("2", "new");
    let screen = chat.screen();
    assert!(screen.find("✓ echo new").unwrap() < screen.find("· cat v").unwrap());
}

#[tokio::test]
async fn a_look_that_follows_a_write_sees_what_was_written() {
    let write = call("1", "echo new > v");
    let read = tool("2", "read_file", json!({"path": "v"}));
    let mut chat = Chat::trusting([vec![write, read, super::chat::done()], says("ok")]);
    chat.write("v", "old\n");
    assert_eq!(chat.turn("go").await, "done");
    assert!(chat.told("2").starts_with("new"), "{}", chat.told("2"));
}

#[tokio::test]
async fn results_come_in_the_order_of_the_calls() {
    let model = Scripted::new([
        vec![
            call("1", "cat a"),
            tool(
                "2",
                "run_shell_command",
                json!({"cmd": "ls", "argv": ["ls"]}),
            ),
            tool("3", "list_files", json!({})),
            tool("out", "run_shell_command", json!({"cmd": "ls", "cwd": "/"})),
            call("4", "touch b"),
            call("5", "make all"),
            call("6", "cat b"),
            unread("bad"),
            call("7", "rm a"),
            tool("8", "read_file", json!({"path": "a"})),
            call("9", "echo last"),
            unread("worse"),
            done(),
        ],
        says("ok"),
    ]);
    let mut chat = Chat::with(model, |config| config.policy.deny = vec!["make".into()]);
    chat.write("a", "I am a\n");
    let touch = chat.question("go").await;
    let rm = chat.asked().await;
    assert_eq!(
        (touch.command.as_str(), rm.command.as_str()),
        ("touch b", "rm a")
    );
    chat.answer(touch.id, Answer::Once);
    chat.deny(rm.id, "keep it");
    assert_eq!(chat.ended().await, "done");
    let expected = [
        "1", "2", "3", "out", "4", "5", "6", "bad", "7", "8", "9", "worse",
    ];
    assert_eq!(answered(&chat.disk()), expected);
    assert_eq!(answered(&chat.last_request().items), expected);
    chat.assert_shown("not a JSON object");
    for (id, part) in [
        ("1", "I am a"),
        ("2", "either cmd or argv"),
        ("3", "a\n"),
        ("out", "outside the workspace"),
        ("5", "Refused by a deny rule"),
        ("6", "(no output)"),
        ("7", "keep it"),
        ("bad", "not a JSON object"),
        ("8", "I am a"),
        ("9", "last"),
        ("worse", "not a JSON object"),
    ] {
        assert!(chat.told(id).contains(part), "{id}: {}", chat.told(id));
    }
}

#[tokio::test]
async fn a_call_that_an_earlier_one_made_dangerous_asks() {
    let steps = [("1", "ln -s /etc/passwd link"), ("2", "cat link")];
    let mut chat = Chat::new([calls(&steps), says("ok")]);
    chat.write("link", "harmless\n");
    std::fs::remove_file(chat.work.join("link")).unwrap();
    let ask = chat.question("go").await;
    assert_eq!(chat.asks(), 1);
    chat.answer(ask.id, Answer::Once);
    let ask = chat.asked().await;
    assert_eq!(ask.command, "cat link");
    chat.answer(ask.id, Answer::Deny);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.told("2"), "User denied this action");
}
