//! The agent of a chat: the person's choice with `/agent`, before the first prompt.

use std::sync::Arc;

use crate::agent::{AgentSpec, names};
use crate::chat::Chat;
use crate::config::{AgentConfinement, ModelChoice};
use crate::protocol::Choice;
use co_exec::AGENT_WORDS;
use co_llm::transcript::Item;

/// The word that gives a chat back to a model.
const NONE: &str = "none";

impl Chat {
    /// Carries out `/agent [name]`.
    pub(in crate::chat) fn switch_agent(&mut self, name: &str) {
        let prompted = |item: &Item| matches!(item, Item::User { .. });
        if self.running.is_some() || self.recorder.items().iter().any(prompted) {
            return self.complain(
                "this chat has begun: start another with :Co /new, then choose its agent",
            );
        }
        if name.is_empty() {
            return self.offer_agents();
        }
        if name == NONE {
            self.set_choice(ModelChoice::default());
            return self.say("a model answers in this chat");
        }
        let config = &self.services.config;
        let Some(spec) = AgentSpec::find(name, config, &self.services.places.home) else {
            let known = names(config).join(", ");
            return self.complain(format!("there is no agent {name}; the agents are: {known}"));
        };
        if !self.is_installed(&spec) {
            let install = spec.preset().map(|it| format!(": `{}`", it.install));
            let (program, install) = (spec.cmd.first(), install.unwrap_or_default());
            let program = program.map_or("its program", String::as_str);
            return self.complain(format!("{program} is not installed{install}"));
        }
        let words = match (spec.confinement, spec.preset()) {
            (AgentConfinement::None, _) => "not confined: it may do all that you may".to_owned(),
            (AgentConfinement::Workspace, Some(preset)) => {
                format!("{AGENT_WORDS}; {}", preset.home.words())
            }
            (AgentConfinement::Workspace, None) => AGENT_WORDS.to_owned(),
        };
        self.set_choice(ModelChoice {
            agent: Some(name.to_owned()),
            ..ModelChoice::default()
        });
        self.say(format!("{name} works in this chat, {words}"));
    }

    fn set_choice(&mut self, choice: ModelChoice) {
        self.model.choose(choice);
        self.show_state();
    }

    /// Lets the person choose an agent. Those that are installed come first.
    fn offer_agents(&self) {
        let config = &self.services.config;
        let specs = names(config);
        let specs = specs
            .iter()
            .filter_map(|name| AgentSpec::find(name, config, &self.services.places.home));
        let mut specs: Vec<_> = specs
            .map(|spec| (!self.is_installed(&spec), spec))
            .collect();
        specs.sort_by(|one, other| (one.0, &one.1.name).cmp(&(other.0, &other.1.name)));
        let choices = specs.into_iter().map(|(missing, spec)| Choice {
            label: match missing {
                true => format!("{} (not installed)", spec.name),
                false => spec.name.clone(),
            },
            value: spec.name,
            confirm: None,
        });
        let none = Choice {
            label: "none: a model answers".to_owned(),
            value: NONE.to_owned(),
            confirm: None,
        };
        self.offer("agent", "Agent", choices.chain([none]).collect());
    }

    fn is_installed(&self, spec: &AgentSpec) -> bool {
        let environment = self.services.executor.agent_environment();
        let path = environment.iter().find(|(name, _)| name == "PATH");
        path.is_some_and(|(_, path)| spec.installed(path).is_some())
    }

    /// Returns the agent of the chat, if it has one.
    ///
    /// # Errors
    /// The settings have no such agent any more.
    pub(in crate::chat) fn agent_spec(&self) -> Option<Result<AgentSpec, String>> {
        let name = self.model.agent()?;
        let services = Arc::clone(&self.services);
        let found = AgentSpec::find(name, &services.config, &services.places.home);
        Some(found.ok_or_else(|| format!("the settings have no agent {name} any more")))
    }

    /// Returns whether an agent works in the chat that nothing confines.
    pub(in crate::chat) fn agent_is_unconfined(&self) -> bool {
        let spec = self.agent_spec().and_then(Result::ok);
        spec.is_some_and(|spec| spec.confinement == AgentConfinement::None)
    }

    /// Tells the person that a command is about a model, if an agent works in the chat. Returns whether it does.
    pub(in crate::chat) fn is_only_for_models(&self, command: &str) -> bool {
        let agent = self.model.agent();
        if let Some(agent) = agent {
            self.complain(format!(
                "{agent} works in this chat, and {command} is about a model: write it a prompt instead"
            ));
        }
        agent.is_some()
    }
}
