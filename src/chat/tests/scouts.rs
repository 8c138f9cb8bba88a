//! Scouts: turns below a turn, which only look and report.

use std::time::Duration;

use serde_json::json;

use super::chat::{Chat, asks_for, done, eventually, says, text, tool};
use crate::chat::Msg;
use crate::protocol::ToEditor;
use crate::tool::explore;
use co_llm::scripted::{Part, Scripted};
use co_llm::transcript::{Item, Usage};
use co_llm::{Delta, Fault};

fn sends(ids: &[&str]) -> Vec<Part> {
    let calls = ids.iter().map(|id| {
        let task = format!("find {id}");
        tool(id, explore::NAME, json!({ "task": task }))
    });
    calls.chain([done()]).collect()
}

fn reads(id: &str, path: &str) -> Vec<Part> {
    asks_for(id, "read_file", json!({ "path": path }))
}

/// Returns the last line of the call in the chat that has a part.
fn line(chat: &Chat, part: &str) -> crate::protocol::CallLine {
    let lines = chat.seen.iter().rev();
    let mut lines = lines.filter_map(pick!(ToEditor::Call { line, .. } => line));
    let line = lines.find(|line| line.text.contains(part));
    line.unwrap_or_else(|| panic!("no call has {part}")).clone()
}

fn used(input: u64, output: u64) -> Part {
    Part::Delta(Delta::Usage(Usage {
        input,
        output,
        ..Usage::default()
    }))
}

#[tokio::test]
async fn a_scout_looks_in_a_context_of_its_own_and_reports() {
    let mut read = reads("r", "a.txt");
    read.insert(0, used(100, 10));
    let mut report = says("It is in a.txt:1.");
    report.insert(0, used(200, 20));
    let mut chat = Chat::new([sends(&["x"]), read, report, says("Found.")]);
    std::fs::write(chat.work.join("a.txt"), "the text\n").unwrap();
    assert_eq!(chat.turn("where is it?").await, "done");
    assert_eq!(chat.told("x").trim_end(), "It is in a.txt:1.");
    let requests = chat.model.requests();
    let own = format!("{:?}", requests[1].items);
    assert!(
        own.contains("find x") && !own.contains("where is it?"),
        "{own}"
    );
    assert!(requests[1].system.contains("You are a scout"));
    let names: Vec<_> = requests[1].tools.iter().map(|it| &*it.name).collect();
    // Nothing confines commands in these tests.
    assert_eq!(
        names,
        ["read_file", "list_files", "search", "editor_context"]
    );
    assert!(!format!("{:?}", requests[3].items).contains("the text"));
    let shown = line(&chat, "find x");
    assert_eq!(shown.text, "explore find x  1 call");
    assert!(shown.details.contains("300 tokens in"), "{}", shown.details);
    assert_eq!(shown.lead.len(), 1, "{:?}", shown.lead);
    assert!(
        shown.lead[0].starts_with("read a.txt  "),
        "{:?}",
        shown.lead
    );
    // Its tokens are those of the chat.
    let Some(Item::End { usage, .. }) = chat.disk().last().cloned() else {
        panic!("no end");
    };
    assert_eq!((usage.input, usage.output), (300, 30));
    // Resumed, it reads the same.
    let again = chat.resumed().await;
    assert!(again.contains("Found."), "{again}");
    let rows = chat.seen.iter().rev().find_map(
        pick!(ToEditor::Replace { part, .. } => part.calls.iter().map(|it| it.line.clone()).collect::<Vec<_>>()),
    );
    let rows = rows.unwrap();
    assert_eq!(
        (rows[0].text.as_str(), &rows[0].lead),
        (&*shown.text, &shown.lead)
    );
}

