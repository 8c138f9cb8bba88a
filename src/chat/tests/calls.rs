//! The calls of a step: unasked ones, several, too many, calls that cannot be parsed.

use super::chat::{Chat, asks_for, call, calls, done, says, tool};
use crate::protocol::{Answer, ToEditor};
use co_llm::transcript::{Decision, Item};

#[tokio::test]
async fn a_proven_call_runs_unasked_and_the_model_reads_what_it_printed() {
    let mut chat = Chat::new([calls(&[("1", "cat note.txt")]), says("It says hello.")]);
    chat.write("note.txt", "hello from a file\n");
    assert_eq!(chat.turn("read it").await, "done");
    assert_eq!(chat.asks(), 0);
    chat.assert_told("1", "hello from a file");
    let disk = chat.disk();
    let place = |wanted: fn(&Item) -> bool| disk.iter().position(wanted).unwrap();
    let call = place(|item| matches!(item, Item::Call(_)));
    let decision = place(|item| {
        matches!(
            item,
            Item::Decision {
                decision: Decision::Unasked,
                ..
            }
        )
    });
    let outcome = place(|item| matches!(item, Item::Outcome(_)));
    assert!(call < decision && decision < outcome, "{disk:#?}");
    assert_eq!(chat.blocks(), ["hello from a file"]);
    chat.assert_shown("· cat note.txt");
    super::chat::eventually("the call is audited", || {
        chat.audit().contains("cat note.txt")
    })
    .await;
}

#[tokio::test]
async fn a_command_that_a_plugin_refuses_does_not_run() {
    let proposed = [
        ("1", "cat refused"),
        ("2", "touch refused"),
        ("3", "cat kept"),
    ];
    let mut chat = Chat::new([calls(&proposed), says("ok")]);
    chat.services.buffers.set_hooked(true);
    chat.write("kept", "I am kept\n");
    let asked = chat.question("try").await;
    chat.answer(asked.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    for id in ["1", "2"] {
        assert_eq!(chat.told(id), "a plugin refuses it: no rm");
    }
    assert!(!chat.work.join("refused").exists());
    assert!(chat.told("3").contains("I am kept"));
    let planned: Vec<_> = chat
        .seen
        .iter()
        .filter_map(pick!(ToEditor::BeforeCommand { command, .. } => (command.command.as_str(), command.unasked)))
        .collect();
    assert_eq!(
        planned,
        [
            ("cat refused", true),
            ("touch refused", false),
            ("cat kept", true)
        ]
    );
}

#[tokio::test]
async fn of_more_than_sixteen_calls_the_rest_is_refused_to_the_model() {
    let ids: Vec<String> = (1..=18).map(|id| id.to_string()).collect();
    let commands: Vec<String> = ids.iter().map(|id| format!("echo number {id}")).collect();
    let pairs: Vec<_> = ids
        .iter()
        .zip(&commands)
        .map(|(id, command)| (id.as_str(), command.as_str()))
        .collect();
    let mut chat = Chat::new([calls(&pairs), says("ok")]);
    assert_eq!(chat.turn("go").await, "done");
    for id in 1..=16 {
        assert!(chat.told(&id.to_string()).contains(&format!("number {id}")));
    }
    for id in ["17", "18"] {
        chat.assert_told(id, "at most 16 calls");
    }
    chat.assert_shown("✗ echo number 17  not run: at most 16");
}

#[tokio::test]
async fn the_model_is_told_what_to_make_of_an_outcome() {
    let run = |arguments| asks_for("1", "run_shell_command", arguments);
    for (arguments, expected) in [
        (serde_json::json!({"cmd": "exit 3"}), "try something else"),
        (
            serde_json::json!({"cmd": "sleep 600", "timeout": 1}),
            "timed out after",
        ),
        (
            serde_json::json!({"cmd": "touch tool; ./tool"}),
            "Do not repeat this command",
        ),
        (
            serde_json::json!({"argv": ["/etc/passwd"]}),
            "Do not repeat this command",
        ),
        (
            serde_json::json!({"cmd": "sleep 600", "timeout": 300}),
            "You asked for 300 s, but the person lets a command run for 1 s at most",
        ),
    ] {
        let mut chat = Chat::with(
            co_llm::scripted::Scripted::new([run(arguments.clone()), says("ok")]),
            |config| {
                let set = serde_json::json!({ "shell_max_timeout": 1, "auto_confirm": true });
                *config = crate::config::load(None, &set, &|_| None).0;
            },
        );
        assert_eq!(chat.turn("go").await, "done");
        let told = chat.told("1");
        assert!(told.contains(expected), "{arguments}: {told}");
        let shown = chat.screen();
        assert!(!shown.contains("Do not repeat"), "{shown}");
    }
}

#[tokio::test]
async fn what_was_decided_is_audited_before_the_command_ends() {
    let wait = "until test -e go; do sleep 0.05; done";
    let mut chat = Chat::with(
        co_llm::scripted::Scripted::new([calls(&[("1", wait)]), says("ok")]),
        |config| config.auto_confirm = true,
    );
    chat.say("wait");
    chat.state(crate::protocol::ChatState::Running).await;
    let lines = |chat: &Chat| -> Vec<serde_json::Value> {
        let audit = chat.audit();
        let lines = audit.lines().map(serde_json::from_str);
        lines.map(Result::unwrap).collect()
    };
    let before = lines(&chat);
    assert_eq!(before.len(), 1, "{before:?}");
    assert_eq!(before[0]["decided"], "auto_confirm");
    assert_eq!(
        (&before[0]["call"], &before[0]["confinement"]),
        (&"1".into(), &"none".into())
    );
    assert!(before[0].get("outcome").is_none(), "{before:?}");
    chat.write("go", "");
    assert_eq!(chat.ended().await, "done");
    super::chat::eventually("what it came to is audited", || lines(&chat).len() == 2).await;
    let outcome = lines(&chat)[1]["outcome"].to_string();
    assert!(outcome.contains("exit 0"), "{outcome}");
}

#[tokio::test]
async fn a_secret_that_a_command_prints_is_kept_from_the_model() {
    let key = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let mut chat = Chat::new([
        vec![
            call("1", "cat notes"),
            tool("2", "read_file", serde_json::json!({"path": "notes"})),
            done(),
        ],
        says("ok"),
    ]);
    chat.write("notes", format!("before\n{key}\nafter\n"));
    assert_eq!(chat.turn("read it").await, "done");
    for id in ["1", "2"] {
        let told = chat.told(id);
        assert!(
            !told.contains(key) && told.contains("[redacted: "),
            "{told}"
        );
        assert!(told.contains("before") && told.contains("after"), "{told}");
    }
    let disk = serde_json::to_string(&chat.disk()).unwrap();
    assert!(!disk.contains(key));
    // The person's own screen shows what was printed.
    assert!(chat.blocks().iter().any(|line| line == key));
}
