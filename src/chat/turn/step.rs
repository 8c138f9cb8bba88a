//! One step: sends a request to the model with retries, and records the answer as it arrives.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use super::super::events::ChatEvent;
use super::super::prompt;
use super::Turn;
use super::event::{Halt, TurnEvent};
use super::refusal::{FailedRequest, PendingRequest, Remedies};
use super::thought::LiveThought;
use crate::protocol::ChatState;
use co_llm::retry::Backoff;
use co_llm::transcript::{self, Call, Item, Surroundings, Usage};
use co_llm::{Delta, Fault, ModelRequest, Stop};

/// The most calls in one step. co refuses the rest.
pub(super) const MAX_CALLS: usize = 16;

/// A call that the model asked for.
pub(super) struct ProposedCall {
    pub call: Call,
    /// The error in its arguments, for the model.
    pub unread: Option<String>,
}

/// The model's answer in one step.
pub(super) struct StepAnswer {
    pub calls: Vec<ProposedCall>,
    /// The answer has text.
    pub spoke: bool,
    pub stop: Stop,
}

/// The answer of one try so far.
#[derive(Default)]
struct StepProgress {
    /// The parts of the answer that are not complete.
    answer: co_llm::AnswerBuilder,
    /// A part is in the transcript. So there is no other try, which would repeat it.
    kept: bool,
    speaking: bool,
    /// The thought that is on the screen, but not complete.
    thought: Option<LiveThought>,
    calls: Vec<ProposedCall>,
    usage: Usage,
    stop: Option<Stop>,
    /// The request, until its answer begins.
    pending: Option<PendingRequest>,
}

/// An answer of at most so many tokens, without a text, did not begin.
pub(super) const NO_ANSWER_TOKENS: u64 = 8;

impl StepProgress {
    /// Returns true if nothing of the answer came, so that the request itself fills the context window.
    fn is_without_room(&self) -> bool {
        self.pending.is_some() && self.usage.output <= NO_ANSWER_TOKENS
    }

    fn answer(self) -> StepAnswer {
        StepAnswer {
            calls: self.calls,
            spoke: self.speaking,
            stop: self.stop.unwrap_or(Stop::Done),
        }
    }
}

/// Returns the system prompt. It stays the same until a summary, so that the provider can cache it.
pub(super) fn system(items: &[Item]) -> String {
    let surroundings = transcript::first_surroundings(items);
    prompt::system(surroundings.unwrap_or(&Surroundings::default()))
}

impl Turn {
    /// Sends one request, with retries, and records the answer. Without `may_call`, the model must answer with text.
    pub(super) async fn step(&mut self, may_call: bool) -> Result<StepAnswer, Halt> {
        let mut backoff = Backoff::new();
        let mut remedies = Remedies::default();
        loop {
            let (mut request, tokens) = self.request(may_call).await?;
            let mut progress = StepProgress {
                pending: Some(remedies.apply(&mut request, tokens)),
                ..StepProgress::default()
            };
            let result = self.listen(request.clone(), &mut progress).await;
            if let Err(Halt::Fault(fault)) = &result
                && !progress.kept
            {
                let reducible = request.reduction().is_some();
                let failed = FailedRequest { tokens, reducible };
                let mut again = self.answer_refusal(fault, failed, &mut remedies).await?;
                let pause = (!again).then(|| backoff.next(fault)).flatten();
                again |= pause.is_none() && remedies.reduce_once(fault, failed);
                if again || pause.is_some() {
                    self.end_thought(&mut progress).await?;
                    self.used(progress.usage).await?;
                }
                if let Some(pause) = pause {
                    self.wait(fault, pause).await?;
                }
                if again || pause.is_some() {
                    continue;
                }
            }
            self.settle(&mut progress).await?;
            return result.map(|()| progress.answer());
        }
    }

    /// Returns the request and its estimated tokens.
    async fn request(&mut self, may_call: bool) -> Result<(ModelRequest, u64), Halt> {
        let budget = self.budget().await?;
        let tools = self.tools.specs();
        self.chat.send(TurnEvent::TakeSteering).await?;
        let mut items = self.snapshot().await?;
        let mut prompt = system(&items);
        let mut fit = budget.fit(&prompt, &tools, &items);
        if let Some(keep) = fit.summarise {
            // Use the same items: `keep` counts them, and a new snapshot may have more.
            self.compact(items, keep).await?;
            items = self.snapshot().await?;
            prompt = system(&items);
            fit = budget.fit(&prompt, &tools, &items);
        }
        if !fit.shortened.is_empty() {
            let texts = fit.shortened;
            self.chat.record(Item::Shortened { texts }).await?;
            self.chat.show(ChatEvent::TextsShortened).await?;
        }
        let request = ModelRequest {
            system: prompt,
            room: Some(budget.window.saturating_sub(fit.tokens)),
            items: Arc::from(fit.items),
            tools,
            may_call,
            cache_key: Some(self.context.transcript_id.clone()),
        };
        self.window_used(fit.tokens).await?;
        Ok((request, fit.tokens))
    }

