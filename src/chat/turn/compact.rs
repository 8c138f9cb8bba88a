//! Summaries of long chats: the model sums up the transcript, so that it fits its context window. The transcript file and
//! the screen keep all of it.

use std::sync::Arc;

use futures::StreamExt;

use super::super::events::ChatEvent;
use super::Turn;
use super::event::Halt;
use super::step::system;
use crate::protocol::ChatState;
use crate::tool;
use co_llm::retry::Backoff;
use co_llm::transcript::{Item, Usage};
use co_llm::{Delta, Fault, ModelRequest, Provider, Stop};

const SUMMARY_REQUEST: &str = "Sum up our chat so far for yourself, so that you can go on from the summary alone: what I asked for in my own \
                   words, what was decided, which files and commands mattered and what came of them, which jobs still run, \
                   what is still open. Be brief and exact; leave out what no longer matters. Answer with text only.";

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
        let (system, tools) = (system(&items), tool::specs());
        let fit = self.budget().await?.fit(&system, &tools, &items);
        let request = ModelRequest {
            system,
            items: Arc::from(fit.items),
            tools,
            may_call: false,
            cache_key: Some(self.transcript_id.clone()),
            reduced: false,
        };
        let text = self.written(request).await?;
        self.record(Item::Summary { text, keep }).await?;
        self.show(ChatEvent::Summarised).await
    }

    /// Returns the summary, with retries.
    async fn written(&mut self, request: ModelRequest) -> Result<String, Halt> {
        let mut backoff = Backoff::new();
        loop {
            self.state(ChatState::Thinking, "summing up earlier turns")
                .await?;
            let cancel = self.cancel.clone();
            let mut usage = Usage::default();
            let answer = whole_text(Arc::clone(&self.provider), request.clone(), &mut usage);
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
    let mut stream = provider.stream(request).await?;
    let mut text = String::new();
    while let Some(delta) = stream.next().await {
        match delta? {
            Delta::Text(piece) => text.push_str(&piece),
            Delta::Usage(counted) => *usage = counted,
            Delta::Stop(stop @ (Stop::Done | Stop::Length)) if !text.trim().is_empty() => {
                return Ok((text, stop));
            }
            Delta::Stop(_) => {
                return Err(Fault::Malformed {
                    detail: "the model wrote no text".to_owned(),
                });
            }
            Delta::Reasoning(_) | Delta::Signature(_) | Delta::Notice(_) => {}
            Delta::Call(_) | Delta::BadCall { .. } => {}
        }
    }
    Err(Fault::Cut)
}
