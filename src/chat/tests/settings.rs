//! Settings that change while a chat goes on.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::chat::{Chat, asks_for, calls, says};
use super::jobs::job;
use crate::chat::Msg;
use crate::config::{ConfinementSetting, GivenSettings, Layers};
use crate::protocol::{Answer, ToEditor};
use crate::services::Services;

fn given(lua: &Value) -> GivenSettings {
    let read = Layers {
        file: None,
        lua,
        env: &|_| None,
        variables: &[],
    }
    .read();
    assert_eq!(read.problems, [""; 0]);
    read.given
}

impl Chat {
    /// Changes the settings, and returns what a new chat would have.
    fn set(&self, lua: &Value) -> Arc<Services> {
        let services = Arc::new(self.services.changed(&given(lua), &[]).unwrap());
        self.send(Msg::Settings(Arc::clone(&services)));
        services
    }
}

/// A turn of two steps, whose first command waits for an answer.
async fn asks_for_a() -> (Chat, u64) {
    let mut chat = Chat::new([
        calls(&[("1", "touch a")]),
        calls(&[("2", "touch b")]),
        says("done"),
    ]);
    chat.say("make them");
    let id = chat.asked().await.id;
    (chat, id)
}

#[tokio::test]
async fn auto_confirm_holds_from_the_next_command_of_a_turn_that_runs() {
    let (mut chat, id) = asks_for_a().await;
    chat.set(&json!({ "auto_confirm": true }));
    let told = |message: &ToEditor| match message {
        ToEditor::State { unusual, .. } => {
            unusual.contains(&"ASKS NOTHING".to_owned()).then_some(())
        }
        _ => None,
    };
    chat.until(told).await;
    chat.answer(id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.asks(), 1);
    assert!(chat.work.join("b").exists());
}

