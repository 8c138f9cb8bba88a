//! What this kernel holds, found by trying it in a process of its own.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::plan::{Level, Plan, Text};
use super::{LAUNCH, Refused};

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
    pub(super) fn try_out(exe: &Path) -> Self {
        if cfg!(target_os = "macos") {
            return Self::of_macos();
        }
        if !cfg!(target_os = "linux") {
            return Self::none("only Linux and macOS can confine a command");
        }
        let plan = Plan {
            level: Level::Trial,
            abi: 0,
            network: false,
            cwd: Text::from("/"),
            grants: Vec::new(),
            mounts: Some(super::plan::Mounts::default()),
        };
        let Some(plan) = plan.encode() else {
            return Self::none("the trial could not be described");
        };
        let run = Command::new(exe)
            .args([LAUNCH, &plan])
            .env_clear()
            .stdin(Stdio::null())
            .output();
        match run {
            Err(error) => Self::none(format!("{} did not start: {error}", exe.display())),
            Ok(output) => serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
                let said = String::from_utf8_lossy(&output.stderr);
                Self::none(format!("the trial ended early: {}", said.trim()))
            }),
        }
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
        let why = self.why.as_deref().unwrap_or("it did not say why");
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
            let why = self.why.as_deref().unwrap_or("it did not say why");
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
            "no namespaces: nothing new at the top of a workspace"
        };
        format!("Landlock ABI {abi}, seccomp, {mounts}{signals}")
    }
}
