//! Sends the requests to the model: one for each step, with retries and changes after a refusal. The chat records each answer
//! while it arrives. Summaries make a long chat fit into the context window. The transcript file and the screen keep the whole
//! chat.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use super::super::events::ChatEvent;
use super::super::prompt::{self, Budget};
use super::Turn;
use super::event::{Halt, TurnEvent};
use super::refusal::{
    FAILURES, FailedRequest, MAYBE_TOO_LONG, PendingRequest, Remedies, Remedy, TOO_LARGE, TOO_LONG,
    is_about_form,
};
use super::thought::LiveThought;
use crate::protocol::ChatState;
use crate::tool::context::TurnKind;
use co_llm::retry::Backoff;
use co_llm::transcript::{self, Call, Item, Surroundings, Usage};
use co_llm::{Delta, Fault, ModelRequest, Provider, Stop};

/// The largest number of calls in one step. co refuses all further calls.
pub(super) const MAX_CALLS: usize = 16;

const SUMMARY_REQUEST: &str = "Sum up our chat so far for yourself, so that you can go on from the summary alone: what I asked for in my own \
                   words, what was decided, which files and commands mattered and what came of them, which jobs still run, \
                   what is still open. Be brief and exact; leave out what no longer matters. Answer with text only.";

/// The largest number of requests for one summary. Each later request contains less of the chat.
const MAX_SUMMARY_TRIES: usize = 6;

/// A call that the model asked for.
pub(super) struct ProposedCall {
    pub call: Call,
    /// The error in the arguments of the call, for the model.
    pub unread: Option<String>,
}

/// The answer of the model in one step.
pub(super) struct StepAnswer {
    pub calls: Vec<ProposedCall>,
    /// True if the answer contains text.
    pub spoke: bool,
    pub stop: Stop,
}

/// The part of an answer that has arrived in this attempt.
#[derive(Default)]
struct StepProgress {
    /// Builds the parts of the answer that are not complete.
    answer: co_llm::AnswerBuilder,
    /// True if a part of the answer is in the transcript. co then makes no further attempt, because it would repeat this part.
    kept: bool,
    speaking: bool,
    /// The thought that is on the screen, and not complete.
    thought: Option<LiveThought>,
    calls: Vec<ProposedCall>,
    usage: Usage,
    stop: Option<Stop>,
    /// The request; none as soon as its answer starts to arrive.
    pending: Option<PendingRequest>,
}

/// The largest number of tokens of an empty answer. An answer without text that has at most this many tokens counts as no answer.
pub(super) const NO_ANSWER_TOKENS: u64 = 8;

impl StepProgress {
    /// Returns true if no part of the answer arrived, because the request itself fills the context window.
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

impl Turn {
    /// Returns the system prompt. It stays the same until the next summary, so that the provider can cache it.
    fn system(&self, items: &[Item]) -> String {
        let unknown = Surroundings::default();
        let surroundings = transcript::first_surroundings(items).unwrap_or(&unknown);
        let absent = self.tools.absent();
        match self.context.kind {
            TurnKind::Scout { .. } => prompt::of_scout(surroundings, &absent),
            TurnKind::Work | TurnKind::OfConfinedAgent | TurnKind::Plan => {
                prompt::system(surroundings, &absent)
            }
        }
    }

    /// Sends one request, with retries, and records the answer. If `may_call` is false, the model must answer with text.
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

