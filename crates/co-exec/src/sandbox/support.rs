//! The sandbox features of this kernel, which a probe in another process finds.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::layer::{self, Layer};
use super::plan::{Mounts, Overlay, Task};
use super::removal::remove_tree;
use super::{LAUNCH, trial};
use crate::error::refusal::SandboxRefusal;
use crate::repository::OUR_TMP;
use crate::timed_output::timed_output;

/// The most characters of a program's message that are shown to a person.
const MAX_MESSAGE_CHARS: usize = 400;

/// The sandbox features of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSupport {
    /// The version of Landlock. `None` if the kernel does not have it.
    pub abi: Option<u32>,
    /// True if the kernel can filter system calls.
    pub seccomp: bool,
    /// True if a command can have its own mount namespace.
    pub namespaces: bool,
    /// True if a command can also have its own PID namespace.
    pub pid_namespaces: bool,
    /// True if a PID namespace can mount its own `/proc`.
    pub own_proc: bool,
    /// True if a command can run as a trial: with an overlay over its workspace, and with its own mount, PID and network
    /// namespaces.
    pub trials: bool,
    /// True if a command can have its own network, in which only the loopback interface is up.
    pub own_network: bool,
    /// The reason why a feature is missing. If several are missing, the first of these counts: Landlock, seccomp, dropping of
    /// capabilities, mount namespaces.
    pub why: Option<String>,
    /// The reason why commands cannot have their own network.
    pub why_no_own_network: Option<String>,
    /// The reason why trials are not possible.
    pub why_no_trials: Option<String>,
}

impl SandboxSupport {
    /// Returns the features of a kernel that cannot confine anything. `why` is the reason.
    pub fn none(why: impl Into<String>) -> Self {
        Self {
            why: Some(why.into()),
            ..Self::default()
        }
    }

    /// Probes the kernel. Starts `exe` as a launcher, which restricts itself and prints the result. Tries an overlay in `dir`, or
    /// in the nearest parent directory that allows it.
    ///
    /// # Errors
    /// The launcher does not answer within `limit`. The error is a sentence for a person.
    pub(super) fn probe(exe: &Path, dir: &Path, limit: Duration) -> Result<Self, String> {
        Self::probe_with(ProbedOverlay::new(dir, None), exe, limit)
    }

    /// Tries an overlay over a workspace, in the same way as [`Self::probe`].
    ///
    /// # Errors
    /// The kernel refuses the overlay, or the launcher does not answer within `limit`. The error is a sentence for a person.
    pub(super) fn try_over(
        workspace: &Path,
        exe: &Path,
        dir: &Path,
        limit: Duration,
    ) -> Result<(), String> {
        let overlay = ProbedOverlay::new(dir, Some(workspace));
        let tried = Self::probe_with(overlay, exe, limit)?;
        match tried.why_no_trials {
            None => Ok(()),
            Some(why) => Err(why),
        }
    }

    fn probe_with(
        overlay: Result<ProbedOverlay, String>,
        exe: &Path,
        limit: Duration,
    ) -> Result<Self, String> {
        let mounts = overlay.as_ref().ok().map(ProbedOverlay::mounts);
        let task = Task::Probe(mounts.map(Box::new));
        let plan = task
            .write()
            .map_err(|error| format!("the sandbox probe could not be described ({error})"))?;
        let mut command = Command::new(exe);
        // Standard input, which the probe does not need.
        command.args([LAUNCH, "0"]).env_clear();
        command.stdin(Stdio::from(OwnedFd::from(plan)));
        let output = timed_output(&mut command, limit)
            .map_err(|error| format!("{} did not start ({error})", exe.display()))?
            .ok_or("the sandbox probe took too long")?;
        if !output.status.success() {
            let message = as_clause(&String::from_utf8_lossy(&output.stderr));
            return Err(format!("the sandbox probe failed: {message}"));
        }
        let support: Self = serde_json::from_slice(&output.stdout)
            .map_err(|_| "the sandbox probe gave no answer")?;
        let why_no_trials = match overlay {
            Ok(_) => support.why_no_trials,
            Err(error) => Some(format!("no directory to try it in: {error}")),
        };
        Ok(Self {
            why: support.why.as_deref().map(as_clause),
            why_no_own_network: support.why_no_own_network.as_deref().map(as_clause),
            why_no_trials: why_no_trials.as_deref().map(as_clause),
            ..support
        })
    }

    /// Returns the reason why a feature is missing, for a person.
    pub(super) fn reason(&self) -> &str {
        self.why.as_deref().unwrap_or("it did not say why")
    }

