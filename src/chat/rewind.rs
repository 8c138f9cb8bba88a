//! `/rewind` restores the chat, the files, or both, as they were before a prompt. The chat continues in a copy; `/resume` finds
//! the original.

use super::chat_context::ChatContext;
use crate::protocol::Choice;
use co_llm::transcript::Item;
use co_text::{one_line, short_command};

/// A prompt to which a chat can be rewound.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RewindPoint {
    /// The index of the prompt's item in the transcript.
    pub item: usize,
    /// The number of the prompt's turn, counted from 0.
    pub turn: usize,
    pub text: String,
}

/// The argument that rewinds the chat and the files.
const BOTH: &str = "both";
const CHAT: &str = "chat";
const FILES: &str = "files";

/// A `/rewind` with all its arguments: the parts to rewind, and the prompt.
pub(super) enum Rewind {
    Chat(RewindPoint),
    Files(RewindPoint),
    Both(RewindPoint),
}

impl Rewind {
    /// Parses the arguments `[number [both|chat|files]]`. If an argument is missing, offers choices and returns `None`. If an
    /// argument is wrong, tells the person and returns `None`.
    pub(super) fn parse(context: &ChatContext, items: &[Item], args: &str) -> Option<Self> {
        let mut points = points(items);
        if points.is_empty() {
            context.say("nothing was said in this chat yet: write a prompt first");
            return None;
        }
        let mut words = args.split_whitespace();
        let (number, scope) = (words.next(), words.next());
        let Some(number) = number else {
            context.offer("rewind", "Go back to before", prompts(&points));
            return None;
        };
        let number = number.parse::<usize>().unwrap_or_default();
        let total = points.len();
        if number == 0 || number > total {
            context.complain(format!(
                "say /rewind and the number of a prompt, from 1 to {total}"
            ));
            return None;
        }
        let point = points.swap_remove(number - 1);
        match scope {
            Some(BOTH) => return Some(Self::Both(point)),
            Some(CHAT) => return Some(Self::Chat(point)),
            Some(FILES) => return Some(Self::Files(point)),
            Some(_) => context.complain("say both, chat or files after the number"),
            None => context.offer(
                "rewind",
                &format!("Before “{}”", one_line(&short_command(&point.text))),
                scopes(number),
            ),
        }
        None
    }
}

/// Returns the prompts that started a turn, from the first to the last.
fn points(items: &[Item]) -> Vec<RewindPoint> {
    let mut points: Vec<RewindPoint> = Vec::new();
    let mut turn = 0;
    for (at, item) in items.iter().enumerate() {
        match item {
            Item::User { text, .. } if points.last().is_none_or(|last| last.turn < turn) => {
                points.push(RewindPoint {
                    item: at,
                    turn,
                    text: text.clone(),
                });
            }
            Item::End { .. } => turn += 1,
            _ => {}
        }
    }
    points
}

/// Returns the prompts as choices. The last prompt comes first.
fn prompts(points: &[RewindPoint]) -> Vec<Choice> {
    let choice = |(at, point): (usize, &RewindPoint)| Choice {
        label: one_line(&short_command(&point.text)),
        value: (at + 1).to_string(),
        confirm: None,
    };
    points.iter().enumerate().rev().map(choice).collect()
}

fn scopes(number: usize) -> Vec<Choice> {
    let choice = |scope: &str, label: &str| Choice {
        label: label.to_owned(),
        value: format!("{number} {scope}"),
        confirm: None,
    };
    vec![
        choice(BOTH, "the chat and the files"),
        choice(CHAT, "only the chat: the files stay"),
        choice(FILES, "only the files: the chat stays"),
    ]
}
