//! The agent of a chat: the person's choice with `/agent`, before the first prompt.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::agent::{AgentOption, AgentProcess, AgentSpec, AgentWish, SessionState, names};
use crate::chat::Chat;
use crate::config::{AgentConfinement, ModelChoice};
use crate::protocol::{AgentCommand, Choice, ToEditor};
use co_exec::AGENT_WORDS;
use co_llm::transcript::Item;
use co_text::{one_line, printable};

/// The word that gives a chat back to a model.
const NONE: &str = "none";

/// The agent of a chat.
#[derive(Default)]
pub(in crate::chat) struct ChatAgent {
    /// Its process, while no turn has it.
    pub process: Option<Box<AgentProcess>>,
    /// The modes, options and commands that it told last.
    told: SessionState,
    /// The choices of the person, for each process that starts.
    pub wishes: Vec<AgentWish>,
    /// Takes the choices of the person to the running turn.
    pub new_wishes: Option<mpsc::Sender<AgentWish>>,
    /// The title that it gave the chat last.
    title: Option<String>,
}

impl ChatAgent {
    pub(in crate::chat) fn state(&self) -> &SessionState {
        &self.told
    }
}

impl Chat {
    /// Sets a mode, a model or an effort of the agent, or offers those that it has.
    pub(in crate::chat) fn set_agent_option(&mut self, option: AgentOption, value: &str) {
        let name = self.model.agent().unwrap_or_default().to_owned();
        let word = option.name();
        if value.is_empty() {
            let choices = self.agent.told.values(option).into_iter().map(|it| Choice {
                label: match it.is_current {
                    true => format!("{} (now)", it.name),
                    false => it.name,
                },
                value: it.word,
                confirm: None,
            });
            let choices: Vec<_> = choices.collect();
            return match choices.is_empty() {
                true => self.complain(format!(
                    "{name} has told no {word} to choose; it tells them when it has started, with the first prompt"
                )),
                false => self.offer(word, option.title(), choices),
            };
        }
        let wish = AgentWish {
            option,
            value: value.to_owned(),
        };
        let is_known = !self.agent.told.values(option).is_empty();
        let found = self.agent.told.find(&wish);
        if let (true, Err(why)) = (is_known, &found) {
            return self.complain(format!("{name} {why}"));
        }
        let mut words = "with the next prompt";
        if let Some(turn) = &self.agent.new_wishes {
            if turn.try_send(wish.clone()).is_err() {
                return self.complain(format!(
                    "{name} did not take the {word}; set it again after this turn"
                ));
            }
            words = "now";
        } else if let (Some(process), Ok(change)) = (&mut self.agent.process, found) {
            // If it does not read, its next turn tells.
            if process.change(change).is_ok() {
                self.agent.told = process.state.clone();
                words = "now";
            }
        }
        self.say(format!("{name} takes the {word} {value} {words}"));
        self.agent
            .wishes
            .retain(|it| it.option != option || it.value.contains(':'));
        self.agent.wishes.push(wish);
        self.tell_agent_state();
        self.show_state();
    }

    /// Takes the modes, options and commands of the agent.
    pub(in crate::chat) fn take_agent_state(&mut self, state: SessionState) {
        if state != self.agent.told {
            self.agent.told = state;
            self.tell_agent_state();
            self.show_state();
        }
    }

    /// Sends Lua the words that complete the slash commands of the agent.
    pub(in crate::chat) fn tell_agent_state(&self) {
        let state = &self.agent.told;
        let words = |option| state.values(option).into_iter().map(|it| it.word).collect();
        let commands = state.commands.iter().map(|it| AgentCommand {
            name: one_line(&printable(&it.name)),
            about: one_line(&printable(&it.description)),
        });
        self.services.editor.tell(ToEditor::AgentWords {
            chat: self.id,
            agent: self.model.agent().map(str::to_owned),
            commands: commands.collect(),
            modes: words(AgentOption::Mode),
            models: words(AgentOption::Model),
            efforts: words(AgentOption::Effort),
        });
    }

    /// Gives the chat the agent's title, unless the person gave the chat a title.
    pub(in crate::chat) async fn take_agent_title(&mut self, title: String) {
        let now = self.recorder.title();
        let is_usual = self.recorder.has_first_title() || self.agent.title == Some(now.clone());
        if title.trim().is_empty() || title == now || !is_usual {
            return;
        }
        match self.recorder.rename(&title).await {
            Ok(false) => {}
            Ok(true) => {
                self.agent.title = Some(title);
                self.show_state();
            }
            Err(why) => self.complain(why),
        }
    }

    /// Carries out `/mode`, which only agents have.
    pub(in crate::chat) fn switch_mode(&mut self, value: &str) {
        match self.model.agent() {
            Some(_) => self.set_agent_option(AgentOption::Mode, value),
            None => {
                self.complain("a model has no modes: /mode is about an agent, which /agent chooses")
            }
        }
    }

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
        self.agent = ChatAgent::default();
        self.tell_agent_state();
        self.show_state();
    }

    /// Lets the person choose an agent. Installed agents come first.
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
