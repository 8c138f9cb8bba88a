//! Slash commands: none of them is ever sent to the model.

use std::path::Path;

use super::chat::{Chat, calls, says};
use crate::protocol::{NoticeLevel, Scope, ToEditor};
use crate::store::Store;
use co_llm::scripted::Scripted;
use co_llm::transcript::Item;

fn titles(chat: &Chat) -> Vec<String> {
    let store: &Store = &chat.services.store;
    let entries = store.list(Some(&chat.work)).into_iter();
    entries.map(|entry| entry.title).collect()
}

#[tokio::test]
async fn an_unknown_command_is_not_for_the_model() {
    let mut chat = Chat::new([]);
    chat.command_fails("frobnicate", "now", "/frobnicate").await;
    assert!(chat.model.requests().is_empty());
}

#[tokio::test]
async fn rename() {
    let mut chat = Chat::new([says("ok")]);
    assert_eq!(chat.turn("some long first prompt").await, "done");
    assert_eq!(titles(&chat), ["some long first prompt"]);
    let (level, said) = chat.command_says("rename", "A better name").await;
    assert_eq!(
        (level, titles(&chat)),
        (NoticeLevel::Info, vec!["A better name".to_owned()]),
        "{said}"
    );
    let shown: Vec<_> = chat
        .seen
        .iter()
        .filter_map(pick!(ToEditor::State { title, .. } => title.as_str()))
        .collect();
    assert!(shown.contains(&"some long first prompt"), "{shown:?}");
    assert_eq!(shown.last(), Some(&"A better name"));
    chat.command_fails("rename", "", "").await;
}

#[tokio::test]
async fn fork_goes_on_in_a_copy() {
    let mut chat = Chat::new([says("one"), says("two")]);
    assert_eq!(chat.turn("first").await, "done");
    let original = chat.file();
    let before = std::fs::read_to_string(&original).unwrap();
    chat.command_works("fork", "", "").await;
    assert_eq!(chat.turn("second").await, "done");
    assert_eq!(chat.files().len(), 2);
    assert_eq!(std::fs::read_to_string(&original).unwrap(), before);
    let items = chat.last_request().items;
    assert!(items.len() >= 3, "{items:?}");
}

#[tokio::test]
async fn export_has_all_and_overwrites_nothing() {
    let mut chat = Chat::new([calls(&[("1", "echo exported")]), says("There.")]);
    assert_eq!(chat.turn("say it").await, "done");
    chat.command_works("export", "chat.md", "").await;
    let text = std::fs::read_to_string(chat.work.join("chat.md")).unwrap();
    for piece in ["say it", "echo exported", "There."] {
        assert!(text.contains(piece), "{piece} is not in {text}");
    }
    chat.command_fails("export", "chat.md", "").await;
    chat.command_works("export", "~/chat.md", "").await;
    let home = chat.services.places.home.join("chat.md");
    assert_eq!(std::fs::read_to_string(home).unwrap(), text);
}

#[tokio::test]
async fn resume_lists_and_delete_deletes() {
    let mut chat = Chat::new([says("one"), says("two")]);
    assert_eq!(chat.turn("the first chat").await, "done");
    let first = chat.id();
    chat.again().await;
    assert_eq!(chat.turn("the second chat").await, "done");
    let offered = chat.command_offers("resume").await;
    assert_eq!(offered.len(), 2);
    assert!(
        offered
            .iter()
            .any(|choice| choice.value == first && choice.label.starts_with("the first chat · "))
    );
    assert_eq!(chat.command_offers("chats").await, offered);
    chat.command_fails("delete", &chat.id(), "this chat").await;
    chat.command_works("resume", &chat.id(), "this chat").await;
    chat.command_works("delete", &first, "").await;
    assert_eq!(titles(&chat), ["the second chat"]);
    chat.command_fails("resume", &first, "no chat").await;
}

