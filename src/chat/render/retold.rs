//! A whole conversation as text, for `/resume`: it reads as it was seen live.

use std::collections::{HashMap, HashSet};

use super::{
    FENCE, HEADING, Page, RETRIED, SHORTENED, call, command_of, decision, end, job, look, note,
    prompt, summary,
};
use crate::tool::ToolCall;
use crate::tool::files;
use crate::tool::shell::ExecMode;
use co_llm::transcript::{Call, Decision, Item, Outcome};

/// A whole conversation as text, for `/resume`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::chat) struct Retelling {
    pub text: String,
    /// Rows with answers that the model no longer sees, first and last.
    pub folds: Vec<[usize; 2]>,
    /// The row at which the last answer begins.
    pub answer: Option<usize>,
}

/// Returns a whole conversation as it was seen. The page is where it ends.
pub(in crate::chat) fn transcript(items: &[Item], page: &mut Page) -> Retelling {
    *page = Page::new();
    let mut retold = Retold {
        page,
        out: Retelling::default(),
        rows: 0,
        speaking: false,
        calls: HashMap::new(),
        open: HashSet::new(),
        proved: HashSet::new(),
        notices: Vec::new(),
    };
    for item in items {
        retold.item(item);
    }
    retold.out
}

/// Tells a conversation as it was seen: each call with what it came to, also where several were made at once.
struct Retold<'a> {
    page: &'a mut Page,
    out: Retelling,
    /// Line breaks in the text so far.
    rows: usize,
    /// The model's heading is there.
    speaking: bool,
    calls: HashMap<&'a str, &'a Call>,
    /// The calls that are not told yet.
    open: HashSet<&'a str>,
    proved: HashSet<&'a str>,
    /// Notices about the next call, which is not told yet.
    notices: Vec<&'a str>,
}

impl<'a> Retold<'a> {
    fn item(&mut self, item: &'a Item) {
        match item {
            Item::User { text, context } => {
                self.speaking = false;
                self.out.answer = None;
                self.put(&prompt(text, context));
            }
            Item::Text { text } => {
                self.speak();
                self.out.answer.get_or_insert(self.rows);
                let text = self.page.text(text);
                self.push(&text);
            }
            Item::Call(call) => {
                self.speak();
                self.calls.insert(&call.id, call);
                self.open.insert(&call.id);
            }
            // It is told with the outcome.
            Item::Decision {
                call,
                decision: Decision::Proved,
            } => {
                self.proved.insert(call);
            }
            Item::Decision {
                call,
                decision: made,
            } => {
                self.call(call);
                self.put(&decision(made));
            }
            Item::Outcome(outcome) => self.outcome(outcome),
            Item::End { reason, .. } => {
                if let Some(text) = end(*reason, None) {
                    self.put(&text);
                }
            }
            Item::Summary { .. } => self.put("> earlier turns were summarised for the model"),
            Item::Notice { text } if self.open.is_empty() => self.put(&format!("> {text}")),
            Item::Notice { text } => self.notices.push(text),
            Item::JobEnded {
                text, told: false, ..
            } => self.put(&format!("*{text}*")),
            Item::JobStarted { .. } | Item::JobEnded { .. } => {}
            Item::Note { text, .. } => self.put(&note(text)),
            Item::Retried => {
                // Without an answer the same request went out once more.
                if let Some(first) = self.out.answer.take() {
                    // With the blank line below it: Neovim closes no fold of one line.
                    let last = (self.rows + 1).saturating_sub(self.page.breaks);
                    self.out.folds.push([first, last]);
                    self.put(RETRIED);
                }
            }
            Item::Shortened { .. } => self.put(SHORTENED),
            Item::Reasoning { .. } | Item::Surroundings(_) | Item::Unknown => {}
        }
    }

    fn outcome(&mut self, outcome: &Outcome) {
        self.out.answer = None;
        let look = self
            .calls
            .get(outcome.call.as_str())
            .is_some_and(|call| files::NAMES.contains(&call.name.as_str()));
        self.call(&outcome.call);
        if !look && self.proved.contains(outcome.call.as_str()) {
            self.put(&decision(&Decision::Proved));
        }
        match look {
            true => self.put(&summary(last_line(&outcome.text))),
            false => self.put(&format!(
                "{FENCE}text\n{}\n{FENCE}",
                outcome.text.trim_end()
            )),
        }
    }

    /// Tells a call that was not told yet.
    fn call(&mut self, id: &str) {
        if !self.open.remove(id) {
            return;
        }
        let Some(asked) = self.calls.get(id) else {
            return;
        };
        let text = match ToolCall::parse(asked) {
            Ok(ToolCall::File(asked)) => look(&asked),
            Ok(ToolCall::Job(asked)) => job(&asked),
            Ok(ToolCall::Shell(request)) => {
                call(&co_policy::printable(&command_of(asked)), request.mode)
            }
            Err(_) => call(
                &co_policy::printable(&command_of(asked)),
                ExecMode::default(),
            ),
        };
        self.put(&text);
        for notice in std::mem::take(&mut self.notices) {
            self.put(&format!("> {notice}"));
        }
    }

    fn speak(&mut self) {
        if !self.speaking {
            self.speaking = true;
            self.put(HEADING);
        }
    }

    fn put(&mut self, text: &str) {
        let text = self.page.paragraph(text);
        self.push(&text);
    }

    fn push(&mut self, text: &str) {
        self.rows += text.matches('\n').count();
        self.out.text.push_str(text);
    }
}

/// The end of what the model was told of a look says how much it saw.
fn last_line(text: &str) -> &str {
    let line = text.trim_end().lines().next_back().unwrap_or_default();
    line.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use super::*;
    use co_llm::transcript::End;

    #[test]
    fn a_conversation_has_one_heading_a_speaker() {
        let text = |text: &str| Item::Text {
            text: text.to_owned(),
        };
        let user = |text: &str| Item::User {
            text: text.to_owned(),
            context: Vec::new(),
        };
        let done = Item::End {
            reason: End::Done,
            usage: co_llm::transcript::Usage::default(),
        };
        let items = [
            user("hi"),
            text("Hel"),
            text("lo."),
            done,
            user("again"),
            text("Yes."),
        ];
        assert_eq!(
            transcript(&items, &mut Page::new()).text,
            "## You\n\nhi\n\n## Co\n\nHello.\n\n## You\n\nagain\n\n## Co\n\nYes."
        );
    }

    #[test]
    fn an_answer_that_was_asked_for_again_is_folded() {
        let text = |text: &str| Item::Text {
            text: text.to_owned(),
        };
        let items = [
            Item::User {
                text: "hi".to_owned(),
                context: Vec::new(),
            },
            text("One\n"),
            text("line."),
            Item::Retried,
            text("Two."),
        ];
        let told = transcript(&items, &mut Page::new());
        let lines: Vec<_> = told.text.lines().collect();
        let [[first, last]] = told.folds[..] else {
            panic!("{told:?}");
        };
        assert_eq!(lines[first..=last].join("|"), "One|line.|");
        assert!(lines[last + 1].starts_with("> asked again"), "{lines:?}");
        assert_eq!(lines[told.answer.unwrap()], "Two.");
    }
}
