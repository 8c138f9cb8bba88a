//! Repairs the items of a chat so that every provider accepts them.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::item::{Call, Decision, Item, Outcome};

/// The text of the result that is added to a call without a result. co ended before the call did.
pub const INTERRUPTED: &str =
    "interrupted: co ended before this call did; whether it took effect is not known";

/// The text of the result that is added to a call without a result, if the call ran only as a trial.
pub const TRIAL_INTERRUPTED: &str =
    "interrupted: co ended during the trial of this call; what it changed is dropped";

/// Returns the items with exactly one result for each call. The second value is true if the items had to be changed.
///
/// The results of a step follow directly after its calls. The ids of calls are unique, and their arguments are objects. All other
/// items keep their order.
pub fn repair(items: Vec<Item>) -> (Vec<Item>, bool) {
    let mended = Repair::new(&items).run();
    let changed = mended != items;
    (mended, changed)
}

/// Returns true if the last turn has no end item, because the backend was killed.
pub fn unfinished(items: &[Item]) -> bool {
    items.iter().rev().find_map(is_of_turn).unwrap_or(false)
}

/// Returns true if the turn continues after this item, and false if the item ends it. Returns `None` for an item that may also
/// stand between turns.
pub(crate) fn is_of_turn(item: &Item) -> Option<bool> {
    match item {
        Item::End { .. } => Some(false),
        Item::User { .. } | Item::Text { .. } | Item::Reasoning { .. } => Some(true),
        Item::Note { once: true, .. } | Item::Retried => Some(true),
        Item::Call(_) | Item::Decision { .. } | Item::Outcome(_) => Some(true),
        // A chat may also record one between two turns.
        Item::Note { once: false, .. } => None,
        Item::JobStarted { .. } | Item::JobEnded { .. } => None,
        Item::Summary { .. }
        | Item::Notice { .. }
        | Item::Plan { .. }
        | Item::AgentSession { .. }
        | Item::CommandEdited { .. }
        | Item::RanForReal { .. }
        | Item::ModelChosen { .. }
        | Item::Unknown => None,
        Item::Surroundings(_) | Item::Shortened { .. } | Item::Reduced => None,
    }
}

/// Returns the calls without a result, in the order in which they were made.
pub fn unanswered(items: &[Item]) -> Vec<&Call> {
    let mut open: Vec<&Call> = Vec::new();
    for item in items {
        match item {
            Item::Call(call) => open.push(call),
            Item::Outcome(outcome) => {
                if let Some(at) = open.iter().position(|call| call.id == outcome.call) {
                    open.remove(at);
                }
            }
            _ => {}
        }
    }
    open
}

struct Repair<'a> {
    items: &'a [Item],
    /// For each call id, the indices of the results with this id that do not belong to a call yet. The last result comes first.
    outcomes: HashMap<&'a str, Vec<usize>>,
    /// The indices of results that were moved to an earlier place.
    taken: HashSet<usize>,
    /// The new ids of the calls so far.
    ids: HashSet<String>,
    /// The calls so far without a written result. An entry is the new id of a call, and the index of the result if there is one.
    open: Vec<(String, Option<usize>)>,
    /// The most recent decision about each call so far.
    decisions: HashMap<&'a str, &'a Decision>,
    /// True if a result came after the last call. Then the next call starts another step.
    answering: bool,
    mended: Vec<Item>,
}

impl<'a> Repair<'a> {
    fn new(items: &'a [Item]) -> Self {
        let mut outcomes: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, item) in items.iter().enumerate().rev() {
            if let Item::Outcome(outcome) = item {
                outcomes.entry(&outcome.call).or_default().push(at);
            }
        }
        Self {
            items,
            outcomes,
            taken: HashSet::new(),
            ids: HashSet::new(),
            open: Vec::new(),
            decisions: HashMap::new(),
            answering: false,
            mended: Vec::with_capacity(items.len()),
        }
    }

    fn run(mut self) -> Vec<Item> {
        for (at, item) in self.items.iter().enumerate() {
            if let Item::Decision { call, decision } = item {
                self.decisions.insert(call, decision);
            }
            match item {
                Item::Call(call) => self.call(at, call),
                Item::Outcome(_) => self.outcome(at),
                // Between two calls of one answer. The model was sent no result yet.
                Item::Text { .. } | Item::Reasoning { .. } if !self.answering => {
                    self.mended.push(item.clone());
                }
                Item::User { .. }
                | Item::Text { .. }
                | Item::Reasoning { .. }
                | Item::Summary { .. }
                | Item::Note { .. }
                | Item::Retried
                | Item::JobEnded { told: false, .. }
                | Item::End { .. } => {
                    self.close();
                    self.mended.push(item.clone());
                }
                Item::JobStarted { .. } | Item::JobEnded { .. } => self.mended.push(item.clone()),
                Item::Decision { .. }
                | Item::Notice { .. }
                | Item::Plan { .. }
                | Item::AgentSession { .. }
                | Item::CommandEdited { .. }
                | Item::RanForReal { .. }
                | Item::ModelChosen { .. }
                | Item::Surroundings(_)
                | Item::Shortened { .. }
                | Item::Reduced
                | Item::Unknown => {
                    self.mended.push(item.clone());
                }
            }
        }
        self.close();
        self.mended
    }

    fn call(&mut self, at: usize, call: &Call) {
        if self.answering {
            self.close();
            self.answering = false;
        }
        let mut call = call.clone();
        let answer = self.outcomes.get_mut(call.id.as_str()).and_then(|places| {
            // A result before its call is dropped.
            while places.last().is_some_and(|place| *place < at) {
                places.pop();
            }
            places.pop()
        });
        if !call.arguments.is_object() {
            call.arguments = Value::Object(Map::new());
        }
        if self.ids.contains(&call.id) {
            call.id = (2..)
                .map(|number| format!("{}_{number}", call.id))
                .find(|id| !self.ids.contains(id))
                .unwrap_or_default();
        }
        self.ids.insert(call.id.clone());
        self.open.push((call.id.clone(), answer));
        self.mended.push(Item::Call(call));
    }

    fn outcome(&mut self, at: usize) {
        if self.taken.contains(&at) {
            return;
        }
        let Some(index) = self.open.iter().position(|(_, place)| *place == Some(at)) else {
            // It belongs to no call, or to one that has its result.
            return;
        };
        let (id, place) = self.open.remove(index);
        self.answer(id, place);
    }

    /// Adds a result for each open call. If the call's own result comes later, moves it here.
    fn close(&mut self) {
        for (id, place) in std::mem::take(&mut self.open) {
            self.taken.extend(place);
            self.answer(id, place);
        }
    }

    fn answer(&mut self, id: String, place: Option<usize>) {
        let outcome = match place.and_then(|at| self.items.get(at)) {
            Some(Item::Outcome(outcome)) => Outcome {
                call: id,
                ..outcome.clone()
            },
            _ => {
                let tried = self.decisions.get(id.as_str()) == Some(&&Decision::Tried);
                let text = if tried {
                    TRIAL_INTERRUPTED
                } else {
                    INTERRUPTED
                };
                Outcome::new(id, text, false)
            }
        };
        self.mended.push(Item::Outcome(outcome));
        self.answering = true;
    }
}

#[cfg(test)]
mod tests;
