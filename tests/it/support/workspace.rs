//! A throwaway git repository to work in.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A directory with an empty repository on `main`; gone when dropped.
pub(crate) struct Workspace {
    _root: TempDir,
    path: PathBuf,
    home: PathBuf,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("co-ws-").tempdir().unwrap();
        // Real, so that what a command prints as its directory compares equal.
        let real = root.path().canonicalize().unwrap();
        let workspace = Self {
            path: real.join("work"),
            home: real.join("home"),
            _root: root,
        };
        std::fs::create_dir(&workspace.path).unwrap();
        std::fs::create_dir(&workspace.home).unwrap();
        workspace.git(&["init", "--quiet", "--initial-branch=main"]);
        workspace.git(&["config", "user.name", "Test"]);
        workspace.git(&["config", "user.email", "test@example.invalid"]);
        workspace.git(&["config", "commit.gpgsign", "false"]);
        workspace
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `text` to the file `name`, below directories made as needed.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.path.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        file
    }

    /// Returns what the file `name` holds, if it is there.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path.join(name)).ok()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path.join(name).symlink_metadata().is_ok()
    }

    /// Runs git without the person's own configuration and returns what it printed.
    ///
    /// # Panics
    /// If git fails.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(args)
            .current_dir(&self.path)
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("HOME", &self.home)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {told}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
