//! Jobs whose turn, chat or Neovim ends, and moments at which no job may start.

use std::sync::Arc;

use serde_json::json;

use super::chat::{Chat, asks_for, calls, done, eventually, says, tool, valid};
use super::jobs::{ends, ends_within_a_turn, job, known, run_of};
use crate::chat::turn::TurnEnd;
use crate::chat::{self, Msg, Prompt};
use crate::protocol::{Answer, NoticeLevel, Scope, ToEditor};
use co_llm::scripted::Scripted;
use co_llm::transcript::{End, Item};

#[tokio::test]
async fn a_kept_job_ends_with_neovim_and_that_is_on_record() {
    let mut chat = Chat::trusting([job("1", "echo $$ > pid; exec sleep 600"), says("ok")]);
    chat.say("go");
    let run = run_of(&mut chat).await;
    assert_eq!(chat.ended().await, "done");
    known(&[chat.work.join("pid")]).await;
    assert!(chat.services.jobs.keep(run, true));
    chat.app.cancel();
    chat.close().await;
    let disk = chat.disk();
    let told = disk
        .iter()
        .find_map(pick!(Item::JobEnded { text, .. } => text.as_str()));
    let told = told.unwrap();
    assert!(told.contains("ended with Neovim"), "{told}");
    chat.services.jobs.cancel(run);
}

#[tokio::test]
async fn an_ask_rule_stands_above_what_was_allowed_for_a_job() {
    let write = |id: &str| asks_for(id, "job_write", json!({"job": 1, "text": "x\n"}));
    let model = Scripted::new([job("1", "cat"), write("2"), write("3"), says("ok")]);
    let mut chat = Chat::with(model, |config| {
        config.policy.ask = vec!["job_write".into()];
    });
    chat.say("go");
    chat.allow_next(Scope::Command).await;
    let ask = chat.asked().await;
    assert!(ask.reasons[1].contains("says to ask"), "{:?}", ask.reasons);
    chat.deny(ask.id, "no");
    assert_eq!(chat.ended().await, "done");
}

#[tokio::test]
async fn a_call_whose_job_runs_is_answered_with_it_when_the_turn_is_cancelled() {
    let follow = json!({"cmd": "cat", "background": true});
    let mut chat = Chat::trusting([vec![
        tool("1", "run_shell_command", follow.clone()),
        tool("2", "run_shell_command", follow),
        done(),
    ]]);
    chat.say("go");
    run_of(&mut chat).await;
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    assert_eq!(chat.turn_with("and?", says("Here.")).await, "done");
    let disk = chat.disk();
    let started = disk
        .iter()
        .filter_map(pick!(Item::JobStarted { job, call, .. } => (job, call)));
    // The second may have been about to start.
    let not_started = |wanted: u64| {
        disk.iter().any(|item| {
            matches!(item, Item::JobEnded { job, text, .. } if *job == wanted && text.contains("was not started"))
        })
    };
    assert!(!not_started(1));
    for (job, call) in started {
        let said = match not_started(*job) {
            true => "Cancelled before it was run.".to_owned(),
            false => format!("[job {job} was started]"),
        };
        let told = chat.told(call);
        assert!(told.starts_with(&said), "{told}");
    }
    valid(&chat.last_request().items);
}

#[tokio::test]
async fn a_conversation_is_not_forked_while_its_jobs_run() {
    let mut chat = Chat::trusting([job("1", "exec sleep 600"), says("ok")]);
    chat.say("go");
    let run = run_of(&mut chat).await;
    assert_eq!(chat.ended().await, "done");
    let (level, said) = chat.command_says("fork", "").await;
    assert_eq!(level, NoticeLevel::Error, "{said}");
    assert!(said.contains("job 1") || said.contains("/jobs"), "{said}");
    assert_eq!(chat.files().len(), 1);
    assert!(chat.services.jobs.cancel(run));
    chat.shown("ended: cancelled").await;
    chat.command_works("fork", "", "").await;
}

#[tokio::test]
async fn how_a_job_ended_is_told_once_where_nothing_can_be_typed() {
    let wait = "touch go; until test -e gone; do sleep 0.05; done";
    let mut chat = Chat::trusting([
        job("1", "until test -e go; do sleep 0.05; done; exit 3"),
        vec![
            tool("2", "run_shell_command", json!({ "cmd": wait })),
            tool("3", "job_write", json!({"job": 1, "text": "x\n"})),
            done(),
        ],
        says("It failed."),
    ]);
    ends_within_a_turn(&mut chat).await;
    let told = chat.told("3");
    assert!(
        told.starts_with("Nothing was typed: [job 1 ended: exit 3"),
        "{told}"
    );
    assert_eq!(ends(&chat.disk()), [(1, true)]);
}