    /// Checks that the kernel can confine commands.
    ///
    /// # Errors
    /// The kernel cannot confine commands. The error is a sentence with the reason and the next step.
    pub fn check(&self) -> Result<(), SandboxRefusal> {
        if self.seccomp && self.abi.is_some() {
            return Ok(());
        }
        let why = self.reason();
        Err(SandboxRefusal::Unable(format!(
            "this system cannot confine a command ({why}): use Linux 5.13 or later with Landlock and seccomp, \
             or set sandbox_backend = \"subprocess\" and approve commands yourself"
        )))
    }

    /// Returns the features in one line for a person.
    pub fn words(&self) -> String {
        let (Some(abi), true) = (self.abi, self.seccomp) else {
            let why = self.reason();
            return format!("no sandbox: {why}");
        };
        let signals = if abi >= 6 || self.pid_namespaces {
            ""
        } else {
            ", no signals but to one's own group"
        };
        let mounts = if self.pid_namespaces && self.own_proc {
            "mount and PID namespace"
        } else if self.pid_namespaces {
            "mount and PID namespace with the machine's /proc"
        } else if self.namespaces {
            "mount namespace"
        } else {
            "no namespaces: commands at the workspace level make nothing new at its top, and can read its secrets"
        };
        format!("Landlock ABI {abi}, seccomp, {mounts}{signals}")
    }
}

/// The directories of an overlay for the probe. Dropping it removes them.
struct ProbedOverlay {
    dir: PathBuf,
    overlay: Overlay,
    layer: Option<Layer>,
}

impl ProbedOverlay {
    /// Creates the directories in `parent`, or in its nearest parent directory that allows it, because `parent` may not exist
    /// yet. The directory for temporary files comes last, because it is often on a file system that refuses overlays. Without a
    /// `workspace`, the overlay covers one of the new directories.
    fn new(parent: &Path, workspace: Option<&Path>) -> Result<Self, String> {
        let mut named = tempfile::Builder::new();
        named.prefix(OUR_TMP);
        let mut places = parent.ancestors().map(|place| named.tempdir_in(place));
        let dir = places
            .find_map(Result::ok)
            .map_or_else(|| named.tempdir(), Ok);
        let dir = dir.map_err(|error| error.to_string())?.keep();
        let own = dir.join("workspace");
        let overlay = layer::overlay(workspace.unwrap_or(&own), &dir, None);
        let mut probed = Self {
            dir,
            overlay,
            layer: None,
        };
        std::fs::create_dir_all(own.join(trial::PROBED).join("old"))
            .map_err(|error| error.to_string())?;
        let layer = Layer::prepare(std::slice::from_ref(&probed.overlay), &[])
            .map_err(|error| error.to_string())?;
        probed.layer = Some(layer);
        Ok(probed)
    }

    fn mounts(&self) -> Mounts {
        Mounts {
            overlays: vec![self.overlay.clone()],
            ..Mounts::default()
        }
    }
}

impl Drop for ProbedOverlay {
    fn drop(&mut self) {
        drop(self.layer.take());
        remove_tree(&self.dir);
    }
}

/// Returns a program's message in a form that fits into a sentence.
pub(super) fn as_clause(message: &str) -> String {
    let words = message.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn what_a_program_says_is_one_line() {
        assert_eq!(as_clause(" a\n\x1b[1mb\t c\r\n"), "a [1mb c");
        assert_eq!(as_clause(&"x".repeat(1000)).len(), MAX_MESSAGE_CHARS);
    }

    #[test]
    fn an_overlay_is_tried_on_the_file_system_of_a_directory_that_will_be_made() {
        let dir = tempfile::tempdir().unwrap();
        let tried = ProbedOverlay::new(&dir.path().join("none/state"), None).unwrap();
        assert_eq!(tried.dir.parent(), Some(dir.path()));
        drop(tried);
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    /// Probes with a program in a directory with a `fifo` that nobody writes to: opening it takes for ever.
    fn probe(script: &'static str) -> Result<SandboxSupport, String> {
        let (done, wait) = channel();
        std::thread::spawn(move || {
            let dir = tempfile::tempdir().unwrap();
            let exe = dir.path().join("exe");
            nix::unistd::mkfifo(&dir.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
            std::fs::write(&exe, format!("#!/bin/sh\ncd \"${{0%/*}}\"\n{script}\n")).unwrap();
            std::fs::set_permissions(&exe, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
            let _ = done.send(SandboxSupport::probe(
                &exe,
                dir.path(),
                Duration::from_millis(50),
            ));
        });
        wait.recv_timeout(Duration::from_secs(60))
            .expect("the probe should have ended")
    }

    #[test]
    fn a_probe_that_takes_too_long_is_ended() {
        for script in [
            "exec cat < fifo",
            "sleep 600 &\nexec cat < fifo",
            "sleep 600 &\nexit 0",
        ] {
            let why = probe(script).unwrap_err();
            assert!(why.contains("took too long"), "{script}: {why}");
            let refused = SandboxSupport::none(why).check().unwrap_err().to_string();
            assert!(refused.contains("took too long"), "{refused}");
        }
    }
}
