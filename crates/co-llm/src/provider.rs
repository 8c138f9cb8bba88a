//! The interface of a provider: a request in, a stream of deltas out.

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use crate::fault::{Fault, LONGEST_ANSWER};
use crate::price::Price;
use crate::provider_table::DEFAULT_WINDOW;
use crate::request::ModelRequest;
use crate::transcript::{Call, Usage};
use co_text::start_of;

/// A service that answers requests with one model.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns the name that the person sees, such as `anthropic/claude-sonnet-4-5`.
    fn label(&self) -> String;

    /// Prepares the first request, for example by making an HTTP client with the certificates of the system. Without this call,
    /// the first request does this work.
    async fn prepare(&self) {}

    /// Sends one request and returns its deltas. The stream ends after [`Delta::Stop`] or the first [`Fault`].
    ///
    /// Dropping the stream closes the connection.
    async fn stream(
        &self,
        request: ModelRequest,
    ) -> Result<BoxStream<'static, Result<Delta, Fault>>, Fault>;

    /// Returns the names of the models that the server offers.
    async fn models(&self) -> Result<Vec<String>, Fault>;

    /// Returns true if the server offers this model.
    async fn offers(&self, model: &str) -> Result<bool, Fault> {
        Ok(self.models().await?.iter().any(|name| name == model))
    }

    /// Returns the size of the model's context window in tokens, or an assumed size if it is unknown. May send one request to the
    /// server.
    async fn window(&self) -> u64 {
        DEFAULT_WINDOW
    }

    /// Sets the size of the context window that the server's refusals and answers showed. From then on, [`Self::window`] returns
    /// at most this size. `None` forgets the size, because the server accepted more.
    fn learn_window(&self, _tokens: Option<u64>) {}

    /// Returns true if the model is known to accept images. May send one request to the server.
    async fn takes_images(&self) -> bool {
        false
    }

    /// Returns the vendor's list price of the model. Returns `None` if the price is unknown, or if the server does not belong to
    /// the vendor.
    fn list_price(&self) -> Option<Price> {
        None
    }

    /// Returns the keys that were used so far, for redaction. A key that a program prints is known only after its first use.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The deltas of one answer.
pub type Deltas = BoxStream<'static, Result<Delta, Fault>>;

/// Ends the stream with [`Fault::AnswerTooLong`] after 4 MiB of text and reasoning.
pub fn bounded(deltas: Deltas) -> Deltas {
    let mut left = LONGEST_ANSWER;
    deltas
        .flat_map(move |delta| stream::iter(bound(delta, &mut left)))
        .boxed()
}

/// Returns the delta, and subtracts its bytes from `left`. If the delta has more than `left` bytes, returns the start of the
/// delta and then the fault.
fn bound(delta: Result<Delta, Fault>, left: &mut usize) -> Vec<Result<Delta, Fault>> {
    let mut delta = delta;
    if let Ok(Delta::Text(text) | Delta::Reasoning(text)) = &mut delta {
        if text.len() > *left {
            text.truncate(start_of(text, *left).len());
            *left = 0;
            return vec![delta, Err(Fault::AnswerTooLong)];
        }
        *left -= text.len();
    }
    vec![delta]
}

/// A piece of a model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// The signature of the preceding reasoning; if there was no reasoning, an encrypted block.
    ///
    /// The string begins with the name of the provider, because later requests send the signature only to this provider.
    Signature(String),
    /// A complete call. Its arguments are a JSON object.
    Call(Call),
    /// A call whose arguments are invalid. `detail` is the reason; `call` has no arguments.
    BadCall {
        call: Call,
        detail: String,
    },
    /// The number of tokens that this request has used so far. Each count replaces the previous count.
    Usage(Usage),
    /// A sentence for the person about this request or its answer.
    Notice(String),
    /// The last delta of a complete answer.
    Stop(Stop),
}

/// The finish reason of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The answer is complete.
    Done,
    /// The answer reached the output token limit.
    Length,
    /// The provider filtered the rest of the answer.
    Refused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_ends_at_the_limit() {
        let piece = "é".repeat(1 << 19);
        let deltas = (0..9).map(move |index| {
            let text = piece.clone();
            Ok(match index % 2 {
                0 => Delta::Text(text),
                _ => Delta::Reasoning(text + "x"),
            })
        });
        let mut bytes = 0;
        let mut deltas = bounded(stream::iter(deltas).boxed());
        let fault = loop {
            match deltas.next().await {
                Some(Ok(Delta::Text(text) | Delta::Reasoning(text))) => bytes += text.len(),
                Some(Err(fault)) => break fault,
                other => panic!("{other:?}"),
            }
        };
        // Not in the middle of a character.
        assert_eq!(bytes, LONGEST_ANSWER - 1);
        assert_eq!(fault, Fault::AnswerTooLong);
        assert_eq!(fault.to_string(), "the answer is longer than 4 MiB");
        assert!(!fault.is_transient());
    }
}
