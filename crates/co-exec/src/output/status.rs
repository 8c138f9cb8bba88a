//! Describes in words how a command ended.

use std::path::Path;

use nix::sys::signal::Signal;

use crate::command::Program;
use crate::outcome::{BackgroundProcess, CommandOutcome, count_lines};
use co_text::{duration_text, size_text};

/// The most remaining processes that a line for a person names.
const NAMES_IN_STATUS: usize = 3;

/// Programs whose exit status 1 means "nothing found", "they differ" or "false".
const SEARCH_PROGRAMS: &[&str] = &[
    "grep", "egrep", "fgrep", "rg", "zgrep", "diff", "cmp", "test", "[", "[[",
];

impl CommandOutcome {
    /// Returns a line for a person: how the command ended, how long it took, and how many lines it printed.
    pub fn status(&self) -> String {
        line(self)
    }

    /// Returns the status line for a model. If the output is withheld, the line does not say how the command ended, because a
    /// command could use its exit status to tell a secret.
    pub fn told_status(&self) -> String {
        match self.withheld {
            true => "its output and exit status are withheld".to_owned(),
            false => line(self),
        }
    }

    /// Returns the exceptional part of the status: how the command failed, which processes remain, which files appeared, and
    /// which part of the output its file leaves out. Returns an empty text if nothing exceptional happened.
    pub fn exceptions(&self) -> String {
        let ended = match self.nothing_found && !self.was_ended() {
            true => Some("exit 1".to_owned()),
            false => explain(self),
        };
        let parts: Vec<_> = ended.into_iter().chain(remarks(self)).collect();
        parts.join("; ")
    }

    /// Returns the duration of the command, in words.
    pub fn took(&self) -> String {
        duration_text(self.wall)
    }
}

/// Returns the status line for a person; see [`CommandOutcome::status`].
pub(crate) fn line(outcome: &CommandOutcome) -> String {
    let how = explain(outcome).unwrap_or_else(|| "exit 0".to_owned());
    let after = match outcome.timed_out {
        true => String::new(),
        false => format!(", after {}", duration_text(outcome.wall)),
    };
    let more: String = remarks(outcome).map(|it| format!("; {it}")).collect();
    format!("{how}{after}, {}{more}", count_lines(outcome.lines))
}

/// Returns the remarks after the exit status, for the person: about remaining processes, files that appeared, and the output
/// file.
fn remarks(outcome: &CommandOutcome) -> impl Iterator<Item = String> {
    let gap = (outcome.gap).map(|gap| {
        let lost = size_text(gap.bytes);
        format!("its file leaves out {lost} in the middle: shell_spill_max sets the limit")
    });
    remaining(outcome, NAMES_IN_STATUS)
        .into_iter()
        .chain(appeared(outcome))
        .chain(gap)
        .chain(outcome.note.clone())
}

/// Returns a description of the remaining processes, which names at most `most` of them. Returns `None` if there are no such
/// processes.
pub(crate) fn remaining(outcome: &CommandOutcome, most: usize) -> Option<String> {
    let name = |it: &BackgroundProcess| format!("{} (pid {})", it.name, it.pid);
    let mut names: Vec<_> = outcome.background.iter().take(most).map(name).collect();
    let more = outcome.background.len() - names.len();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let fate = match outcome.kept {
        true => "still running",
        false => "co ended what it left running",
    };
    (!names.is_empty()).then(|| format!("{fate}: {}", names.join(", ")))
}

/// Returns a description of created or replaced files that other programs run or read. Returns `None` if there are no such files.
pub(crate) fn appeared(outcome: &CommandOutcome) -> Option<String> {
    let names = outcome
        .appeared
        .iter()
        .map(|it| co_text::one_line(&it.to_string_lossy()));
    let names = names.collect::<Vec<_>>().join(", ");
    (!names.is_empty())
        .then(|| format!("made or replaced, and other programs run or read it: {names}"))
}

