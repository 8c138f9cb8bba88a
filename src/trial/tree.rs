//! The places, marks and times of files in a layer.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, Timespec, Timestamps};

use co_exec::beneath::Dir;

/// The most directories above a file of a trial. Each one is opened from the top, so that no link is followed: for very deep
/// files, this takes too long.
pub(super) const MOST_DEPTH: usize = 200;

/// The most bytes of a path in the workspace. If a whole path is too long for a system call, co cannot survey the workspace.
const MOST_PATH_BYTES: usize = 3_000;

/// Returns whether more than [`MOST_DEPTH`] directories are above a file, or its path is very long.
pub(super) fn is_too_deep(path: &Path) -> bool {
    path.components().nth(MOST_DEPTH).is_some() || path.as_os_str().len() > MOST_PATH_BYTES
}

/// Returns the directory above a path; none if there is none.
pub(super) fn parent(dir: &Dir, path: &Path) -> io::Result<Option<Dir>> {
    dir.find(path.parent().unwrap_or(Path::new("")))
}

/// Returns whether a file of a layer was copied from the workspace.
pub(super) fn is_copy(dir: &Dir, name: &OsStr) -> bool {
    let path = dir.path().join(name);
    rustix::fs::lgetxattr(path, "user.overlay.origin", &mut [0; 0][..]).is_ok()
}

/// Returns whether a directory of a layer hides that of the workspace.
pub(super) fn is_opaque(dir: &Dir) -> bool {
    let mut value = [0];
    let read = rustix::fs::getxattr(dir.path(), "user.overlay.opaque", &mut value);
    read == Ok(1) && value == *b"y"
}

/// Returns the time of the last change of the content of an open file or directory.
pub(super) fn modified(file: &Dir) -> io::Result<Timespec> {
    let stat = rustix::fs::fstat(file)?;
    Ok(Timespec {
        tv_sec: stat.st_mtime,
        tv_nsec: stat.st_mtime_nsec.cast_signed(),
    })
}

/// Sets the time of the last change of an open directory.
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
