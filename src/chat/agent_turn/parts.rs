//! The parts of an agent's turn that do not change, and functions that make texts without secret values.

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

/// The largest number of bytes of an unknown message that the chat shows.
pub(super) const LONGEST_ODD: usize = 2_000;

/// The largest number of bytes of the title of a call.
const LONGEST_TITLE: usize = 2_000;

/// The parts of an agent's turn that do not change.
pub(super) struct TurnParts {
    pub context: Arc<CallContext>,
    pub chat: ToChat,
    pub tools: ToolSet,
    pub spec: AgentSpec,
}

impl TurnParts {
    /// Returns a new id for a call. The agent's own ids are not unique: an agent may use them again in another session.
    pub(super) fn call_id(&self) -> String {
        format!("agent-{}", self.context.services.id())
    }

    pub(super) fn is_confined(&self) -> bool {
        self.spec.confinement == AgentConfinement::Workspace
    }

    /// Returns the name of the confinement of the agent's process.
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

    /// Shows a note now, without secret values.
    pub(super) async fn note(&self, text: &str) -> Result<(), Halt> {
        let text = self.redacted(text).await.0;
        Ok(self.chat.note(&text).await?)
    }

    /// Returns a call as the transcript keeps it. Secret values are not removed yet.
    pub(super) fn record(&self, logged: &LoggedCall) -> AgentCall {
        logged.record(&self.context.cwd)
    }

    /// Returns the names of these files of the workspace as a list for a sentence.
    pub(super) fn names(&self, files: &[PathBuf]) -> String {
        let root = self.context.judge.root();
        let name = |it: &PathBuf| it.strip_prefix(root).unwrap_or(it).display().to_string();
        one_line(&named(files.iter().map(name).collect()))
    }

    /// Returns a call without secret values, and with its title cut to [`LONGEST_TITLE`] bytes.
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

    /// Returns a title without secret values, cut to [`LONGEST_TITLE`] bytes.
    pub(super) async fn title(&self, title: &str) -> String {
        // More than is shown, so that a secret which begins in the shown part is found whole.
        let (title, _) = self.redacted(start_of(title, 2 * LONGEST_TITLE)).await;
        start_of(&title, LONGEST_TITLE).to_owned()
    }

    /// Returns a text without secret values, and the number of removed values.
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
