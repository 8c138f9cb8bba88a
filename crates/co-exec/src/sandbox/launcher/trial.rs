//! Trials: whether this system can run them.

use std::path::PathBuf;

use super::Launcher;
use crate::sandbox::SandboxRefusal;

impl Launcher {
    /// Sets the directory in which the probe tries an overlay. It should be on the file system of the layers of trials.
    /// If it does not exist, the probe takes the directory of temporary files, which is the default.
    #[must_use]
    pub fn probe_directory(mut self, dir: PathBuf) -> Self {
        self.probe_directory = dir;
        self
    }

    /// Checks that commands can run as trials.
    ///
    /// # Errors
    /// They cannot, or the probe failed: one sentence with the reason and what to do.
    pub fn check_trial(&self) -> Result<(), SandboxRefusal> {
        self.check()?;
        let support = self.support();
        if self.namespaces && support.namespaces && support.pid_namespaces && support.trials {
            return Ok(());
        }
        let why = match self.namespaces {
            true => support.why_no_trials.as_deref().unwrap_or(support.reason()),
            false => "sandbox_namespaces is off",
        };
        Err(SandboxRefusal::Unable(format!(
            "this system cannot run a command as a trial ({why}): allow that, or run the command without a trial"
        )))
    }
}
