//! The report about this system: what the levels need, and what is missing. `doctor` shows all of it. `/sandbox` and questions
//! show the row that they are about, by [`Launcher::check`] and [`Launcher::check_trial`].

use std::path::Path;

use super::launcher::Launcher;
use crate::error::refusal::SandboxRefusal;
use crate::process::cgroup::LimitEnforcement;

/// The first version with a feature, and the effect of its absence on commands.
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

/// The needs of the levels, and those that this system does not meet.
#[derive(Debug, Clone)]
pub struct SandboxReport {
    /// A line about the kernel, or the reason why nothing can be confined.
    pub sandbox: String,
    /// The kernel can confine a command, or the reason why not.
    pub held: Result<(), SandboxRefusal>,
    /// A command can run as a trial in the workspace, or the reason why not.
    pub trials: Result<(), SandboxRefusal>,
    /// A command can have a network of its own, or the reason why not.
    pub own_network: Result<(), SandboxRefusal>,
    /// The probe of the sandbox worked.
    pub known: bool,
    pub limits: LimitEnforcement,
    /// The version of Landlock, if there is one.
    pub landlock: Option<u32>,
}

impl SandboxReport {
    /// Returns the report of a system on which nothing can be confined.
    pub fn none(why: String) -> Self {
        let refused = SandboxRefusal::Unable(why.clone());
        Self {
            sandbox: why,
            held: Err(refused.clone()),
            trials: Err(refused.clone()),
            own_network: Err(refused),
            known: true,
            limits: LimitEnforcement::find(),
            landlock: None,
        }
    }

    /// Returns the effects on commands of the features that this version of Landlock lacks.
    pub fn lacks(&self) -> Vec<&'static str> {
        let version = self.landlock.unwrap_or(0);
        let lacks = LANDLOCK.iter().filter(|(from, _)| version < *from);
        lacks.map(|(_, effect)| *effect).collect()
    }
}

impl Launcher {
    /// Returns the report about this system and a workspace, a real path.
    ///
    /// May block on files.
    pub fn report(&self, workspace: &Path) -> SandboxReport {
        SandboxReport {
            sandbox: self.support().words(),
            held: self.check(),
            trials: self.check_trial(workspace),
            own_network: self.check_own_network(),
            known: !self.probe_failed(),
            limits: LimitEnforcement::find(),
            landlock: self.support().abi,
        }
    }
}
