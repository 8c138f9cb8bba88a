//! Jobs: started, read on, typed to, ended, told of, and gone with their chat.

use std::path::PathBuf;

use serde_json::json;

use super::chat::{Chat, asks_for, assert_order, eventually, lives, says, valid};
use crate::chat::Msg;
use crate::protocol::{Answer, ChatState, Owner, Scope, ToEditor};
use co_llm::scripted::{Part, Scripted};
use co_llm::transcript::{Decision, Item};

/// Asks for a job.
pub(super) fn job(id: &str, command: &str) -> Vec<Part> {
    asks_for(
        id,
        "run_shell_command",
        json!({"cmd": command, "background": true}),
    )
}

pub(super) fn output(id: &str, job: u64, wait: u64) -> Vec<Part> {
    asks_for(id, "job_output", json!({"job": job, "wait": wait}))
}

/// The number of the run that shows the next job.
pub(super) async fn run_of(chat: &mut Chat) -> u64 {
    chat.until(pick!(ToEditor::RunStarted { run, owner: Some(_), .. } => *run))
        .await
}

pub(super) fn ends(items: &[Item]) -> Vec<(u64, bool)> {
    let ends = items
        .iter()
        .filter_map(pick!(Item::JobEnded { job, told, .. } => (*job, *told)));
    ends.collect()
}

/// All that the model was told of these calls.
fn heard(chat: &Chat, calls: &[&str]) -> String {
    calls.iter().map(|id| chat.told(id) + "\n").collect()
}

/// Waits until the processes have said who they are.
pub(super) async fn known(pids: &[PathBuf]) {
    let written = |pid: &PathBuf| std::fs::read_to_string(pid).is_ok_and(|it| it.ends_with('\n'));
    eventually("the processes run", || pids.iter().all(written)).await;
}

pub(super) async fn ended_run(chat: &mut Chat, wanted: u64) -> String {
    chat.until(pick!(ToEditor::RunEnded { run, status, .. } if *run == wanted => status.clone()))
        .await
}

/// A turn whose job ends while a command of it waits for the file `gone`.
pub(super) async fn ends_within_a_turn(chat: &mut Chat) {
    chat.say("go");
    let run = run_of(chat).await;
    ended_run(chat, run).await;
    chat.write("gone", "");
    assert_eq!(chat.ended().await, "done");
}

#[tokio::test]
async fn a_job_is_asked_about_recorded_then_started_and_read_on() {
    let serve = "echo ready; until test -e go; do sleep 0.05; done; echo went; sleep 600";
    let mut chat = Chat::new([
        job("1", serve),
        says("It runs."),
        output("2", 1, 60),
        output("3", 1, 0),
        asks_for("4", "job_output", json!({"job": 1, "since": 0})),
        asks_for("5", "job_cancel", json!({"job": 1})),
        says("Over."),
    ]);
    let ask = chat.question("serve").await;
    assert_eq!((ask.background, ask.terminal), (true, false));
    assert_eq!((ask.timeout, ask.job), (None, None));
    chat.answer(ask.id, Answer::Once);
    let started = chat
        .until(pick!(ToEditor::RunStarted { command, owner, .. } => (command.clone(), *owner)))
        .await;
    let owner = Owner {
        chat: 1,
        job: 1,
        terminal: false,
    };
    assert_eq!(started, (serve.to_owned(), Some(owner)));
    assert_eq!(chat.ended().await, "done");
    let told = chat.told("1");
    assert!(
        told.starts_with("[job 1 was started]\n") && told.contains("[job 1 runs"),
        "{told}"
    );
    let disk = chat.disk();
    let place = |wanted: fn(&Item) -> bool| disk.iter().position(wanted).unwrap();
    let decided = place(|item| matches!(item, Item::Decision { .. }));
    let started = place(|item| matches!(item, Item::JobStarted { job: 1, .. }));
    let outcome = place(|item| matches!(item, Item::Outcome(_)));
    assert!(decided < started && started < outcome, "{disk:#?}");
    chat.assert_shown("  in the background");

    chat.write("go", "");
    assert_eq!(chat.turn("and now?").await, "done");
    let told = heard(&chat, &["1", "2", "3"]);
    for word in ["ready", "went"] {
        assert_eq!(told.matches(word).count(), 1, "{word} in {told}");
    }
    assert!(
        chat.told("3").contains("(nothing new)\n[job 1 runs"),
        "{told}"
    );
    assert!(
        chat.told("4").starts_with("ready\nwent\n["),
        "{}",
        chat.told("4")
    );
    chat.assert_told("5", "[job 1 ended: cancelled");
    assert_eq!(chat.asks(), 1, "reading and ending need no question");
    valid(&chat.last_request().items);
}

