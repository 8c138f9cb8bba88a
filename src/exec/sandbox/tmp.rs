//! A confined command's private temporary directory, removed with whatever the command left in it.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// A directory as such, however little may be done in it, and never where a link leads.
const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Each level takes a descriptor.
const DEPTH: usize = 100;

/// The directory; it is removed when this is dropped.
#[derive(Debug)]
pub struct PrivateTmp(tempfile::TempDir);

impl PrivateTmp {
    pub(super) fn new() -> io::Result<Self> {
        let made = tempfile::Builder::new().prefix("co-tmp-").tempdir()?;
        Ok(Self(made))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for PrivateTmp {
    fn drop(&mut self) {
        let path = self.path();
        if fs::remove_dir_all(path).is_err() {
            open_up(path);
            // What is left then stays, as where the file system went read-only.
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Gives its owner back the directories of a tree that a command closed: one that cannot be listed cannot be
/// emptied. By descriptors all the way: what a process of the command puts in a directory's place is not touched.
fn open_up(root: &Path) {
    if let Ok(root) = rustix::fs::open(root, DIRECTORY, Mode::empty()) {
        open_below(&root, DEPTH);
    }
}

/// What fails shows when the tree is removed.
fn open_below(dir: &OwnedFd, depth: usize) {
    let itself = format!("/proc/self/fd/{}", dir.as_raw_fd());
    let _ = fs::set_permissions(&itself, Permissions::from_mode(0o700));
    let entries = fs::read_dir(&itself).into_iter().flatten().flatten();
    if depth == 0 {
        return;
    }
    for entry in entries.filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir())) {
        if let Ok(inner) = rustix::fs::openat(dir, entry.file_name(), DIRECTORY, Mode::empty()) {
            open_below(&inner, depth - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn closed_directories_are_opened_and_links_let_be() {
        let outside = tempfile::tempdir().unwrap();
        let tmp = PrivateTmp::new().unwrap();
        let inner = tmp.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        std::os::unix::fs::symlink(outside.path(), tmp.path().join("link")).unwrap();
        let close = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o0)).unwrap();
        close(outside.path());
        close(&inner);
        close(&tmp.path().join("a"));
        open_up(tmp.path());
        assert_eq!([mode(&tmp.path().join("a")), mode(&inner)], [0o700, 0o700]);
        assert_eq!(mode(outside.path()), 0);
        fs::set_permissions(outside.path(), Permissions::from_mode(0o700)).unwrap();
        let path = tmp.path().to_owned();
        drop(tmp);
        assert!(!path.exists() && outside.path().exists());
    }
}
