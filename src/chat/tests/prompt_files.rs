//! Prompts that a file of the workspace has: they are sent only after the person trusts the file.

use super::chat::{Chat, answered, calls, says};
use crate::chat::{Msg, Prompt, trust_questions};
use crate::protocol::{Answer, NoticeLevel, PromptFile, PromptFileCheck, ToEditor, TrustQuestion};

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
    assert!(trust_questions::answer(&chat.services, &answer));
    loop {
        let (_, told) = chat.noticed().await;
        if told.starts_with(".co/prompts/fix.md") {
            return told;
        }
    }
}

/// Asks whether the file is trusted. Returns the answer, and the open question about the file.
async fn check(chat: &mut Chat, text: &str) -> (bool, Option<u64>) {
    chat.send(Msg::CheckPromptFile(PromptFileCheck {
        request: 7,
        name: "fix".into(),
        path: chat.work.join(".co/prompts/fix.md"),
        text: text.into(),
    }));
    chat.until(pick!(
        ToEditor::PromptFileChecked { request: 7, trusted, question } => (*trusted, *question)
    ))
    .await
}

#[tokio::test]
async fn a_prompt_file_of_the_workspace_is_sent_after_a_yes() {
    let mut chat = Chat::new([says("Aye.")]);
    let (trusted, question) = check(&mut chat, FIX).await;
    assert!(!trusted);
    assert_eq!(
        check(&mut chat, FIX).await,
        (false, question),
        "one question for both"
    );
    let asked = questions(&chat);
    assert_eq!(
        (
            asked[0].name.as_str(),
            asked[0].slash.as_deref(),
            asked[0].text.as_str()
        ),
        (".co/prompts/fix.md", Some("/fix"), FIX)
    );
    assert_eq!((asked.len(), Some(asked[0].id)), (1, question));
    assert!(asked[0].notes.is_empty(), "{:?}", asked[0].notes);
    send(&chat, of_workspace(&chat, FIX));
    assert_eq!(chat.unsent().await, "/fix it", "what was typed");
    assert!(chat.model.requests().is_empty());
    let told = say(&mut chat, asked[0].id, Answer::Once).await;
    assert_eq!(told, ".co/prompts/fix.md is trusted: /fix sends it");
    assert_eq!(check(&mut chat, FIX).await, (true, None));

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
    let (_, first) = check(&mut chat, FIX).await;
    let (_, second) = check(&mut chat, "Delete $1.").await;
    assert!(
        chat.was_withdrawn(first.unwrap()),
        "the text is another one"
    );
    say(&mut chat, second.unwrap(), Answer::Deny).await;
    assert_eq!(check(&mut chat, "Delete $1.").await, (false, None));
    let path = chat.work.join(".co/prompts/fix.md");
    let expected = format!(
        "/fix was not sent: you refused {}; /rules takes that answer back",
        path.display()
    );
    assert!(chat.seen.iter().any(|seen| matches!(
        seen, ToEditor::Notice { level: NoticeLevel::Error, message, .. } if *message == expected
    )));
    send(&chat, of_workspace(&chat, "Delete $1."));
    chat.unsent().await;
    check(&mut chat, FIX).await;
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

#[tokio::test]
async fn a_turn_that_has_a_prompt_file_ends_when_its_trust_is_taken_back() {
    let mut chat = Chat::new([calls(&[("1", "touch a")])]);
    let (_, question) = check(&mut chat, FIX).await;
    say(&mut chat, question.unwrap(), Answer::Once).await;
    send(&chat, of_workspace(&chat, FIX));
    chat.asked().await;
    send(&chat, of_workspace(&chat, FIX));
    chat.model.push(says("ok"));
    chat.say("go on");
    let path = chat.work.join(".co/prompts/fix.md");
    chat.command("rules", &format!("file:{}", path.display()));
    assert_eq!(chat.unsent().await, "/fix it", "the one that was queued");
    assert_eq!(chat.ended().await, "cancelled");
    let why = "the turn of chat 1 is cancelled: it was sent .co/prompts/fix.md; /rewind takes it out of the chat";
    let said =
        |message: &ToEditor| matches!(message, ToEditor::Notice { message, .. } if message == why);
    assert!(chat.seen.iter().any(said), "{:?}", chat.seen);
    assert_eq!(chat.ended().await, "done", "the next prompt");

    chat.model.push(calls(&[("2", "touch a")]));
    let command = chat.question("go").await;
    let (_, question) = check(&mut chat, FIX).await;
    say(&mut chat, question.unwrap(), Answer::Deny).await;
    chat.model.push(says("ok"));
    chat.answer(command.id, Answer::Once);
    assert_eq!(chat.ended().await, "done", "the turn of another prompt");
}
