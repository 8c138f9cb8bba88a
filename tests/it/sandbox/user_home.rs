//! The backend's program and a home directory, for a user who may be another one than that of the tests.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::scene::copy_program;

pub(super) struct UserHome {
    dir: TempDir,
    user: Option<u32>,
}

impl UserHome {
    /// Makes `home` and `home/work`, which belong to the user.
    pub(super) fn new(user: Option<u32>) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("co-user-")
            .tempdir()
            .unwrap();
        copy_program(dir.path());
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let home = Self { dir, user };
        for path in [home.path(), home.work()] {
            fs::create_dir(&path).unwrap();
            home.give(&path);
        }
        home
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(super) fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    pub(super) fn exe(&self) -> PathBuf {
        self.dir.path().join("co-nvim")
    }

    /// Gives a file to the user.
    pub(super) fn give(&self, path: &Path) {
        std::os::unix::fs::chown(path, self.user, self.user).unwrap();
    }

    /// Returns a command of the user in the directory `work`, with the least environment.
    pub(super) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        self.own(Command::new(program))
    }

    /// Makes a command one of the user.
    pub(super) fn own(&self, mut command: Command) -> Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path())
            .current_dir(self.work())
            .stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// Returns `co-nvim exec` of the user.
    pub(super) fn exec(&self) -> Command {
        let mut command = self.command(self.exe());
        command.arg("exec");
        command
    }
}