#[tokio::test]
async fn a_resumed_conversation_has_its_own_usage_and_none_of_the_rules() {
    let mut chat = Chat::new([
        vec![
            co_llm::Delta::Usage(co_llm::transcript::Usage {
                input: 100,
                output: 10,
                ..Default::default()
            })
            .into(),
            super::chat::text("one"),
            super::chat::done(),
        ],
        calls(&[("1", "touch a")]),
        says("two"),
    ]);
    assert_eq!(chat.turn("the first chat").await, "done");
    let first = chat.id();
    chat.again().await;
    chat.say("the second chat");
    chat.allow_next(Scope::Everything).await;
    assert_eq!(chat.ended().await, "done");
    chat.resume(&first).await;
    let (_, said) = chat.command_says("usage", "").await;
    assert!(said.starts_with("100 tokens in"), "{said}");
    chat.model.push(calls(&[("1", "touch b")]));
    chat.say("and now?");
    assert_eq!(chat.asked().await.command, "touch b");
}

#[tokio::test]
async fn cd_moves_the_chat() {
    let mut chat = Chat::new([calls(&[("1", "pwd")]), says("ok")]);
    std::fs::create_dir(chat.work.join("sub")).unwrap();
    chat.command("cd", "sub");
    let sub = chat.work.join("sub").display().to_string();
    let wanted = sub.clone();
    chat.until(move |message| {
        matches!(message, ToEditor::State { cwd, .. } if *cwd == wanted).then_some(())
    })
    .await;
    assert_eq!(chat.turn("where").await, "done");
    assert!(chat.told("1").contains(&sub), "{}", chat.told("1"));
    chat.command_fails("cd", "gone", "gone").await;
    chat.write("file", "");
    chat.command_fails("cd", "../file", "file").await;
}

async fn went(chat: &mut Chat, path: &str, to: &Path) {
    chat.command("cd", path);
    let to = to.display().to_string();
    chat.until(move |message| {
        matches!(message, ToEditor::State { cwd, .. } if *cwd == to).then_some(())
    })
    .await;
}

#[tokio::test]
async fn cd_takes_the_workspace_along_only_where_it_leaves_it() {
    let mut chat = Chat::new([says("one"), says("two"), says("three")]);
    let (work, home) = (chat.work.clone(), chat.services.places.home.clone());
    std::fs::create_dir_all(work.join("sub/.git")).unwrap();
    std::fs::create_dir_all(home.join("other/.git")).unwrap();
    let told = |chat: &Chat| chat.last_request().system;
    went(&mut chat, "sub", &work.join("sub")).await;
    assert_eq!(chat.turn("where").await, "done");
    let system = told(&chat);
    assert!(
        system.contains(&format!("{}\n", work.display())),
        "a repository inside is part of it: {system}"
    );
    went(&mut chat, "~/other", &home.join("other")).await;
    assert_eq!(chat.turn("where").await, "done");
    assert_eq!(told(&chat), system, "a request begins like the last one");
    let there = home.join("other").display().to_string();
    let note = notes(&chat.last_request().items).pop().unwrap();
    assert_eq!(
        note,
        format!("The working directory is now {there}, the workspace {there}.")
    );
    chat.assert_shown(&note);
    for path in ["~", ""] {
        went(&mut chat, path, &home).await;
        went(&mut chat, "other", &home.join("other")).await;
    }
}

/// A chat keeps its directory, so that its requests begin as before after it is resumed.
#[tokio::test]
async fn a_resumed_chat_begins_its_requests_as_before() {
    let mut chat = Chat::new([says("one"), says("two")]);
    assert_eq!(chat.turn("go").await, "done");
    let before = chat.last_request();
    let id = chat.id();
    chat.again().await;
    chat.command("resume", &id);
    assert_eq!(chat.turn("and").await, "done");
    let after = chat.last_request();
    assert_eq!(after.system, before.system);
    assert_eq!(after.tools, before.tools);
    assert!(after.items.starts_with(&before.items));
}

fn notes(items: &[Item]) -> Vec<String> {
    let notes = items
        .iter()
        .filter_map(pick!(Item::Note { text, .. } => text.clone()));
    notes.collect()
}

