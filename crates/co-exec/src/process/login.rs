//! The PATH that a person's login shell has: a Neovim started from a desktop does not.

use crate::command::{Caller, Confinement, Program, Spec};
use crate::environment::Environment;
use crate::outcome::Outcome;

use std::path::PathBuf;
use std::time::Duration;

/// Profiles may do anything; they get this long.
pub(crate) const LIMIT: Duration = Duration::from_secs(5);

/// Returns the command that prints PATH between two lines that nothing else prints.
///
/// Interactive as it is, it finds no terminal: it is of the backend's session, which has none, and who leads no session
/// gets none by opening one.
pub(crate) fn spec(shell: &str, home: PathBuf, token: &str) -> Spec {
    let (begin, end) = sentinels(token);
    // In a form that bash, zsh and fish all read the same.
    let script = format!("echo; echo {begin}; printenv PATH; echo {end}");
    Spec {
        program: Program::Argv(vec![shell.to_owned(), "-lic".to_owned(), script]),
        cwd: home,
        caller: Caller::Agent,
        stdin: None,
        timeout: LIMIT,
        confinement: Confinement::Plain,
        environment: Environment::default(),
        extra_env: Vec::new(),
    }
}

/// Returns the PATH, if the shell came to print one.
pub(crate) fn path(outcome: &Outcome, token: &str) -> Option<String> {
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
        let outcome = Outcome {
            output: output.to_owned(),
            ..Outcome::default()
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
