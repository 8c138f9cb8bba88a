//! Separates the reasoning that a model writes into its text between `<think>` and `</think>`.
//!
//! Servers for local models often pass such reasoning on as text. The opening tag counts only at the beginning of an answer.

use crate::provider::Delta;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The state of an answer that may begin with `<think>`.
#[derive(Debug, Default)]
pub(super) struct ThinkTags {
    state: State,
    /// Received text that may be the beginning of a tag.
    waiting: String,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    /// So far, the answer has only white space or a part of the opening tag.
    #[default]
    Start,
    Reasoning,
    /// The reasoning has ended. White space before the text is dropped.
    Between,
    Text,
}

impl ThinkTags {
    /// Adds a piece of text and returns the deltas that it completes.
    pub(super) fn push(&mut self, text: &str) -> Vec<Delta> {
        let mut done = Vec::new();
        self.waiting.push_str(text);
        loop {
            match self.state {
                State::Start => {
                    let begun = self.waiting.trim_start();
                    if let Some(rest) = begun.strip_prefix(OPEN) {
                        self.waiting = rest.to_owned();
                        self.state = State::Reasoning;
                    } else if OPEN.starts_with(begun) {
                        return done;
                    } else {
                        self.state = State::Text;
                    }
                }
                State::Reasoning => {
                    let Some(at) = self.waiting.find(CLOSE) else {
                        let keep = partial_close(&self.waiting);
                        let whole = self.waiting.len() - keep;
                        let reasoning: String = self.waiting.drain(..whole).collect();
                        done.extend(some(reasoning).map(Delta::Reasoning));
                        return done;
                    };
                    let rest = self.waiting.split_off(at + CLOSE.len());
                    self.waiting.truncate(at);
                    let reasoning = std::mem::replace(&mut self.waiting, rest);
                    done.extend(some(reasoning).map(Delta::Reasoning));
                    self.state = State::Between;
                }
                State::Between => {
                    self.waiting = self.waiting.trim_start().to_owned();
                    if self.waiting.is_empty() {
                        return done;
                    }
                    self.state = State::Text;
                }
                State::Text => {
                    done.extend(some(std::mem::take(&mut self.waiting)).map(Delta::Text));
                    return done;
                }
            }
        }
    }

    /// Returns the text that was held back. From then on, all text of the model counts as its answer, never as reasoning.
    pub(super) fn finish(&mut self) -> Option<Delta> {
        let rest = some(std::mem::take(&mut self.waiting))?;
        match std::mem::replace(&mut self.state, State::Text) {
            State::Reasoning => Some(Delta::Reasoning(rest)),
            _ => Some(Delta::Text(rest)),
        }
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Returns the length of the text's end that may be the beginning of the closing tag.
fn partial_close(text: &str) -> usize {
    let lengths = (1..CLOSE.len()).rev();
    let mut partial = lengths.filter(|length| text.ends_with(&CLOSE[..*length]));
    partial.next().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the reasoning and the text of an answer that comes in these pieces.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, String) {
        let mut tags = ThinkTags::default();
        let mut deltas: Vec<Delta> = pieces.into_iter().flat_map(|it| tags.push(it)).collect();
        deltas.extend(tags.finish());
        let (mut reasoning, mut text) = (String::new(), String::new());
        for delta in deltas {
            match delta {
                Delta::Reasoning(piece) => reasoning.push_str(&piece),
                Delta::Text(piece) => text.push_str(&piece),
                other => panic!("{other:?}"),
            }
        }
        (reasoning, text)
    }

    #[test]
    fn tags_at_the_beginning_are_reasoning_at_any_cut() {
        let check = |answer: &str, reasoning: &str, text: &str| {
            let expected = (reasoning.to_owned(), text.to_owned());
            for at in (0..=answer.len()).filter(|at| answer.is_char_boundary(*at)) {
                let (head, tail) = answer.split_at(at);
                assert_eq!(read([head, tail]), expected, "{answer:?} cut at {at}");
            }
            let characters: Vec<String> = answer.chars().map(String::from).collect();
            assert_eq!(read(characters.iter().map(String::as_str)), expected);
        };
        check("<think>hm, é</think>\n\nFour.", "hm, é", "Four.");
        check("\n<think>a </thin b</think>c", "a </thin b", "c");
        check("<think>never closed", "never closed", "");
        check("<think></think>x", "", "x");
        check("It says <think>x</think>", "", "It says <think>x</think>");
        check("<thinking>", "", "<thinking>");
        check("<thi", "", "<thi");
        check("plain", "", "plain");
    }
}
