//! A person's own command, from `:Co!` or a `!` line: what the executor is told, and how its end reads.

use std::path::PathBuf;
use std::time::Duration;

use super::services::Services;
use crate::protocol::{RunEnvironment, RunOptions};
use co_exec::{Caller, Confinement, Environment, Outcome, Program, Spec, UNTIL_IT_ENDS};

/// git runs this where it wants an editor: there is no terminal for one.
const NO_EDITOR: &str =
    "echo \"co: no terminal here for an editor, run it with :Co! ++pty\" >&2; false";

/// A command to run, as typed.
pub struct Typed {
    pub command: String,
    pub cwd: PathBuf,
    pub stdin: Option<Vec<u8>>,
    /// It gets a terminal.
    pub terminal: bool,
    pub options: RunOptions,
    pub confinement: Confinement,
}

/// The time limit of a command, where neither its person nor their settings give one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling(Option<Duration>);

impl Typed {
    /// Returns what the executor is told.
    pub fn spec(self, services: &Services) -> (Spec, Ceiling) {
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
        let extra_env = match self.terminal {
            true => Vec::new(),
            false => ["GIT_EDITOR", "GIT_SEQUENCE_EDITOR"].map(no_editor).into(),
        };
        let spec = Spec {
            program: Program::Shell(self.command),
            cwd: self.cwd,
            caller: Caller::Person,
            stdin: self.stdin,
            timeout,
            confinement: self.confinement,
            environment,
            extra_env,
        };
        (spec, Ceiling(ceiling))
    }
}

impl Ceiling {
    /// Returns a line for the person: how the command ended, and what lifts the limit if that ended it.
    pub fn status(self, outcome: &Outcome) -> String {
        let line = outcome.status();
        match self.0.filter(|_| outcome.timed_out) {
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
        let ended = |timed_out| Outcome {
            timed_out,
            exit: Some(0),
            ..Outcome::default()
        };
        let ceiling = Ceiling(Some(Duration::from_secs(600)));
        assert!(ceiling.status(&ended(true)).ends_with(
            "; shell_max_timeout (600 s) is the limit, run_timeout or :Co! ++timeout= sets another, 0 none"
        ));
        for (limit, timed_out) in [(ceiling, false), (Ceiling(None), true)] {
            assert!(!limit.status(&ended(timed_out)).contains("run_timeout"));
        }
    }
}
