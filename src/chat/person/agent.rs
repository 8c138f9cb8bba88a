//! The agent that works in a chat. The person chooses it with `/agent` before the first prompt.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::agent::{
    AgentOption, AgentSpec, AgentStart, AgentWish, IdleAgent, IdleEvent, SessionBegin,
    SessionState, names,
};
use crate::chat::chat_context::ChatContext;
use crate::chat::person::model::ChatModel;
use crate::chat::record::Recorder;
use crate::config::{AgentConfinement, ModelChoice};
use crate::protocol::{AgentCommand, Choice, NoticeLevel, ToEditor};
use co_acp::schema::{AuthMethodId, SessionId, SessionInfo};
use co_exec::AGENT_WORDS;
use co_llm::transcript::Item;
use co_text::{one_line, printable, start_of};

/// The argument of `/agent` after which a model works in the chat again.
const NONE: &str = "none";

/// The largest number of bytes of a session's line in the list.
const LONGEST_LABEL: usize = 500;

/// The agent of a chat.
#[derive(Default)]
pub(in crate::chat) struct ChatAgent {
    /// The agent's process; none while a turn has it.
    pub process: IdleAgent,
    /// The modes, options and commands that the agent reported last.
    told: SessionState,
    /// The modes and options that the person chose. Each new process of the agent gets them.
    pub wishes: Vec<AgentWish>,
    /// Sends the person's choices to the running turn.
    pub new_wishes: Option<mpsc::Sender<AgentWish>>,
    /// The agent's session that the person chose for the first prompt.
    pub session: Option<String>,
    /// The method by which the agent logged in.
    pub login: Option<AuthMethodId>,
    /// The last title that the agent gave the chat.
    title: Option<String>,
}

impl ChatAgent {
    pub(in crate::chat) fn state(&self) -> &SessionState {
        &self.told
    }

    /// Sets a mode, a model or an effort of the agent. Without an argument, lets the person choose.
    pub(in crate::chat) fn set_option(
        &mut self,
        context: &ChatContext,
        name: &str,
        (option, value): (AgentOption, &str),
    ) {
        let word = option.name();
        if value.is_empty() {
            let choices = self.told.values(option).into_iter().map(|it| Choice {
                label: match it.is_current {
                    true => format!("{} (now)", it.name),
                    false => it.name,
                },
                value: it.word,
                confirm: None,
            });
            let choices: Vec<_> = choices.collect();
            return match choices.is_empty() {
                true if self.process.ready().is_some() => {
                    context.complain(format!("{name} has no {word} to choose"))
                }
                true => context.complain(format!(
                    "{name} has told no {word} to choose; it tells them when it has started, at the latest with the first prompt"
                )),
                false => context.offer(word, option.title(), choices),
            };
        }
        let wish = AgentWish {
            option,
            value: value.to_owned(),
        };
        let is_known = !self.told.values(option).is_empty();
        let found = self.told.find(&wish);
        if let (true, Err(why)) = (is_known, &found) {
            return context.complain(format!("{name} {why}"));
        }
        let mut words = "with the next prompt";
        if let Some(turn) = &self.new_wishes {
            if turn.try_send(wish.clone()).is_err() {
                return context.complain(format!(
                    "{name} did not take the {word}; set it again after this turn"
                ));
            }
            words = "now";
        } else if let (Some(process), Ok(change)) = (self.process.ready(), found) {
            // If it does not read, its next turn tells.
            if process.change(change).is_ok() {
                self.told = process.state.clone();
                words = "now";
            }
        }
        context.say(format!("{name} takes the {word} {value} {words}"));
        self.wishes
            .retain(|it| it.option != option || it.value.contains(':'));
        self.wishes.push(wish);
        self.tell_state(context, Some(name));
    }

    /// Stores the modes, options and commands that the agent with this name reported. Returns false if they are unchanged.
    pub(in crate::chat) fn take_state(
        &mut self,
        context: &ChatContext,
        name: Option<&str>,
        state: SessionState,
    ) -> bool {
        let is_new = state != self.told;
        if is_new {
            self.told = state;
            self.tell_state(context, name);
        }
        is_new
    }

    /// Sends the completions of the agent's slash commands to Lua.
    pub(in crate::chat) fn tell_state(&self, context: &ChatContext, name: Option<&str>) {
        let state = &self.told;
        let words = |option| state.values(option).into_iter().map(|it| it.word).collect();
        let commands = state.commands.iter().map(|it| AgentCommand {
            name: one_line(&printable(&it.name)),
            about: one_line(&printable(&it.description)),
        });
        context.services.editor.tell(ToEditor::AgentWords {
            chat: context.id,
            agent: name.map(str::to_owned),
            commands: commands.collect(),
            modes: words(AgentOption::Mode),
            models: words(AgentOption::Model),
            efforts: words(AgentOption::Effort),
        });
    }

