//! Commands that do nothing useful without a terminal: a run of one ends at once.

use std::time::Duration;

use co_exec::Outcome;
use co_policy::bash;

/// Programs that draw on the whole screen. Without a terminal they fail.
const SCREEN: &[&str] = &[
    "btop", "emacs", "fzf", "gitui", "helix", "htop", "hx", "kak", "lazygit", "mc", "micro",
    "nano", "nnn", "nvim", "ranger", "screen", "tig", "tmux", "top", "vi", "view", "vim",
    "vimdiff",
];

/// Programs that read commands if they have no arguments. Without a terminal they find none, and end.
const PROMPT: &[&str] = &[
    "R",
    "bash",
    "bc",
    "dash",
    "deno",
    "fish",
    "gdb",
    "ghci",
    "iex",
    "ipython",
    "irb",
    "julia",
    "lua",
    "mysql",
    "node",
    "psql",
    "python",
    "python3",
    "redis-cli",
    "sh",
    "sqlite3",
    "zsh",
];

/// Commands of git that ask about each change, with one of these options.
const ASKING: &[&str] = &["add", "checkout", "commit", "reset", "restore", "stash"];
const PATCH: &[&str] = &["-p", "--patch", "--interactive"];

/// A command that needed a terminal ends in this time.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Returns the hint for a command without a terminal and without an input, if it is one that wants a terminal: it ended
/// at once, or it is a program for the whole screen that failed or was cancelled.
pub(super) fn hint(command: &str, outcome: &Outcome) -> Option<String> {
    let name = wants(command, outcome)?;
    Some(format!(
        "{name} may want a terminal: :Co! ++pty gives it one"
    ))
}

/// Returns the program of a command that wants a terminal. A command of several parts has none: one may feed the other.
fn wants(command: &str, outcome: &Outcome) -> Option<String> {
    let script = bash::parse(command);
    let [simple] = &script.commands[..] else {
        return None;
    };
    let words = simple.texts();
    let (program, arguments) = words.split_first()?;
    let name = program.rsplit('/').next()?;
    let at_once = outcome.wall < AT_ONCE && outcome.exit.is_some();
    let wants = simple.redirects.is_empty()
        && match name {
            "git" => {
                let has = |names: &[&str]| arguments.iter().any(|it| names.contains(&it.as_str()));
                at_once && has(ASKING) && has(PATCH)
            }
            _ if SCREEN.contains(&name) => outcome.exit != Some(0),
            _ => at_once && PROMPT.contains(&name) && arguments.is_empty(),
        };
    wants.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, exit: i32, expected: Option<&str>) {
        let outcome = Outcome {
            exit: Some(exit),
            ..Outcome::default()
        };
        let hint = hint(command, &outcome);
        let hint = hint.as_deref().and_then(|it| it.split(' ').next());
        assert_eq!(hint, expected, "{command}");
    }

    #[test]
    fn a_command_that_wants_a_terminal_is_known() {
        for (command, exit, name) in [
            ("python3", 0, "python3"),
            ("/usr/bin/python3", 0, "python3"),
            ("git add -p", 0, "git"),
            ("git -C sub stash push --patch", 0, "git"),
            ("vim a.txt", 1, "vim"),
            ("EDITOR=vi top", 1, "top"),
        ] {
            check(command, exit, Some(name));
        }
    }

    #[test]
    fn others_have_no_hint() {
        for (command, exit) in [
            ("python3 run.py", 1),
            ("python3 --version", 0),
            ("echo 1 | python3", 0),
            ("python3 <<< 'print(1)'", 0),
            ("nvim --headless +q", 0),
            ("git add a.txt", 0),
            ("git log -p", 0),
            ("ls -i", 0),
            ("cargo test", 101),
        ] {
            check(command, exit, None);
        }
    }

    #[test]
    fn a_program_for_the_screen_that_was_cancelled_has_one() {
        let outcome = Outcome {
            cancelled: true,
            wall: Duration::from_secs(60),
            ..Outcome::default()
        };
        assert!(hint("vim a.txt", &outcome).is_some());
        assert_eq!(hint("python3", &outcome), None);
    }

    #[test]
    fn one_that_went_on_for_a_while_has_none() {
        let outcome = Outcome {
            exit: Some(0),
            wall: Duration::from_secs(60),
            ..Outcome::default()
        };
        assert_eq!(hint("python3", &outcome), None);
    }
}
