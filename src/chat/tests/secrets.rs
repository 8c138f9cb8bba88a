//! The values of a workspace's secrets, which no model sees.

use std::time::Instant;

use serde_json::json;

use super::chat::{Chat, asks_for, call, done, says, tool};
use super::jobs::{job, output};
use crate::chat::{Msg, Prompt};
use crate::protocol::ToEditor;
use co_llm::transcript::{Context, Item};

const PASSWORD: &str = "correct-horse_battery/staple";
const TOKEN: &str = "zQ4vT8kLm2Xw9RbN";

/// A chat where nothing is asked about, in a workspace with secrets.
fn with_secrets(answers: impl IntoIterator<Item = Vec<co_llm::scripted::Part>>) -> Chat {
    let chat = Chat::trusting(answers);
    chat.write(
        ".env",
        format!("NODE_ENV=development\nDB_PASSWORD={PASSWORD}\n"),
    );
    chat.write("deploy/secrets/token", format!("{TOKEN}\n"));
    chat
}

/// True if a text holds one of the values, as it is or in an encoding of the commands below.
fn leaks(text: &str) -> bool {
    let of = |value: &str| {
        let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        [value.to_owned(), hex, value.replace('/', "%2F")]
    };
    let base64 = ["Y29ycmVjdC1ob3", "elE0dlQ4a0xt"];
    [PASSWORD, TOKEN]
        .iter()
        .any(|value| of(value).iter().any(|form| text.contains(form)))
        || base64.iter().any(|form| text.contains(form))
}

#[tokio::test]
async fn no_command_prints_a_secret_to_the_model_in_a_usual_encoding() {
    for command in [
        "cat .env deploy/secrets/*",
        "grep -rhoP '(?<=PASSWORD=).*' .",
        "cut -d= -f2 .env | base64",
        "base64 deploy/secrets/token",
        "od -An -v -w64 -tx1 deploy/secrets/token | tr -d ' '",
        "sed 's|/|%2F|g' .env",
        "mysql() { echo \"mysql $*\"; }; mysql -p$(cat deploy/secrets/token)",
    ] {
        let mut chat = with_secrets([vec![call("1", command), done()], says("ok")]);
        assert_eq!(chat.turn("go").await, "done");
        let told = chat.told("1");
        assert!(
            told.contains("[redacted: secret value]"),
            "{command}: {told}"
        );
        assert!(!leaks(&told), "{command}: {told}");
        assert!(
            !leaks(&serde_json::to_string(&chat.disk()).unwrap()),
            "{command}"
        );
    }
}

#[tokio::test]
async fn the_chat_says_how_many_values_the_model_does_not_see() {
    let answers = [
        vec![
            call("1", "cat .env deploy/secrets/token .env"),
            tool("2", "read_file", json!({"path": "notes"})),
            call("3", "echo nothing"),
            done(),
        ],
        says("ok"),
    ];
    let mut chat = with_secrets(answers);
    chat.write("notes", format!("the token is {TOKEN}.\n"));
    assert_eq!(chat.turn("go").await, "done");
    let expected = [
        "2 values hidden from the model",
        "1 value hidden from the model",
    ];
    let live = chat.screen();
    assert_eq!(said_hidden(&live), expected);
    chat.resumed().await;
    assert_eq!(said_hidden(&chat.screen()), expected);
}

fn said_hidden(screen: &str) -> Vec<&str> {
    screen
        .lines()
        .map(str::trim)
        .filter(|line| line.contains("hidden from"))
        .collect()
}

#[tokio::test]
async fn a_secret_that_is_made_or_replaced_during_a_command_is_removed() {
    let mut chat = with_secrets([
        vec![
            call(
                "1",
                "cat .env > old; echo DB_PASSWORD=another-horse_battery > .env; cat old .env",
            ),
            call("2", "echo TOKEN=a-third-horse_battery > .env; cat .env"),
            done(),
        ],
        says("ok"),
    ]);
    assert_eq!(chat.turn("go").await, "done");
    let (first, second) = (chat.told("1"), chat.told("2"));
    assert!(
        !leaks(&first) && !first.contains("another-horse"),
        "{first}"
    );
    assert!(!second.contains("third-horse"), "{second}");
}

