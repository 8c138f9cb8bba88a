//! Exports a transcript as markdown (`/export`).

use co_llm::transcript::{self, Decision, End, Item, Usage};
use co_text::code_block;

/// Returns the transcript as markdown. It contains the number of tokens of each turn, and of all turns at the end.
pub fn export_markdown(items: &[Item]) -> String {
    let mut page = String::new();
    let total = transcript::used(items);
    let mut speaker = "";
    for item in &transcript::joined(items) {
        let Some(text) = item_text(item) else {
            continue;
        };
        let who = match item {
            Item::User { .. } => "You",
            _ => "co",
        };
        if who != speaker {
            page.push_str(&format!("## {who}\n\n"));
            speaker = who;
        }
        page.push_str(text.trim_end());
        page.push_str("\n\n");
    }
    page.push_str(&format!("---\n{total}\n"));
    page
}

/// Returns the markdown of an item; none if readers do not need the item.
fn item_text(item: &Item) -> Option<String> {
    Some(match item {
        Item::User { text, context, .. } => context.iter().fold(text.clone(), |told, piece| {
            let name = &piece.name;
            match piece.image {
                Some(_) => format!("{told}\n\n_{name}, an image_"),
                None => format!("{told}\n\n{name}:\n\n{}", code_block("", &piece.text)),
            }
        }),
        Item::Text { text } => text.clone(),
        Item::Reasoning { text, .. } if text.is_empty() => return None,
        Item::Reasoning { text, .. } => quoted(text),
        Item::Call(call) => {
            let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
            format!("Call: {}\n\n{}", call.name, code_block("json", &arguments))
        }
        Item::Decision { decision, .. } => format!("_{}_", decided(decision)),
        Item::Outcome(outcome) => match outcome.shown.as_ref().map(|shown| &*shown.looked) {
            None | Some([]) => code_block("", &outcome.text),
            Some(looked) => format!(
                "{}\n\n{}",
                code_block("", &looked.join("\n")),
                code_block("", &outcome.text)
            ),
        },
        Item::End { reason, usage, .. } => {
            let used = (*usage != Usage::default()).then(|| usage.to_string());
            let ended = ended(*reason).map(str::to_owned);
            let said: Vec<_> = ended.into_iter().chain(used).collect();
            match said.is_empty() {
                true => return None,
                false => format!("_{}_", said.join(" ")),
            }
        }
        Item::Summary { text, .. } => format!("_Summed up:_\n\n{}", quoted(text)),
        Item::Notice { text } | Item::JobEnded { text, .. } => format!("_{text}_"),
        Item::CommandEdited { command, .. } => {
            format!(
                "_You changed the command to:_\n\n{}",
                code_block("sh", command)
            )
        }
        Item::Note { text, .. } if text == transcript::GO_ON => {
            "_Asked the model to continue._".to_owned()
        }
        Item::Note { text, .. } => format!("_The model was told:_\n\n{}", quoted(text)),
        Item::Retried => "_Asked again: the model no longer sees the answer above._".to_owned(),
        Item::JobStarted { .. } | Item::Surroundings(_) => return None,
        Item::Shortened { .. } | Item::Reduced => return None,
        Item::Plan { .. }
        | Item::ModelChosen { .. }
        | Item::AgentSession { .. }
        | Item::RanForReal { .. }
        | Item::Unknown => return None,
    })
}

