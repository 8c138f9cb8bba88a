//! What this kernel holds, found by trying it in a process of its own.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::plan::{Level, Plan, Text};
use super::{LAUNCH, Refused, name};
use crate::limits::PerProcess;

/// The most characters of what a program said that are told on.
const SAID_MAX: usize = 400;

/// What the kernel can hold a command to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Support {
    /// The version of Landlock, if there is one.
    pub abi: Option<u32>,
    /// Whether a filter of system calls holds.
    pub seccomp: bool,
    /// Whether a command can have a mount namespace of its own.
    pub namespaces: bool,
    /// What failed, where something did.
    pub why: Option<String>,
}

impl Support {
    /// A kernel that holds nothing, and the reason.
    pub fn none(why: impl Into<String>) -> Self {
        Self {
            why: Some(why.into()),
            ..Self::default()
        }
    }

    /// Starts `exe` once as a launcher that restricts itself and tells what came of it.
    ///
    /// # Errors
    /// Where it gave no answer, and why; one that takes longer than `limit` is ended.
    pub(super) fn try_out(exe: &Path, limit: Duration) -> Result<Self, String> {
        if cfg!(target_os = "macos") {
            return Ok(Self::of_macos());
        }
        if !cfg!(target_os = "linux") {
            return Err("only Linux and macOS can confine a command".to_owned());
        }
        let plan = Plan {
            level: Level::Trial,
            abi: 0,
            network: false,
            cwd: Text::from("/"),
            grants: Vec::new(),
            mounts: Some(super::plan::Mounts::default()),
            limits: PerProcess::default(),
            group: None,
            long_script: false,
        };
        let Some(plan) = plan.encode() else {
            return Err("the trial could not be described".to_owned());
        };
        let name = name(exe);
        let mut command = Command::new(exe);
        command.args([LAUNCH, &plan]).env_clear();
        let output = told(&mut command, limit)
            .map_err(|error| format!("{} did not start ({error})", exe.display()))?
            .ok_or_else(|| format!("the trial of {name} did not come to an end"))?;
        if !output.status.success() {
            let said = one_line(&String::from_utf8_lossy(&output.stderr));
            let said = said.strip_prefix(&format!("{name}: ")).unwrap_or(&said);
            return Err(format!("the trial of {name} ended early: {said}"));
        }
        let support: Self = serde_json::from_slice(&output.stdout)
            .map_err(|_| format!("the trial of {name} gave no answer"))?;
        Ok(Self {
            why: support.why.as_deref().map(one_line),
            ..support
        })
    }

    /// What failed, for people.
    pub(super) fn reason(&self) -> &str {
        self.why.as_deref().unwrap_or("it did not say why")
    }

    /// Whether nothing failed.
    pub(super) fn is_whole(&self) -> bool {
        self.abi.is_some() && self.seccomp && self.namespaces
    }

    /// Whether more of a command can be held than by `other`.
    pub(super) fn holds_more_than(&self, other: &Self) -> bool {
        let held = |it: &Self| (it.check().is_ok(), it.namespaces, it.abi);
        held(self) > held(other)
    }

    fn of_macos() -> Self {
        let there = Path::new(super::seatbelt::PROGRAM).exists();
        Self {
            abi: None,
            seccomp: there,
            namespaces: false,
            why: (!there).then(|| format!("there is no {}", super::seatbelt::PROGRAM)),
        }
    }

    /// Whether a command can be confined at all.
    ///
    /// # Errors
    /// Where it cannot: one sentence with the reason and what to do.
    pub fn check(&self) -> Result<(), Refused> {
        if self.seccomp && (self.abi.is_some() || cfg!(target_os = "macos")) {
            return Ok(());
        }
        let why = self.reason();
        Err(Refused(format!(
            "this system cannot confine a command ({why}): use Linux 5.13 or later with Landlock and seccomp, \
             or set sandbox_backend = \"subprocess\" and approve commands yourself"
        )))
    }