#[tokio::test]
async fn what_is_typed_asks_until_the_job_is_allowed() {
    let reader = "while read -r line; do echo \"<$line>\"; done; echo over";
    let write = |id: &str, text: &str| asks_for(id, "job_write", json!({"job": 1, "text": text}));
    let mut chat = Chat::new([
        job("1", reader),
        write("2", "first\n\u{1b}[A\u{202e}"),
        write("3", "second\n"),
        write("4", "third\n"),
        asks_for("5", "job_write", json!({"job": 1, "close": true})),
        output("6", 1, 60),
        write("7", "late\n"),
        says("Typed."),
    ]);
    chat.say("type");
    chat.approve().await;
    let ask = chat.asked().await;
    assert_eq!(ask.command, "first\\n\n\\u{1b}[A\\u{202e}");
    assert_eq!(
        (ask.job, ask.timeout, ask.background),
        (Some(1), None, false)
    );
    assert!(
        ask.reasons[0].contains("job 1: while read"),
        "{:?}",
        ask.reasons
    );
    chat.deny(ask.id, "not that");
    let ask = chat.asked().await;
    assert_eq!(ask.command, "second\\n");
    chat.always(ask.id, Scope::Command);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.asks(), 3);
    let choice = chat.command_offers("rules").await[0].value.clone();
    let (_, said) = chat.command_says("rules", &choice).await;
    assert_eq!(said, "co asks again before the model types into job 1");
    assert_eq!(chat.told("2"), "User denied this action: not that");
    let told = heard(&chat, &["3", "4", "5", "6"]);
    assert_order(
        &told,
        &["<second>", "<third>", "over", "[job 1 ended: exit 0"],
    );
    let late = chat.told("7");
    assert!(
        late.starts_with("Nothing was typed: [job 1 ended"),
        "{late}"
    );
    let rules = chat.disk().into_iter().filter(
        |item| matches!(item, Item::Decision { decision: Decision::Rule { rule }, .. } if rule == "job_write 1"),
    );
    assert_eq!(rules.count(), 2);
    eventually("what was typed is audited", || {
        chat.audit().contains("third")
    })
    .await;
}

#[tokio::test]
async fn what_a_plugin_refuses_is_not_typed() {
    let write = |id: &str, text: &str| asks_for(id, "job_write", json!({"job": 1, "text": text}));
    let mut chat = Chat::trusting([
        job("1", "while read -r line; do echo \"<$line>\"; done"),
        write("2", "refused\n"),
        write("3", "kept\n"),
        asks_for("4", "job_write", json!({"job": 1, "close": true})),
        output("5", 1, 60),
        says("Typed."),
    ]);
    chat.services.buffers.set_hooked(true);
    assert_eq!(chat.turn("type").await, "done");
    chat.assert_told("2", "Nothing was typed: a plugin refuses it: no rm.");
    let told = heard(&chat, &["3", "4", "5"]);
    assert!(
        told.contains("<kept>") && !told.contains("<refused>"),
        "{told}"
    );
    let planned: Vec<_> = chat
        .seen
        .iter()
        .filter_map(pick!(ToEditor::BeforeCommand { command, .. } => (command.command.as_str(), command.job)))
        .collect();
    assert_eq!(planned[1..], [("refused\n", Some(1)), ("kept\n", Some(1))]);
}