fn quoted(text: &str) -> String {
    text.lines()
        .map(|line| format!("> {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn decided(decision: &Decision) -> String {
    match decision {
        Decision::Unasked => "Ran unasked: it only reads.".to_owned(),
        Decision::Tried => "Ran as a trial.".to_owned(),
        Decision::Rule { rule } => format!("Ran unasked: your rule `{rule}` allows it."),
        Decision::AutoConfirm => "Ran unasked: auto_confirm is on.".to_owned(),
        Decision::Approved => "You approved it.".to_owned(),
        Decision::Denied { reason: None } => "You denied it.".to_owned(),
        Decision::Denied {
            reason: Some(reason),
        } => format!("You denied it: {reason}"),
        Decision::Forbidden { why } => format!("Refused by a rule: {why}"),
        Decision::Withdrawn => "Not run: nobody answered.".to_owned(),
        Decision::Agent => "The agent carried it out itself.".to_owned(),
    }
}

fn ended(reason: End) -> Option<&'static str> {
    match reason {
        End::Done => None,
        End::Cancelled => Some("Cancelled."),
        End::Failed => Some("The answer broke off."),
        End::Guarded => Some("Stopped at a limit."),
        End::Interrupted => Some("Interrupted."),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use co_llm::transcript::{Call, Context, Image, Outcome};

    #[test]
    fn a_request_to_go_on_is_in_the_words_of_the_chat() {
        let note = Item::Note {
            text: transcript::GO_ON.to_owned(),
            once: true,
        };
        assert!(export_markdown(&[note]).contains("_Asked the model to continue._"));
    }

    #[test]
    fn an_image_is_named() {
        let image = Image {
            media_type: "image/png".into(),
            data: "AAAA".into(),
        };
        let prompt = Item::User {
            text: "see @file:shot.png".into(),
            context: vec![Context {
                name: "@file:shot.png".into(),
                text: String::new(),
                image: Some(image),
            }],
            at: None,
        };
        let page = export_markdown(&[prompt]);
        let expected = "## You\n\nsee @file:shot.png\n\n_@file:shot.png, an image_\n\n---\n";
        assert!(page.starts_with(expected), "{page}");
    }

    #[test]
    fn a_conversation_reads_as_one() {
        let items = [
            Item::user("list"),
            Item::Text {
                text: "I look.".into(),
            },
            Item::Call(Call::new("1", "run", json!({"cmd": "ls"}))),
            Item::Decision {
                call: "1".into(),
                decision: Decision::Unasked,
            },
            Item::Outcome(Outcome::new("1", "a\n```\nb\n", true)),
            Item::End {
                reason: End::Done,
                usage: Usage {
                    input: 10,
                    output: 2,
                    cached: 4,
                    cost: Some(transcript::Cost(1_500_000)),
                    ..Usage::default()
                },
                explained: false,
            },
        ];
        let expected = "## You\n\nlist\n\n## co\n\nI look.\n\nCall: run\n\n```json\n{\n  \"cmd\": \"ls\"\n}\n```\n\n\
                        _Ran unasked: it only reads._\n\n````\na\n```\nb\n````\n\n\
                        _10 tokens in (4 cached), 2 out, $0.0015_\n\n\
                        ---\n10 tokens in (4 cached), 2 out, $0.0015\n";
        assert_eq!(export_markdown(&items), expected);
    }

    #[test]
    fn the_calls_of_a_scout_are_above_its_report() {
        let shown = transcript::ShownPart {
            looked: vec!["read a.rs  9 lines".into(), "search x  no match".into()],
            ..transcript::ShownPart::default()
        };
        let outcome = Outcome {
            shown: Some(shown),
            ..Outcome::new("1", "In a.rs:3.", true)
        };
        let page = export_markdown(&[Item::Outcome(outcome)]);
        let expected = "```\nread a.rs  9 lines\nsearch x  no match\n```\n\n```\nIn a.rs:3.\n```";
        assert!(page.contains(expected), "{page}");
    }

    #[test]
    fn pieces_of_an_answer_are_exported_as_one() {
        let export = |pieces: &[&str]| {
            let items = pieces.iter().map(|text| Item::Text {
                text: (*text).to_owned(),
            });
            export_markdown(&items.collect::<Vec<_>>())
        };
        assert_eq!(export(&["Do", "ne.\n", "\nBye"]), export(&["Done.\n\nBye"]));
    }
}
