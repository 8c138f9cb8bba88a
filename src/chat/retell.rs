//! Makes the events of a transcript for `/resume`, so that a resumed chat looks as it did before.

use std::collections::{HashMap, HashSet};

use super::events::ChatEvent;
use crate::tool::ToolSet;
use crate::tool::event::{CallEnd, CallEvent, ExecMode, ShownCall};
use crate::workspace::files;
use co_exec::Caller;
use co_llm::transcript::{
    Call, Decision, GO_ON, INTERRUPTED, Item, Outcome, ShownPart, TRIAL_INTERRUPTED,
};

/// Returns the event that shows the items of a transcript. The model's thoughts are shown if `thoughts` is true.
pub(super) fn resumed(items: &[Item], thoughts: bool, tools: &ToolSet) -> ChatEvent {
    let mut retelling = Retelling::new(tools);
    retelling.thoughts = thoughts;
    for item in items {
        retelling.item(item);
    }
    ChatEvent::Resumed {
        events: retelling.events,
        answered: retelling.answering,
    }
}

/// Returns the number of calls in a transcript.
pub(super) fn count_calls(items: &[Item]) -> usize {
    items.iter().filter(|item| is_call(item)).count()
}

fn is_call(item: &Item) -> bool {
    matches!(item, Item::Call(_))
}

/// Returns the events of all calls after the first `shown` calls, and of the outcomes of these calls.
pub(super) fn calls_after(items: &[Item], shown: usize, tools: &ToolSet) -> Vec<ChatEvent> {
    let mut calls = items.iter().enumerate().filter(|(_, item)| is_call(item));
    let Some((first, _)) = calls.nth(shown) else {
        return Vec::new();
    };
    let mut retelling = Retelling::new(tools);
    retelling.in_turn = true;
    for item in &items[first..] {
        match item {
            Item::Call(_) => retelling.item(item),
            Item::Decision { call, .. } | Item::CommandEdited { call, .. }
                if retelling.calls.contains_key(call.as_str()) =>
            {
                retelling.item(item)
            }
            Item::Outcome(outcome) if retelling.calls.contains_key(outcome.call.as_str()) => {
                retelling.item(item)
            }
            _ => {}
        }
    }
    retelling.events
}

/// Returns the part of an outcome that the chat shows. It is for an outcome whose shown part is not in the transcript.
fn shown_before(outcome: &Outcome, reads_files: bool) -> ShownPart {
    let interrupted = [INTERRUPTED, TRIAL_INTERRUPTED].contains(&outcome.text.as_str());
    match reads_files || interrupted {
        true => ShownPart::line(co_text::printable(last_line(&outcome.text))),
        false => ShownPart {
            output: [0, outcome.text.len()],
            ..ShownPart::default()
        },
    }
}

/// Collects the events of a transcript. The event of each call comes directly before the events of its outcome, even if a step
/// has several calls.
struct Retelling<'a> {
    tools: &'a ToolSet,
    events: Vec<ChatEvent>,
    /// True if the events include the thoughts of the model.
    thoughts: bool,
    /// True if a prompt, or a request to repeat an answer, has been read, but the end of its turn has not been read yet.
    prompted: bool,
    in_turn: bool,
    /// True if an agent works in the chat.
    by_agent: bool,
    /// True if the answer to the last prompt has started.
    answering: bool,
    calls: HashMap<&'a str, &'a Call>,
    /// The ids of the calls that have no event yet.
    open: HashSet<&'a str>,
    unasked: HashSet<&'a str>,
    /// The ids of the calls that ran as trials, each with the decision about the changes of the trial.
    tried: HashMap<&'a str, Option<&'a Decision>>,
    /// The notices about the next call, which has no event yet.
    notices: Vec<&'a str>,
}

impl<'a> Retelling<'a> {
    fn new(tools: &'a ToolSet) -> Self {
        Self {
            tools,
            events: Vec::new(),
            thoughts: false,
            prompted: false,
            in_turn: false,
            by_agent: false,
            answering: false,
            calls: HashMap::new(),
            open: HashSet::new(),
            unasked: HashSet::new(),
            tried: HashMap::new(),
            notices: Vec::new(),
        }
    }

