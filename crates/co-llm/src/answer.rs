//! Builds the items of an answer from its deltas.

use crate::provider::Delta;
use crate::transcript::Item;

/// Builds the items of one answer.
///
/// [`Self::push`] returns each item as soon as it is complete. A text is complete when another item follows it; a call is
/// complete at once.
#[derive(Debug, Default)]
pub struct AnswerBuilder {
    text: String,
    reasoning: String,
}

impl AnswerBuilder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a delta and returns the items that it completes.
    pub fn push(&mut self, delta: &Delta) -> Vec<Item> {
        let mut done = Vec::new();
        match delta {
            Delta::Text(text) => {
                done.extend(self.take_reasoning(None));
                self.text.push_str(text);
            }
            Delta::Reasoning(text) => {
                done.extend(self.take_text());
                self.reasoning.push_str(text);
            }
            Delta::Signature(signature) => {
                done.extend(self.take_text());
                done.extend(self.take_reasoning(Some(signature.clone())));
            }
            Delta::Call(call) | Delta::BadCall { call, .. } => {
                done.extend(self.finish());
                done.push(Item::Call(call.clone()));
            }
            Delta::Usage(_) | Delta::Notice(_) => {}
            Delta::Stop(_) => done.extend(self.finish()),
        }
        done
    }

    /// Ends the answer and returns its last items. The answer may have broken off.
    pub fn finish(&mut self) -> Vec<Item> {
        let mut done = Vec::new();
        done.extend(self.take_reasoning(None));
        done.extend(self.take_text());
        done
    }

    fn take_text(&mut self) -> Option<Item> {
        let text = std::mem::take(&mut self.text);
        (!text.is_empty()).then_some(Item::Text { text })
    }

    fn take_reasoning(&mut self, signature: Option<String>) -> Option<Item> {
        let text = std::mem::take(&mut self.reasoning);
        (!text.is_empty() || signature.is_some()).then_some(Item::Reasoning { text, signature })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::provider::Stop;
    use crate::transcript::Call;

    #[test]
    fn items_are_whole_and_in_order() {
        let call = Call::new("1", "run", json!({}));
        let mut answer = AnswerBuilder::new();
        let mut items = Vec::new();
        for delta in [
            Delta::Reasoning("hm".into()),
            Delta::Reasoning("m".into()),
            Delta::Signature("sig".into()),
            Delta::Signature("redacted".into()),
            Delta::Text("I ".into()),
            Delta::Text("run".into()),
            Delta::Call(call.clone()),
            Delta::Stop(Stop::Done),
        ] {
            items.extend(answer.push(&delta));
        }
        let reasoning = |text: &str, signature: &str| Item::Reasoning {
            text: text.into(),
            signature: Some(signature.into()),
        };
        assert_eq!(
            items,
            [
                reasoning("hmm", "sig"),
                reasoning("", "redacted"),
                Item::Text {
                    text: "I run".into()
                },
                Item::Call(call),
            ]
        );
        assert!(answer.finish().is_empty());
    }

    #[test]
    fn what_broke_off_is_not_lost() {
        let mut answer = AnswerBuilder::new();
        assert!(answer.push(&Delta::Text("half a sen".into())).is_empty());
        assert_eq!(
            answer.finish(),
            [Item::Text {
                text: "half a sen".into()
            }]
        );
    }
}
