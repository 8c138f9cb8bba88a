//! The conditions under which a command ran, and the advice for the model that follows from them.

use std::path::Path;
use std::time::Duration;

use crate::config::Network;
use crate::workspace::confinement_hint;
use co_exec::CommandOutcome;
use co_policy::secret_names;

/// The advice about a command that the system or the confinement refused to run.
pub(crate) const NOT_EXECUTED: &str =
    "Do not repeat this command: it may not be executed here. Try another way.";

/// The advice about a command that should run unasked, if secrets of the workspace could not be hidden from it.
pub(crate) const UNREADY: &str =
    "If the command is still needed, send it again: co then asks the person.";

/// The advice about a command that failed at the read-only level.
const CONFINED: &str = "It ran without write access and without network. If it failed because of that, send the same \
     command again: co then asks the person to allow both.";

/// The advice about a command whose output is withheld.
const WITHHELD: &str = "Its output may contain that secret. If you need it, send the same command again: co then asks the person.";

/// The advice about a command that could not read a secret file at the workspace level.
const HIDDEN: &str = "The sandbox hides the workspace's secrets. The person's yes opens those that the command names: if it \
     needs .env, put `: .env; ` in front of it.";

const FAILED: &str = "It failed: read why, and try something else instead of the same command.";

const TIMED_OUT: &str = "Its time-out ended it, and the same command would hit it again: give it more time, or less to do.";

/// The exit status of a program that exists but may not be executed. The sandbox launcher uses it for its refusals too.
const MAY_NOT_EXECUTE: i32 = 126;

/// The conditions under which a command ran.
#[derive(Debug, Clone, Copy)]
pub struct Conditions {
    /// A short description of the confinement.
    pub confinement: Option<&'static str>,
    /// The network access of a command at the workspace level.
    pub network: Network,
    /// True if the command ran at the read-only level, or as a trial.
    pub confined: bool,
    /// True if the command was approved, and the kernel hid the workspace's secrets from it.
    pub hides: bool,
    /// The name of the confinement of approved commands when this command started.
    pub approved_confinement: &'static str,
    /// The name of the level at which the command ran.
    pub level: &'static str,
    /// The time-out that the model named.
    pub asked: Option<Duration>,
    /// The time-out of the command; none if there was no limit.
    pub limit: Option<Duration>,
    /// True if the command ran without approval. Such commands have a shorter time-out.
    pub unasked: bool,
    /// The longest time-out that the settings allow.
    pub ceiling: Duration,
}

impl Conditions {
    /// Returns advice for the model about an outcome. Returns `None` if the command succeeded or was cancelled, unless its output
    /// is withheld.
    pub(crate) fn advice(&self, outcome: &CommandOutcome) -> Option<String> {
        if outcome.withheld {
            // After a trial, co asks the person without another call.
            (self.level != "trial").then(|| WITHHELD.to_owned())
        } else if outcome.ok() || outcome.cancelled {
            None
        } else if outcome.timed_out {
            Some(self.timed_out())
        } else if outcome.exit == Some(MAY_NOT_EXECUTE) {
            Some(NOT_EXECUTED.to_owned())
        } else if self.may_be_to_blame(outcome) {
            // After a trial, co asks the person without another call.
            (self.level != "trial").then(|| CONFINED.to_owned())
        } else if self.hides && outcome.output.lines().any(refuses_secret) {
            Some(HIDDEN.to_owned())
        } else {
            Some(FAILED.to_owned())
        }
    }

    /// Returns a sentence about the confinement of an approved command, if the confinement may have caused a failure.
    pub(crate) fn hint(&self, outcome: &CommandOutcome) -> Option<String> {
        let is_meant = !self.confined && !outcome.withheld;
        is_meant.then(|| confinement_hint::hint(outcome, self.network))?
    }

    /// Returns true if the command ran without approval and may have failed because of that, or if its output is withheld.
    pub(crate) fn may_be_to_blame(&self, outcome: &CommandOutcome) -> bool {
        match outcome.timed_out {
            _ if outcome.withheld => true,
            true => self.unasked,
            false => {
                let not_started = outcome.exit == Some(MAY_NOT_EXECUTE);
                self.confined && (not_started || confinement_hint::may_have_failed(outcome))
            }
        }
    }

    fn timed_out(&self) -> String {
        let ceiling = self.ceiling.as_secs();
        match (self.asked, self.limit) {
            (_, Some(limit)) if self.unasked => format!(
                "co ended the command after {} s, the limit for commands that run without approval (`unasked_timeout`). \
                 Reduce its work, or send the same command again to ask the person for approval.",
                limit.as_secs()
            ),
            (Some(asked), _) if asked > self.ceiling => format!(
                "You asked for {} s, but the person lets a command run for {ceiling} s at most, and that ended it: give it \
                 less to do, or run it in parts.",
                asked.as_secs()
            ),
            (_, Some(limit)) if limit >= self.ceiling => format!(
                "The person lets a command run for {ceiling} s at most, and that ended it: give it less to do, or run it in \
                 parts."
            ),
            _ => TIMED_OUT.to_owned(),
        }
    }
}