/// Returns a description of how the command ended. Returns `None` if it succeeded.
pub(crate) fn explain(outcome: &CommandOutcome) -> Option<String> {
    let seconds = outcome.wall.as_secs_f64();
    let ended = match (outcome.exit, outcome.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("killed by {}", name(signal)),
        (None, None) => "could not be ended".to_owned(),
    };
    if outcome.timed_out {
        Some(format!("timed out after {seconds:.1} s and was ended"))
    } else if outcome.cancelled {
        Some("cancelled".to_owned())
    } else if outcome.flooded {
        let printed = size_text(outcome.bytes);
        Some(format!(
            "ended: it printed {printed}, more than shell_flood_max allows"
        ))
    } else if let Some(limit) = outcome.limit {
        Some(format!("ended: it took {limit}"))
    } else if outcome.exit == Some(0) {
        None
    } else if outcome.nothing_found {
        Some("exit 1: nothing found, a difference, or false; not a failure".to_owned())
    } else {
        let signal = outcome.signal.or(outcome.exit.map(|code| code - 128));
        let meaning = outcome.exit.and_then(meaning);
        match meaning.or_else(|| signal.and_then(limit_of_signal)) {
            Some(meaning) => Some(format!("{ended}: {meaning}")),
            None => Some(ended),
        }
    }
}

/// Returns a description of the exceeded limit if the kernel sends this signal because of a limit.
fn limit_of_signal(signal: i32) -> Option<&'static str> {
    match Signal::try_from(signal) {
        Ok(Signal::SIGXCPU) => Some("its processor time is used up"),
        Ok(Signal::SIGXFSZ) => Some("a file would be larger than it may be"),
        _ => None,
    }
}

/// Returns the meaning that shells give to an exit status.
fn meaning(code: i32) -> Option<&'static str> {
    Some(match code {
        126 => "found, but may not be executed",
        127 => "command not found",
        130 => "interrupted (SIGINT)",
        137 => "killed (SIGKILL), perhaps for lack of memory",
        139 => "crashed (SIGSEGV)",
        143 => "terminated (SIGTERM)",
        _ => return None,
    })
}

/// Returns the number and the name of a signal.
fn name(signal: i32) -> String {
    match Signal::try_from(signal) {
        Ok(name) => format!("signal {signal} ({name})"),
        Err(_) => format!("signal {signal}"),
    }
}

/// Returns true if exit status 1 of `program` is the result of a search or a comparison.
pub(crate) fn is_search_text(program: &Program) -> bool {
    match program {
        Program::Argv(argv) => argv.first().is_some_and(|it| is_search(it)),
        Program::Shell(text) => {
            deciding_programs(text).is_some_and(|all| all.into_iter().all(is_search))
        }
    }
}

fn is_search(program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(|it| it.to_str());
    name.is_some_and(|name| SEARCH_PROGRAMS.contains(&name))
}

