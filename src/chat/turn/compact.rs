//! Summaries of long chats: the model sums up the transcript, so that it fits its context window. The transcript file and
//! the screen keep all of it.

use std::sync::Arc;

use futures::StreamExt;

use super::super::events::ChatEvent;
use super::super::prompt::Budget;
use super::Turn;
use super::event::Halt;
use super::step::{NO_ANSWER_TOKENS, system};
use crate::protocol::ChatState;
use co_llm::retry::Backoff;
use co_llm::transcript::{Item, Usage};
use co_llm::{Delta, Fault, ModelRequest, Provider, Stop};

const SUMMARY_REQUEST: &str = "Sum up our chat so far for yourself, so that you can go on from the summary alone: what I asked for in my own \
                   words, what was decided, which files and commands mattered and what came of them, which jobs still run, \
                   what is still open. Be brief and exact; leave out what no longer matters. Answer with text only.";

/// The most requests for one summary. Each further one has less of the chat.
const MAX_SUMMARY_TRIES: usize = 6;

impl Turn {
    /// Asks the model to sum up the whole transcript.
    pub(super) async fn compact_all(&mut self) -> Result<(), Halt> {
        self.orient().await?;
        let items = self.snapshot().await?;
        self.compact(items, 0).await
    }

    /// Asks the model to sum up all but the last `keep` of `items`, the transcript so far, and records the summary.
    ///
    /// The request starts like the ones before it, so that the provider finds it in its cache.
    pub(super) async fn compact(&mut self, mut items: Vec<Item>, keep: usize) -> Result<(), Halt> {
        items.truncate(items.len().saturating_sub(keep));
        items.push(Item::user(SUMMARY_REQUEST));
        let (text, reduced) = self.summary(&items).await?;
        if reduced {
            // Prompts from before the summary are sent as they are, perhaps with what the provider refused.
            self.chat.record(Item::Reduced).await?;
        }
        let keep = keep + usize::from(reduced);
        self.chat.record(Item::Summary { text, keep }).await?;
        Ok(self.chat.show(ChatEvent::Summarised).await?)
    }

    /// Asks for the summary. After a refusal, it asks in the reduced form, and then with less and less of the chat. Returns true with
    /// the summary if it did so.
    async fn summary(&mut self, items: &[Item]) -> Result<(String, bool), Halt> {
        let budget = self.budget().await?;
        let (system, tools) = (system(items), self.tools.specs());
        let fit = budget.fit(&system, &tools, items);
        let mut request = ModelRequest {
            system,
            items: Arc::from(fit.items.as_slice()),
            tools,
            may_call: false,
            cache_key: Some(self.context.transcript_id.clone()),
            room: Some(budget.window.saturating_sub(fit.tokens)),
        };
        let (mut tokens, mut reduced) = (fit.tokens, false);
        for _ in 1..MAX_SUMMARY_TRIES {
            let fault = match self.written(request.clone()).await {
                Err(Halt::Fault(fault)) if fault.is_refusal() => fault,
                Err(Halt::Fault(fault)) if fault.may_be_refusal() && !reduced => fault,
                done => return done.map(|text| (text, reduced)),
            };
            tracing::info!(%fault, tokens, "the request for a summary was refused");
            let limit = fault.named_limit().filter(|limit| *limit < tokens);
            tokens = match limit {
                Some(limit) => limit / 5 * 4,
                None if !reduced
                    && !matches!(fault, Fault::Overflow { .. } | Fault::TooLarge { .. }) =>
                {
                    tokens
                }
                None => tokens / 5 * 3,
            };
            reduced = true;
            let note = self.history.refused(fault.words());
            let mut told = Budget { window: tokens }.squeeze(&request.system, &fit.items);
            told.insert(told.len().saturating_sub(1), note);
            told.push(Item::Reduced);
            request.items = told.into();
            request.tools = Arc::from([]);
            request.room = None;
        }
        self.written(request).await.map(|text| (text, reduced))
    }

    /// Returns the summary, with retries.
    async fn written(&mut self, request: ModelRequest) -> Result<String, Halt> {
        let mut backoff = Backoff::new();
        loop {
            self.chat
                .state(ChatState::Thinking, "summing up earlier turns")
                .await?;
            let cancel = self.context.cancel.clone();
            let mut usage = Usage::default();
            let answer = whole_text(
                Arc::clone(&self.context.provider),
                request.clone(),
                &mut usage,
            );
            let answer = tokio::select! {
                () = cancel.cancelled() => Err(Halt::Cancelled),
                // The start of a summary is of use too.
                answer = answer => answer.map(|(text, _)| text).map_err(Halt::Fault),
            };
            // The tokens are used even if the request fails.
            self.used(usage).await?;
            let fault = match answer {
                Err(Halt::Fault(fault)) => fault,
                done => return done,
            };
            match backoff.next(&fault) {
                Some(pause) => self.wait(&fault, pause).await?,
                None => return Err(Halt::Fault(fault)),
            }
        }
    }
}

/// Sends the request once and returns the text, and why it ends. Sets `usage` even if the request fails.
pub(in crate::chat) async fn whole_text(
    provider: Arc<dyn Provider>,
    request: ModelRequest,
    usage: &mut Usage,
) -> Result<(String, Stop), Fault> {
    let mut stream = co_llm::bounded(provider.stream(request).await?);
    let (mut text, mut thought) = (String::new(), false);
    while let Some(delta) = stream.next().await {
        match delta? {
            Delta::Text(piece) => text.push_str(&piece),
            Delta::Usage(counted) => *usage = counted,
            Delta::Stop(stop @ (Stop::Done | Stop::Length)) if !text.trim().is_empty() => {
                return Ok((text, stop));
            }
            // The request fills the context window.
            Delta::Stop(Stop::Length) if !thought && usage.output <= NO_ANSWER_TOKENS => {
                return Err(Fault::Overflow {
                    body: String::new(),
                });
            }
            Delta::Stop(_) => {
                return Err(Fault::Malformed {
                    detail: "the model wrote no text".to_owned(),
                });
            }
            Delta::Reasoning(_) | Delta::Signature(_) => thought = true,
            Delta::Notice(_) | Delta::Call(_) | Delta::BadCall { .. } => {}
        }
    }
    Err(Fault::Cut)
}
