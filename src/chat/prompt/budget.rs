//! Fits a transcript into a model's context window.

use std::collections::{HashMap, HashSet};

use co_llm::ToolSpec;
use co_llm::transcript::{self, Item, Outcome, Shortened};

/// The tokens of an item beside its text: roles, names, braces.
const FRAME: u64 = 8;
/// An output of at most this many bytes is never replaced by a line.
const SHORT: usize = 400;
/// The number of last outputs that are shortened last.
const RECENT: usize = 4;

/// A model's window, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub window: u64,
}

/// The items of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    pub items: Vec<Item>,
    /// Tokens of the whole request, estimated.
    pub tokens: u64,
    /// Outputs that had to be shortened for this request. Recorded as [`Item::Shortened`], they are sent like this from
    /// then on.
    pub shortened: Vec<Shortened>,
    /// Set if the request is still too large: the model must sum up first, and the summary must keep so many of the
    /// last items ([`Item::Summary`]).
    pub summarise: Option<usize>,
}

impl Budget {
    /// Returns the items to send. If they would fill the window, old outputs are shortened.
    ///
    /// The items are those of the transcript; summaries are applied and what is broken is repaired here.
    pub fn fit(&self, system: &str, tools: &[ToolSpec], items: &[Item]) -> Fit {
        let (whole, _) = transcript::repair(transcript::view(items));
        let mut outputs = Outputs::new(whole, items);
        let fixed = tokens(system) + tools.iter().map(tool_tokens).sum::<u64>();
        let mut used = fixed + outputs.told.iter().map(item_tokens).sum::<u64>();
        let limit = self.window / 5 * 4;
        if used > limit {
            // In steps of a fifth: else each request would shorten a little more, and the provider's cache would never
            // match.
            let step = (self.window / 5).max(1);
            let aim = limit.saturating_sub((used - limit).div_ceil(step) * step - (used - limit));
            outputs.leave_out(&mut used, aim, RECENT);
        }
        if used > limit {
            outputs.leave_out(&mut used, limit, 1);
        }
        if used > limit {
            outputs.shorten_largest(&mut used, limit);
        }
        Fit {
            summarise: (used > limit && may_shrink(items)).then(|| self.keep(items, fixed)),
            items: outputs.told,
            tokens: used,
            shortened: outputs.shortened,
        }
    }

    /// Returns how many of the last items fill at most a third of the window, beginning where a turn or
    /// a step begins, so that no call is parted from its result.
    fn keep(&self, items: &[Item], fixed: u64) -> usize {
        let mut room = (self.window / 3).saturating_sub(fixed);
        let mut keep = 0;
        let mut open: HashSet<&str> = HashSet::new();
        for (at, item) in items.iter().enumerate().rev() {
            let cost = item_tokens(item);
            if cost > room || matches!(item, Item::Summary { .. }) {
                break;
            }
            room -= cost;
            match item {
                Item::Outcome(outcome) => {
                    open.insert(&outcome.call);
                }
                Item::Call(call) => {
                    open.remove(call.id.as_str());
                }
                // A text stands in pieces: what is kept begins with its first one.
                Item::Text { .. } if matches!(items[..at].last(), Some(Item::Text { .. })) => {}
                Item::User { .. } | Item::Text { .. } if open.is_empty() => keep = items.len() - at,
                _ => {}
            }
        }
        keep
    }
}

/// Returns whether the transcript has anything new since the last summary.
fn may_shrink(items: &[Item]) -> bool {
    items
        .iter()
        .rev()
        .find_map(|item| match item {
            Item::Summary { .. } => Some(false),
            Item::Text { .. } | Item::Reasoning { .. } | Item::Call(_) | Item::Outcome(_) => {
                Some(true)
            }
            _ => None,
        })
        .unwrap_or(false)
}

/// Estimates the tokens of a text, rather too many than too few.
fn tokens(text: &str) -> u64 {
    (text.len() as u64 * 2).div_ceil(7)
}

fn tool_tokens(tool: &ToolSpec) -> u64 {
    FRAME + tokens(&tool.name) + tokens(&tool.description) + tokens(&tool.schema.to_string())
}

fn item_tokens(item: &Item) -> u64 {
    FRAME
        + match item {
            Item::User { text, context } => {
                tokens(text)
                    + context
                        .iter()
                        .map(|piece| FRAME + tokens(&piece.name) + tokens(&piece.text))
                        .sum::<u64>()
            }
            Item::Text { text } | Item::Note { text, .. } | Item::Summary { text, .. } => {
                tokens(text)
            }
            Item::Reasoning { text, signature } => {
                tokens(text) + signature.as_deref().map_or(0, tokens)
            }
            Item::Call(call) => {
                tokens(&call.name)
                    + tokens(&call.arguments.to_string())
                    + call.signature.as_deref().map_or(0, tokens)
            }
            Item::Outcome(outcome) => tokens(&outcome.text),
            Item::JobEnded {
                text, told: false, ..
            } => tokens(text),
            Item::JobStarted { .. } | Item::JobEnded { .. } => 0,
            Item::Decision { .. } | Item::End { .. } | Item::Notice { .. } | Item::Unknown => 0,
            Item::Surroundings(_) | Item::Retried | Item::Shortened { .. } => 0,
        }
}