/// Returns the programs in a command line that may decide its exit status. Returns `None` if this is not obvious.
fn deciding_programs(text: &str) -> Option<Vec<&str>> {
    let text = text.trim_end_matches([' ', '\t', '\n', ';']);
    if text.contains(['`', '(', ')', '{', '}', '\\', '#']) || text.contains("<<") {
        return None;
    }
    let mut quote = None;
    let mut starts = Vec::new();
    let mut start = 0;
    let mut before = ' ';
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let doubled = chars.peek().is_some_and(|(_, next)| *next == c);
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '|' | '&') if doubled => {
                chars.next();
                starts.push(start);
                start = at + 2;
            }
            // The exit status of a pipeline is that of its last command.
            (None, '|') => start = at + 1,
            (None, ';' | '\n') => {
                starts.clear();
                start = at + 1;
            }
            (None, '&') if before != '>' => return None,
            _ => {}
        }
        before = c;
    }
    starts.push(start);
    let program = |start: usize| {
        let mut words = text[start..].split_ascii_whitespace();
        let first = words.find(|word| !is_assignment(word))?;
        (!first.contains(['\'', '"', '$'])).then_some(first)
    };
    let programs = starts.into_iter().map(program).collect();
    quote.is_none().then_some(programs)?
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_run_ends_with_exit_time_and_lines() {
        let ended = |exit, millis, lines| CommandOutcome {
            exit: Some(exit),
            wall: Duration::from_millis(millis),
            lines,
            ..CommandOutcome::default()
        };
        assert_eq!(line(&ended(0, 12, 0)), "exit 0, after 12 ms, no output");
        assert_eq!(line(&ended(3, 1_250, 1)), "exit 3, after 1.2 s, 1 line");
        assert_eq!(
            line(&ended(0, 61_000, 300_000)),
            "exit 0, after 1 min 1 s, 300000 lines"
        );
        let late = CommandOutcome {
            timed_out: true,
            ..ended(0, 2_000, 2)
        };
        assert_eq!(line(&late), "timed out after 2.0 s and was ended, 2 lines");
    }

    #[test]
    fn sees_a_search_only_where_it_is_plain() {
        for (text, expected) in [
            ("grep x f", true),
            ("LC_ALL=C grep -rn 'a | b; c' .", true),
            ("cat f | grep x", true),
            ("cd d; rg x", true),
            ("cd d\ndiff a b\n", true),
            ("cmp a b 2>&1", true),
            ("/usr/bin/grep x f;", true),
            ("test -f x", true),
            ("[ -f x ]", true),
            ("cd d; [[ -f x ]]", true),
            ("grep x f | sort", false),
            ("make && grep x f", false),
            ("false || grep x f", false),
            ("test -e f && cat f | grep x", true),
            ("test -e f && diff f g || cmp f h", true),
            ("test -e f && make", false),
            ("test -e f && make | grep x", true),
            ("test -e f; sleep 1 && grep x f", false),
            ("make && make test; grep x f", true),
            ("grep x f & true", false),
            ("grep $(false) f", false),
            ("'grep' x", false),
            ("", false),
        ] {
            assert_eq!(
                is_search_text(&Program::Shell(text.to_owned())),
                expected,
                "{text:?}"
            );
        }
        assert!(is_search_text(&Program::Argv(vec![
            "rg".into(),
            "x".into()
        ])));
        assert!(!is_search_text(&Program::Argv(vec!["ls".into()])));
    }

    #[test]
    fn explains() {
        let exit = |code| CommandOutcome {
            exit: Some(code),
            ..CommandOutcome::default()
        };
        assert_eq!(explain(&exit(0)), None);
        assert_eq!(explain(&exit(42)).unwrap(), "exit 42");
        assert_eq!(explain(&exit(127)).unwrap(), "exit 127: command not found");
        let killed = CommandOutcome {
            signal: Some(9),
            ..CommandOutcome::default()
        };
        assert_eq!(explain(&killed).unwrap(), "killed by signal 9 (SIGKILL)");
        assert_eq!(
            explain(&exit(153)).unwrap(),
            "exit 153: a file would be larger than it may be"
        );
    }

    #[test]
    fn a_flood_names_its_setting_and_its_size() {
        let flooded = CommandOutcome {
            flooded: true,
            bytes: 1_073_750_000,
            lines: 2,
            gap: Some(crate::outcome::OutputGap {
                bytes: 4_500,
                lines: 1,
            }),
            ..CommandOutcome::default()
        };
        assert_eq!(
            line(&flooded),
            "ended: it printed 1 GiB, more than shell_flood_max allows, after 0 ms, 2 lines; \
             its file leaves out 4.4 KiB in the middle: shell_spill_max sets the limit"
        );
    }

    #[test]
    fn what_was_left_is_named_as_far_as_it_fits() {
        let left = |pid| BackgroundProcess {
            pid,
            name: "sleep 9".to_owned(),
        };
        let outcome = CommandOutcome {
            exit: Some(0),
            background: (1..=5).map(left).collect(),
            ..CommandOutcome::default()
        };
        let line = line(&outcome);
        assert!(
            line.ends_with(", sleep 9 (pid 3), 2 more") && !line.contains("pid 4"),
            "{line}"
        );
    }

    #[test]
    fn a_person_is_told_of_what_appeared() {
        let mut outcome = CommandOutcome {
            exit: Some(0),
            ..CommandOutcome::default()
        };
        assert_eq!(line(&outcome), "exit 0, after 0 ms, no output");
        outcome.appeared = vec!["/w/.envrc".into(), "/w/.exrc".into()];
        assert_eq!(
            line(&outcome),
            "exit 0, after 0 ms, no output; made or replaced, and other programs run or read it: /w/.envrc, /w/.exrc"
        );
    }
}