#[tokio::test]
async fn rules_are_shown_and_removed() {
    let model = Scripted::new([
        calls(&[("1", "touch a"), ("2", "make one")]),
        says("ok"),
        calls(&[("3", "touch a"), ("4", "make one")]),
    ]);
    let mut chat = Chat::with(model, |config| config.policy.deny = vec!["shutdown".into()]);
    chat.say("go");
    chat.allow_next(Scope::Command).await;
    chat.allow_next(Scope::PrefixSaved).await;
    assert_eq!(chat.ended().await, "done");
    let offered = chat.command_offers("rules").await;
    let confirm = |value: &str| {
        let offered = offered.iter().find(|it| it.value == value);
        let offered = offered.unwrap_or_else(|| panic!("no {value}"));
        offered.confirm.as_deref()
    };
    let saved = "saved:make one";
    assert_eq!(confirm(saved), Some("Remove `allow make one (saved)`?"));
    assert_eq!(confirm("config:shutdown"), None);
    assert!(confirm("chat:= touch a").is_some());
    for rule in [saved, "chat:= touch a"] {
        chat.command_works("rules", rule, "").await;
    }
    assert!(chat.rules().is_empty());
    // It asks again at once.
    assert_eq!(chat.question("again").await.command, "touch a");
    assert_eq!(chat.asked().await.command, "make one");
}

#[tokio::test]
async fn model_lists_and_switches() {
    let mut chat = Chat::new([]);
    let offered = chat.command_offers("model").await.remove(0);
    assert_eq!(
        (offered.label.as_str(), offered.value.as_str()),
        ("scripted/scripted", "scripted scripted")
    );
    chat.command("model", "other");
    chat.until(|message| {
        matches!(message, ToEditor::State { model, .. } if model == "scripted").then_some(())
    })
    .await;
    assert!(chat.model.requests().is_empty());
}

#[tokio::test]
async fn a_model_from_the_list_is_one_of_the_provider_that_was_asked() {
    let mut chat = Chat::with(Scripted::new([]), |config| {
        config.providers = ["work", "home"]
            .map(|name| co_llm::ProviderSettings {
                name: Some(name.into()),
                ..co_llm::ProviderSettings::default()
            })
            .into();
        config.llm.model = Some("home".into());
    });
    assert_eq!(chat.command_offers("model").await[0].value, "scripted home");
    for model in ["work", "work/other"] {
        chat.command("model", model);
        assert_eq!(chat.command_offers("model").await[0].value, "scripted work");
    }
    // A bare name is one of the provider that answers.
    for model in ["scripted", "plain", "scripted work", "scripted home"] {
        chat.command_works("model", model, "answers from now on")
            .await;
        let provider = model.split(' ').nth(1).unwrap_or("work");
        let offered = chat.command_offers("model").await.remove(0);
        assert_eq!(offered.value, format!("scripted {provider}"), "{model}");
    }
}

#[tokio::test]
async fn while_a_turn_runs_some_commands_wait_for_its_end() {
    let mut chat = Chat::new([vec![super::chat::text("x"), co_llm::scripted::Part::Hang]]);
    chat.say("go");
    chat.state(crate::protocol::ChatState::Streaming).await;
    for name in ["retry", "compact", "resume", "fork"] {
        assert_eq!(
            chat.command_says(name, "").await.0,
            NoticeLevel::Error,
            "{name}"
        );
    }
    chat.command_works("model", "other", "answers after this turn")
        .await;
    let items = chat.disk();
    assert!(matches!(items[0], Item::User { .. }));
}

#[tokio::test]
async fn the_effort_is_set_for_one_chat() {
    let mut chat = Chat::new([says("ok")]);
    let (_, said) = chat.command_says("effort", "high").await;
    assert!(said.contains("effort high"), "{said}");
    let (_, said) = chat.command_says("effort", "enormous").await;
    assert!(said.contains("none, low, medium, high or max"), "{said}");
    assert_eq!(chat.turn("go").await, "done");
}