    fn item(&mut self, item: &'a Item) {
        match item {
            Item::User { text, context, at } => {
                self.answering = false;
                self.events.push(ChatEvent::Prompt {
                    text: text.clone(),
                    context: context.clone(),
                    at: *at,
                });
                self.prompted = true;
            }
            Item::Text { text } => {
                self.start_turn();
                if !std::mem::replace(&mut self.answering, true) {
                    self.events.push(ChatEvent::AnswerStarted);
                }
                self.events.push(ChatEvent::Text(text.clone()));
            }
            Item::Call(call) => {
                self.start_turn();
                self.calls.insert(&call.id, call);
                self.open.insert(&call.id);
            }
            // Its event comes with the outcome.
            Item::Decision {
                call,
                decision: Decision::Unasked,
            } => {
                self.unasked.insert(call);
            }
            // Its event comes with the outcome, which tells whether the trial or what ran after it is shown.
            Item::Decision { call, decision } if self.tried.contains_key(call.as_str()) => {
                self.tried.insert(call, Some(decision));
            }
            Item::Decision { call, decision } => {
                if *decision == Decision::Tried {
                    self.tried.insert(call, None);
                }
                self.call(call);
                self.push(CallEvent::Decision(decision.clone()));
            }
            Item::CommandEdited { call, command } => {
                let shown = self
                    .calls
                    .get(call.as_str())
                    .map(|call| self.tools.shown(call));
                let mode = match shown {
                    Some(ShownCall::Command { mode, .. }) => mode,
                    _ => ExecMode::default(),
                };
                self.call(call);
                self.push(CallEvent::Edited {
                    command: command.clone(),
                    mode,
                });
            }
            Item::Outcome(outcome) => self.outcome(outcome),
            Item::End {
                reason, explained, ..
            } => {
                self.start_turn();
                (self.in_turn, self.prompted) = (false, false);
                self.events.push(ChatEvent::TurnEnded {
                    end: *reason,
                    fault: None,
                    by_agent: self.by_agent,
                    explained: *explained,
                });
            }
            Item::ModelChosen { agent, .. } => self.by_agent = agent.is_some(),
            Item::Summary { .. } => {
                self.start_turn();
                self.events.push(ChatEvent::Summarised);
            }
            Item::Notice { text } if self.open.is_empty() => self.notice(text),
            Item::Notice { text } => self.notices.push(text),
            Item::JobEnded {
                text, told: false, ..
            } => self.events.push(ChatEvent::JobEnded(text.clone())),
            // A note outside of a turn was shown to the person when it came.
            Item::Note { text, .. } if text != GO_ON && !self.in_turn && !self.prompted => {
                self.events.push(ChatEvent::ToldModel(text.clone()));
            }
            Item::Note { text, .. } => {
                if self.prompted {
                    self.start_turn();
                }
                self.events.push(match text.as_str() {
                    GO_ON => ChatEvent::AskedToContinue,
                    text => ChatEvent::ToldModel(text.to_owned()),
                });
                self.start_turn();
            }
            Item::Retried => {
                // If no answer had begun, co only repeated the request, and the chat shows nothing.
                if std::mem::take(&mut self.answering) {
                    self.events.push(ChatEvent::AnswerDropped);
                    self.events.push(ChatEvent::AskedAgain);
                }
                self.prompted = true;
            }
            Item::Reasoning { text, .. } => {
                self.start_turn();
                if self.thoughts && !text.trim().is_empty() {
                    self.events.push(ChatEvent::ThinkingStarted);
                    self.events.push(ChatEvent::Thought(text.trim().to_owned()));
                }
            }
            Item::Surroundings(_) => self.start_turn(),
            Item::Shortened { .. } => self.events.push(ChatEvent::TextsShortened),
            Item::JobStarted { .. } | Item::JobEnded { .. } | Item::RanForReal { .. } => {}
            Item::Plan { .. } | Item::AgentSession { .. } | Item::Reduced | Item::Unknown => {}
        }
    }

    fn push(&mut self, event: CallEvent) {
        self.events.push(event.into());
    }

    fn start_turn(&mut self) {
        if !std::mem::replace(&mut self.in_turn, true) {
            self.events.push(ChatEvent::TurnStarted);
        }
    }

    fn outcome(&mut self, outcome: &'a Outcome) {
        self.answering = false;
        let id = outcome.call.as_str();
        let call = self.calls.get(id);
        let reads_files = call.is_some_and(|call| files::NAMES.contains(&call.name.as_str()));
        self.call(id);
        if !reads_files && self.unasked.contains(id) {
            self.push(CallEvent::Decision(Decision::Unasked));
        }
        let shown = outcome
            .shown
            .clone()
            .unwrap_or_else(|| shown_before(outcome, reads_files));
        let tried = self.tried.remove(id);
        // Its output, even an empty one, tells that it ran again.
        let ran_again = tried.is_some() && !shown.tried;
        let decision = tried.flatten();
        let mut decision = decision.map(|it| CallEvent::Decision(it.clone()).into());
        if !shown.tried {
            self.events.extend(decision.take());
        }
        let [first, end] = shown.output;
        match outcome.text.get(first..end) {
            None => {}
            Some("") if !ran_again => {}
            Some(text) => self.push(CallEvent::Output {
                block: 0,
                text: text.to_owned(),
            }),
        }
        self.events.extend(decision);
        self.push(CallEvent::Ended(CallEnd::of(outcome, shown)));
    }

    /// Adds the event of a call that has no event yet, and the events of the notices about the call.
    fn call(&mut self, id: &str) {
        if self.open.remove(id)
            && let Some(call) = self.calls.get(id)
        {
            self.push(CallEvent::Begun(self.tools.shown(call)));
            for notice in std::mem::take(&mut self.notices) {
                self.notice(notice);
            }
        }
    }

    fn notice(&mut self, text: &str) {
        if self.prompted {
            self.start_turn();
        }
        self.events.push(ChatEvent::Notice {
            text: text.to_owned(),
            caller: match self.in_turn {
                true => Caller::Agent,
                false => Caller::Person,
            },
        });
    }
}

/// Returns the last line of a file call's outcome without its brackets. This line is the summary of the call.
fn last_line(text: &str) -> &str {
    let line = text.trim_end().lines().next_back().unwrap_or_default();
    line.trim_start_matches('[').trim_end_matches(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_ran_for_real_after_its_trial_shows_that() {
        let outputs = |tried: bool| {
            let decided = |decision| Item::Decision {
                call: "1".to_owned(),
                decision,
            };
            let shown = ShownPart {
                tried,
                ..ShownPart::default()
            };
            let items = [
                Item::Call(Call::new(
                    "1",
                    "run_shell_command",
                    serde_json::json!({"cmd": "a"}),
                )),
                decided(Decision::Tried),
                decided(Decision::Approved),
                Item::Outcome(Outcome {
                    shown: Some(shown),
                    ..Outcome::new("1", "", true)
                }),
            ];
            let events = calls_after(&items, 0, &ToolSet::built_in(true));
            let is_output =
                |it: &&ChatEvent| matches!(it, ChatEvent::Call(CallEvent::Output { .. }));
            events.iter().filter(is_output).count()
        };
        assert_eq!([true, false].map(outputs), [0, 1]);
    }
}
