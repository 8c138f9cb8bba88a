//! The user who runs co, and the kernel that it seems to run on.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, lchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{BACKEND, test_tree};

/// An ordinary user for tests that run as root. Nobody has this number.
pub(crate) const SOMEBODY: u32 = 54_321;

/// Runs a program on a kernel that seems older.
pub(crate) const OLDER: &str = include_str!("older.py");

/// The options of [`OLDER`] for an old kernel with namespaces: Landlock as it was at first, and no `openat2`.
const OLD: &[&str] = &["--no-openat2", "1"];

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Runner {
    user: Option<u32>,
    /// Options of [`OLDER`]; none for this kernel.
    older: Option<&'static [&'static str]>,
}

impl Runner {
    /// Returns those who run the tests, and an ordinary user; each on this kernel and on an old one.
    pub(crate) fn all() -> Vec<Self> {
        let other = am_root().then_some(Some(SOMEBODY));
        let users = [None].into_iter().chain(other);
        let both = |user| [None, Some(OLD)].map(|older| Self { user, older });
        users.flat_map(both).collect()
    }

    /// Calls `check` for each of [`Self::all`] at the same time. This is faster for checks that mostly wait.
    pub(crate) fn check_all(check: impl Fn(Self) + Sync) {
        let check = &check;
        std::thread::scope(|scope| {
            for runner in Self::all() {
                scope.spawn(move || check(runner));
            }
        });
    }

    /// Returns whether the user is not the one who runs the tests.
    pub(crate) fn is_somebody(self) -> bool {
        self.user.is_some()
    }

    /// Returns whether the kernel seems older.
    pub(crate) fn is_old(self) -> bool {
        self.older.is_some()
    }

    /// Returns a program of the user.
    pub(crate) fn command(self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// Returns co's program as the user runs it on the kernel.
    pub(crate) fn co(self, program: &Path) -> Command {
        let Some(older) = self.older else {
            return self.command(program);
        };
        let mut command = self.command(python());
        command.args(["-c", OLDER]).args(older).arg(program);
        command
    }

    /// Returns co's program, or a copy of it in `dir` that the user can run. Lets the user enter the directory.
    pub(crate) fn backend(self, dir: &Path) -> PathBuf {
        if self.user.is_none() {
            return BACKEND.into();
        }
        fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
        let copy = dir.join("co-nvim");
        // By another process: while this one has a program open to write it, a child of another test holds it open too, and
        // it cannot be started.
        let copied = Command::new("cp").arg(BACKEND).arg(&copy).status();
        assert!(copied.unwrap().success());
        copy
    }

    /// Gives all files in a directory to the user.
    pub(crate) fn give(self, top: &Path) {
        let Some(user) = self.user else { return };
        let below = test_tree::read(top);
        for path in below
            .keys()
            .map(|path| top.join(path))
            .chain([top.to_owned()])
        {
            lchown(path, Some(user), Some(user)).unwrap();
        }
    }
}

pub(crate) fn am_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Python as every user can start it.
pub(crate) fn python() -> &'static str {
    let there = fs::exists("/usr/bin/python3").unwrap_or(false);
    if there { "/usr/bin/python3" } else { "python3" }
}