/// Returns true for a line such as `cat: .env: Permission denied`.
fn refuses_secret(line: &str) -> bool {
    let refused = ["Permission denied", "permission denied", "EACCES"];
    let part = |c: char| c.is_whitespace() || "\"'`:,()[]".contains(c);
    let secret = |word: &str| {
        let found = secret_names::secret(Path::new(word.trim_end_matches('.')));
        // Git's own directory is not hidden.
        found.is_some_and(|name| name != ".git")
    };
    refused.iter().any(|refused| line.contains(refused)) && line.split(part).any(secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(conditions: Conditions, outcome: &CommandOutcome, expected: &str) {
        let advice = conditions.advice(outcome).unwrap_or_default();
        assert!(
            advice.contains(expected) && advice.is_empty() == expected.is_empty(),
            "{advice:?} for {outcome:?}"
        );
    }

    fn seconds(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    const UNLIMITED: Conditions = Conditions {
        confinement: None,
        network: Network::None,
        confined: false,
        hides: false,
        approved_confinement: "unconfined",
        level: "none",
        asked: None,
        limit: Some(Duration::from_secs(120)),
        unasked: false,
        ceiling: Duration::from_secs(600),
    };

    fn exit(code: i32) -> CommandOutcome {
        CommandOutcome {
            exit: Some(code),
            ..CommandOutcome::default()
        }
    }

    #[test]
    fn a_failure_says_what_to_do_next() {
        let confined = Conditions {
            confined: true,
            ..UNLIMITED
        };
        for conditions in [UNLIMITED, confined] {
            check(conditions, &exit(0), "");
            check(conditions, &exit(126), "Do not repeat");
        }
        check(UNLIMITED, &exit(1), "try something else");
        let refused = CommandOutcome {
            output: "cat: a.txt: Permission denied\n".to_owned(),
            ..exit(1)
        };
        check(
            confined,
            &refused,
            "without write access and without network",
        );
        check(confined, &exit(1), "try something else");
        let cancelled = CommandOutcome {
            cancelled: true,
            ..exit(1)
        };
        check(confined, &cancelled, "");
        let nothing_found = CommandOutcome {
            nothing_found: true,
            ..exit(1)
        };
        check(UNLIMITED, &nothing_found, "");
        let killed = CommandOutcome {
            signal: Some(9),
            ..CommandOutcome::default()
        };
        check(UNLIMITED, &killed, "try something else");
    }

    #[test]
    fn withheld_output_is_asked_about() {
        let withheld = CommandOutcome {
            withheld: true,
            ..exit(0)
        };
        check(UNLIMITED, &withheld, "co then asks the person");
        assert!(UNLIMITED.may_be_to_blame(&withheld));
        // The end of a trial tells nothing either.
        let trial = Conditions {
            level: "trial",
            ..UNLIMITED
        };
        for end in [exit(126), exit(1)] {
            let withheld = CommandOutcome {
                withheld: true,
                ..end
            };
            check(trial, &withheld, "");
        }
    }

    #[test]
    fn a_command_that_a_secret_was_hidden_from_is_told_how_to_open_it() {
        let hides = Conditions {
            hides: true,
            ..UNLIMITED
        };
        let failed = |output: &str| CommandOutcome {
            output: output.to_owned(),
            ..exit(1)
        };
        for output in [
            "cat: .env: Permission denied",
            "line\nError: EACCES: permission denied, open '/w/app/.env.local'",
            "PermissionError: [Errno 13] Permission denied: 'secrets/db.yml'",
            "open ./server.key: permission denied.",
        ] {
            check(hides, &failed(output), "put `: .env; ` in front");
            check(UNLIMITED, &failed(output), "try something else");
        }
        for output in [
            "cat: .env: No such file or directory",
            "cat: notes: Permission denied",
            "fatal: cannot create '.git/hooks/x': Permission denied",
            ".env is read\nPermission denied",
        ] {
            check(hides, &failed(output), "try something else");
        }
    }

    #[test]
    fn a_time_out_that_the_ceiling_cut_says_so() {
        let late = CommandOutcome {
            timed_out: true,
            ..CommandOutcome::default()
        };
        check(UNLIMITED, &late, "give it more time");
        let given = |asked, limit, ceiling| Conditions {
            asked,
            limit,
            ceiling: Duration::from_secs(ceiling),
            ..UNLIMITED
        };
        let cut = given(seconds(300), seconds(120), 120);
        check(
            cut,
            &late,
            "You asked for 300 s, but the person lets a command run for 120 s",
        );
        check(given(None, seconds(60), 60), &late, "for 60 s at most");
        check(
            given(seconds(600), seconds(600), 600),
            &late,
            "for 600 s at most",
        );
        check(
            given(seconds(5), seconds(5), 600),
            &late,
            "give it more time",
        );
    }
}
