//! The questions to a person, and the effects of the answers.

use tokio_util::sync::CancellationToken;

use super::chat::{Chat, asks_for, assert_order, calls, eventually, says, told};
use crate::config::ConfinementSetting;
use crate::protocol::{Answer, Asker, Scope, ToEditor};
use co_llm::scripted::Scripted;
use co_llm::transcript::{Decision, End, Item};

fn decisions(chat: &Chat) -> Vec<Decision> {
    let decisions = chat.decisions().into_iter();
    decisions.map(|(_, decision)| decision).collect()
}

#[tokio::test]
async fn once_runs_it_once() {
    let mut chat = Chat::new([
        calls(&[("1", "mkdir out")]),
        calls(&[("2", "mkdir out")]),
        says("ok"),
    ]);
    let ask = chat.question("make it").await;
    assert_eq!(
        (ask.command.as_str(), ask.asker),
        ("mkdir out", Asker::Chat(1))
    );
    assert_eq!((ask.timeout, ask.job), (Some(120), None));
    assert!(!ask.reasons.is_empty());
    assert!(
        chat.screen().contains("? mkdir out"),
        "shown before it is asked"
    );
    assert!(!chat.work.join("out").exists());
    chat.answer(ask.id, Answer::Once);
    let again = chat.asked().await;
    assert!(chat.work.join("out").is_dir());
    // Twice is once; the id of another question says nothing.
    chat.answer(ask.id, Answer::Once);
    chat.answer(again.id, Answer::Deny);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(
        decisions(&chat),
        [Decision::Approved, Decision::Denied { reason: None }]
    );
    assert_eq!(chat.told("2"), "User denied this action");
    let settled = chat.seen.iter().filter_map(|message| match message {
        ToEditor::Settled { id, decision } => Some((*id, decision.as_str())),
        _ => None,
    });
    let settled: Vec<_> = settled.collect();
    assert_eq!(settled, [(ask.id, "approved"), (again.id, "denied")]);
}

#[tokio::test]
async fn a_no_is_told_with_its_reason_and_the_turn_goes_on() {
    let mut chat = Chat::new([
        calls(&[("1", "rm -r src"), ("2", "mkdir new")]),
        says("I see."),
    ]);
    chat.write("src/a", "");
    let ask = chat.question("tidy up").await;
    assert!(ask.destructive);
    chat.deny(ask.id, "that is my work");
    chat.approve().await;
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.told("1"), "User denied this action: that is my work");
    assert!(chat.work.join("src/a").exists());
    assert!(chat.work.join("new").is_dir());
    chat.assert_shown("that is my work");
}

/// Asks about the first command with `scope` and returns how many questions all of them took.
async fn always(scope: Scope, commands: &[&str]) -> (Chat, usize) {
    let answers = commands.iter().enumerate().map(|(index, command)| {
        let id = index.to_string();
        calls(&[(id.as_str(), command)])
    });
    let mut chat = Chat::new(answers.chain([says("ok")]));
    chat.say("go");
    chat.allow_next(scope).await;
    loop {
        let next = chat.until(|message| match message {
            ToEditor::Question(ask) => Some(Some(ask.id)),
            ToEditor::Event { name, .. } if name == "CoTurnDone" => Some(None),
            _ => None,
        });
        match next.await {
            Some(id) => chat.answer(id, Answer::Once),
            None => break,
        }
    }
    let asks = chat.asks();
    (chat, asks)
}

#[tokio::test]
async fn always_reaches_as_far_as_was_said() {
    let makes = ["touch a", "touch a", "touch b", "mkdir c"];
    let (_, asks) = always(Scope::Command, &makes).await;
    assert_eq!(asks, 3, "this command: not touch b, not mkdir c");
    let (chat, asks) = always(Scope::Everything, &makes).await;
    assert_eq!(asks, 1);
    assert!(decisions(&chat).contains(&Decision::AutoConfirm));
    assert!(chat.work.join("c").is_dir());
}

#[tokio::test]
async fn always_for_a_prefix_covers_what_begins_so() {
    let commands = ["cargo -V", "cargo -V --verbose", "mkdir c"];
    let offered = {
        let mut chat = Chat::new([calls(&[("1", commands[0])])]);
        chat.say("go");
        chat.asked().await.prefix
    };
    let (_, asks) = always(Scope::Prefix, &commands).await;
    match offered {
        Some(_) => assert_eq!(asks, 2),
        None => assert_eq!(asks, 3, "what offers no prefix is allowed alone"),
    }
    let commands = ["make one", "make one two", "mkdir c"];
    let (chat, asks) = always(Scope::PrefixSaved, &commands).await;
    assert_eq!((asks, chat.rules()), (2, vec!["make one".to_owned()]));
}

#[tokio::test]
async fn an_edited_command_runs_and_the_model_is_told() {
    let mut chat = Chat::new([calls(&[("1", "rm -r src")]), says("ok")]);
    chat.write("src/a", "");
    let ask = chat.question("tidy up").await;
    chat.edit(ask.id, "mkdir kept");
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.asks(), 1, "the person wrote it");
    assert!(chat.work.join("kept").is_dir());
    assert!(chat.work.join("src/a").exists());
    let told = chat.told("1");
    assert!(
        told.contains("mkdir kept"),
        "the model reads what ran: {told}"
    );
    let edited = "✓ mkdir kept  you: edited";
    assert!(chat.screen().contains(edited), "{}", chat.screen());
    let resumed = chat.resumed().await;
    assert!(resumed.contains(edited), "{resumed}");
}

