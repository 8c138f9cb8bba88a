//! The questions of a step wait together; the commands run in the order of the calls.

use serde_json::json;

use super::chat::{Chat, asks_for, calls, done, eventually, says, tool};
use super::jobs::job;
use crate::protocol::{Answer, ChatState, Question, Scope};
use co_llm::scripted::Scripted;
use co_llm::transcript::Decision;

/// Runs until the file `go` is there.
const WAITS: &str = "until test -e go; do sleep 0.05; done";

/// The next `count` questions.
async fn questions(chat: &mut Chat, count: usize) -> Vec<Question> {
    let mut asked = Vec::new();
    for _ in 0..count {
        asked.push(chat.asked().await);
    }
    asked
}

#[tokio::test]
async fn they_are_all_asked_before_one_is_answered() {
    let steps = [
        ("1", "touch a"),
        ("2", "cat note"),
        ("3", "touch b"),
        ("4", "touch c"),
    ];
    let mut chat = Chat::new([calls(&steps), says("ok")]);
    chat.say("go");
    let asked = questions(&mut chat, 3).await;
    let commands: Vec<_> = asked.iter().map(|ask| ask.command.as_str()).collect();
    assert_eq!(commands, ["touch a", "touch b", "touch c"]);
    assert!(!chat.work.join("a").exists());
    for ask in asked {
        chat.answer(ask.id, Answer::Once);
    }
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.asks(), 3, "an answer that was given early holds");
    assert!(chat.work.join("c").exists());
}

#[tokio::test]
async fn an_early_answer_waits_for_its_turn() {
    let mut chat = Chat::new([calls(&[("1", WAITS), ("2", "touch b")]), says("ok")]);
    chat.say("go");
    let asked = questions(&mut chat, 2).await;
    chat.answer(asked[1].id, Answer::Once);
    chat.answer(asked[0].id, Answer::Once);
    chat.state(ChatState::Running).await;
    assert!(!chat.work.join("b").exists());
    chat.write("go", "");
    assert_eq!(chat.ended().await, "done");
    assert!(chat.work.join("b").exists());
    let ids: Vec<_> = chat.decisions().into_iter().map(|(call, _)| call).collect();
    assert_eq!(ids, ["1", "2"]);
}

/// Answers both questions, the second one early, and returns the question that is asked after the first command.
async fn asked_again(commands: [&str; 2], files: &[&str]) -> (Chat, Question) {
    let mut chat = Chat::new([calls(&[("1", commands[0]), ("2", commands[1])]), says("ok")]);
    for file in files {
        chat.write(file, "");
    }
    chat.say("go");
    let asked = questions(&mut chat, 2).await;
    chat.answer(asked[1].id, Answer::Once);
    chat.answer(asked[0].id, Answer::Once);
    let again = chat.asked().await;
    assert_eq!(again.command, commands[1]);
    assert_ne!(again.id, asked[1].id);
    let why = again.reasons.last().unwrap();
    assert!(why.contains("asked again"), "{why}");
    assert!(!asked[1].reasons.contains(why));
    (chat, again)
}

#[tokio::test]
async fn an_early_answer_does_not_hold_for_words_that_an_earlier_call_may_change() {
    for second in [
        "rm *.o",
        "rm \"$OLD\" *.o",
        "cd sub && rm *.o",
        "for file in *.o; do rm $file; done",
        "rm *.o; echo > *.o",
    ] {
        let (mut chat, again) =
            asked_again(["touch new.o sub/new.o", second], &["old.o", "sub/old.o"]).await;
        chat.answer(again.id, Answer::Deny);
        assert_eq!(chat.ended().await, "done");
        assert!(chat.work.join("old.o").exists() && chat.work.join("new.o").exists());
        assert_eq!(chat.told("2"), "User denied this action");
    }
}

#[tokio::test]
async fn an_early_edit_does_not_hold_for_other_words() {
    let mut chat = Chat::new([calls(&[("1", "touch new.o"), ("2", "touch b")]), says("ok")]);
    chat.write("old.o", "");
    chat.say("go");
    let asked = questions(&mut chat, 2).await;
    chat.edit(asked[1].id, "rm *.o");
    chat.answer(asked[0].id, Answer::Once);
    let again = chat.asked().await;
    assert_eq!(again.command, "rm *.o");
    let why = again.reasons.last().unwrap();
    assert!(why.contains("asked again"), "{why}");
    chat.answer(again.id, Answer::Deny);
    assert_eq!(chat.ended().await, "done");
    assert!(chat.work.join("old.o").exists() && chat.work.join("new.o").exists());
}

#[tokio::test]
async fn a_no_holds_whatever_the_words_are_by_then() {
    let mut chat = Chat::new([calls(&[("1", "touch new.o"), ("2", "rm *.o")]), says("ok")]);
    chat.write("old.o", "");
    chat.say("go");
    let asked = questions(&mut chat, 2).await;
    chat.answer(asked[1].id, Answer::Deny);
    chat.answer(asked[0].id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.asks(), 2);
    assert!(chat.work.join("old.o").exists());
}

#[tokio::test]
async fn an_always_takes_those_away_that_it_allows() {
    // Without a scope it is the command alone.
    for scope in [None, Some(Scope::Command)] {
        let steps = [("1", "touch a"), ("2", "touch a"), ("3", "touch b")];
        let mut chat = Chat::new([calls(&steps), says("ok")]);
        chat.say("go");
        let asked = questions(&mut chat, 3).await;
        match scope {
            None => chat.answer(asked[0].id, Answer::Always),
            Some(scope) => chat.always(asked[0].id, scope),
        }
        chat.withdrawn(asked[1].id).await;
        chat.answer(asked[2].id, Answer::Deny);
        assert_eq!(chat.ended().await, "done");
        assert_eq!(chat.asks(), 3);
        assert!(matches!(chat.decisions()[1].1, Decision::Rule { .. }));
    }
}

