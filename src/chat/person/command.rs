//! A command that the person typed, with `:Co!` or in a `!` line: how it starts, and the line about its end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::TrialGrants;
use crate::blocking::blocking;
use crate::chat::person::run_editor::{EditorSocket, RunEditor};
use crate::chat::person::wants_terminal;
use crate::config::Network;
use crate::network::{self, HostAccess, HostReport, OpenAccess};
use crate::protocol::{Asker, RunEnvironment, RunOptions};
use crate::services::Services;
use crate::tool::command::hosts::{self, ReachingCommand};
use crate::tool::command::{readiness, secret_access};
use crate::tool::context::Questioner;
use crate::workspace::confinement::network_of;
use crate::workspace::confinement_hint;
use crate::workspace::judge::workspace_of;
use co_exec::{
    Caller, CommandOutcome, CommandSpec, Confinement, Environment, Program, RunningCommand,
    Streams, TRIAL_WORDS, UNTIL_IT_ENDS,
};

/// The value of git's editor variables for a command that has no terminal and cannot open files in Neovim.
const NO_EDITOR: &str =
    "echo \"co: no terminal here for an editor, run it with :Co! ++pty\" >&2; false";

/// A command that the person typed.
pub struct PersonCommand {
    pub command: String,
    pub cwd: PathBuf,
    pub stdin: Option<Vec<u8>>,
    pub streams: Streams,
    pub options: RunOptions,
    pub confinement: Confinement,
    /// The grants of an agent, if the command runs as a trial and starts the program of this agent.
    pub grants: Option<TrialGrants>,
}

/// A command that has started.
pub struct StartedCommand {
    pub running: RunningCommand,
    /// The command's access to hosts; none if the command has no such access.
    pub access: Option<OpenAccess>,
    pub conditions: RunConditions,
    /// Lets the programs of the command open files in Neovim until this value is dropped.
    pub editor: Option<RunEditor>,
}

/// The way to ask the person about the hosts that a command contacts. The question appears in the chat of the command, or belongs
/// to the run (`:Co!`).
#[derive(Clone)]
pub struct CommandQuestioner {
    pub asker: Asker,
    pub questioner: Arc<dyn Questioner>,
}

/// The facts about a command that the line about its end needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunConditions {
    command: String,
    /// The text of a command that has neither a terminal nor an input, to tell whether it needed a terminal; none for other
    /// commands.
    alone: Option<String>,
    /// The time limit from `shell_max_timeout`; none if the person set another limit.
    limit: Option<Duration>,
    /// A short description of the confinement.
    confinement: Option<&'static str>,
    network: Network,
}

impl PersonCommand {
    /// Returns the command for the executor. `editor` are the variables through which programs of the command can open files in
    /// Neovim.
    fn spec(
        self,
        services: &Services,
        editor: Option<Vec<(String, String)>>,
    ) -> (CommandSpec, RunConditions) {
        let given = self.options.timeout.or(services.config.run_timeout);
        let (timeout, ceiling) = match given {
            None => (
                services.config.max_timeout(),
                Some(services.config.max_timeout()),
            ),
            Some(0) => (UNTIL_IT_ENDS, None),
            Some(seconds) => (Duration::from_secs(seconds), None),
        };
        let inherits = match self.options.environment {
            None => services.config.run_inherits,
            Some(named) => named == RunEnvironment::Inherit,
        };
        let environment = match self.options.host {
            None => Environment::Executor,
            Some(host) if inherits => Environment::Inherit(host),
            Some(host) => Environment::Restricted(host),
        };
        let no_editor = |name: &str| (name.to_owned(), NO_EDITOR.to_owned());
        let in_terminal = matches!(self.streams, Streams::Terminal(_));
        let mut extra_env = match editor {
            Some(editor) => editor,
            None if in_terminal => Vec::new(),
            None => ["GIT_EDITOR", "GIT_SEQUENCE_EDITOR"].map(no_editor).into(),
        };
        extra_env.extend(self.grants.into_iter().flat_map(|it| it.env));
        let is_open = in_terminal || matches!(self.streams, Streams::Open);
        let has_input = is_open || self.stdin.is_some();
        let conditions = RunConditions {
            command: self.command.clone(),
            alone: (!has_input).then(|| self.command.clone()),
            limit: ceiling,
            // The status of a trial says more about it.
            confinement: self.confinement.words().filter(|it| *it != TRIAL_WORDS),
            network: network_of(&self.confinement, &services.config),
        };
        let spec = CommandSpec {
            program: Program::Shell(self.command),
            cwd: self.cwd,
            caller: Caller::Person,
            stdin: self.stdin,
            timeout,
            confinement: self.confinement,
            environment,
            extra_env,
        };
        (spec, conditions)
    }

    /// Starts the command in the confinement of approved commands. Calls `workspace` only if this confinement needs the
    /// workspace.
    ///
    /// # Errors
    /// The command cannot be confined or started, or a container engine that it needs does not answer.
    pub async fn start_confined(
        mut self,
        services: &Arc<Services>,
        workspace: impl FnOnce() -> PathBuf,
        by: CommandQuestioner,
    ) -> Result<StartedCommand, String> {
        let confinement = services.probe.for_approved(workspace).await;
        let confinement = confinement.map_err(|refused| refused.to_string())?;
        self.confinement =
            secret_access::open_named(services, confinement, &self.command, &self.cwd).await;
        services.prepare(&self.confinement).await?;
        self.ready(services).await?;
        self.start(services, Some(by)).await
    }

