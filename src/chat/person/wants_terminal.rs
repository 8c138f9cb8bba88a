//! Recognizes commands that do nothing useful without a terminal.

use std::time::Duration;

use co_exec::CommandOutcome;
use co_policy::bash;

/// Programs that draw on the whole screen. They fail without a terminal.
const SCREEN_PROGRAMS: &[&str] = &[
    "btop", "emacs", "fzf", "gitui", "helix", "htop", "hx", "kak", "lazygit", "mc", "micro",
    "nano", "nnn", "nvim", "ranger", "screen", "tig", "tmux", "top", "vi", "view", "vim",
    "vimdiff",
];

/// Programs that read commands if they have no arguments. Without a terminal, their input is empty, and they end.
const PROMPT_PROGRAMS: &[&str] = &[
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

/// Arguments that keep a program of `SCREEN_PROGRAMS` from drawing on the screen: the program prints, or does its work and ends.
const PRINT_ONLY_ARGUMENTS: &[&str] = &[
    "--batch",
    "--filter",
    "--headless",
    "--help",
    "--script",
    "--version",
    "-Es",
    "-b",
    "-batch",
    "-es",
    "-f",
    "-h",
    "-l",
];

/// The subcommands of git that ask about each change, if they have an option of `GIT_PATCH_OPTIONS` or
/// [`GIT_INTERACTIVE_OPTION`].
const GIT_ASKING_COMMANDS: &[&str] = &["add", "checkout", "commit", "reset", "restore", "stash"];
const GIT_PATCH_OPTIONS: &[&str] = &["-p", "--patch"];
const GIT_INTERACTIVE_OPTION: &str = "--interactive";

/// The start of the list of answers in git's question about a change.
const GIT_ANSWERS: &str = "[y,n,";

/// The longest run time of a command that ends because it has no terminal. A command that runs longer ended for another reason.
const NO_TERMINAL_TIMEOUT: Duration = Duration::from_secs(3);

/// Returns a hint for a command that starts with neither a terminal nor an input. Returns `None` unless the command is a program
/// for the whole screen, which may never end by itself.
pub fn hint_at_start(command: &str) -> Option<String> {
    let (name, arguments) = simple(command)?;
    let subcommand = matches!(&*name, "screen" | "tmux") && !arguments.is_empty();
    let prints = arguments
        .iter()
        .any(|it| PRINT_ONLY_ARGUMENTS.contains(&it.as_str()));
    (SCREEN_PROGRAMS.contains(&&*name) && !subcommand && !prints).then(|| hint(&name))
}

/// Returns a hint for a command that had neither a terminal nor an input, and has ended. Returns `None` if the command did not
/// need a terminal. A program for the whole screen needed one if it failed or was cancelled. Other programs needed one if they
/// ended at once.
pub(in crate::chat) fn hint_at_end(command: &str, outcome: &CommandOutcome) -> Option<String> {
    let (name, arguments) = simple(command)?;
    let at_once = outcome.wall < NO_TERMINAL_TIMEOUT && outcome.exit.is_some();
    let has = |names: &[&str]| arguments.iter().any(|it| names.contains(&it.as_str()));
    let wants = match &*name {
        "git" if has(GIT_ASKING_COMMANDS) => {
            let asked = has(GIT_PATCH_OPTIONS) && outcome.output.contains(GIT_ANSWERS);
            at_once && (asked || has(&[GIT_INTERACTIVE_OPTION]))
        }
        name if SCREEN_PROGRAMS.contains(&name) => outcome.exit != Some(0),
        name => at_once && PROMPT_PROGRAMS.contains(&name) && arguments.is_empty(),
    };
    wants.then(|| hint(&name))
}

fn hint(name: &str) -> String {
    format!("{name} may want a terminal: :Co! ++pty gives it one")
}

/// Returns the program and the arguments of a command. Returns `None` if the command has several parts, because one part may be
/// the input of another.
fn simple(command: &str) -> Option<(String, Vec<String>)> {
    let script = bash::parse(command);
    let [simple] = &script.commands[..] else {
        return None;
    };
    let words = simple.texts();
    let (program, arguments) = words.split_first()?;
    let name = program.rsplit('/').next()?;
    simple
        .redirects
        .is_empty()
        .then(|| (name.to_owned(), arguments.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, exit: i32, expected: Option<&str>) {
        let outcome = CommandOutcome {
            exit: Some(exit),
            ..CommandOutcome::default()
        };
        let hint = hint_at_end(command, &outcome);
        let hint = hint.as_deref().and_then(|it| it.split(' ').next());
        assert_eq!(hint, expected, "{command}");
    }

    #[test]
    fn a_command_that_wants_a_terminal_is_known() {
        for (command, exit, name) in [
            ("python3", 0, "python3"),
            ("/usr/bin/python3", 0, "python3"),
            ("git add --interactive", 0, "git"),
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
    fn git_has_one_if_it_asked() {
        let outcome = |output: &str| CommandOutcome {
            exit: Some(0),
            output: output.to_owned(),
            ..CommandOutcome::default()
        };
        let asked = outcome("(1/1) Stage this hunk [y,n,q,a,d,e,p,?]? \n");
        let unchanged = outcome("No changes.\n");
        for command in ["git add -p", "git -C sub stash push --patch"] {
            assert!(hint_at_end(command, &asked).is_some(), "{command}");
            assert_eq!(hint_at_end(command, &unchanged), None, "{command}");
        }
    }

    #[test]
    fn a_program_for_the_screen_has_one_at_its_start() {
        for command in [
            "vim",
            "nvim a.txt",
            "EDITOR=vi /usr/bin/top",
            "tmux",
            "htop -d 5",
        ] {
            assert!(hint_at_start(command).is_some(), "{command}");
        }
        for command in [
            "nvim --headless +q",
            "emacs --batch -f x",
            "top -b -n 1",
            "vim --version",
            "tmux ls",
            "ls | fzf",
            "vim < keys",
            "python3",
            "less a.txt",
            "cargo test",
        ] {
            assert_eq!(hint_at_start(command), None, "{command}");
        }
    }

    #[test]
    fn a_program_for_the_screen_that_was_cancelled_has_one() {
        let outcome = CommandOutcome {
            cancelled: true,
            wall: Duration::from_secs(60),
            ..CommandOutcome::default()
        };
        assert!(hint_at_end("vim a.txt", &outcome).is_some());
        assert_eq!(hint_at_end("python3", &outcome), None);
    }

    #[test]
    fn one_that_went_on_for_a_while_has_none() {
        let outcome = CommandOutcome {
            exit: Some(0),
            wall: Duration::from_secs(60),
            ..CommandOutcome::default()
        };
        assert_eq!(hint_at_end("python3", &outcome), None);
    }
}
