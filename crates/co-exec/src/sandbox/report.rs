//! Reports whether this system meets the needs of each level. The launcher, `doctor`, `/sandbox` and questions use this report.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use super::support::SandboxSupport;
use crate::error::refusal::SandboxRefusal;

/// The default time-out of the probe, which usually takes milliseconds.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Versions of Landlock, each with the effect on commands if the kernel's version is older.
const LANDLOCK: [(u32, &str); 4] = [
    (2, "commands cannot move files to another directory"),
    (
        3,
        "only the system call filter protects files from being emptied",
    ),
    (
        5,
        "only the system call filter refuses requests to devices (ioctl)",
    ),
    (
        6,
        "a command cannot signal a process by its number (kill 123), not even its own",
    ),
];

/// Reports whether this system meets the needs of each level. The first call that needs the kernel's features probes the kernel.
/// Clones share the results.
#[derive(Debug, Clone)]
pub struct SandboxReport {
    /// The program that runs as a launcher to probe the kernel.
    exe: PathBuf,
    home: PathBuf,
    /// True if commands should get a mount namespace. They get one only if the kernel allows it.
    pub(super) wants_namespaces: bool,
    pub(super) probe_limit: Duration,
    pub(super) probe_directory: PathBuf,
    probe: Arc<OnceLock<SandboxProbe>>,
    /// The workspaces over which an overlay was mounted successfully.
    trial_workspaces: Arc<Mutex<HashSet<PathBuf>>>,
}

/// The result of probing the sandbox.
#[derive(Debug)]
struct SandboxProbe {
    support: SandboxSupport,
    /// True if the probe itself failed, so that nothing is known about the kernel.
    failed: bool,
}

impl SandboxReport {
    /// Creates a report that starts the program `exe` for the probe. `home` is the person's home directory.
    pub fn new(exe: PathBuf, home: PathBuf) -> Self {
        Self {
            exe,
            home,
            wants_namespaces: true,
            probe_limit: PROBE_TIMEOUT,
            probe_directory: std::env::temp_dir(),
            probe: Arc::default(),
            trial_workspaces: Arc::default(),
        }
    }

    /// Replaces the probe by the given features of a kernel.
    #[must_use]
    pub fn with_support(self, support: SandboxSupport) -> Self {
        let failed = false;
        Self {
            probe: Arc::new(OnceLock::from(SandboxProbe { support, failed })),
            ..self
        }
    }

    /// Returns the sandbox features of this kernel. The first call probes the kernel.
    pub fn support(&self) -> &SandboxSupport {
        &self.probe().support
    }

    /// Returns false if the probe itself failed, so that nothing is known about the kernel.
    pub fn is_known(&self) -> bool {
        !self.probe().failed
    }

    /// Returns whether commands get a mount namespace.
    pub(super) fn namespaces(&self) -> bool {
        self.wants_namespaces && self.support().namespaces
    }

    /// Checks that commands can be confined.
    ///
    /// # Errors
    /// Commands cannot be confined, or the probe failed. The error is a sentence with the reason and the next step.
    pub fn confined(&self) -> Result<(), SandboxRefusal> {
        let support = self.support();
        if self.is_known() {
            return support.check();
        }
        let why = support.reason();
        Err(SandboxRefusal::Unable(format!(
            "the sandbox could not be tried ({why}): mend that, then start again"
        )))
    }

    /// Checks that another agent or a tool server can be confined. This needs mounts, because nothing else can hide the secrets
    /// of the workspace from an agent or a server, which both work without questions.
    ///
    /// # Errors
    /// They cannot be confined. The error is a sentence with the reason and the next step.
    pub fn agents(&self) -> Result<(), SandboxRefusal> {
        self.confined()?;
        let why = match self.wants_namespaces {
            false => "sandbox_namespaces is off",
            true if self.namespaces() => return Ok(()),
            true => self.support().reason(),
        };
        Err(SandboxRefusal::Unable(format!(
            "secrets in the workspace cannot be hidden from an agent or a tool server here: {why}; no tool server starts \
             without that, and an agent only with confinement = 'none' in the setting agents, by which it may read them"
        )))
    }

    /// Checks that a command can have its own network.
    ///
    /// # Errors
    /// A command cannot have its own network. The error is a sentence with the reason and the next step.
    pub fn own_network(&self) -> Result<(), SandboxRefusal> {
        self.confined()?;
        let support = self.support();
        let why = match self.wants_namespaces {
            false => "sandbox_namespaces is off",
            true if support.own_network => return Ok(()),
            true => (support.why_no_own_network.as_deref()).unwrap_or(support.reason()),
        };
        Err(SandboxRefusal::Unable(format!(
            "commands cannot have a network of their own here: {why}"
        )))
    }

    /// Checks that commands can run as trials in `workspace`, a canonical path. Tries an overlay over the workspace at each call
    /// until one succeeds, because a setting may have changed, or the system may have been too busy.
    ///
    /// May block on files.
    ///
    /// # Errors
    /// Commands cannot run as trials, or the probe failed. The error is a sentence with the reason and the next step.
    pub fn trials(&self, workspace: &Path) -> Result<(), SandboxRefusal> {
        self.confined()?;
        let support = self.support();
        if !self.wants_namespaces {
            return Err(no_trials("sandbox_namespaces is off"));
        }
        if !support.namespaces || !support.pid_namespaces || !support.trials {
            let why = support.why_no_trials.as_deref();
            return Err(no_trials(why.unwrap_or(support.reason())));
        }
        let home = self.home.canonicalize();
        if home.as_ref().unwrap_or(&self.home).starts_with(workspace) {
            return Err(no_trials(&format!(
                "{} is your home directory or contains it, work in a directory below it",
                workspace.display()
            )));
        }
        let mut tried = self.trial_workspaces.lock();
        if !tried.contains(workspace) {
            let (exe, dir) = (&self.exe, &self.probe_directory);
            SandboxSupport::try_over(workspace, exe, dir, self.probe_limit)
                .map_err(|why| no_trials(&why))?;
            tried.insert(workspace.to_owned());
        }
        Ok(())
    }

    /// Returns the restrictions on commands that follow from an old version of Landlock: one sentence for each feature that this
    /// kernel's version lacks.
    pub fn lacks(&self) -> Vec<&'static str> {
        let version = self.support().abi.unwrap_or(0);
        let lacks = LANDLOCK.iter().filter(|(from, _)| version < *from);
        lacks.map(|(_, effect)| *effect).collect()
    }

    fn probe(&self) -> &SandboxProbe {
        self.probe.get_or_init(|| {
            let probed = SandboxSupport::probe(&self.exe, &self.probe_directory, self.probe_limit);
            let failed = probed.is_err();
            let support = probed.unwrap_or_else(SandboxSupport::none);
            SandboxProbe { support, failed }
        })
    }
}

fn no_trials(why: &str) -> SandboxRefusal {
    SandboxRefusal::Unable(format!("commands cannot run as trials here: {why}"))
}
