//! Reads the paths, the attributes of the overlay file system, and the times of files in a layer.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, Timespec, Timestamps};

use co_exec::beneath::Dir;

/// The largest number of directories above a file of a trial. co opens each directory from the top, to follow no symbolic link.
/// For deeper files, this takes too long.
pub(super) const MOST_DEPTH: usize = 200;

/// The largest number of bytes of a path relative to the workspace. If an absolute path is too long for a system call, co cannot
/// survey the workspace.
const MOST_PATH_BYTES: usize = 3_000;

/// Returns true if a file has more than [`MOST_DEPTH`] directories above it, or if its path is too long.
pub(super) fn is_too_deep(path: &Path) -> bool {
    path.components().nth(MOST_DEPTH).is_some() || path.as_os_str().len() > MOST_PATH_BYTES
}

/// Opens the directory that contains a path; none if this directory does not exist.
pub(super) fn parent(dir: &Dir, path: &Path) -> io::Result<Option<Dir>> {
    dir.find(path.parent().unwrap_or(Path::new("")))
}

/// Returns true if a file of a layer was copied from the workspace.
pub(super) fn is_copy(dir: &Dir, name: &OsStr) -> bool {
    let path = dir.path().join(name);
    rustix::fs::lgetxattr(path, "user.overlay.origin", &mut [0; 0][..]).is_ok()
}

/// Returns true if a directory of a layer hides the directory of the workspace.
pub(super) fn is_opaque(dir: &Dir) -> bool {
    let mut value = [0];
    let read = rustix::fs::getxattr(dir.path(), "user.overlay.opaque", &mut value);
    read == Ok(1) && value == *b"y"
}

/// Returns the modification time of an open file or directory.
pub(super) fn modified(file: &Dir) -> io::Result<Timespec> {
    let stat = rustix::fs::fstat(file)?;
    Ok(Timespec {
        tv_sec: stat.st_mtime,
        tv_nsec: stat.st_mtime_nsec.cast_signed(),
    })
}

/// Sets the modification time of an open directory.
pub(super) fn set_modified(dir: &Dir, time: Timespec) -> io::Result<()> {
    let unchanged = Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_OMIT,
    };
    let times = Timestamps {
        last_access: unchanged,
        last_modification: time,
    };
    Ok(rustix::fs::utimensat(dir, ".", &times, AtFlags::empty())?)
}