#[tokio::test]
async fn four_scouts_look_beside_each_other_and_a_fifth_waits() {
    let ids = ["a", "b", "c", "d", "e"];
    // No scout gets a report before so many steps of scouts.
    const STEPS: usize = 12;
    let step = |at: usize| {
        let mut parts = reads(&format!("r{at}"), &format!("{at}.txt"));
        parts.insert(0, Part::Pause(Duration::from_millis(1)));
        parts
    };
    let mut answers = vec![sends(&ids)];
    answers.extend((0..STEPS).map(step));
    answers.extend(ids.map(|_| says("Same.")));
    answers.push(says("All."));
    let mut chat = Chat::new(answers);
    assert_eq!(chat.turn("look").await, "done");
    for id in ids {
        assert_eq!(chat.told(id).trim_end(), "Same.");
    }
    let requests = chat.model.requests();
    let first = |id: &str| {
        let task = format!("find {id}");
        let first = |item: &Item| matches!(item, Item::User { text, .. } if *text == task);
        requests.iter().position(|it| it.items.iter().any(first))
    };
    let mut began = ids.map(|id| first(id).unwrap());
    began.sort_unstable();
    assert!(began[3] <= STEPS, "{began:?}: four look at once");
    assert!(
        began[4] > STEPS + 1,
        "{began:?}: the fifth waits for a report"
    );
    // All are on the screen before the first one has ended.
    let lines = chat.seen.iter();
    let lines =
        lines.filter_map(pick!(ToEditor::Call { call, line, .. } => (*call, line.kept.is_some())));
    let lines: Vec<_> = lines.collect();
    let ended = lines.iter().position(|(_, ended)| *ended).unwrap();
    let before: std::collections::BTreeSet<_> = lines[..ended].iter().map(|it| it.0).collect();
    assert_eq!(before.len(), ids.len());
}

#[tokio::test]
async fn a_scout_may_only_look_whatever_is_allowed() {
    let wanted = [
        ("write_file", json!({ "path": "made", "text": "x" })),
        ("run_shell_command", json!({ "cmd": "touch made" })),
        ("run_shell_command", json!({ "cmd": "ls" })),
        ("ask_person", json!({ "questions": [] })),
        ("explore", json!({ "task": "x" })),
        ("update_plan", json!({ "plan": [] })),
        ("job_cancel", json!({ "job": 1 })),
    ];
    let asked = wanted.iter().enumerate();
    let asked = asked.map(|(at, (name, arguments))| tool(&at.to_string(), name, arguments.clone()));
    let asked = asked.chain([done()]).collect();
    let mut chat = Chat::trusting([sends(&["x"]), asked, says("Nothing."), says("ok")]);
    assert_eq!(chat.turn("look").await, "done");
    assert_eq!(chat.asks(), 0);
    assert!(!chat.work.join("made").exists());
    let items = chat.model.requests()[2].items.clone();
    let outcomes = items
        .iter()
        .filter_map(pick!(Item::Outcome(it) => it.text.clone()));
    let refused = outcomes.filter(|text| text.starts_with("There is no tool called"));
    assert_eq!(refused.count(), wanted.len());
}

#[tokio::test]
async fn a_scout_that_fails_says_why_in_a_sentence_and_the_turn_goes_on() {
    let scripted = Scripted::new([sends(&["x"]), says("I look myself.")]);
    let mut chat = Chat::with(scripted, |config| {
        config.scout_model = Some("unheard-of".to_owned());
    });
    assert_eq!(chat.turn("look").await, "done");
    chat.assert_told("x", "The scout failed: ");
    assert_eq!(chat.told("x").lines().count(), 1);
    assert!(line(&chat, "find x").text.contains("The scout failed"));

    let refused = vec![Part::Fault(Fault::NoProvider)];
    let mut chat = Chat::new([sends(&["x"]), refused, says("I look myself.")]);
    assert_eq!(chat.turn("look").await, "done");
    chat.assert_told("x", "The scout failed: ");

    // No hint about the chat of the person, which goes on.
    let garbage = vec![
        text("I"),
        Part::Fault(Fault::Malformed {
            detail: "no JSON".to_owned(),
        }),
    ];
    let mut chat = Chat::new([sends(&["x"]), garbage, says("I look myself.")]);
    assert_eq!(chat.turn("look").await, "done");
    let told = "The scout failed: the answer could not be read; no JSON.";
    assert_eq!(chat.told("x").trim_end(), told);

    let mut chat = Chat::new([sends(&["x"]), vec![done()], says("ok")]);
    assert_eq!(chat.turn("look").await, "done");
    chat.assert_told("x", "ended without a report");
}

#[tokio::test]
async fn a_scout_reports_when_its_steps_or_its_tokens_are_used_up() {
    let step = |at: u32| reads(&format!("r{at}"), &format!("{at}.txt"));
    let mut answers = vec![sends(&["x"])];
    answers.extend((0..explore::MOST_STEPS).map(step));
    answers.extend([says("So far nothing."), says("ok")]);
    let mut chat = Chat::new(answers);
    assert_eq!(chat.turn("look").await, "done");
    assert_eq!(chat.told("x").trim_end(), "So far nothing.");
    let requests = chat.model.requests();
    assert_eq!(requests.len(), 3 + explore::MOST_STEPS as usize);
    assert!(!requests[requests.len() - 2].may_call);
    assert_eq!(line(&chat, "find x").lead.len(), 30);

    let mut costly = reads("r", "a.txt");
    costly.insert(0, used(1_000_000, 1));
    let mut chat = Chat::new([sends(&["x"]), costly, says("Too much."), says("ok")]);
    assert_eq!(chat.turn("look").await, "done");
    assert_eq!(chat.told("x").trim_end(), "Too much.");
    assert!(!chat.model.requests()[2].may_call);
}