    /// Returns the next request and its estimated number of tokens.
    async fn request(&mut self, may_call: bool) -> Result<(ModelRequest, u64), Halt> {
        let budget = self.budget().await?;
        let tools = self.tools.specs();
        self.chat.send(TurnEvent::TakeSteering).await?;
        let mut items = self.snapshot().await?;
        let mut prompt = self.system(&items);
        let mut fit = budget.fit(&prompt, &tools, &items);
        if let Some(keep) = fit.summarise {
            // Use the same items: `keep` counts them, and a new snapshot may have more.
            self.compact(items, keep).await?;
            items = self.snapshot().await?;
            prompt = self.system(&items);
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
        let context = Arc::clone(&self.context);
        let stream = context.unless_cancelled(context.provider.stream(request));
        let mut stream = co_llm::bounded(stream.await?.map_err(Halt::Fault)?);
        loop {
            match context.unless_cancelled(stream.next()).await? {
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

    /// Completes the thought that is on the screen.
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

    /// Records a complete item of the answer. Does not record text, because the chat has recorded it while it arrived.
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

    /// Records the rest of an answer, even if the answer is not complete.
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

    /// Tells the chat the percentage of the model's context window that is used.
    async fn window_used(&self, tokens: u64) -> Result<(), Halt> {
        let window = self.budget().await?.window.max(1);
        let used = TurnEvent::WindowUsed(tokens * 100 / window);
        Ok(self.chat.send(used).await?)
    }

    /// Waits before the next attempt, and shows the person the number of seconds.
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
            let pause = tokio::time::sleep(left.min(Duration::from_secs(1)));
            self.context.unless_cancelled(pause).await?;
        }
    }
}

/// Reacts to a refusal.
impl Turn {
    /// Chooses the changes to the next request after a fault. Returns false if the fault is no refusal, or if no further change
    /// can help.
    pub(super) async fn answer_refusal(
        &mut self,
        fault: &Fault,
        request: FailedRequest,
        remedies: &mut Remedies,
    ) -> Result<bool, Halt> {
        let limit = fault.named_limit().filter(|it| *it < request.tokens);
        let longest = request.tokens > self.history.largest_taken();
        let length = longest
            && remedies.too_long.is_none()
            && (limit.is_some() || request.tokens > self.budget().await?.window / 2);
        if fault.is_explained() {
            if is_about_form(fault.words()) && remedies.reduce_once(fault, request) {
                return Ok(true);
            }
            remedies.failures += 1;
            if !length || remedies.failures < FAILURES {
                return Ok(false);
            }
        } else if !fault.is_refusal() {
            return Ok(false);
        }
        let longest = longest && self.history.largest_taken() > 0;
        let Some(remedy) = remedies.next(fault, request, length, longest) else {
            return Ok(false);
        };
        remedies.failures = 0;
        let note = self.history.refused(fault.words());
        match remedy {
            Remedy::Note => remedies.note = Some(note),
            Remedy::Shorten => {
                remedies.named = match fault {
                    Fault::TooLarge { .. } => remedies.reduced || !request.reducible,
                    fault => matches!(fault, Fault::Overflow { .. }),
                };
                remedies.shortened += 1;
                remedies.too_long = Some(request.tokens);
                remedies.limit = limit;
                self.window_limit = Some(limit.unwrap_or(request.tokens / 5 * 3));
                if remedies.named {
                    self.learn_window(request.tokens, limit);
                }
                self.chat
                    .note(match fault {
                        Fault::TooLarge { .. } if remedies.named => TOO_LARGE,
                        _ if remedies.named => TOO_LONG,
                        _ => MAYBE_TOO_LONG,
                    })
                    .await?;
            }
            Remedy::Reduce => {
                remedies.reduced = true;
                if !matches!(fault, Fault::TooLarge { .. }) || !request.reducible {
                    remedies.note = Some(note);
                }
            }
        }
        Ok(true)
    }

    /// Stores for all chats that a request of `too_long` tokens does not fit into the model's context window. The new limit still
    /// allows the largest request that the model accepted before.
    fn learn_window(&self, too_long: u64, limit: Option<u64>) {
        let taken = self.history.largest_taken();
        let least = too_long / 5 * 3;
        let window = match limit {
            Some(limit) => limit.max(taken),
            None if taken < too_long => (taken / 4 * 5).max(least).min(too_long),
            None => least,
        };
        self.context.provider.learn_window(Some(window));
    }

    /// Stores that the provider accepted a request. Records the items that were added to the request, so that the next request
    /// begins in the same way.
    pub(super) async fn taken(&mut self, request: PendingRequest) -> Result<(), Halt> {
        self.history.took(request.tokens);
        self.window_limit = None;
        if let Some(too_long) = request.too_long {
            match request.tokens < too_long {
                true => self.learn_window(too_long, request.limit),
                // Length was not the reason.
                false => self.context.provider.learn_window(None),
            }
        }
        for item in request.added {
            match item {
                Item::Note { text, once } => self.chat.tell_model(text, once).await?,
                item => self.chat.record(item).await?,
            }
        }
        match request.reduction {
            Some(reduction) => {
                let words = format!(
                    "the provider takes the chat so far in a reduced form only: {reduction}"
                );
                Ok(self.chat.note(&words).await?)
            }
            None => Ok(()),
        }
    }
}

/// Makes the summaries of a chat.
impl Turn {
    /// Asks the model to summarize the whole transcript.
    pub(super) async fn compact_all(&mut self) -> Result<(), Halt> {
        self.orient().await?;
        let items = self.snapshot().await?;
        self.compact(items, 0).await
    }

    /// Asks the model to summarize the transcript, except its last `keep` items. Records the summary. `items` are all items of
    /// the transcript so far.
    ///
    /// The request starts in the same way as the requests before it, so that the provider can use its cache.
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

    /// Asks the model for a summary. After a refusal, sends the reduced form, and then less and less of the chat. Returns the
    /// summary, and true if a refused request had to be changed.
    async fn summary(&mut self, items: &[Item]) -> Result<(String, bool), Halt> {
        let budget = self.budget().await?;
        let (system, tools) = (self.system(items), self.tools.specs());
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

    /// Sends the request for a summary, with retries, and returns the summary.
    async fn written(&mut self, request: ModelRequest) -> Result<String, Halt> {
        let mut backoff = Backoff::new();
        loop {
            self.chat
                .state(ChatState::Thinking, "summing up earlier turns")
                .await?;
            let mut usage = Usage::default();
            let provider = Arc::clone(&self.context.provider);
            let answer = whole_text(provider, request.clone(), &mut usage);
            let answer = self.context.unless_cancelled(answer).await;
            // The tokens are used even if the request fails.
            self.used(usage).await?;
            let fault = match answer? {
                Err(fault) => fault,
                // The start of a summary is of use too.
                Ok((text, _)) => return Ok(text),
            };
            match backoff.next(&fault) {
                Some(pause) => self.wait(&fault, pause).await?,
                None => return Err(Halt::Fault(fault)),
            }
        }
    }
}

/// Sends the request once. Returns the text of the answer, and the reason why it ended. Sets `usage` even if the request fails.
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