    /// One line for people: what holds here.
    pub fn words(&self) -> String {
        if cfg!(target_os = "macos") {
            return match self.check() {
                Ok(()) => "sandbox-exec (untried): read-only and workspace".to_owned(),
                Err(refused) => refused.0,
            };
        }
        let (Some(abi), true) = (self.abi, self.seccomp) else {
            let why = self.reason();
            return format!("no sandbox: {why}");
        };
        let signals = if abi >= 6 {
            ""
        } else {
            ", no signals but to one's own group"
        };
        let mounts = if self.namespaces {
            "mount namespace"
        } else {
            "no namespaces: nothing new at the top of a workspace, and commands can read the secrets in it"
        };
        format!("Landlock ABI {abi}, seccomp, {mounts}{signals}")
    }
}

/// What a program said, as a part of a sentence.
pub(super) fn one_line(said: &str) -> String {
    let words = said.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(SAID_MAX).collect()
}

/// Runs a command and returns what it said; none where it had to be ended after `limit`.
pub(super) fn told(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    // What it starts may hold its streams open, and is ended with it.
    let streams = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = streams.spawn()?;
    let pid = rustix::process::Pid::from_child(&child);
    let (over, wait) = channel::<()>();
    let guard = std::thread::Builder::new()
        .name("trial".to_owned())
        .spawn(move || {
            let late = wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                // Nobody has waited for it yet, so the id is still its own.
                let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
            }
            late
        });
    let guard = guard.inspect_err(|_| {
        let _ = child.kill();
        let _ = child.wait();
    })?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    // Where it is cut off, what it said is no answer, and that is seen.
    let _ = child
        .stdout
        .take()
        .map(|mut it| it.read_to_end(&mut stdout));
    let _ = child
        .stderr
        .take()
        .map(|mut it| it.read_to_end(&mut stderr));
    drop(over);
    let late = guard.join().unwrap_or(true);
    let status = child.wait()?;
    Ok((!late).then_some(Output {
        status,
        stdout,
        stderr,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_confines_best_holds_most() {
        let of = |abi, seccomp, namespaces| Support {
            abi,
            seccomp,
            namespaces,
            why: None,
        };
        let rising = [
            of(None, true, false),
            of(None, true, true),
            of(Some(1), true, false),
            of(Some(7), true, false),
            of(Some(1), true, true),
            of(Some(7), true, true),
        ];
        for pair in rising.windows(2) {
            assert!(pair[1].holds_more_than(&pair[0]), "{pair:?}");
            assert!(!pair[0].holds_more_than(&pair[1]), "{pair:?}");
            assert!(!pair[0].holds_more_than(&pair[0]), "{pair:?}");
        }
        assert!(of(Some(1), true, false).holds_more_than(&of(Some(7), false, true)));
        let whole = rising.iter().filter(|it| it.is_whole()).count();
        assert_eq!(whole, 2);
    }

    #[test]
    fn what_a_program_says_is_one_line() {
        assert_eq!(one_line(" a\n\x1b[1mb\t c\r\n"), "a [1mb c");
        assert_eq!(one_line(&"x".repeat(1000)).len(), SAID_MAX);
    }

    /// Tries a program in a directory with a `fifo` that nobody writes to: opening it takes for ever.
    fn tried(script: &'static str) -> Result<Support, String> {
        let (over, wait) = channel();
        std::thread::spawn(move || {
            let dir = tempfile::tempdir().unwrap();
            let exe = dir.path().join("exe");
            nix::unistd::mkfifo(&dir.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
            std::fs::write(&exe, format!("#!/bin/sh\ncd \"${{0%/*}}\"\n{script}\n")).unwrap();
            std::fs::set_permissions(&exe, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
            let _ = over.send(Support::try_out(&exe, Duration::from_millis(50)));
        });
        wait.recv_timeout(Duration::from_secs(60))
            .expect("the trial should have been ended")
    }

    #[test]
    fn a_trial_that_does_not_end_is_ended_and_holds_nothing() {
        for script in [
            "exec cat < fifo",
            "sleep 600 &\nexec cat < fifo",
            "sleep 600 &\nexit 0",
        ] {
            let why = tried(script).unwrap_err();
            assert!(why.contains("did not come to an end"), "{script}: {why}");
            let refused = Support::none(why).check().unwrap_err().to_string();
            assert!(refused.contains("did not come to an end"), "{refused}");
        }
    }
}
