//! The files that git tracks in a workspace.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use co_exec::regular::FileStamp;
use co_exec::{GIT_ENVIRONMENT, repository};

/// The files of git's index, listed once for each state of the index.
#[derive(Default)]
pub(super) struct TrackedFiles {
    last: Mutex<Option<(FileStamp, Arc<[PathBuf]>)>>,
}

impl TrackedFiles {
    /// Returns the files that git tracks, by their paths below the workspace `root`; none without a repository or if `git`
    /// fails.
    pub(super) fn list(&self, git: &Path, root: &Path) -> Option<Arc<[PathBuf]>> {
        let index = repository::find(root).ok()??.own.join("index");
        // Git would wait for the writer of a FIFO.
        let stamp = FileStamp::of(&index).filter(|_| index.is_file())?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, files)) = last.as_ref().filter(|(known, _)| *known == stamp) {
            return Some(Arc::clone(files));
        }
        let files = files(git, root)?;
        *last = Some((stamp, Arc::clone(&files)));
        Some(files)
    }
}

fn files(git: &Path, root: &Path) -> Option<Arc<[PathBuf]>> {
    let output = Command::new(git)
        .args(["ls-files", "--cached", "-z"])
        .env_clear()
        .envs(GIT_ENVIRONMENT)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let names = output.stdout.split(|byte| *byte == 0);
    let names = names.filter(|name| !name.is_empty());
    Some(
        names
            .map(|name| PathBuf::from(OsStr::from_bytes(name)))
            .collect(),
    )
}