    /// Sets the title of the chat to the agent's title, unless the person has set one. Returns true if the title of the chat has
    /// changed.
    ///
    /// # Errors
    /// The title cannot be written.
    pub(in crate::chat) async fn take_title(
        &mut self,
        recorder: &mut Recorder,
        title: String,
    ) -> Result<bool, String> {
        let now = recorder.title();
        let is_usual = recorder.has_first_title() || self.title == Some(now.clone());
        if title.trim().is_empty() || title == now || !is_usual {
            return Ok(false);
        }
        let renamed = recorder.rename(&title).await?;
        if renamed {
            self.title = Some(title);
        }
        Ok(renamed)
    }

    /// Forgets everything about the agent, because the person chose another agent or another session.
    pub(in crate::chat) fn reset(&mut self, context: &ChatContext, name: Option<&str>) {
        *self = Self::default();
        self.tell_state(context, name);
    }

    /// Carries out `/session [id]`, which only works before the first prompt. The agent then continues one of its earlier
    /// sessions.
    pub(in crate::chat) fn switch_session(
        &mut self,
        context: &ChatContext,
        spec: AgentSpec,
        id: &str,
    ) {
        let name = &spec.name;
        if id.is_empty() {
            context.say(format!("asks {name} for its sessions"));
            return list_sessions(context, spec);
        }
        self.session = Some(id.to_owned());
        context.say(format!("{name} goes on with that session"));
        self.start_early(context, spec);
    }

    /// Carries out `/agent [name]`.
    pub(in crate::chat) fn switch(
        &mut self,
        context: &ChatContext,
        model: &mut ChatModel,
        name: &str,
    ) {
        if name.is_empty() {
            return offer(context);
        }
        if name == NONE {
            model.choose(ModelChoice::default());
            self.reset(context, None);
            return context.say("a model answers in this chat");
        }
        let config = &context.services.config;
        let Some(spec) = AgentSpec::find(name, config, &context.services.places.home) else {
            let known = names(config).join(", ");
            return context.complain(format!("there is no agent {name}; the agents are: {known}"));
        };
        if !is_installed(context, &spec) {
            let install = spec.preset().map(|it| format!(": `{}`", it.install));
            let (program, install) = (spec.cmd.first(), install.unwrap_or_default());
            let program = program.map_or("its program", String::as_str);
            return context.complain(format!("{program} is not installed{install}"));
        }
        let words = match (spec.confinement, spec.preset()) {
            (AgentConfinement::None, _) => "not confined: it may do all that you may".to_owned(),
            (AgentConfinement::Workspace, Some(preset)) => {
                format!("{AGENT_WORDS}; {}", preset.home.words())
            }
            (AgentConfinement::Workspace, None) => AGENT_WORDS.to_owned(),
        };
        model.choose(ModelChoice {
            agent: Some(name.to_owned()),
            ..ModelChoice::default()
        });
        self.reset(context, Some(name));
        context.say(format!("{name} works in this chat, {words}"));
        self.start_early(context, spec);
    }

    /// Starts the agent and takes the first checkpoint while the person types the first prompt, unless the settings have a fault.
    pub(in crate::chat) fn start_early(&mut self, context: &ChatContext, spec: AgentSpec) {
        self.process = IdleAgent::None;
        let services = &context.services;
        if services.config.check().is_ok() {
            services.prepare_checkpoints(context.id, context.judge());
            let start = AgentStart {
                past: self.session.as_deref().map(SessionId::new),
                ..agent_start(context, spec)
            };
            self.process = IdleAgent::start(start, context.cancel.child_token());
        }
    }

    /// Handles an event of an agent before its first turn. Returns false if the state of its session is unchanged.
    pub(in crate::chat) fn take_idle_event(
        &mut self,
        context: &ChatContext,
        name: &str,
        event: IdleEvent,
    ) -> bool {
        match event {
            IdleEvent::Waits => return false,
            IdleEvent::Ended => {
                let text = format!("{name} has ended; the first prompt starts it anew");
                context.services.notice(NoticeLevel::Warn, text);
            }
            IdleEvent::Refused(why) => context.complain(format!(
                "{name} did not take the change: {}",
                one_line(&printable(&why))
            )),
            IdleEvent::Started => self.begin_early(context, name),
            IdleEvent::State => {}
        }
        let state = self.process.ready().map(|it| it.state.clone());
        state.is_some_and(|state| self.take_state(context, Some(name), state))
    }