#[tokio::test]
async fn a_deny_rule_refuses_the_next_command_of_a_turn_that_runs() {
    let (mut chat, id) = asks_for_a().await;
    chat.set(&json!({ "deny": ["touch b"] }));
    chat.answer(id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    chat.assert_told("2", "Refused by a deny rule");
    assert!(!chat.work.join("b").exists());
}

#[tokio::test]
async fn a_deny_rule_refuses_a_command_whose_question_waits() {
    let (mut chat, id) = asks_for_a().await;
    chat.set(&json!({ "deny": ["touch a"] }));
    chat.answer(id, Answer::Once);
    let next = chat.asked().await;
    assert_eq!(next.command, "touch b");
    chat.answer(next.id, Answer::Deny);
    assert_eq!(chat.ended().await, "done");
    chat.assert_told("1", "Refused by a deny rule");
    assert!(!chat.work.join("a").exists());
}

#[tokio::test]
async fn auto_confirm_takes_a_question_away_that_waits() {
    let (mut chat, id) = asks_for_a().await;
    chat.set(&json!({ "auto_confirm": true }));
    chat.withdrawn(id).await;
    assert_eq!(chat.ended().await, "done");
    assert!(chat.work.join("a").exists() && chat.work.join("b").exists());
}

#[tokio::test]
async fn a_lower_limit_of_steps_ends_a_turn_that_runs_with_a_summary() {
    let mut chat = Chat::new([calls(&[("1", "touch a")]), says("In sum: a.")]);
    chat.say("make them");
    let id = chat.asked().await.id;
    chat.set(&json!({ "max_steps": 1 }));
    chat.answer(id, Answer::Once);
    assert_eq!(chat.ended().await, "guarded");
    assert!(!chat.last_request().may_call);
}

#[tokio::test]
async fn commands_have_another_ceiling_and_the_model_is_told_the_same_all_along() {
    let mut chat = Chat::new([
        says("one"),
        calls(&[("1", "touch a; sleep 60")]),
        says("two"),
    ]);
    chat.turn("hi").await;
    let first = chat.last_request();
    let new = chat.set(&json!({ "shell_max_timeout": 1, "auto_confirm": true }));
    assert_eq!(new.executor.settings().max_timeout, Duration::from_secs(1));
    assert_eq!(chat.turn("run it").await, "done");
    chat.assert_told("1", "time");
    let last = chat.last_request();
    assert_eq!(first.tools, last.tools);
    assert_eq!(first.system, last.system);
}

#[tokio::test]
async fn a_chat_keeps_what_applies_from_the_next_one() {
    let chat = Chat::new([]);
    let lua = json!({ "model": "new", "max_steps": 7, "sandbox_backend": "landlock" });
    let new = chat.services.changed(&given(&lua), &[]).unwrap();
    assert_eq!(new.config.llm.model.as_deref(), Some("new"));
    assert_eq!(new.config.max_steps, 7);
    // This backend was started without it.
    assert_eq!(
        new.config.sandbox_backend,
        chat.services.config.sandbox_backend
    );
    let now = chat.services.changed_at_once(&new);
    assert_eq!(now.config.llm.model, None);
    assert_eq!(now.config.max_steps, 7);
}

#[tokio::test]
async fn no_setting_of_the_executor_waits_for_the_next_chat() {
    let chat = Chat::new([]);
    let everything = json!({
        "shell_env_allow": ["A"], "shell_login_path": true, "shell_max_timeout": 9, "shell_max_output": 2000,
        "shell_screen_lines": 200, "shell_spill_max": 9, "shell_spill_age": 1, "shell_spill_total": 9,
        "shell_flood_max": "2MiB", "shell_memory": "1g", "shell_cpu_seconds": 9, "shell_open_files": 99,
        "shell_file_size": "1g", "sandbox_namespaces": false,
    });
    let new = chat.services.changed(&given(&everything), &[]).unwrap();
    let now = chat.services.changed_at_once(&new);
    for services in [&new, &now] {
        let spill_dir = chat.services.executor.settings().spill_dir.clone();
        assert_eq!(
            *services.executor.settings(),
            services.config.exec_settings(spill_dir)
        );
    }
}

#[tokio::test]
async fn keys_of_old_and_new_settings_are_hidden() {
    let chat = Chat::new([]);
    let new = |services: &Services, key: &str| {
        services
            .changed(&GivenSettings::default(), &[key.to_owned()])
            .unwrap()
    };
    let first = new(&chat.services, "first-very-own-word");
    let both = new(&first, "second-very-own-word");
    for services in [&both, &chat.services.changed_at_once(&both)] {
        let text = services
            .redactor
            .redact("first-very-own-word second-very-own-word")
            .text;
        assert!(!text.contains("very-own"), "{text}");
    }
}

#[tokio::test]
async fn another_confinement_holds_what_starts_later_and_is_asked_about_anew() {
    let mut chat = Chat::new([
        job("1", "cat > out"),
        asks_for("2", "job_write", json!({ "job": 1, "text": "x\n" })),
        calls(&[("3", "touch b")]),
        says("done"),
    ]);
    chat.say("go on");
    chat.approve().await;
    let typing = chat.asked().await;
    // The job is already running and receives the typed text, so that question stays.
    let mut services = Services::clone(&chat.services);
    services.probe = services.probe.with(ConfinementSetting::Landlock);
    chat.send(Msg::Settings(Arc::new(services)));
    let told = |message: &ToEditor| match message {
        ToEditor::State { confinement, .. } => (confinement == "landlock").then_some(()),
        _ => None,
    };
    chat.until(told).await;
    assert_eq!(
        (typing.job, typing.confinement.as_str()),
        (Some(1), "unconfined")
    );
    chat.answer(typing.id, Answer::Once);
    let later = chat.asked().await;
    assert_eq!((later.job, later.confinement.as_str()), (None, "landlock"));
    chat.answer(later.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.asks(), 3);
    // No kernel confines commands in these tests, so no command ran.
    assert!(!chat.work.join("b").exists());
}
