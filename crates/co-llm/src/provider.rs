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
    /// Returns the name that the person reads, such as `anthropic/claude-sonnet-4-5`.
    fn label(&self) -> String;

    /// Makes what the first request needs, such as a client with the certificates of the system. A request that comes first does
    /// so itself.
    async fn prepare(&self) {}

    /// Starts one request. The stream ends after [`Delta::Stop`] or the first [`Fault`].
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

    /// Returns the tokens that the model's context window holds, as far as is known. May ask the server once.
    async fn window(&self) -> u64 {
        DEFAULT_WINDOW
    }

    /// Remembers the size of the window that the server's refusals and answers showed. [`Self::window`] returns no more from then
    /// on. With none, forgets the size, because the server took more.
    fn learn_window(&self, _tokens: Option<u64>) {}

    /// Returns true if the model takes images, as far as is known. May ask the server once.
    async fn takes_images(&self) -> bool {
        false
    }

    /// Returns the vendor's list price of the model; none if it is not known, or if another server than the vendor's answers.
    fn list_price(&self) -> Option<Price> {
        None
    }

    /// Returns the keys that were used so far, for redaction. A program's key is known only after its first use.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The deltas of one answer.
pub type Deltas = BoxStream<'static, Result<Delta, Fault>>;

/// Ends an answer after 4 MiB of text and reasoning, with [`Fault::AnswerTooLong`].
pub fn bounded(deltas: Deltas) -> Deltas {
    let mut left = LONGEST_ANSWER;
    deltas
        .flat_map(move |delta| stream::iter(bound(delta, &mut left)))
        .boxed()
}

/// Returns a delta. If it has more than `left` bytes, returns its start and the fault.
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
    /// The signature of the reasoning before it; without reasoning, an encrypted block.
    ///
    /// The text names its provider. The next request sends it to this provider only.
    Signature(String),
    /// A complete call. Its arguments are a JSON object.
    Call(Call),
    /// A call whose arguments cannot be used. `detail` says why; `call` has no arguments.
    BadCall {
        call: Call,
        detail: String,
    },
    /// The tokens of this request so far. The last one counts.
    Usage(Usage),
    /// A sentence for the person, about how this request was made or answered.
    Notice(String),
    /// The last delta of a complete answer.
    Stop(Stop),
}

/// The reason why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The answer is complete.
    Done,
    /// The answer reached the output limit.
    Length,
    /// The provider filtered the rest.
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