#[tokio::test]
async fn a_cancelled_turn_ends_its_scouts() {
    let hangs = || vec![text("I"), Part::Hang];
    let mut chat = Chat::new([sends(&["a", "b"]), hangs(), hangs()]);
    chat.say("look");
    while chat.model.requests().len() < 3 {
        tokio::task::yield_now().await;
    }
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    let outcomes = chat.disk();
    let outcomes = outcomes.iter().filter(|it| matches!(it, Item::Outcome(_)));
    assert_eq!(outcomes.count(), 2);
    chat.turn_with("go on", says("ok")).await;
    chat.assert_told("a", "Cancelled");
    chat.assert_told("b", "Cancelled");
}

#[tokio::test]
async fn a_person_sends_a_scout_and_reads_its_report_as_the_answer() {
    let mut chat = Chat::new([reads("r", "a.txt"), says("It is in `a.txt:1`.")]);
    std::fs::write(chat.work.join("a.txt"), "the text\n").unwrap();
    assert_eq!(chat.turn("/explore where is it?").await, "done");
    chat.assert_shown("It is in `a.txt:1`.");
    assert!(line(&chat, "explore where is it?").text.contains("1 call"));
    let kept = chat.services.store.list(Some(&chat.work));
    assert_eq!(kept[0].title, "where is it?");
    // The model knows of both.
    chat.turn_with("thanks", says("ok")).await;
    let told = format!("{:?}", chat.last_request().items);
    assert!(
        told.contains("where is it?") && told.contains("It is in `a.txt:1`."),
        "{told}"
    );
    assert!(!told.contains("the text"), "{told}");
    // Another one, after a failure.
    chat.model.push(vec![Part::Fault(Fault::NoProvider)]);
    assert_eq!(chat.turn("/explore more").await, "done");
    chat.model.push(says("More is nowhere."));
    chat.command_ends("retry").await;
    chat.assert_shown("More is nowhere.");
}

#[tokio::test]
async fn without_scouts_no_model_is_offered_them() {
    let mut chat = Chat::with(Scripted::new([says("ok")]), |config| config.max_scouts = 0);
    chat.turn("hello").await;
    let names: Vec<_> = chat
        .last_request()
        .tools
        .iter()
        .map(|it| it.name.clone())
        .collect();
    assert!(!names.contains(&explore::NAME.to_owned()), "{names:?}");
    assert!(!chat.last_request().system.contains(explore::NAME));
    assert_eq!(chat.turn("/explore x").await, "done");
    assert_eq!(chat.model.requests().len(), 1);
    chat.assert_shown("max_scouts");
}

#[tokio::test]
async fn the_secrets_that_a_scout_reads_stay_hidden() {
    let secret = "Vq8xT2mLr5Zp0wK7";
    let mut chat = Chat::new([
        sends(&["x"]),
        reads("r", "notes.txt"),
        says(&format!("The key is {secret}.")),
        says("ok"),
    ]);
    std::fs::write(chat.work.join(".env"), format!("API_TOKEN={secret}\n")).unwrap();
    std::fs::write(chat.work.join("notes.txt"), format!("it is {secret}\n")).unwrap();
    chat.turn("look").await;
    for request in &chat.model.requests()[2..] {
        let told = format!(
            "{:?}",
            request
                .items
                .iter()
                .filter(|it| matches!(it, Item::Outcome(_)))
                .collect::<Vec<_>>()
        );
        assert!(!told.contains(secret), "{told}");
        assert!(told.contains("[redacted"), "{told}");
    }
}

#[tokio::test]
async fn the_calls_of_a_scout_are_in_the_audit_file() {
    let mut chat = Chat::new([sends(&["x"]), reads("r", "a.txt"), says("It."), says("ok")]);
    std::fs::write(chat.work.join("a.txt"), "text\n").unwrap();
    chat.turn("look").await;
    eventually("the call is audited", || {
        let audit = chat.audit();
        audit.contains("\"x/r\"") && audit.contains("read_file a.txt")
    })
    .await;
}

#[tokio::test]
async fn a_plan_may_send_scouts() {
    let mut chat = Chat::new([sends(&["x"]), says("It."), says("1. y")]);
    chat.turn("/plan do it").await;
    assert_eq!(chat.told("x").trim_end(), "It.");
}
