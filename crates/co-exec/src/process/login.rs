//! Finds the PATH of the login shell, which a Neovim that was started from a desktop does not have.

use crate::command::{Caller, CommandSpec, Program};
use crate::confinement::Confinement;
use crate::environment::Environment;
use crate::outcome::CommandOutcome;

use std::path::PathBuf;
use std::time::Duration;

/// The time-out for the login shell, because profiles may do anything.
pub(crate) const SHELL_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns a command for the login shell that prints PATH between two unique lines.
///
/// The shell is interactive but cannot use a terminal: its session has none, and only the leader of a session gets a terminal by
/// opening it.
pub(crate) fn spec(shell: &str, home: PathBuf, token: &str) -> CommandSpec {
    let (begin, end) = sentinels(token);
    // bash, zsh and fish all understand this form.
    let script = format!("echo; echo {begin}; printenv PATH; echo {end}");
    CommandSpec {
        program: Program::Argv(vec![shell.to_owned(), "-lic".to_owned(), script]),
        cwd: home,
        caller: Caller::Agent,
        stdin: None,
        timeout: SHELL_TIMEOUT,
        confinement: Confinement::Plain,
        environment: Environment::default(),
        extra_env: Vec::new(),
    }
}

/// Returns the PATH that the login shell printed, or `None` if the output has no valid PATH.
pub(crate) fn path(outcome: &CommandOutcome, token: &str) -> Option<String> {
    let (begin, end) = sentinels(token);
    let mut lines = outcome.output.lines().skip_while(|line| *line != begin);
    lines.next()?;
    let path = lines.next()?;
    let absolute = path.split(':').any(|dir| dir.starts_with('/'));
    (absolute && lines.next() == Some(&end)).then(|| path.to_owned())
}

fn sentinels(token: &str) -> (String, String) {
    (format!("co-path-{token}"), format!("co-path-end-{token}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, expected: Option<&str>) {
        let outcome = CommandOutcome {
            output: output.to_owned(),
            ..CommandOutcome::default()
        };
        assert_eq!(path(&outcome, "t").as_deref(), expected, "{output:?}");
    }

    #[test]
    fn takes_what_lies_between_the_sentinels() {
        check(
            "hi\nco-path-t\n/a:/b c\nco-path-end-t\nbye\n",
            Some("/a:/b c"),
        );
        check("co-path-t\nco-path-end-t\n", None);
        check("co-path-t\n/a\n", None);
        check("co-path-t\nno path\nco-path-end-t\n", None);
        check("", None);
    }
}
