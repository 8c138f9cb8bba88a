//! Changes the request of a step after the provider refused it. co never sends a refused request again, so that no chat gets
//! stuck.
//!
//! After the first refusal, co adds a note for the model, or shortens the request if its length may be the reason. After the
//! second refusal, co sends the request in its reduced form ([`Item::Reduced`]), which servers are least likely to refuse. If the
//! provider names the length as the reason, co shortens the request several times. Two other errors may also mean a refusal: a
//! permanent failure of the server, and the error that the server cannot carry out the request. After such an error, co sends the
//! reduced form once.

use std::sync::atomic::{AtomicU64, Ordering};

use co_llm::transcript::Item;
use co_llm::{Fault, ModelRequest};

/// The largest number of times that co shortens the request of one step.
const MAX_SHORTENED: usize = 4;
/// If a server has failed this many times for the same request, co takes the failure for a refusal of the request.
pub(super) const FAILURES: usize = 2;

/// The notice if the server refuses a request because it has too many tokens.
pub(super) const TOO_LONG: &str =
    "the chat is longer than the model's context window; co shortens it and asks again";
/// The notice if the server refuses a request because it has too many bytes, even without images.
pub(super) const TOO_LARGE: &str =
    "the request is larger than the provider takes; co shortens the chat and asks again";
/// The notice if the server refuses a request, perhaps because of its length.
pub(super) const MAYBE_TOO_LONG: &str =
    "the provider refused the longest request of this chat so far; co shortens it and asks again";

/// The requests of one chat that one provider accepted and refused.
#[derive(Debug, Default)]
pub(in crate::chat) struct RequestHistory {
    /// The estimated number of tokens of the largest request that the provider accepted.
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

    /// Counts a refusal, and returns a note about it for the model. No two notes are the same, so a request with a new note
    /// differs from all earlier requests.
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

/// A request that the provider did not accept.
#[derive(Debug, Clone, Copy)]
pub(super) struct FailedRequest {
    /// The estimated number of tokens of the request.
    pub tokens: u64,
    /// True if the request has a reduced form that differs from it.
    pub reducible: bool,
}

/// The changes to the next request of a step after refusals.
#[derive(Debug, Default)]
pub(super) struct Remedies {
    pub(super) note: Option<Item>,
    pub(super) reduced: bool,
    /// The number of times that co has shortened the request.
    pub(super) shortened: usize,
    /// The estimated number of tokens of the last request that was too long.
    pub(super) too_long: Option<u64>,
    /// The limit in tokens that the provider named when it refused the request.
    pub(super) limit: Option<u64>,
    /// True if the provider named the length as the reason.
    pub(super) named: bool,
    /// The number of consecutive failures of the server.
    pub(super) failures: usize,
}

/// A change to the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Add a note about the refusal for the model.
    Note,
    Shorten,
    Reduce,
}

/// A request whose answer has not started to arrive.
pub(super) struct PendingRequest {
    pub(super) tokens: u64,
    /// The items at the end of the request that the transcript does not contain yet.
    pub(super) added: Vec<Item>,
    /// A sentence for the person about the parts that the reduced form leaves out.
    pub(super) reduction: Option<String>,
    pub(super) too_long: Option<u64>,
    pub(super) limit: Option<u64>,
}

impl Remedies {
    /// Applies these changes to a request of `tokens` tokens.
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

    /// Returns the next change after a refusal. Returns `None` if no further change can help. `length` is true if the length may
    /// be the reason, and `longest` is true if the provider accepted no request of this length.
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

    /// Chooses the reduced form for the next request, after a fault that may be a refusal. Returns false if the reduced form
    /// cannot help.
    pub(super) fn reduce_once(&mut self, fault: &Fault, request: FailedRequest) -> bool {
        let helps = fault.may_be_refusal() && !fault.is_refusal() && request.reducible;
        helps && !std::mem::replace(&mut self.reduced, true)
    }
}

/// Returns true if the error message names a part that the reduced form leaves out, such as a chat template.
pub(super) fn is_about_form(words: &str) -> bool {
    let words = words.to_lowercase();
    let parts = ["jinja", "template", "roles", "tool", "image"];
    parts.iter().any(|part| words.contains(part))
}