#[tokio::test]
async fn prompts_that_wait_come_back_with_the_one_that_cannot_be_sent() {
    let mut test = Chat::new([]);
    let mut chat = chat::Chat::new(
        7,
        test.front_end(7),
        Arc::clone(&test.services),
        test.place(),
        test.app.clone(),
    );
    for text in ["second", "third"] {
        chat.queue.push(prompt(text));
    }
    // Nothing can be recorded for a conversation that could not be resumed.
    chat.resume_failed = true;
    let done = TurnEnd {
        end: End::Done,
        ..TurnEnd::failed(None)
    };
    chat.end_turn(done).await;
    // Each goes in front of what the prompt has by then.
    for text in ["third", "second"] {
        assert_eq!(test.unsent().await, text);
    }
    test.until(pick!(ToEditor::State { chat: 7, queued: 0, .. } => ()))
        .await;
    assert_eq!(chat.queue.queued(), 0);
}

#[tokio::test]
async fn an_audit_log_that_cannot_be_written_is_said_once() {
    let call = |id: &str| calls(&[(id, "echo x")]);
    let mut chat = Chat::trusting([call("1"), call("2"), says("ok")]);
    let state = chat.root.path().join("state");
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::write(&state, "").unwrap();
    assert_eq!(chat.turn("go").await, "done");
    let said = |message: &&ToEditor| matches!(message, ToEditor::Notice { message, .. } if message.contains("audit log"));
    assert_eq!(chat.seen.iter().filter(said).count(), 1);
}

fn prompt(text: &str) -> Prompt {
    Prompt {
        text: text.to_owned(),
        ..Prompt::default()
    }
}

#[tokio::test]
async fn a_job_that_could_not_be_started_has_its_end_on_record() {
    let arguments = json!({"cmd": "sleep 600 > out", "cwd": "sub", "background": true});
    let mut chat = Chat::new([
        asks_for("1", "run_shell_command", arguments),
        job("2", "cat"),
        says("ok"),
    ]);
    let sub = chat.work.join("sub");
    std::fs::create_dir(&sub).unwrap();
    let ask = chat.question("go").await;
    std::fs::remove_dir(&sub).unwrap();
    chat.answer(ask.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    let disk = chat.disk();
    assert_eq!(ends(&disk), [(1, true)], "{disk:#?}");
    chat.assert_told("2", "job 2 was started");
    // Resumed, the numbers go on.
    chat.resumed().await;
    chat.model.push(job("3", "cat"));
    assert_eq!(chat.turn_with("and again", says("ok")).await, "done");
    chat.assert_told("3", "job 3 was started");
}

#[tokio::test]
async fn no_more_than_eight_run_at_once_and_nobody_is_asked_about_one_more() {
    let follow = |id: usize| job(&id.to_string(), "cat");
    let more = [
        job("touch", "touch a"),
        asks_for("cancel", "job_cancel", json!({"job": 3})),
        follow(11),
        says("ok"),
    ];
    let mut chat = Chat::new((1..=9).map(follow).chain(more));
    assert_eq!(chat.turn("go").await, "done");
    assert_eq!(chat.asks(), 0);
    for id in ["9", "touch"] {
        chat.assert_told(id, "8 jobs run already");
        chat.assert_told(id, "job_cancel");
    }
    chat.assert_told("11", "job 9 was started");
    // What needs no question was allowed before that was known.
    assert!(chat.decisions().iter().any(|(call, _)| call == "9"));
    eventually("that it was not run is audited", || {
        let audit = chat.audit();
        let mut lines = audit.lines();
        lines.any(|line| line.contains("\"call\":\"9\"") && line.contains("not run"))
    })
    .await;
}

#[tokio::test]
async fn the_oldest_of_many_ended_jobs_are_let_go_of() {
    let short = |id: usize| job(&id.to_string(), "echo over");
    let asked =
        |id: &str, number: u64| asks_for(id, "job_output", json!({"job": number, "since": 0}));
    let mut chat =
        Chat::trusting(
            (1..=18)
                .map(short)
                .chain([asked("old", 1), asked("young", 3), says("ok")]),
        );
    assert_eq!(chat.turn("go").await, "done");
    let told = chat.told("old");
    assert!(
        told.contains("no job 1 in this chat") && told.contains("18 ended"),
        "{told}"
    );
    assert!(
        chat.told("young").starts_with("over\n"),
        "{}",
        chat.told("young")
    );
}

#[tokio::test]
async fn what_a_job_came_to_at_once_is_its_outcome() {
    let mut chat = Chat::new([job("1", "echo no; exit 3"), says("ok")]);
    let ask = chat.question("go").await;
    chat.edit(ask.id, "echo yes; exit 4");
    assert_eq!(chat.ended().await, "done");
    let told = chat.told("1");
    assert!(
        told.contains("what was started is:\necho yes; exit 4\n") && told.contains("exit 4, "),
        "{told}"
    );
    let failed = |item: &Item| matches!(item, Item::Outcome(outcome) if !outcome.ok);
    assert!(chat.disk().iter().any(failed));
}

#[tokio::test]
async fn nothing_is_typed_behind_the_end_of_input() {
    let write = |id: &str, more: serde_json::Value| asks_for(id, "job_write", more);
    let mut chat = Chat::trusting([
        job("1", "sleep 600"),
        write("2", json!({"job": 1, "close": true})),
        write("3", json!({"job": 1, "text": "x\n"})),
        says("ok"),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    let told = chat.told("3");
    assert!(
        told.starts_with("Nothing was typed: its standard input is closed"),
        "{told}"
    );
}