    async fn listen(
        &mut self,
        request: ModelRequest,
        progress: &mut StepProgress,
    ) -> Result<(), Halt> {
        self.chat.state(ChatState::Thinking, "").await?;
        let cancel = self.context.cancel.clone();
        let provider = Arc::clone(&self.context.provider);
        let stream = tokio::select! {
            () = cancel.cancelled() => return Err(Halt::Cancelled),
            stream = provider.stream(request) => stream.map_err(Halt::Fault)?,
        };
        let mut stream = co_llm::bounded(stream);
        loop {
            let delta = tokio::select! {
                () = cancel.cancelled() => return Err(Halt::Cancelled),
                delta = stream.next() => delta,
            };
            match delta {
                Some(Ok(delta)) => self.hear(delta, progress).await?,
                Some(Err(fault)) => return Err(Halt::Fault(fault)),
                None if progress.stop.is_some() => return Ok(()),
                None => return Err(Halt::Fault(Fault::Cut)),
            }
        }
    }

    async fn hear(&mut self, delta: Delta, progress: &mut StepProgress) -> Result<(), Halt> {
        if delta == Delta::Stop(Stop::Length) && progress.is_without_room() {
            let body = String::new();
            return Err(Halt::Fault(Fault::Overflow { body }));
        }
        // A server may refuse the request after it has counted its tokens.
        if !matches!(delta, Delta::Notice(_) | Delta::Usage(_))
            && let Some(request) = progress.pending.take()
        {
            self.taken(request).await?;
        }
        for item in progress.answer.push(&delta) {
            self.keep(item, progress).await?;
        }
        match delta {
            Delta::Text(text) => {
                if !progress.speaking {
                    progress.speaking = true;
                    self.chat.state(ChatState::Streaming, "").await?;
                }
                progress.kept = true;
                self.chat.send(TurnEvent::Text(text)).await?;
            }
            Delta::Usage(usage) => progress.usage = usage,
            Delta::Notice(text) => self.chat.note(&text).await?,
            Delta::Stop(stop) => progress.stop = Some(stop),
            Delta::BadCall { detail, .. } => {
                if let Some(asked) = progress.calls.last_mut() {
                    asked.unread = Some(format!(
                        "The arguments are not a JSON object ({detail}). Send the call again."
                    ));
                }
            }
            Delta::Reasoning(text) => self.think(&text, progress).await?,
            Delta::Signature(_) | Delta::Call(_) => {}
        }
        Ok(())
    }

    /// Shows a piece of a thought, if the settings show thoughts.
    async fn think(&self, piece: &str, progress: &mut StepProgress) -> Result<(), Halt> {
        if !self.context.services.config.show_reasoning {
            return Ok(());
        }
        let new = || LiveThought::new(self.context.services.id());
        let thought = progress.thought.get_or_insert_with(new);
        for event in thought.push(piece) {
            self.chat.show(event).await?;
        }
        Ok(())
    }

    /// Completes the thought on the screen.
    async fn end_thought(&self, progress: &mut StepProgress) -> Result<(), Halt> {
        for event in progress
            .thought
            .take()
            .map_or_else(Vec::new, LiveThought::end)
        {
            self.chat.show(event).await?;
        }
        Ok(())
    }

    /// Records a complete item. The chat has recorded text already, as it arrived.
    async fn keep(&mut self, item: Item, progress: &mut StepProgress) -> Result<(), Halt> {
        progress.kept = true;
        match item {
            Item::Text { .. } => Ok(()),
            Item::Call(call) => {
                progress.calls.push(ProposedCall {
                    call: call.clone(),
                    unread: None,
                });
                Ok(self.chat.record(Item::Call(call)).await?)
            }
            Item::Reasoning { text, signature } => {
                self.chat
                    .record(Item::Reasoning { text, signature })
                    .await?;
                self.end_thought(progress).await
            }
            other => Ok(self.chat.record(other).await?),
        }
    }

    /// Records the rest of an answer, even if it is not complete.
    async fn settle(&mut self, progress: &mut StepProgress) -> Result<(), Halt> {
        for item in progress.answer.finish() {
            self.keep(item, progress).await?;
        }
        // First, because a cancelled turn does not learn its window any more.
        self.used(progress.usage).await?;
        let counted = progress.usage.input + progress.usage.output;
        if counted > 0 {
            self.window_used(counted).await?;
        }
        Ok(())
    }

    /// Tells the chat how full the model's window is.
    async fn window_used(&self, tokens: u64) -> Result<(), Halt> {
        let window = self.budget().await?.window.max(1);
        let used = TurnEvent::WindowUsed(tokens * 100 / window);
        Ok(self.chat.send(used).await?)
    }

    /// Waits before the next try and shows the person the seconds.
    pub(super) async fn wait(&mut self, fault: &Fault, pause: Duration) -> Result<(), Halt> {
        let until = tokio::time::Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let seconds = left.as_millis().div_ceil(1000);
            self.chat
                .state(ChatState::Retrying, format!("in {seconds} s: {fault}"))
                .await?;
            tokio::select! {
                () = self.context.cancel.cancelled() => return Err(Halt::Cancelled),
                () = tokio::time::sleep(left.min(Duration::from_secs(1))) => {}
            }
        }
    }
}
