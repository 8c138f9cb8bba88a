//! The parts of an agent's turn that do not change, with the texts that it makes without secrets.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::calls::LoggedCall;
use crate::agent::AgentSpec;
use crate::chat::turn::{Halt, ToChat};
use crate::checkpoint::named;
use crate::config::AgentConfinement;
use crate::protocol::ChatState;
use crate::tool::ToolSet;
use crate::tool::agent_call::AgentCall;
use crate::tool::context::CallContext;
use co_exec::AGENT;
use co_text::{one_line, start_of};

/// The most bytes of a message that is shown as it came.
pub(super) const LONGEST_ODD: usize = 2_000;

/// The most bytes of the title of a call.
const LONGEST_TITLE: usize = 2_000;

/// The parts of a turn that do not change.
pub(super) struct TurnParts {
    pub context: Arc<CallContext>,
    pub chat: ToChat,
    pub tools: ToolSet,
    pub spec: AgentSpec,
}

impl TurnParts {
    /// Returns an id for a call. An agent may use its ids again in another session.
    pub(super) fn call_id(&self) -> String {
        format!("agent-{}", self.context.services.id())
    }

    pub(super) fn is_confined(&self) -> bool {
        self.spec.confinement == AgentConfinement::Workspace
    }

    /// Returns the level of the agent's process in a word.
    pub(super) fn level(&self) -> &'static str {
        match self.spec.confinement {
            AgentConfinement::Workspace => AGENT,
            AgentConfinement::None => "none",
        }
    }

    pub(super) async fn state(
        &self,
        state: ChatState,
        detail: impl Into<String>,
    ) -> Result<(), Halt> {
        Ok(self.chat.state(state, detail).await?)
    }

    /// Shows a note now, without secrets.
    pub(super) async fn note(&self, text: &str) -> Result<(), Halt> {
        let text = self.redacted(text).await.0;
        Ok(self.chat.note(&text).await?)
    }

    /// Returns a call for the transcript, before secrets are removed.
    pub(super) fn record(&self, logged: &LoggedCall) -> AgentCall {
        logged.record(&self.context.cwd)
    }

    /// Returns the names of some files of the workspace.
    pub(super) fn names(&self, files: &[PathBuf]) -> String {
        let root = self.context.judge.root();
        let name = |it: &PathBuf| it.strip_prefix(root).unwrap_or(it).display().to_string();
        one_line(&named(files.iter().map(name).collect()))
    }

    /// Returns a call without secrets, with the start of its title.
    pub(super) async fn redacted_call(&self, call: AgentCall) -> AgentCall {
        let input = match &call.input {
            Some(input) => Some(self.redacted(input).await.0),
            None => None,
        };
        let places = self.redacted(&call.places.join("\n")).await.0;
        AgentCall {
            title: self.title(&call.title).await,
            input,
            places: places.lines().map(str::to_owned).collect(),
            ..call
        }
    }

    /// Returns the start of a title, without secrets.
    pub(super) async fn title(&self, title: &str) -> String {
        // More than is shown, so that a secret which begins in the shown part is found whole.
        let (title, _) = self.redacted(start_of(title, 2 * LONGEST_TITLE)).await;
        start_of(&title, LONGEST_TITLE).to_owned()
    }

    /// Returns a text without secrets, and the number of removed secrets.
    pub(super) async fn redacted(&self, text: &str) -> (String, usize) {
        if text.trim().is_empty() {
            return (text.to_owned(), 0);
        }
        match self.context.redact_for_model(text, Instant::now()).await {
            Ok(redacted) => (redacted.text, redacted.hidden),
            Err(withheld) => (format!("[{withheld}]"), 0),
        }
    }
}
