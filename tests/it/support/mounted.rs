//! A mount for the time of a test.

use std::path::Path;
use std::process::Command;

/// Mounts a file system, and unmounts it at the end.
pub(crate) struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    pub(crate) fn new(at: &'a Path) -> Self {
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "co"])
            .arg(at)
            .status();
        assert!(done.unwrap().success());
        Self(at)
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}
