//! Skills: the system prompt names them, a tool reads them, and skills of the workspace need the person's trust.

use std::path::Path;

use serde_json::json;

use super::chat::{Chat, answered, asks_for, says};
use crate::chat::trust_questions;
use crate::config::Config;
use crate::protocol::{Answer, ToEditor, TrustQuestion};
use co_llm::scripted::Scripted;

const SKILL: &str = "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse `pdftotext`.\n";

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn has_tool(chat: &Chat) -> bool {
    let tools = chat.last_request().tools;
    tools.iter().any(|tool| tool.name == "read_skill")
}

/// Chooses the only skill in `/skills`, and returns the question about it.
async fn chosen(chat: &mut Chat) -> TrustQuestion {
    let choices = chat.command_offers("skills").await;
    assert_eq!(choices.len(), 1, "{choices:?}");
    chat.command("skills", &choices[0].value);
    chat.until(pick!(ToEditor::Trust(question) => question.clone()))
        .await
}

async fn answer(chat: &mut Chat, id: u64, decision: Answer) {
    assert!(trust_questions::answer(
        &chat.services,
        &answered(id, decision)
    ));
    chat.noticed().await;
}

fn read(id: &str, arguments: serde_json::Value) -> Vec<co_llm::scripted::Part> {
    asks_for(id, "read_skill", arguments)
}

#[tokio::test]
async fn a_skill_of_the_workspace_is_told_and_read_once_it_is_trusted() {
    let mut chat = Chat::new([says("ok")]);
    let file = chat.work.join(".claude/skills/pdf/SKILL.md");
    put(&file, SKILL);
    put(&file.with_file_name("more.md"), "More.\n[exit 1]\n");
    chat.turn("go").await;
    assert!(!has_tool(&chat));
    assert!(!format!("{:?}", chat.last_request()).contains("Reads PDF"));
    assert!(chat.screen().contains("/skills shows it"));
    let question = chosen(&mut chat).await;
    assert!(question.text.contains("pdftotext"), "{question:?}");
    answer(&mut chat, question.id, Answer::Once).await;

    chat.model.push(read("1", json!({ "name": "pdf" })));
    chat.model
        .push(read("2", json!({ "name": "pdf", "file": "more.md" })));
    chat.model
        .push(read("3", json!({ "name": "pdf", "file": "../../../x" })));
    chat.model.push(read("4", json!({ "name": "other" })));
    chat.turn_with("go on", says("done")).await;
    assert!(has_tool(&chat));
    let request = format!("{:?}", chat.last_request());
    assert!(
        request.contains("## Skill pdf\\nReads PDF files."),
        "{request}"
    );
    chat.assert_told("1", "Use `pdftotext`.");
    let framed = request.split("More.").next().unwrap();
    assert!(framed.ends_with(">\\n"), "{framed}");
    chat.assert_told("3", "not below the directory");
    chat.assert_told("4", "The skills are: pdf.");
    assert_eq!(chat.asks(), 0);

    // A changed text asks again, and the old one is told no more.
    put(&file, &SKILL.replace("pdftotext", "rm"));
    chat.model.push(read("5", json!({ "name": "pdf" })));
    chat.turn_with("again", says("done")).await;
    chat.assert_told("5", "There is no tool called read_skill");
    let question = chosen(&mut chat).await;
    assert!(question.notes[0].contains("changed"), "{question:?}");
    answer(&mut chat, question.id, Answer::Deny).await;
    let choices = chat.command_offers("skills").await;
    assert!(choices[0].label.contains("refused"), "{choices:?}");
}

#[tokio::test]
async fn skills_of_the_person_need_no_answer_and_a_setting_turns_them_off() {
    let mut chat = Chat::new([read("1", json!({ "name": "mine" })), says("ok")]);
    let home = chat.services.places.home.clone();
    put(&home.join(".claude/skills/mine/SKILL.md"), SKILL);
    chat.turn("go").await;
    chat.assert_told("1", "pdftotext");
    assert!(has_tool(&chat));
    let choices = chat.command_offers("skills").await;
    assert!(choices[0].label.starts_with("mine (yours)"), "{choices:?}");
    chat.command_works("skills", &choices[0].value, "@skill:mine")
        .await;

    let off = |config: &mut Config| config.skills = false;
    let mut chat = Chat::with(Scripted::new([says("ok")]), off);
    put(&chat.work.join(".co/skills/pdf/SKILL.md"), SKILL);
    chat.turn("go").await;
    assert!(!has_tool(&chat));
    chat.command_works("skills", "", "is false").await;
}