#[tokio::test]
async fn an_edit_that_a_deny_rule_forbids_comes_back() {
    let model = Scripted::new([calls(&[("1", "mkdir a")]), says("ok")]);
    let mut chat = Chat::with(model, |config| config.policy.deny = vec!["make".into()]);
    let ask = chat.question("go").await;
    chat.edit(ask.id, "make all");
    let again = chat.asked().await;
    assert_eq!(again.command, "mkdir a");
    let refused = again.refused_edit.unwrap();
    assert_eq!(
        (refused.question, refused.command.as_str()),
        (ask.id, "make all")
    );
    assert!(refused.why.contains("`make`"), "{}", refused.why);
    chat.answer(again.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert!(chat.work.join("a").is_dir());
}

#[tokio::test]
async fn an_edit_that_is_not_utf_8_comes_back() {
    let mut chat = Chat::new([calls(&[("1", "mkdir a")]), says("ok")]);
    let ask = chat.question("go").await;
    chat.edit(ask.id, b"mkdir \xff");
    let again = chat.asked().await;
    assert_eq!(again.command, "mkdir a");
    let refused = again.refused_edit.unwrap();
    assert_eq!(
        (refused.question, refused.command.as_str()),
        (ask.id, "mkdir \u{fffd}FF")
    );
    assert!(refused.why.contains("UTF-8"), "{}", refused.why);
    chat.answer(again.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert!(chat.work.join("a").is_dir());
}

#[tokio::test]
async fn a_deny_rule_refuses_without_a_question() {
    let model = Scripted::new([calls(&[("1", "make all"), ("2", "echo on")]), says("ok")]);
    let mut chat = Chat::with(model, |config| {
        config.policy.deny = vec!["make".into()];
        config.auto_confirm = true;
    });
    assert_eq!(chat.turn("go").await, "done");
    assert_eq!(chat.asks(), 0);
    assert!(chat.told("1").starts_with("Refused by a deny rule"));
    chat.assert_told("2", "on");
    assert!(decisions(&chat).contains(&Decision::Forbidden {
        why: "the rule `make` forbids it".into()
    }));
    super::chat::eventually("it is audited", || chat.audit().contains("make all")).await;
}

#[tokio::test]
async fn what_is_too_long_to_be_read_asks_though_all_is_allowed() {
    let long = format!("rm -rf / # {}", "x".repeat(10_000));
    let mut chat = Chat::trusting([calls(&[("1", long.as_str()), ("2", "true")]), says("ok")]);
    let ask = chat.question("go").await;
    chat.deny(ask.id, "no");
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.asks(), 1);
    chat.assert_told("1", "no");
}

#[tokio::test]
async fn an_ended_chat_takes_its_question_away() {
    let mut chat = Chat::new([calls(&[("1", "mkdir out")])]);
    let ask = chat.question("go").await;
    chat.close().await;
    chat.frame().await;
    assert!(chat.was_withdrawn(ask.id));
    assert!(!chat.work.join("out").exists());
    assert_eq!(decisions(&chat), [Decision::Withdrawn]);
    // Nobody said no: the model may ask again.
    let told = told(&chat.disk(), "1");
    assert!(told.contains("before this call was carried out"), "{told}");
}

#[tokio::test]
async fn the_end_of_neovim_is_no_denial() {
    let mut chat = Chat::new([calls(&[("1", "mkdir out"), ("2", "ls"), ("3", "mkdir in")])]);
    chat.say("go");
    chat.asked().await;
    chat.asked().await;
    chat.app.cancel();
    chat.close().await;
    let disk = chat.disk();
    for (call, text) in [
        ("1", "not answered: co was closed"),
        (
            "2",
            "cut off: the turn ended before this call was carried out",
        ),
        ("3", "not answered: co was closed"),
    ] {
        assert_eq!(told(&disk, call), text);
    }
    let interrupted = |item: &Item| {
        matches!(
            item,
            Item::End {
                reason: End::Interrupted,
                ..
            }
        )
    };
    assert!(disk.iter().any(interrupted), "{disk:?}");
    // Each call says below it that it did not run.
    chat.app = CancellationToken::new();
    let resumed = chat.resumed().await;
    let parts = [
        "✗ mkdir out  not answered; nothing was run",
        "✗ ls  cut off: the turn ended before this call was carried out",
        "✗ mkdir in  not answered: co was closed",
    ];
    assert_order(&resumed, &parts);
}

#[tokio::test]
async fn what_cannot_be_confined_as_asked_is_no_deny_rule() {
    let model = Scripted::new([calls(&[("1", "mkdir out")]), says("ok")]);
    let mut chat = Chat::with(model, |config| {
        config.sandbox_backend = ConfinementSetting::Landlock
    });
    chat.say("go");
    chat.approve().await;
    assert_eq!(chat.ended().await, "done");
    assert!(!chat.work.join("out").exists());
    let told = chat.told("1");
    assert!(told.contains("these tests have no launcher"), "{told}");
    assert!(!told.contains("deny rule"), "{told}");
    chat.assert_shown("  not run: ");
    assert_eq!(decisions(&chat), [Decision::Approved]);
}

#[tokio::test]
async fn what_could_not_be_started_is_audited_as_not_run() {
    let arguments = serde_json::json!({"cmd": "mkdir out", "cwd": "sub"});
    let mut chat = Chat::new([asks_for("1", "run_shell_command", arguments), says("ok")]);
    let sub = chat.work.join("sub");
    std::fs::create_dir(&sub).unwrap();
    let ask = chat.question("go").await;
    std::fs::remove_dir(&sub).unwrap();
    chat.answer(ask.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    chat.assert_shown("  not run: ");
    eventually("that nothing came of it is audited", || {
        let audit = chat.audit();
        audit
            .lines()
            .any(|line| line.contains("\"outcome\":\"not run\""))
    })
    .await;
}
