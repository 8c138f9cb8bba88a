//! One model request: streamed, retried where that may help, recorded as it comes.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;

use super::super::{prompt, render};
use super::{Answer, Event, Halt, Turn};
use crate::protocol::State;
use crate::tool;
use co_llm::retry::Backoff;
use co_llm::transcript::{self, Call, Item, Surroundings, Usage};
use co_llm::{Delta, Fault, ModelRequest, Stop};

/// Calls of one step that are taken; the rest are refused to the model.
pub(super) const MAX_CALLS: usize = 8;

/// How often a request that the provider would not take is told to the model before the turn ends.
const MAX_REFLECTED: u32 = 2;

/// A call that the model asked for.
pub(super) struct Asked {
    pub call: Call,
    /// Why its arguments could not be read, for the model.
    pub unread: Option<String>,
}

/// What came of one try.
#[derive(Default)]
struct Heard {
    /// What is not whole yet.
    answer: co_llm::AnswerBuilder,
    /// Something of it is in the transcript: asking again would say it twice.
    kept: bool,
    speaking: bool,
    calls: Vec<Asked>,
    usage: Usage,
    stop: Option<Stop>,
}

impl Heard {
    fn answer(self) -> Answer {
        Answer {
            calls: self.calls,
            spoke: self.speaking,
            stop: self.stop.unwrap_or(Stop::Done),
        }
    }
}

/// Returns the system prompt of a conversation: the same one until a summary, whatever changes around it.
fn system(items: &[Item]) -> String {
    let surroundings = transcript::first_surroundings(items);
    prompt::system(surroundings.unwrap_or(&Surroundings::default()))
}

impl Turn {
    /// Asks the model once, with retries, and records what it said. Without `may_call` it is to answer with text.
    pub(super) async fn step(&mut self, may_call: bool) -> Result<Answer, Halt> {
        let mut backoff = Backoff::new();
        let mut reflected = 0;
        loop {
            let request = self.request(may_call).await?;
            let mut heard = Heard::default();
            let result = self.listen(request, &mut heard).await;
            if let Err(Halt::Fault(fault)) = &result
                && !heard.kept
                && let Some(pause) = backoff.next(fault)
            {
                self.wait(fault, pause).await?;
                continue;
            }
            self.settle(&mut heard).await?;
            match result {
                Ok(()) => return Ok(heard.answer()),
                Err(Halt::Fault(Fault::BadRequest { body, .. })) if reflected < MAX_REFLECTED => {
                    reflected += 1;
                    self.reflect(&body).await?;
                }
                Err(halt) => return Err(halt),
            }
        }
    }

    async fn request(&mut self, may_call: bool) -> Result<ModelRequest, Halt> {
        let budget = self.budget().await?;
        let tools = tool::specs();
        let mut items = self.snapshot().await?;
        let mut prompt = system(&items);
        let mut fit = budget.fit(&prompt, &tools, &items);
        if let Some(keep) = fit.summarise {
            // The same items: `keep` was counted on them, and a second snapshot may have the end of a job more.
            self.compact(items, keep).await?;
            items = self.snapshot().await?;
            prompt = system(&items);
            fit = budget.fit(&prompt, &tools, &items);
        }
        if !fit.shortened.is_empty() {
            let outputs = fit.shortened;
            self.record(Item::Shortened { outputs }).await?;
            self.show(render::SHORTENED).await?;
        }
        Ok(ModelRequest {
            system: prompt,
            items: Arc::from(fit.items),
            tools,
            may_call,
        })
    }

    async fn listen(&mut self, request: ModelRequest, heard: &mut Heard) -> Result<(), Halt> {
        self.state(State::Thinking, "").await?;
        let cancel = self.cancel.clone();
        let provider = Arc::clone(&self.provider);
        let mut stream = tokio::select! {
            () = cancel.cancelled() => return Err(Halt::Cancelled),
            stream = provider.stream(request) => stream.map_err(Halt::Fault)?,
        };
        loop {
            let delta = tokio::select! {
                () = cancel.cancelled() => return Err(Halt::Cancelled),
                delta = stream.next() => delta,
            };
            match delta {
                Some(Ok(delta)) => self.hear(delta, heard).await?,
                Some(Err(fault)) => return Err(Halt::Fault(fault)),
                None if heard.stop.is_some() => return Ok(()),
                None => return Err(Halt::Fault(Fault::Cut)),
            }
        }
    }

    async fn hear(&mut self, delta: Delta, heard: &mut Heard) -> Result<(), Halt> {
        for item in heard.answer.push(&delta) {
            self.keep(item, heard).await?;
        }
        match delta {
            Delta::Text(text) => {
                if !heard.speaking {
                    heard.speaking = true;
                    self.state(State::Streaming, "").await?;
                }
                heard.kept = true;
                self.send(Event::Text(text)).await?;
            }
            Delta::Usage(usage) => heard.usage = usage,
            Delta::Stop(stop) => heard.stop = Some(stop),
            Delta::BadCall { detail, .. } => {
                if let Some(asked) = heard.calls.last_mut() {
                    asked.unread = Some(format!(
                        "The arguments are not a JSON object ({detail}). Send the call again."
                    ));
                }
            }
            Delta::Reasoning(_) | Delta::Signature(_) | Delta::Call(_) => {}
        }
        Ok(())
    }

    /// Records what is whole. The session writes text as it comes, so that is there already.
    async fn keep(&mut self, item: Item, heard: &mut Heard) -> Result<(), Halt> {
        heard.kept = true;
        match item {
            Item::Text { .. } => Ok(()),
            Item::Call(call) => {
                heard.calls.push(Asked {
                    call: call.clone(),
                    unread: None,
                });
                self.record(Item::Call(call)).await
            }
            Item::Reasoning { text, signature } => {
                let shown = text.trim().replace('\n', "\n> ");
                self.record(Item::Reasoning { text, signature }).await?;
                match self.services.config.show_reasoning && !shown.is_empty() {
                    true => self.show(&format!("> {shown}")).await,
                    false => Ok(()),
                }
            }
            other => self.record(other).await,
        }
    }

    /// Records what is left of an answer, whole or cut short.
    async fn settle(&mut self, heard: &mut Heard) -> Result<(), Halt> {
        for item in heard.answer.finish() {
            self.keep(item, heard).await?;
        }
        self.used(heard.usage).await
    }

    /// Tells the model that the provider would not take the request, so that it can say it otherwise.
    async fn reflect(&mut self, body: &str) -> Result<(), Halt> {
        let text = format!("The provider refused the last request: {}", body.trim());
        self.tell_model(text, true).await
    }

    /// Waits before the next try, counting down where the person sees it.
    pub(super) async fn wait(&mut self, fault: &Fault, pause: Duration) -> Result<(), Halt> {
        let until = tokio::time::Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let seconds = left.as_millis().div_ceil(1000);
            self.state(State::Retrying, format!("in {seconds} s: {fault}"))
                .await?;
            tokio::select! {
                () = self.cancel.cancelled() => return Err(Halt::Cancelled),
                () = tokio::time::sleep(left.min(Duration::from_secs(1))) => {}
            }
        }
    }
}