    /// Sends the person's choices to an agent that has started before the first prompt. Tells the person if the agent does not
    /// go on with the session that they chose.
    fn begin_early(&mut self, context: &ChatContext, name: &str) {
        let Some(process) = self.process.ready() else {
            return;
        };
        if let (Some(id), SessionBegin::Lost(why)) = (&self.session, &process.begin) {
            context.complain(format!(
                "{name} cannot go on with the session {id}: {}; /session chooses another",
                one_line(&printable(why))
            ));
        }
        for wish in &self.wishes {
            if let Ok(change) = process.state.find(wish)
                && !process.state.is_current(&change)
            {
                // If it does not read, its first turn tells.
                let _stuck = process.change(change);
            }
        }
    }
}

/// Lets the person choose an agent. Installed agents come first in the list.
fn offer(context: &ChatContext) {
    let config = &context.services.config;
    let specs = names(config);
    let specs = specs
        .iter()
        .filter_map(|name| AgentSpec::find(name, config, &context.services.places.home));
    let mut specs: Vec<_> = specs
        .map(|spec| (!is_installed(context, &spec), spec))
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
    context.offer("agent", "Agent", choices.chain([none]).collect());
}

fn is_installed(context: &ChatContext, spec: &AgentSpec) -> bool {
    let environment = context.services.executor.agent_environment();
    let path = environment.iter().find(|(name, _)| name == "PATH");
    path.is_some_and(|(_, path)| spec.installed(path).is_some())
}

/// Runs the agent's login command as a run of the person: in a terminal, in the home directory. Gives the last prompt back, so
/// that the person can send it again.
pub(in crate::chat) fn log_in_by(context: &ChatContext, recorder: &Recorder, command: String) {
    let mut items = recorder.items().iter().rev();
    let prompt = items.find_map(|item| match item {
        Item::User { text, .. } => Some(text.clone()),
        _ => None,
    });
    let editor = &context.services.editor;
    if let Some(text) = prompt {
        let chat = context.id;
        editor.tell(ToEditor::Unsent { chat, text });
    }
    editor.tell(ToEditor::OpenTerminal {
        command,
        // Not in the workspace, where files of a project or of the agent could lead the program.
        cwd: context.services.places.home.display().to_string(),
    });
}

/// Returns the inputs for a start of the agent in the directories of the chat.
fn agent_start(context: &ChatContext, spec: AgentSpec) -> AgentStart {
    let dirs = (&*context.dirs.workspace, &*context.dirs.cwd);
    AgentStart::new(spec, Arc::clone(&context.services), dirs)
}

/// Starts the agent, and lets the person choose one of the agent's sessions.
fn list_sessions(context: &ChatContext, spec: AgentSpec) {
    let (services, name, chat) = (Arc::clone(&context.services), spec.name.clone(), context.id);
    let start = AgentStart {
        only_lists: true,
        ..agent_start(context, spec)
    };
    let cancel = context.cancel.clone();
    tokio::spawn(async move {
        let sessions = match start.start(&cancel).await {
            Ok(agent) => agent.sessions().await,
            Err(fault) => Err(fault.to_string()),
        };
        let why = match sessions {
            Ok(sessions) if sessions.is_empty() => "has no session in this directory".to_owned(),
            Ok(sessions) => {
                return services.editor.tell(ToEditor::Choose {
                    chat,
                    name: "session".to_owned(),
                    title: "Session".to_owned(),
                    choices: sessions.into_iter().map(session_choice).collect(),
                });
            }
            Err(why) => format!("cannot tell its sessions: {why}"),
        };
        let text = format!("{name} {}", one_line(&printable(&why)));
        services.notice(NoticeLevel::Warn, text);
    });
}

/// Returns the list entry of a session, with its title and the time of its last change.
fn session_choice(session: SessionInfo) -> Choice {
    let id = session.session_id.to_string();
    let title = session.title.filter(|it| !it.trim().is_empty());
    let title = title.unwrap_or_else(|| id.clone());
    let words: Vec<_> = std::iter::once(title).chain(session.updated_at).collect();
    Choice {
        label: one_line(&printable(start_of(&words.join("  "), LONGEST_LABEL))),
        value: id,
        confirm: None,
    }
}
