//! A confined command's private temporary directory, removed with whatever the command left in it.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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
            open_up(path.to_owned());
            // What is left then stays, as where the file system went read-only.
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// Gives its owner back the directories of a tree that a command closed: one that cannot be listed cannot be
/// emptied. Links are not followed.
fn open_up(root: PathBuf) {
    let mut left = vec![root];
    while let Some(path) = left.pop() {
        // A failure shows when the tree is removed.
        let _ = fs::set_permissions(&path, Permissions::from_mode(0o700));
        let entries = path.read_dir().into_iter().flatten().flatten();
        let directories = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
        left.extend(directories.map(|entry| entry.path()));
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
        open_up(tmp.path().to_owned());
        assert_eq!([mode(&tmp.path().join("a")), mode(&inner)], [0o700, 0o700]);
        assert_eq!(mode(outside.path()), 0);
        let path = tmp.path().to_owned();
        drop(tmp);
        assert!(!path.exists() && outside.path().exists());
    }
}