#[tokio::test]
async fn looks_and_attached_files_lose_secrets_too() {
    let mut chat = with_secrets([
        vec![
            tool("1", "read_file", json!({"path": "notes"})),
            tool("2", "search", json!({"pattern": "is"})),
            done(),
        ],
        says("ok"),
    ]);
    chat.write("notes", format!("the token is {TOKEN}.\n"));
    chat.send(Msg::Prompt(Prompt {
        text: "look".into(),
        context: vec![Context {
            name: "@file:notes".into(),
            text: format!("the token is {TOKEN}."),
            ..Context::default()
        }],
        ..Prompt::default()
    }));
    assert_eq!(chat.ended().await, "done");
    assert!(
        chat.told("1")
            .starts_with("the token is [redacted: secret value].\n")
    );
    assert!(
        chat.told("2")
            .contains("notes:1:the token is [redacted: secret value].")
    );
    let sent = chat.last_request().items;
    let attached = sent
        .iter()
        .find_map(pick!(Item::User { context, .. } => context[0].text.clone()));
    let attached = attached.unwrap();
    assert!(
        attached.contains(">\nthe token is [redacted: secret value].\n<"),
        "{attached}"
    );
}

#[tokio::test]
async fn a_job_tells_no_secret() {
    let mut chat = with_secrets([
        job(
            "1",
            "cat .env; until test -e go; do sleep 0.05; done; base64 deploy/secrets/token",
        ),
        says("It runs."),
        output("2", 1, 60),
        says("On."),
        asks_for("3", "job_output", json!({"job": 1, "since": 0})),
        says("Over."),
    ]);
    assert_eq!(chat.turn("start").await, "done");
    chat.write("go", "");
    assert_eq!(chat.turn("on").await, "done");
    assert_eq!(chat.turn("over").await, "done");
    let told: String = ["1", "2", "3"].map(|id| chat.told(id)).concat();
    assert!(
        told.contains("[redacted: secret value]") && !leaks(&told),
        "{told}"
    );
    chat.assert_shown("1 value hidden from the model");
    let shown = chat
        .seen
        .iter()
        .any(|message| matches!(message, ToEditor::RunStarted { .. }));
    assert!(shown);
}

#[tokio::test]
async fn the_setting_turns_it_off() {
    let key = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let read = tool("2", "read_file", json!({"path": "notes"}));
    let answers = [vec![call("1", "cat .env"), read, done()], says("ok")];
    let mut chat = Chat::with(co_llm::scripted::Scripted::new(answers), |config| {
        config.auto_confirm = true;
        config.redact = false;
    });
    chat.write(".env", format!("DB_PASSWORD={PASSWORD}\n"));
    chat.write("notes", key);
    assert_eq!(chat.turn("go").await, "done");
    chat.assert_told("1", PASSWORD);
    chat.assert_told("2", key);
}

#[tokio::test]
async fn a_large_output_is_redacted() {
    let mut chat = with_secrets([
        vec![
            call(
                "1",
                "yes 'an ordinary line of output' | head -c 100000000; cat .env",
            ),
            done(),
        ],
        says("ok"),
    ]);
    for number in 0..200 {
        chat.write(
            &format!("secrets/{number}"),
            format!("a-value-of-number-{number}\n"),
        );
    }
    assert_eq!(chat.turn("go").await, "done");
    let told = chat.told("1");
    assert!(told.contains("[redacted: secret value]") && !leaks(&told));
}

#[tokio::test]
async fn the_runtime_goes_on_while_a_text_is_redacted() {
    let chat = with_secrets([]);
    let text = format!("the token is {TOKEN}, in an ordinary line of output\n").repeat(20_000);
    let redact = chat
        .services
        .redact_for_model(&chat.work, &text, &[], Instant::now());
    tokio::pin!(redact);
    // If the work were done by the runtime's only thread, it would end in one poll.
    let mut polls = 0;
    let told = loop {
        polls += 1;
        tokio::select! {
            biased;
            told = &mut redact => break told,
            () = tokio::task::yield_now() => {}
        }
    };
    assert!(!leaks(&told.unwrap().text));
    assert!(polls > 1);
}
