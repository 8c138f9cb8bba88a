//! Changes the request of a step after the provider refused it. No refused request is sent again, so no chat is stuck.
//!
//! The first refusal is answered by a note for the model, or by a shorter request if length may be the reason. After the second
//! one, the request goes in its reduced form. A provider that names the length as the reason gets a shorter request a few times.
//! A failure that does not pass, and an answer that the request cannot be carried out, may be a refusal too: they get the reduced
//! form once.

use std::sync::atomic::{AtomicU64, Ordering};

use co_llm::transcript::Item;
use co_llm::{Fault, ModelRequest};

/// The most times that the request of one step is made shorter.
const MAX_SHORTENED: usize = 4;
/// A server's failure counts as a refusal if the same request failed so often.
pub(super) const FAILURES: usize = 2;

/// The notice if the server refuses a request for its length.
pub(super) const TOO_LONG: &str =
    "the chat is longer than the model's context window; co shortens it and asks again";
/// The notice if the server refuses the bytes of a request, also without images.
pub(super) const TOO_LARGE: &str =
    "the request is larger than the provider takes; co shortens the chat and asks again";
/// The notice if a request was refused, perhaps because of its length.
pub(super) const MAYBE_TOO_LONG: &str =
    "the provider refused the longest request of this chat so far; co shortens it and asks again";

/// The requests of one chat that one provider took and refused.
#[derive(Debug, Default)]
pub(in crate::chat) struct RequestHistory {
    /// The estimated tokens of the largest request that it took.
    largest_taken: AtomicU64,
    refused: AtomicU64,
}

impl RequestHistory {
    pub(super) fn largest_taken(&self) -> u64 {
        self.largest_taken.load(Ordering::Relaxed)
    }

    pub(super) fn took(&self, tokens: u64) {
        self.largest_taken.fetch_max(tokens, Ordering::Relaxed);
    }

    /// Counts a refusal, and returns the note that tells the model of it. No two notes are the same, so a request with a note is
    /// new.
    pub(in crate::chat) fn refused(&self, words: &str) -> Item {
        let count = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        let words = words.trim();
        let text = match count {
            1 => format!("The provider refused the last request: {words}"),
            _ => format!(
                "The provider refused {count} requests of this chat, the last one with: {words}"
            ),
        };
        Item::Note { text, once: true }
    }
}

/// A request that the provider did not take.
#[derive(Debug, Clone, Copy)]
pub(super) struct FailedRequest {
    /// The estimated tokens of the request.
    pub tokens: u64,
    /// True if the reduced form of the request would differ from the request.
    pub reducible: bool,
}

/// The changes to the next request of a step, after refusals.
#[derive(Debug, Default)]
pub(super) struct Remedies {
    pub(super) note: Option<Item>,
    pub(super) reduced: bool,
    /// The number of times that the request was made shorter.
    pub(super) shortened: usize,
    /// The estimated tokens of the last request that was too long.
    pub(super) too_long: Option<u64>,
    /// The limit of the length that the provider named when it refused the request.
    pub(super) limit: Option<u64>,
    /// True if the provider said that length is the reason.
    pub(super) named: bool,
    /// The number of times in a row that the server failed.
    pub(super) failures: usize,
}

/// A change of the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// A note tells the model of the refusal.
    Note,
    Shorten,
    Reduce,
}

/// A request whose answer has not begun.
pub(super) struct PendingRequest {
    pub(super) tokens: u64,
    /// The last items of the request, which the transcript does not have yet.
    pub(super) added: Vec<Item>,
    /// A sentence for the person about the changes of the reduced form.
    pub(super) reduction: Option<String>,
    pub(super) too_long: Option<u64>,
    pub(super) limit: Option<u64>,
}

impl Remedies {
    /// Adds the changes that a request of so many tokens needs to be taken.
    pub(super) fn apply(&self, request: &mut ModelRequest, tokens: u64) -> PendingRequest {
        let note = self.note.clone();
        let added = note
            .into_iter()
            .chain(self.reduced.then_some(Item::Reduced));
        let added: Vec<Item> = added.collect();
        request.items = request.items.iter().chain(&added).cloned().collect();
        PendingRequest {
            tokens,
            reduction: self.reduced.then(|| request.reduction()).flatten(),
            added,
            // If only the reduced form is taken, length was not the reason.
            too_long: self.too_long.filter(|_| self.named || !self.reduced),
            limit: self.limit,
        }
    }

    /// Returns the next change after a refusal; none if no form is left to try. `length` is true if length may be the reason,
    /// `longest` if no request of this length was taken.
    pub(super) fn next(
        &self,
        fault: &Fault,
        request: FailedRequest,
        length: bool,
        longest: bool,
    ) -> Option<Remedy> {
        let shrinks = self.too_long.is_none_or(|last| request.tokens < last);
        let shorten = (shrinks && self.shortened < MAX_SHORTENED).then_some(Remedy::Shorten);
        let reduce = (!self.reduced).then_some(Remedy::Reduce);
        match fault {
            Fault::Overflow { .. } => shorten.or(reduce.filter(|_| request.reducible)),
            // Images have most of the bytes.
            Fault::TooLarge { .. } if !length && request.reducible => reduce.or(shorten),
            Fault::TooLarge { .. } => shorten.or(reduce),
            _ if length => Some(Remedy::Shorten),
            _ if self.note.is_none() && self.too_long.is_none() => Some(Remedy::Note),
            _ if longest && self.reduced && self.too_long.is_none() => Some(Remedy::Shorten),
            _ => reduce,
        }
    }

    /// Sends the next request in its reduced form against a fault that may be a refusal. Returns false if that cannot help.
    pub(super) fn reduce_once(&mut self, fault: &Fault, request: FailedRequest) -> bool {
        let helps = fault.may_be_refusal() && !fault.is_refusal() && request.reducible;
        helps && !std::mem::replace(&mut self.reduced, true)
    }
}

/// Returns true if the words of a failure are about parts that the reduced form leaves out, such as the words of a chat template.
pub(super) fn is_about_form(words: &str) -> bool {
    let words = words.to_lowercase();
    let parts = ["jinja", "template", "roles", "tool", "image"];
    parts.iter().any(|part| words.contains(part))
}