#[tokio::test]
async fn an_always_for_a_later_call_holds_at_once() {
    let steps = [("1", WAITS), ("2", "touch b"), ("3", "touch c")];
    let mut chat = Chat::new([calls(&steps), says("ok")]);
    chat.say("go");
    let asked = questions(&mut chat, 3).await;
    chat.answer(asked[0].id, Answer::Once);
    chat.state(ChatState::Running).await;
    chat.always(asked[1].id, Scope::Everything);
    chat.withdrawn(asked[2].id).await;
    assert!(!chat.work.join("b").exists());
    chat.write("go", "");
    assert_eq!(chat.ended().await, "done");
    assert!(chat.work.join("c").exists());
    assert_eq!(chat.asks(), 3);
}

#[tokio::test]
async fn an_always_for_a_later_call_lets_the_first_one_run() {
    let mut chat = Chat::new([calls(&[("1", "touch a"), ("2", "touch b")]), says("ok")]);
    chat.say("go");
    let asked = questions(&mut chat, 2).await;
    chat.always(asked[1].id, Scope::Everything);
    chat.withdrawn(asked[0].id).await;
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.decisions()[0].1, Decision::AutoConfirm);
    assert!(chat.work.join("a").exists() && chat.work.join("b").exists());
}

#[tokio::test]
async fn what_an_earlier_command_made_harmless_asks_no_more() {
    let steps = [("1", "rm link"), ("2", "cat link")];
    let mut chat = Chat::new([calls(&steps), says("ok")]);
    std::os::unix::fs::symlink("/etc/passwd", chat.work.join("link")).unwrap();
    chat.say("go");
    let asked = questions(&mut chat, 2).await;
    chat.answer(asked[0].id, Answer::Once);
    chat.withdrawn(asked[1].id).await;
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.decisions()[1].1, Decision::Unasked);
}

#[tokio::test]
async fn an_early_edit_runs_when_its_turn_comes() {
    let mut chat = Chat::new([calls(&[("1", "touch a"), ("2", "rm -r src")]), says("ok")]);
    chat.say("go");
    let asked = questions(&mut chat, 2).await;
    chat.edit(asked[1].id, "mkdir kept");
    chat.answer(asked[0].id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.asks(), 2);
    assert!(chat.work.join("a").exists() && chat.work.join("kept").is_dir());
    chat.assert_told("2", "mkdir kept");
}

#[tokio::test]
async fn what_is_typed_into_a_job_waits_with_the_others() {
    let write = tool("3", "job_write", json!({"job": 1, "text": "x\n"}));
    let model = Scripted::new([
        job("1", "cat > typed"),
        vec![super::chat::call("2", "touch a"), write, done()],
        asks_for("4", "job_cancel", json!({"job": 1})),
        says("ok"),
    ]);
    let mut chat = Chat::with(model, |config| {
        config.policy.allow = vec!["= cat > typed".into()]
    });
    chat.say("go");
    let asked = questions(&mut chat, 2).await;
    assert_eq!((asked[0].job, asked[1].job), (None, Some(1)));
    chat.answer(asked[1].id, Answer::Once);
    chat.answer(asked[0].id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.asks(), 2);
    eventually("it is typed", || {
        std::fs::read_to_string(chat.work.join("typed")).is_ok_and(|text| text == "x\n")
    })
    .await;
}

/// Allows everything in the question about text for a job, then answers the question about `command`. The turn does not
/// look at that answer until it has seen what the job prints.
async fn answered_while_a_job_is_read(command: &str, answer: impl FnOnce(&Chat, u64)) -> Chat {
    let write = tool("2", "job_write", json!({"job": 1, "text": "x\n"}));
    let model = Scripted::new([
        job("1", "cat > typed"),
        vec![write, super::chat::call("3", command), done()],
        says("ok"),
    ]);
    let mut chat = Chat::with(model, |config| {
        config.policy.allow = vec!["= cat > typed".into()]
    });
    chat.say("go");
    let asked = questions(&mut chat, 2).await;
    chat.always(asked[0].id, Scope::Everything);
    answer(&chat, asked[1].id);
    chat
}

#[tokio::test]
async fn a_no_that_came_unnoticed_holds_where_everything_is_allowed() {
    let deny = |chat: &Chat, id| chat.answer(id, Answer::Deny);
    let mut chat = answered_while_a_job_is_read("touch b", deny).await;
    assert_eq!(chat.ended().await, "done");
    assert!(!chat.work.join("b").exists());
    assert_eq!(chat.told("3"), "User denied this action");
}

#[tokio::test]
async fn an_edit_that_came_unnoticed_holds_where_everything_is_allowed() {
    let edit = |chat: &Chat, id| chat.edit(id, "touch c");
    let mut chat = answered_while_a_job_is_read("touch b", edit).await;
    assert_eq!(chat.ended().await, "done");
    assert!(!chat.work.join("b").exists() && chat.work.join("c").exists());
}

#[tokio::test]
async fn an_always_that_came_unnoticed_is_saved_where_everything_is_allowed() {
    let always = |chat: &Chat, id| chat.always(id, Scope::PrefixSaved);
    let mut chat = answered_while_a_job_is_read("make one", always).await;
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.rules(), ["make one"]);
}
