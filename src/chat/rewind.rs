//! `/rewind`: takes the chat, the files or both back to the moment before a prompt. The chat continues in a copy; `/resume`
//! finds the original.

use super::{Chat, retell};
use crate::checkpoint::By;
use crate::protocol::{Choice, ToEditor};
use co_llm::transcript::{self, Item};
use co_text::{one_line, short_command};

/// A prompt that a chat can go back to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RewindPoint {
    /// The index of its item.
    item: usize,
    /// The number of its turn, from 0.
    turn: usize,
    text: String,
}

/// The words for the parts that go back.
const BOTH: &str = "both";
const CHAT: &str = "chat";
const FILES: &str = "files";

impl Chat {
    /// Carries out `/rewind [number [both|chat|files]]`. Offers choices for what is left out.
    pub(super) async fn rewind(&mut self, args: &str) {
        if self.running.is_some() {
            return self.complain("a turn is running; <C-c> cancels it, then /rewind");
        }
        let mut points = points(self.recorder.items());
        if points.is_empty() {
            return self.say("nothing was said in this chat yet");
        }
        let mut words = args.split_whitespace();
        let (number, scope) = (words.next(), words.next());
        let Some(number) = number else {
            return self.offer("rewind", "Go back to before", prompts(&points));
        };
        let number = number.parse::<usize>().unwrap_or_default();
        let total = points.len();
        if number == 0 || number > total {
            return self.complain(format!(
                "say /rewind and the number of a prompt, from 1 to {total}"
            ));
        }
        let point = points.swap_remove(number - 1);
        match scope {
            None => self.offer(
                "rewind",
                &format!("Before “{}”", one_line(&short_command(&point.text))),
                scopes(number),
            ),
            Some(FILES) => self.undo(By::Undo, Some(point.turn), None),
            Some(CHAT) => self.rewind_chat(point).await,
            Some(BOTH) if self.may_rewind_chat() => {
                self.undo(By::Undo, Some(point.turn), Some(point));
            }
            Some(BOTH) => {}
            Some(_) => self.complain("say both, chat or files after the number"),
        }
    }

    /// Returns true if no job of the chat runs. Else tells the person to end the jobs first.
    fn may_rewind_chat(&self) -> bool {
        let runs = self.jobs.any_runs();
        if runs {
            self.complain("jobs of this chat still run; end them in :Co /jobs, then /rewind");
        }
        !runs
    }

    /// Continues in a copy of the transcript that ends before a prompt, which becomes the draft.
    pub(super) async fn rewind_chat(&mut self, point: RewindPoint) {
        let Some(id) = self.recorder.id().filter(|_| self.may_rewind_chat()) else {
            return;
        };
        let RewindPoint { item, turn, text } = point;
        if !self.go_on_in_copy(id, item, turn).await {
            return;
        }
        self.drop_undo();
        self.undo = None;
        let items = self.recorder.items();
        self.status.turn_usage = transcript::used_last(items);
        let resumed = retell::resumed(items, self.services.config.show_reasoning, &self.tools);
        self.show_resumed(resumed).await;
        self.services.editor.tell(ToEditor::Unsent {
            chat: self.id,
            text,
        });
        self.say("the chat continues before this prompt; /resume finds the original");
    }
}

/// Returns the prompts that started a turn, in their order.
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

/// Returns the prompts as choices, the last one first.
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