    /// Starts the command in the confinement of its field `confinement`. If `by` is set, the person can allow the command to
    /// contact hosts.
    ///
    /// # Errors
    /// The command cannot be started.
    pub async fn start(
        self,
        services: &Arc<Services>,
        by: Option<CommandQuestioner>,
    ) -> Result<StartedCommand, String> {
        let access = match by {
            Some(by) => self.access(services, by).await,
            None => None,
        };
        let (socket, variables) = match self.editor(services).await {
            Some((socket, variables)) => (Some(socket), Some(variables)),
            None => (None, None),
        };
        let streams = self.streams;
        let (spec, conditions) = self.spec(services, variables);
        let started = network::start(&services.executor, spec, streams, access);
        let (running, access) = started.await.map_err(|error| error.to_string())?;
        let editor = socket.map(|socket| {
            let command = conditions.command.clone();
            socket.serve(services.buffers.clone(), command, running.time_limit())
        });
        Ok(StartedCommand {
            running,
            access,
            conditions,
            editor,
        })
    }

    /// Returns the access to hosts. Returns `None` if the confinement or the settings allow no such access.
    async fn access(&self, services: &Arc<Services>, by: CommandQuestioner) -> Option<HostAccess> {
        let reaching = ReachingCommand {
            asker: by.asker,
            workspace: self.confinement.workspace()?,
            command: &self.command,
            cwd: &self.cwd,
            confinement: self.confinement.name(),
        };
        match &self.grants {
            Some(grants) => Some(hosts::access_to(
                services,
                by.questioner,
                &reaching,
                grants.hosts.clone(),
            )),
            None => hosts::access(services, by.questioner, &self.confinement, &reaching).await,
        }
    }

    /// Returns a socket through which the command can open files in Neovim, and the variables that name the socket. Returns
    /// `None` if the command is confined.
    async fn editor(&self, services: &Services) -> Option<(EditorSocket, Vec<(String, String)>)> {
        let launcher = services.executor.launcher();
        let launcher = launcher.filter(|_| self.confinement == Confinement::Plain)?;
        let (places, removals) = (Arc::clone(&services.places), launcher.removals().clone());
        let socket = blocking(move || EditorSocket::new(&places.editors, &removals)).await;
        let socket = socket
            .inspect_err(|why| tracing::warn!(why, "a command has no editor"))
            .ok()?;
        let variables = socket.variables(&services.places.program)?;
        Some((socket, variables))
    }

    /// Waits until the container engine answers, if the command is unconfined and uses the engine.
    ///
    /// # Errors
    /// The engine does not answer.
    async fn ready(&self, services: &Services) -> Result<(), String> {
        let names_engine = ["docker", "podman"]
            .iter()
            .any(|name| self.command.contains(name));
        if self.confinement != Confinement::Plain || !names_engine {
            return Ok(());
        }
        let judge = services.judge(&workspace_of(&self.cwd));
        let (program, cwd) = (Program::Shell(self.command.clone()), self.cwd.clone());
        let read = move || judge.assess(&program, &cwd, false).words();
        let commands = tokio::task::spawn_blocking(read).await.unwrap_or_default();
        let inherits = match self.options.environment {
            None => services.config.run_inherits,
            Some(named) => named == RunEnvironment::Inherit,
        };
        let environment = match inherits {
            true => std::env::vars_os().collect(),
            false => services.executor.agent_environment(),
        };
        readiness::wait(services, &commands, &environment).await
    }
}

impl RunConditions {
    /// Returns a line about the command's end, with its confinement and the hosts that it tried to contact. If the time limit
    /// ended the command, the line names the settings that change the limit. If the command needed a terminal, the line says so.
    pub fn status(&self, outcome: &CommandOutcome, hosts: &HostReport) -> String {
        let mut line = confinement_hint::status(outcome, self.confinement, self.network);
        let alone = self.alone.as_deref();
        if let Some(hint) = alone.and_then(|command| wants_terminal::hint_at_end(command, outcome))
        {
            line = format!("{line}; {hint}");
        }
        if let Some(started) = readiness::started(&self.command, outcome) {
            line = format!("{line}; {started}");
        }
        if let Some(hosts) = hosts.words() {
            line = format!("{line}; {hosts}");
        }
        match self.limit.filter(|_| outcome.timed_out) {
            Some(limit) => format!(
                "{line}; shell_max_timeout ({} s) is the limit, run_timeout or :Co! ++timeout= sets another, 0 none",
                limit.as_secs()
            ),
            None => line,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_names_the_settings_only_if_the_ceiling_was_the_limit() {
        let ended = |timed_out| CommandOutcome {
            timed_out,
            exit: Some(0),
            ..CommandOutcome::default()
        };
        let unconfined = |limit| RunConditions {
            command: String::new(),
            alone: None,
            limit,
            confinement: None,
            network: Network::None,
        };
        let ceiling = unconfined(Some(Duration::from_secs(600)));
        assert!(ceiling.status(&ended(true), &HostReport::default()).ends_with(
            "; shell_max_timeout (600 s) is the limit, run_timeout or :Co! ++timeout= sets another, 0 none"
        ));
        for (limit, timed_out) in [(ceiling, false), (unconfined(None), true)] {
            assert!(
                !limit
                    .status(&ended(timed_out), &HostReport::default())
                    .contains("run_timeout")
            );
        }
    }
}
