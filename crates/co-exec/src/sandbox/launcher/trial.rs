//! Trials: whether this system can run them.

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::Launcher;
use crate::error::refusal::SandboxRefusal;
use crate::sandbox::support::SandboxSupport;

impl Launcher {
    /// Sets the directory in which the probe tries an overlay. It should be on the file system of the layers of trials.
    /// If it does not exist, the probe takes the nearest one above it. The default is the directory of temporary files.
    #[must_use]
    pub fn probe_directory(mut self, dir: PathBuf) -> Self {
        self.probe_directory = dir;
        self
    }

    /// Checks that commands can run as trials in `workspace`, a real path. Tries an overlay over it, until
    /// that succeeds once: what refused it may be mended meanwhile, or the system was too busy.
    ///
    /// May block on files.
    ///
    /// # Errors
    /// They cannot, or the probe failed: one sentence with the reason and what to do.
    pub fn check_trial(&self, workspace: &Path) -> Result<(), SandboxRefusal> {
        self.check()?;
        let support = self.support();
        if !self.namespaces {
            return Err(refusal("sandbox_namespaces is off"));
        }
        if !support.namespaces || !support.pid_namespaces || !support.trials {
            let why = support.why_no_trials.as_deref();
            return Err(refusal(why.unwrap_or(support.reason())));
        }
        if self.grants.contains_home(workspace) {
            return Err(refusal(&format!(
                "{} is your home directory or contains it, work in a directory below it",
                workspace.display()
            )));
        }
        let tried = self.trial_workspaces.lock();
        let mut tried = tried.unwrap_or_else(PoisonError::into_inner);
        if !tried.contains(workspace) {
            let (exe, dir) = (&self.exe, &self.probe_directory);
            SandboxSupport::try_over(workspace, exe, dir, self.probe_limit)
                .map_err(|why| refusal(&why))?;
            tried.insert(workspace.to_owned());
        }
        Ok(())
    }
}

fn refusal(why: &str) -> SandboxRefusal {
    SandboxRefusal::Unable(format!("commands cannot run as trials here: {why}"))
}
