//! Sends the messages of a turn and its calls to the chat, and receives changed settings.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot, watch};

use super::super::events::ChatEvent;
use super::event::TurnEvent;
use crate::protocol::{ChatState, Question};
use crate::services::Services;
use crate::tool::context::{CallChat, CallHalt, Questioner};
use crate::tool::event::CallEvent;
use crate::tool::job_list::JobListRequest;
use crate::tool::permissions::{Allowance, AllowedHost, Reply};
use co_exec::Caller;
use co_llm::transcript::Item;

/// Sends the messages of a turn to its chat. If the chat has ended, each method fails in the same way as after a cancellation.
#[derive(Clone)]
pub(in crate::chat) struct ToChat {
    pub events: mpsc::Sender<TurnEvent>,
    /// Receives the new services after the settings have changed.
    pub new_services: watch::Receiver<Arc<Services>>,
}

impl ToChat {
    pub(in crate::chat) async fn send(&self, event: TurnEvent) -> Result<(), CallHalt> {
        let sent = self.events.send(event).await;
        sent.map_err(|_| CallHalt::Cancelled)
    }

    pub(in crate::chat) async fn show(&self, event: impl Into<ChatEvent>) -> Result<(), CallHalt> {
        self.send(TurnEvent::Show(event.into())).await
    }

    pub(in crate::chat) async fn state(
        &self,
        state: ChatState,
        detail: impl Into<String>,
    ) -> Result<(), CallHalt> {
        self.send(TurnEvent::State(state, detail.into())).await
    }

    /// Writes an item to the transcript file. When this method returns `Ok`, the item may be shown and acted on.
    pub(in crate::chat) async fn record(&self, item: Item) -> Result<(), CallHalt> {
        let (done, written) = oneshot::channel();
        self.send(TurnEvent::Record(item, done)).await?;
        match written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(())) => Err(CallHalt::Unrecorded),
            Err(_) => Err(CallHalt::Cancelled),
        }
    }

    /// Records and shows a notice for the person.
    pub(in crate::chat) async fn note(&self, text: &str) -> Result<(), CallHalt> {
        let text = text.to_owned();
        self.record(Item::Notice { text: text.clone() }).await?;
        let caller = Caller::Agent;
        self.show(ChatEvent::Notice { text, caller }).await
    }

    /// Records a note for the model. If `once` is true, a retry of the answer does not send the note again.
    pub(in crate::chat) async fn tell_model(
        &self,
        text: String,
        once: bool,
    ) -> Result<(), CallHalt> {
        let shown = ChatEvent::ToldModel(text.clone());
        self.record(Item::Note { text, once }).await?;
        self.show(shown).await
    }
}

#[async_trait]
impl Questioner for ToChat {
    async fn ask(&self, question: Question) -> Result<oneshot::Receiver<Reply>, CallHalt> {
        let (reply, answer) = oneshot::channel();
        self.send(TurnEvent::Question(Box::new(question), reply))
            .await?;
        Ok(answer)
    }

    async fn withdraw(&self, question: u64) -> Result<(), CallHalt> {
        self.send(TurnEvent::Withdraw(question)).await
    }

    async fn allow(&self, allowance: Allowance) -> Result<(), CallHalt> {
        self.send(TurnEvent::Allow(allowance)).await
    }

    async fn allowed_hosts(&self) -> Result<Vec<AllowedHost>, CallHalt> {
        let (reply, hosts) = oneshot::channel();
        self.send(TurnEvent::AllowedHosts(reply)).await?;
        hosts.await.map_err(|_| CallHalt::Cancelled)
    }
}

#[async_trait]
impl CallChat for ToChat {
    async fn record(&self, item: Item) -> Result<(), CallHalt> {
        Self::record(self, item).await
    }

    async fn show(&self, event: CallEvent) -> Result<(), CallHalt> {
        Self::show(self, event).await
    }

    async fn runs(&self, words: String) -> Result<(), CallHalt> {
        self.state(ChatState::Running, words).await
    }

    async fn job(&self, request: JobListRequest) -> Result<(), CallHalt> {
        self.send(TurnEvent::Job(request)).await
    }
}