#[tokio::test]
async fn what_a_deny_rule_refuses_is_not_typed_either() {
    let long = format!("git{}", " ".repeat(9_990));
    let typed = [
        ("2", "git push\n"),
        ("3", "git pull\n"),
        ("4", "cd /tmp\ngit \\\npu"),
        ("5", "sh\n"),
        ("6", "x\u{15}git push\n"),
        ("7", "ll -q\n"),
        ("8", "sh\n"),
        ("9", &long),
        ("10", "       push\n"),
        ("11", "\n"),
    ];
    let writes = typed.map(|(id, text)| asks_for(id, "job_write", json!({"job": 1, "text": text})));
    let ends = [
        asks_for("12", "job_write", json!({"job": 1, "close": true})),
        output("13", 1, 60),
        says("No."),
    ];
    let answers = [job("1", "cat")].into_iter().chain(writes).chain(ends);
    let mut chat = Chat::with(Scripted::new(answers), |config| {
        config.auto_confirm = true;
        config.policy.deny = vec!["git push".into()];
    });
    assert_eq!(chat.turn("push").await, "done");
    for refused in ["2", "5", "6", "10"] {
        let told = chat.told(refused);
        assert!(
            told.starts_with("Refused by a deny rule"),
            "{refused}: {told}"
        );
    }
    let told = heard(&chat, &["3", "4", "7", "8", "11", "12", "13"]);
    for line in ["git pull\n", "\npull -q\n", "\nsh\n"] {
        assert!(told.contains(line), "{line:?}: {told}");
    }
    assert!(!told.contains("git push"), "{told}");
}