/// The items of a request while outputs in them are shortened.
struct Outputs {
    told: Vec<Item>,
    /// The full outputs that `told` has shortened, by their index.
    whole: HashMap<usize, Outcome>,
    shortened: Vec<Shortened>,
}

impl Outputs {
    /// Takes the items to send, and repeats the shortenings in `transcript`.
    fn new(told: Vec<Item>, transcript: &[Item]) -> Self {
        let recorded = transcript.iter().filter_map(|item| match item {
            Item::Shortened { outputs } => Some(outputs),
            _ => None,
        });
        let known: HashMap<&str, usize> = recorded
            .flatten()
            .map(|output| (output.call.as_str(), output.bytes))
            .collect();
        let mut outputs = Self {
            told,
            whole: HashMap::new(),
            shortened: Vec::new(),
        };
        for at in outputs.places() {
            let call = outputs.outcome(at).map(|outcome| outcome.call.as_str());
            if let Some(bytes) = call.and_then(|call| known.get(call)) {
                outputs.tell(at, *bytes);
            }
        }
        outputs
    }

    fn places(&self) -> Vec<usize> {
        let places = 0..self.told.len();
        places.filter(|at| self.outcome(*at).is_some()).collect()
    }

    fn outcome(&self, at: usize) -> Option<&Outcome> {
        match &self.told[at] {
            Item::Outcome(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Keeps `bytes` of an output's start and end; 0 leaves one line.
    fn tell(&mut self, at: usize, bytes: usize) {
        let Item::Outcome(told) = &mut self.told[at] else {
            return;
        };
        let whole = self.whole.entry(at).or_insert_with(|| told.clone());
        told.text = match bytes {
            0 => stand_in(whole),
            bytes => halves(&whole.text, bytes),
        };
    }

    /// Shortens an output, notes that it is new, and returns the tokens saved.
    fn shorten(&mut self, at: usize, bytes: usize) -> u64 {
        let before = item_tokens(&self.told[at]);
        self.tell(at, bytes);
        if let Some(Outcome { call, .. }) = self.outcome(at) {
            let call = call.clone();
            self.shortened.retain(|output| output.call != call);
            self.shortened.push(Shortened { call, bytes });
        }
        before.saturating_sub(item_tokens(&self.told[at]))
    }

    /// Replaces outputs by a line, oldest first, until at most `aim` tokens are used. The last `spare` outputs stay.
    fn leave_out(&mut self, used: &mut u64, aim: u64, spare: usize) {
        let places = self.places();
        let old = places.len().saturating_sub(spare);
        for at in &places[..old] {
            if *used <= aim {
                break;
            }
            if self.outcome(*at).is_some_and(|it| it.text.len() > SHORT) {
                *used -= self.shorten(*at, 0);
            }
        }
    }

    /// Cuts the largest outputs in their middle until they fit or are small.
    fn shorten_largest(&mut self, used: &mut u64, limit: u64) {
        while *used > limit {
            let size = |at: &usize| self.outcome(*at).map_or(0, |it| it.text.len());
            let largest = self.places().into_iter().max_by_key(size);
            let Some(at) = largest.filter(|at| size(at) > SHORT * 4) else {
                return;
            };
            let bytes = size(&at) / 3;
            *used -= self.shorten(at, bytes);
        }
    }
}

fn stand_in(outcome: &Outcome) -> String {
    let size = outcome.text.len();
    let ended = if outcome.ok {
        ""
    } else {
        " of a call that failed"
    };
    match &outcome.spill {
        Some(path) => format!(
            "[{size} bytes of output{ended}, left out to save room; kept in {}]",
            path.display()
        ),
        None => format!(
            "[{size} bytes of output{ended}, left out to save room; call again if you need it]"
        ),
    }
}

/// Returns the first and the last bytes of a text, cut between characters, and a line between them.
fn halves(text: &str, each: usize) -> String {
    let head = (0..=each.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0);
    let tail = (text.len().saturating_sub(each)..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len());
    let left_out = tail.saturating_sub(head);
    format!(
        "{}\n[{left_out} bytes left out]\n{}",
        &text[..head],
        &text[tail..]
    )
}

#[cfg(test)]
mod tests;
