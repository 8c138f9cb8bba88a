//! Prompts that a file of the workspace has: they are sent only after the person trusts the file.

use super::chat::{Chat, answered, says};
use crate::chat::{Msg, Prompt, instructions};
use crate::protocol::{Answer, NoticeLevel, PromptFile, ToEditor, TrustQuestion};

const FIX: &str = "Fix $1.";

fn send(chat: &Chat, file: Option<PromptFile>) {
    chat.send(Msg::Prompt(Prompt {
        text: "/fix it".into(),
        file,
        ..Prompt::default()
    }));
}

fn of_workspace(chat: &Chat, text: &str) -> Option<PromptFile> {
    Some(PromptFile {
        path: Some(chat.work.join(".co/prompts/fix.md")),
        text: text.into(),
        prompt: text.replace("$1", "it"),
    })
}

fn questions(chat: &Chat) -> Vec<TrustQuestion> {
    let seen = chat
        .seen
        .iter()
        .filter_map(pick!(ToEditor::Trust(question) => question.clone()));
    seen.collect()
}

async fn say(chat: &mut Chat, id: u64, decision: Answer) -> String {
    let answer = answered(id, decision);
    assert!(instructions::answer(&chat.services, &answer));
    loop {
        let (_, told) = chat.noticed().await;
        if told.starts_with(".co/prompts/fix.md") {
            return told;
        }
    }
}

#[tokio::test]
async fn a_prompt_file_of_the_workspace_is_sent_after_a_yes() {
    let mut chat = Chat::new([says("Aye.")]);
    send(&chat, of_workspace(&chat, FIX));
    assert_eq!(chat.unsent().await, "/fix it", "what was typed");
    send(&chat, of_workspace(&chat, FIX));
    chat.unsent().await;
    let asked = questions(&chat);
    assert_eq!(asked.len(), 1, "one question for both");
    assert_eq!(
        (
            asked[0].name.as_str(),
            asked[0].slash.as_deref(),
            asked[0].text.as_str()
        ),
        (".co/prompts/fix.md", Some("/fix"), FIX)
    );
    assert!(asked[0].notes.is_empty(), "{:?}", asked[0].notes);
    assert!(chat.model.requests().is_empty());
    let told = say(&mut chat, asked[0].id, Answer::Once).await;
    assert_eq!(told, ".co/prompts/fix.md is trusted: send /fix again");

    send(&chat, of_workspace(&chat, FIX));
    assert_eq!(chat.ended().await, "done");
    let screen = chat.screen();
    assert!(
        screen.contains("Fix it.") && !screen.contains("/fix"),
        "{screen}"
    );
    let sent = format!("{:?}", chat.last_request().items);
    assert!(sent.contains("Fix it.") && !sent.contains("/fix"), "{sent}");
}

#[tokio::test]
async fn a_changed_prompt_file_asks_again_and_a_refused_one_is_not_sent() {
    let mut chat = Chat::new([]);
    send(&chat, of_workspace(&chat, FIX));
    chat.unsent().await;
    let first = questions(&chat).remove(0);
    send(&chat, of_workspace(&chat, "Delete $1."));
    chat.unsent().await;
    assert!(chat.was_withdrawn(first.id), "the text is another one");
    let second = questions(&chat).remove(1);
    say(&mut chat, second.id, Answer::Deny).await;
    send(&chat, of_workspace(&chat, "Delete $1."));
    let (level, told) = chat.noticed().await;
    assert_eq!(level, NoticeLevel::Error);
    let path = chat.work.join(".co/prompts/fix.md");
    let expected = format!(
        "/fix was not sent: you refused {}; /rules takes that answer back",
        path.display()
    );
    assert_eq!(told, expected);
    chat.unsent().await;
    send(&chat, of_workspace(&chat, FIX));
    chat.unsent().await;
    assert_eq!(
        questions(&chat).remove(2).notes,
        ["its text changed since your last answer"]
    );
    let listed = chat.command_offers("rules").await[0].label.clone();
    assert_eq!(listed, format!("refuse {} (saved)", path.display()));
    assert!(chat.model.requests().is_empty());
}

#[tokio::test]
async fn a_prompt_file_of_the_person_needs_no_trust() {
    let mut chat = Chat::new([says("Aye.")]);
    let file = of_workspace(&chat, FIX).map(|file| PromptFile { path: None, ..file });
    send(&chat, file);
    assert_eq!(chat.ended().await, "done");
    assert!(questions(&chat).is_empty());
    chat.assert_shown("Fix it.");
}