#[tokio::test]
async fn a_job_that_is_not_there_is_answered_with_those_that_are() {
    let mut chat = Chat::trusting([
        output("1", 7, 0),
        job("2", "sleep 600"),
        asks_for("3", "job_cancel", json!({"job": 7})),
        says("ok"),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    chat.assert_told("1", "no job 7: this chat has none");
    chat.assert_told("3", "Its jobs: 1 running (sleep 600)");
}

#[tokio::test]
async fn an_end_is_told_once_where_nothing_is_torn_by_it() {
    let mut chat = Chat::trusting([
        job("1", "until test -e go; do sleep 0.05; done; exit 3"),
        says("It runs."),
        says("I see."),
        says("Still."),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    chat.write("go", "");
    chat.shown("ended: exit 3").await;
    assert_eq!(chat.turn("well?").await, "done");
    assert_eq!(chat.turn("and?").await, "done");
    let items = chat.last_request().items;
    assert_eq!(ends(&items), [(1, false)]);
    let at = items
        .iter()
        .position(|item| matches!(item, Item::JobEnded { .. }))
        .unwrap();
    assert!(matches!(&items[at + 1], Item::User { text, .. } if text == "well?"));
    valid(&items);
}

#[tokio::test]
async fn an_end_during_a_turn_is_told_with_its_next_request() {
    let mut chat = Chat::trusting([
        job("1", "until test -e go; do sleep 0.05; done"),
        asks_for(
            "2",
            "run_shell_command",
            json!({"cmd": "touch go; until test -e gone; do sleep 0.05; done"}),
        ),
        says("ok"),
    ]);
    ends_within_a_turn(&mut chat).await;
    let items = chat.last_request().items;
    assert_eq!(ends(&items), [(1, false)]);
    assert!(
        matches!(items.last(), Some(Item::JobEnded { .. })),
        "{items:#?}"
    );
    valid(&items);
}

#[tokio::test]
async fn an_end_that_was_read_is_not_told_again() {
    let mut chat = Chat::trusting([
        job("1", "echo no; exit 4"),
        output("2", 1, 60),
        says("It failed."),
        says("Yes."),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    let told = heard(&chat, &["1", "2"]);
    assert!(told.contains("no\n[job 1 ended: exit 4"), "{told}");
    assert_eq!(chat.turn("really?").await, "done");
    assert_eq!(ends(&chat.disk()), [(1, true)]);
    eventually("what it came to is audited", || {
        chat.audit().contains("exit 4")
    })
    .await;
    assert!(!chat.screen().contains("job 1 (echo"), "{}", chat.screen());
}

#[tokio::test]
async fn jobs_end_whole_with_their_chat_but_for_the_kept_one() {
    let tree =
        |name: &str| format!("echo $$ > {name}; setsid sleep 600 & echo $! > {name}.child; wait");
    let mut chat = Chat::trusting([job("1", &tree("one")), job("2", &tree("two")), says("ok")]);
    chat.say("go");
    let first = run_of(&mut chat).await;
    let second = run_of(&mut chat).await;
    assert_eq!(chat.ended().await, "done");
    let pid = |name: &str| chat.work.join(name);
    let pids = [pid("one"), pid("one.child"), pid("two"), pid("two.child")];
    known(&pids).await;
    assert!(pids.iter().all(|pid| lives(pid)));
    assert!(chat.services.jobs.keep(second, true));
    chat.close().await;
    assert!(
        !lives(&pids[0]) && !lives(&pids[1]),
        "nothing of it is left"
    );
    assert!(lives(&pids[2]) && lives(&pids[3]), "it was kept");
    let text = |wanted: u64| {
        let disk = chat.disk();
        let found = disk
            .iter()
            .find_map(pick!(Item::JobEnded { job, text, .. } if *job == wanted => text.clone()));
        found.unwrap()
    };
    assert!(text(1).contains("ended: cancelled"), "{}", text(1));
    assert!(text(2).contains("the person kept it"), "{}", text(2));
    assert!(!chat.services.jobs.cancel(first));
    assert!(
        chat.services.jobs.keep(second, false),
        "no longer kept, it follows its chat"
    );
    ended_run(&mut chat, second).await;
    assert!(!lives(&pids[2]) && !lives(&pids[3]));
}

#[tokio::test]
async fn a_wait_ends_with_its_turn_or_its_time_and_the_job_goes_on() {
    let mut chat = Chat::trusting([
        job("1", "echo $$ > pid; exec sleep 600"),
        output("2", 1, 1),
        output("3", 1, 500),
    ]);
    chat.say("go");
    chat.until(pick!(ToEditor::State { state: ChatState::Running, detail, .. } if detail == "job_output 1" => ()))
    .await;
    chat.shown("job 1 runs").await;
    chat.until(pick!(ToEditor::State { state: ChatState::Running, detail, .. } if detail == "job_output 1" => ()))
    .await;
    chat.send(Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    known(&[chat.work.join("pid")]).await;
    assert!(lives(&chat.work.join("pid")));
    valid(&chat.kit_items());
}

#[tokio::test]
async fn another_conversation_in_the_same_chat_ends_the_jobs_of_the_first() {
    let mut chat = Chat::trusting([
        says("Hello."),
        job("1", "echo $$ > pid; exec sleep 600"),
        says("ok"),
    ]);
    assert_eq!(chat.turn("hi").await, "done");
    let first = chat.id();
    chat.again().await;
    assert_eq!(chat.turn("go").await, "done");
    known(&[chat.work.join("pid")]).await;
    chat.resume(&first).await;
    assert!(!lives(&chat.work.join("pid")));
    chat.model.push(output("2", 1, 0));
    assert_eq!(chat.turn_with("and?", says("None.")).await, "done");
    chat.assert_told("2", "this chat has none");
}

#[tokio::test]
async fn a_terminal_is_one_only_where_it_was_asked_for() {
    let show = "test -t 1 && echo yes || echo no; echo -e '\\e[31mred\\e[m'; stty size 2>/dev/null";
    let run = |id: &str, pty: bool| {
        let arguments = json!({"cmd": show, "pty": pty, "timeout": 30});
        asks_for(id, "run_shell_command", arguments)
    };
    let mut chat = Chat::trusting([
        run("1", true),
        run("2", false),
        asks_for(
            "3",
            "run_shell_command",
            json!({"cmd": "read -r a; echo got $a", "pty": true, "background": true}),
        ),
        asks_for("4", "job_write", json!({"job": 1, "text": "it\n"})),
        output("5", 1, 60),
        says("ok"),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    assert_eq!(chat.told("1"), "yes\nred\n40 120\n");
    assert!(
        chat.told("2").starts_with("no\nred\n"),
        "{}",
        chat.told("2")
    );
    let told = heard(&chat, &["4", "5"]);
    assert_order(&told, &["it\n", "got it\n", "[job 1 ended: exit 0"]);
    chat.assert_shown("  in a terminal, in the background");
}

#[tokio::test]
async fn the_person_writes_to_a_job_and_ends_it() {
    let mut chat = Chat::trusting([
        job("1", "read -r line; echo \"<$line>\"; sleep 600"),
        says("ok"),
    ]);
    chat.say("go");
    let run = run_of(&mut chat).await;
    assert_eq!(chat.ended().await, "done");
    assert_eq!(
        chat.services.jobs.input(run, b"by hand\n".to_vec(), false),
        Some(Ok(()))
    );
    chat.model.push(output("2", 1, 60));
    assert_eq!(chat.turn_with("look", says("I see.")).await, "done");
    assert!(
        chat.told("2").starts_with("<by hand>\n"),
        "{}",
        chat.told("2")
    );
    assert!(chat.services.jobs.cancel(run));
    assert_eq!(
        ended_run(&mut chat, run).await.split(',').next(),
        Some("cancelled")
    );
    let over = || chat.services.jobs.input(run, Vec::new(), true).is_none();
    eventually("it is taken off the board", over).await;
}
