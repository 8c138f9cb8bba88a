//! The provider of a chat in which an agent works. Its name is the agent's name, and it has no model.

use async_trait::async_trait;

use co_llm::{Deltas, Fault, ModelRequest, Provider};

/// The name of an agent, in the role of a provider.
pub(super) struct AgentLabel {
    pub(super) name: String,
}

impl AgentLabel {
    fn fault(&self) -> Fault {
        let name = self.name.clone();
        Fault::AgentWorks { name }
    }
}

#[async_trait]
impl Provider for AgentLabel {
    fn label(&self) -> String {
        self.name.clone()
    }

    async fn stream(&self, _request: ModelRequest) -> Result<Deltas, Fault> {
        Err(self.fault())
    }

    async fn models(&self) -> Result<Vec<String>, Fault> {
        Err(self.fault())
    }
}
