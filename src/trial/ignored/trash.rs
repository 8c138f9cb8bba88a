//! Removes directories in the background.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use co_exec::beneath::Dir;
use co_exec::sandbox::{PrivateTmp, Removals};

/// The directory of files that must be removed. It is created when it is needed. When this value is dropped, the directory is
/// removed in the background.
pub(super) struct Trash<'a> {
    /// The parent of the directory. It is on the same file system as the files to remove.
    parent: &'a Path,
    removals: &'a Removals,
    dir: Option<PrivateTmp>,
    taken: usize,
}

impl<'a> Trash<'a> {
    pub(super) fn new(parent: &'a Path, removals: &'a Removals) -> Self {
        Self {
            parent,
            removals,
            dir: None,
            taken: 0,
        }
    }

    /// Moves a file or a directory into the trash.
    ///
    /// # Errors
    /// A system call fails.
    pub(super) fn take(&mut self, dir: &Dir, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {}
            done => return Ok(done?),
        }
        // Moving a directory writes to it, because it names its parent.
        dir.set_mode(name, 0o700)?;
        let trash = match &self.dir {
            Some(trash) => trash,
            None => self
                .dir
                .insert(PrivateTmp::new_in(self.parent, self.removals)?),
        };
        self.taken += 1;
        let to = trash.path().join(self.taken.to_string());
        Ok(rustix::fs::renameat(dir, name, CWD, &to)?)
    }
}
