//! The changes of each call, and the way back.

use std::fs;

use serde_json::json;

use super::chat::{Chat, call, done, eventually, says, tool};
use crate::chat::Msg;
use crate::checkpoint::{Change, ChangeCause, Record};
use crate::protocol::{Answer, ToEditor};
use co_llm::transcript::{Decision, Item};

/// Makes the first checkpoint.
pub(super) fn prepare(chat: &Chat) {
    let judge = chat.services.judge(&chat.work);
    let workspace = chat.services.checkpoints.workspace(&judge).unwrap();
    workspace.prepare();
    assert_eq!(workspace.missing(), None);
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
    prepare(&chat);
    let ask = chat.question("go").await;
    assert_eq!(ask.no_undo, None);
    chat.answer(ask.id, Answer::Once);
    for _ in 0..2 {
        chat.approve().await;
    }
    assert_eq!(chat.ended().await, "done");
    let records = records(&chat);
    let by = |what: &str, command| ChangeCause::Call {
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

/// Writes with two calls and waits for the end of the turn.
async fn change_files(chat: &mut Chat) {
    chat.write("a", "1\n2\n3\n");
    prepare(chat);
    chat.say("change them");
    for _ in 0..2 {
        chat.approve().await;
    }
    assert_eq!(chat.ended().await, "done");
}

fn changing() -> Chat {
    let edit = json!({ "path": "a", "edits": [{ "old": "2", "new": "two" }] });
    Chat::new([
        vec![
            tool("1", "edit_file", edit),
            call("2", "echo new > new; false"),
            done(),
        ],
        says("Done."),
    ])
}

#[tokio::test]
async fn a_turn_is_taken_back_and_brought_back() {
    let mut chat = changing();
    change_files(&mut chat).await;
    chat.write("a", "1\ntwo\n3\nmine\n");
    chat.command("undo", "");
    let ask = chat.asked().await;
    assert_eq!(ask.command, "/undo");
    assert_eq!(ask.reasons[0], "of the turn “change them”");
    assert!(
        ask.reasons[1].contains("over the network stays"),
        "{:?}",
        ask.reasons
    );
    let change = ask.change.unwrap();
    assert!(change.undo);
    assert_eq!(
        change.excerpt,
        "#── 2 files\n#── a  +1 -1\n 1\n-two\n+2\n 3\n mine\n#── new  +0 -1\n-new\n"
    );
    assert_eq!(chat.read("new"), "new\n", "nothing before the yes");
    chat.answer(ask.id, Answer::Once);
    let (_, said) = chat.noticed().await;
    assert_eq!(said, "2 files taken back; :Co /redo undoes that");
    assert_eq!(chat.read("a"), "1\n2\n3\nmine\n");
    assert_eq!(chat.read("new"), "none");
    let (_, said) = chat.command_says("undo", "").await;
    assert!(said.starts_with("there is nothing to take back"), "{said}");
    chat.command("redo", "");
    let ask = chat.asked().await;
    assert_eq!(ask.command, "/redo");
    chat.answer(ask.id, Answer::Once);
    let (_, said) = chat.noticed().await;
    assert_eq!(said, "2 files brought back");
    assert_eq!(chat.read("a"), "1\ntwo\n3\nmine\n");
    assert_eq!(chat.read("new"), "new\n");
    assert_eq!(chat.turn_with("go on", says("I see.")).await, "done");
    let notes = chat.last_request().items;
    let told = |text: &str| {
        let is =
            |item: &&Item| matches!(item, Item::Note { text: note, .. } if note.contains(text));
        notes.iter().filter(is).count()
    };
    assert_eq!(told("took changes of an earlier turn back"), 1);
    assert_eq!(told("before you change them: a, new."), 2);
}

#[tokio::test]
async fn a_no_takes_nothing_back_and_a_prompt_ends_the_question() {
    let mut chat = changing();
    change_files(&mut chat).await;
    chat.command("undo", "");
    let ask = chat.asked().await;
    chat.answer(ask.id, Answer::Deny);
    chat.command("undo", "");
    let ask = chat.asked().await;
    assert_eq!(chat.turn_with("hello", says("Hello.")).await, "done");
    let id = ask.id;
    let settled = chat.seen.iter();
    let settled =
        settled.filter(|it| matches!(it, ToEditor::Settled { id: gone, .. } if *gone == id));
    assert_eq!(settled.count(), 1);
    chat.answer(ask.id, Answer::Once);
    chat.command("undo", "");
    let ask = chat.asked().await;
    assert_eq!(chat.read("a"), "1\ntwo\n3\n");
    chat.answer(ask.id, Answer::Once);
    chat.noticed().await;
    assert_eq!(chat.read("a"), "1\n2\n3\n");
}

#[tokio::test]
async fn a_turn_is_taken_back_by_another_backend() {
    let mut chat = changing();
    change_files(&mut chat).await;
    chat.resumed().await;
    chat.command("undo", "");
    chat.approve().await;
    chat.noticed().await;
    assert_eq!(chat.read("a"), "1\n2\n3\n");
    // The note to the model is between two turns.
    let screen = chat.resumed().await;
    let (_, end) = screen.rsplit_once("Done.").unwrap();
    assert!(
        end.contains("took changes of an earlier turn back"),
        "{end}"
    );
    assert!(!end.contains("## Co"), "{end}");
}

#[tokio::test]
async fn what_stays_is_named() {
    let mut chat = Chat::new([
        vec![
            call(
                "1",
                "echo co > same; echo co > mine; touch go; until [ -e end ]; do sleep 0.01; done",
            ),
            done(),
        ],
        says("Done."),
        vec![call("2", "echo co > other"), done()],
        says("Done."),
    ]);
    chat.write("same", "before\n");
    chat.write("mine", "before\n");
    prepare(&chat);
    chat.say("go");
    chat.approve().await;
    let go = chat.work.join("go");
    eventually("the command runs", || go.exists()).await;
    chat.services.checkpoints.saved(&chat.work.join("mine"));
    chat.run("echo run > run; touch end");
    assert_eq!(chat.ended().await, "done");
    chat.write("same", "mine\n");
    chat.command("undo", "");
    let ask = chat.asked().await;
    let reasons = ask.reasons.join("\n");
    assert!(
        reasons.contains("same stays: it was changed later, in the same place"),
        "{reasons}"
    );
    assert!(
        reasons.contains("at the same time, and stays: mine, end, run"),
        "{reasons}"
    );
    chat.answer(ask.id, Answer::Once);
    let (_, said) = chat.noticed().await;
    assert_eq!(
        said,
        "1 file taken back; :Co /redo undoes that; 1 file left alone"
    );
    assert_eq!(chat.read("same"), "mine\n");
    assert_eq!(chat.read("mine"), "co\n");
    assert_eq!(chat.read("run"), "run\n");
    assert!(!go.exists());
    chat.command("changes", "");
    let entries = chat
        .until(pick!(ToEditor::Quickfix { entries, .. } => entries.clone()))
        .await;
    let texts: Vec<_> = entries.iter().map(|it| it.text.as_str()).collect();
    assert!(texts[0].starts_with("+1 -1 · echo co > same;"), "{texts:?}");
    assert!(texts[0].ends_with("· approved · taken back"), "{texts:?}");
    assert!(
        texts
            .iter()
            .any(|it| it.starts_with("perhaps not by it · ")),
        "{texts:?}"
    );
}

#[tokio::test]
async fn an_undo_that_fails_can_be_tried_again() {
    let mut chat = Chat::new([vec![call("1", "echo new > a"), done()], says("Done.")]);
    chat.write("a", "old\n");
    prepare(&chat);
    chat.say("go");
    chat.approve().await;
    assert_eq!(chat.ended().await, "done");
    chat.command("undo", "");
    let ask = chat.asked().await;
    chat.write("a", "later\n");
    chat.answer(ask.id, Answer::Once);
    let (_, said) = chat.noticed().await;
    assert!(said.starts_with("nothing was changed"), "{said}");
    assert!(said.contains("; a was not changed: "), "{said}");
    chat.write("a", "new\n");
    chat.command("undo", "");
    chat.approve().await;
    chat.noticed().await;
    assert_eq!(chat.read("a"), "old\n");
}

#[tokio::test]
async fn hard_links_that_stay_are_named_and_can_be_taken_back_later() {
    let mut chat = Chat::new([vec![call("1", "echo new > a"), done()], says("Done.")]);
    chat.write("a", "old\n");
    fs::hard_link(chat.work.join("a"), chat.work.join("b")).unwrap();
    prepare(&chat);
    chat.say("go");
    chat.approve().await;
    assert_eq!(chat.ended().await, "done");
    for _ in 0..2 {
        let (_, said) = chat.command_says("undo", "").await;
        assert!(said.starts_with("nothing was changed"), "{said}");
        assert!(said.contains("; a stays: it has 2 names"), "{said}");
        assert!(said.contains("; b stays: it has 2 names"), "{said}");
    }
    fs::remove_file(chat.work.join("b")).unwrap();
    chat.command("undo", "");
    chat.approve().await;
    chat.noticed().await;
    assert_eq!(chat.read("a"), "old\n");
}

#[tokio::test]
async fn a_cancelled_command_is_taken_back_too() {
    let mut chat = Chat::new([vec![call("1", "echo co > a; touch go; sleep 60"), done()]]);
    chat.write("a", "before\n");
    prepare(&chat);
    chat.say("go");
    chat.approve().await;
    let go = chat.work.join("go");
    eventually("the command runs", || go.exists()).await;
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    chat.command("undo", "");
    chat.approve().await;
    chat.noticed().await;
    assert_eq!(chat.read("a"), "before\n");
    assert!(!go.exists());
}

#[tokio::test]
async fn redo_leaves_the_question_of_undo_open() {
    let mut chat = changing();
    change_files(&mut chat).await;
    chat.command("undo", "");
    let ask = chat.asked().await;
    let (_, said) = chat.command_says("redo", "").await;
    assert_eq!(said, "/undo waits for your answer; :Co /approve goes to it");
    chat.answer(ask.id, Answer::Once);
    let (_, said) = chat.noticed().await;
    assert_eq!(said, "2 files taken back; :Co /redo undoes that");
    chat.command("redo", "");
    chat.asked().await;
    // This asks again: the files may have changed meanwhile.
    chat.command("redo", "");
    assert_eq!(chat.asked().await.command, "/redo");
}

#[tokio::test]
async fn a_chat_without_changes_says_so() {
    let mut chat = Chat::new([says("Hello.")]);
    for command in ["undo", "changes", "redo"] {
        let (_, said) = chat.command_says(command, "").await;
        assert_eq!(said, "this chat has changed no file");
    }
    assert_eq!(chat.turn("hi").await, "done");
    let (_, said) = chat.command_says("undo", "").await;
    assert!(said.starts_with("there is nothing to take back"), "{said}");
    let (_, said) = chat.command_says("redo", "").await;
    assert_eq!(said, "there is no /undo to take back");
}

#[tokio::test]
async fn the_first_turn_makes_a_checkpoint() {
    let mut chat = Chat::new([says("Hello.")]);
    chat.say("hi");
    chat.until(|message| matches!(message, ToEditor::NoUndo { chat: 1, why: None }).then_some(()))
        .await;
    assert_eq!(chat.services.checkpoints.missing(&chat.work), None);
}
