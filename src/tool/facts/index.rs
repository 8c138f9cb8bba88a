//! The files in git's index.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use co_exec::regular::Stamp;
use co_exec::repository::Dirs;
use co_policy::HARDENING;
use co_policy::secret_names as names;

/// The index of one work tree, listed once for each state of its file.
#[derive(Default)]
pub(super) struct Index {
    last: Mutex<Option<Listed>>,
}

/// The files that git tracks, by their paths below the work tree.
#[derive(Clone)]
pub(super) struct Listed {
    stamp: Stamp,
    pub files: Arc<[PathBuf]>,
    /// Those with secret names.
    pub secrets: Arc<[PathBuf]>,
}

impl Index {
    /// Returns the files of the index; none if there is no index or git cannot list it.
    pub(super) fn list(&self, git: &Path, root: &Path, dirs: &Dirs) -> Option<Listed> {
        let index = dirs.own.join("index");
        // Git would wait for the writer of a FIFO.
        let stamp = Stamp::of(&index).filter(|_| index.is_file())?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listed) = last.as_ref().filter(|listed| listed.stamp == stamp) {
            return Some(listed.clone());
        }
        let files = files(git, root)?;
        let secret = |file: &&PathBuf| names::secret(file).is_some();
        let secrets = files.iter().filter(secret).cloned().collect();
        let listed = Listed {
            stamp,
            files,
            secrets,
        };
        Some(last.insert(listed).clone())
    }
}

fn files(git: &Path, root: &Path) -> Option<Arc<[PathBuf]>> {
    let output = Command::new(git)
        .args(["ls-files", "--cached", "-z"])
        .env_clear()
        .envs(HARDENING)
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
