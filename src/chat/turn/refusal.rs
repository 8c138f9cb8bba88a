//! Changes the request of a step after the provider refused it. No refused request is sent again, so no chat is stuck.
//!
//! The first refusal is answered by a note for the model, or by a shorter request if length may be the reason. After the second one,
//! the request goes in its reduced form. A provider that names the length as the reason gets a shorter request a few times.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Turn;
use super::event::Halt;
use co_llm::transcript::Item;
use co_llm::{Fault, ModelRequest};

/// The most refusals in one step that another form of the request may answer.
const MAX_ANSWERED: usize = 2;
/// The same, if each refusal says that the request is too long and each request is shorter than the last.
const MAX_SHORTENED: usize = 4;
/// A server's failure counts as a refusal if the same request failed so often.
const FAILURES: usize = 2;

/// The notice if the server refuses a request for its length.
const TOO_LONG: &str =
    "the chat is longer than the model's context window; co shortens it and asks again";
/// The notice if length may be the reason.
const MAYBE_TOO_LONG: &str =
    "the provider refused the longest request of this chat so far; co shortens it and asks again";

/// The requests of one chat that one provider took and refused.
#[derive(Debug, Default)]
pub(in crate::chat) struct RequestHistory {
    /// The estimated tokens of the largest request that it took.
    largest_taken: AtomicU64,
    refused: AtomicU64,
}

impl RequestHistory {
    fn largest_taken(&self) -> u64 {
        self.largest_taken.load(Ordering::Relaxed)
    }

    pub(super) fn took(&self, tokens: u64) {
        self.largest_taken.fetch_max(tokens, Ordering::Relaxed);
    }

    /// Counts a refusal, and returns the note that tells the model of it. No two notes are the same, so a request with one is new.
    pub(super) fn refused(&self, words: &str) -> Item {
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

/// The changes to the next request of a step, after refusals.
#[derive(Debug, Default)]
pub(super) struct Remedies {
    note: Option<Item>,
    reduced: bool,
    refusals: usize,
    /// The estimated tokens of the last request that was too long.
    too_long: Option<u64>,
    /// The number of times in a row that the server failed.
    failures: usize,
}

/// A request whose answer has not begun.
pub(super) struct PendingRequest {
    tokens: u64,
    /// Its last items, which the transcript does not have yet.
    added: Vec<Item>,
    /// A sentence for the person about the changes of the reduced form.
    reduction: Option<String>,
    too_long: Option<u64>,
}

impl Remedies {
    /// Adds what a request of so many tokens needs to be taken.
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
            too_long: self.too_long,
        }
    }
}

impl Turn {
    /// Chooses the changes to the next request after a fault. Returns false if the fault is no refusal, or if no form is left to try.
    pub(super) async fn answer_refusal(
        &mut self,
        fault: &Fault,
        tokens: u64,
        remedies: &mut Remedies,
    ) -> Result<bool, Halt> {
        let named = matches!(fault, Fault::Overflow { .. });
        let may_be_too_long = named || self.may_be_too_long(tokens, remedies).await?;
        if fault.is_explained() {
            remedies.failures += 1;
            if !may_be_too_long || remedies.failures < FAILURES {
                return Ok(false);
            }
        } else if !fault.is_refusal() {
            return Ok(false);
        }
        let shrinks = named && remedies.too_long.is_none_or(|last| tokens < last);
        let most = match shrinks {
            true => MAX_SHORTENED,
            false => MAX_ANSWERED,
        };
        if remedies.refusals >= most || (remedies.reduced && !shrinks) {
            return Ok(false);
        }
        remedies.refusals += 1;
        remedies.failures = 0;
        let note = self.history.refused(words(fault));
        if may_be_too_long {
            self.shorten(named, tokens).await?;
            remedies.too_long = Some(tokens);
        } else if !matches!(fault, Fault::TooLarge { .. }) {
            remedies.note = Some(note.clone());
        }
        let changed = remedies.too_long.is_some() || remedies.note.is_some();
        if remedies.refusals > 1 || !changed {
            remedies.reduced = true;
            remedies.note = Some(note);
        }
        Ok(true)
    }

    /// Returns true if length may be why the provider refused a request. It is thought so once in a step.
    async fn may_be_too_long(&self, tokens: u64, remedies: &Remedies) -> Result<bool, Halt> {
        let window = self.budget().await?.window;
        Ok(remedies.too_long.is_none()
            && tokens > self.history.largest_taken()
            && tokens > window / 2)
    }

    /// Lets the next request have about half of what this one had.
    async fn shorten(&mut self, named: bool, tokens: u64) -> Result<(), Halt> {
        self.window_limit = Some(tokens / 5 * 3);
        if named {
            self.learn_window(tokens);
        }
        self.note(if named { TOO_LONG } else { MAYBE_TOO_LONG })
            .await
    }

    /// Remembers for all chats that a request of so many tokens was too long for the model. Requests like those that it took may go on.
    fn learn_window(&self, too_long: u64) {
        let taken = self.history.largest_taken();
        let window = (taken / 4 * 5).max(too_long / 5 * 3);
        self.provider.learn_window(match taken < too_long {
            true => window.min(too_long),
            false => too_long / 5 * 3,
        });
    }

    /// Learns from a request that the provider took. Records what was added to it, so that the next request begins like this one.
    pub(super) async fn taken(&mut self, request: PendingRequest) -> Result<(), Halt> {
        self.history.took(request.tokens);
        if let Some(too_long) = request.too_long.filter(|it| *it > request.tokens) {
            self.learn_window(too_long);
            self.window_limit = None;
        }
        for item in request.added {
            match item {
                Item::Note { text, once } => self.tell_model(text, once).await?,
                item => self.record(item).await?,
            }
        }
        match request.reduction {
            Some(reduction) => {
                let words = format!(
                    "the provider takes the chat so far in a reduced form only: {reduction}"
                );
                self.note(&words).await
            }
            None => Ok(()),
        }
    }
}

/// Returns the server's own words.
pub(super) fn words(fault: &Fault) -> &str {
    match fault {
        Fault::BadRequest { body, .. }
        | Fault::Overflow { body }
        | Fault::TooLarge { body, .. }
        | Fault::Server { body, .. } => body,
        _ => "",
    }
}
