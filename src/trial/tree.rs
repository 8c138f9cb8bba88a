//! Reads the files below a directory. Never follows a link, and never leaves the directory.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;

/// A directory with all below it.
#[derive(Debug)]
pub(super) struct Tree(OwnedFd);

/// The kind of a file, as a layer means it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Dir,
    Link,
    /// The mark of a layer for a file that was removed.
    Whiteout,
    /// Another kind, in words.
    Special(&'static str),
}

/// The facts about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) size: u64,
    /// The file has several hard links.
    pub(super) has_hard_links: bool,
    pub(super) changed: Time,
}

/// The time of the last change of a file, in seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time(pub(super) i64, pub(super) i64);

/// The most directories above a file of a trial. Each one is opened from the top, so that no link is followed: of very deep
/// ones, that takes too long.
pub(super) const MOST_DEPTH: usize = 200;

/// The name of a directory in itself.
const ITSELF: &str = ".";

impl Tree {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open_dir(rustix::fs::CWD, path)?))
    }

    /// Returns the directory at a path below; none if there is none, or the way to it leads through a link.
    pub(super) fn dir(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        let mut dir = open_dir(&self.0, Path::new(ITSELF))?;
        for name in path {
            dir = match open_dir(&dir, Path::new(name)) {
                Ok(inner) => inner,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        }
        Ok(Some(dir))
    }

    /// Returns the directory above a path; see [`Self::dir`].
    pub(super) fn parent(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        self.dir(path.parent().unwrap_or(Path::new("")))
    }
}

impl Node {
    /// Returns the facts about a file in a directory; none if there is none.
    pub(super) fn of(dir: &OwnedFd, name: &OsStr) -> io::Result<Option<Self>> {
        match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Self::from(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the facts about an open file.
    pub(super) fn itself(file: &OwnedFd) -> io::Result<Self> {
        Ok(Self::from(&rustix::fs::fstat(file)?))
    }
}

impl From<&rustix::fs::Stat> for Node {
    fn from(stat: &rustix::fs::Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Dir,
            FileType::Symlink => Kind::Link,
            FileType::CharacterDevice if stat.st_rdev == 0 => Kind::Whiteout,
            FileType::Fifo => Kind::Special("a FIFO"),
            FileType::Socket => Kind::Special("a socket"),
            _ => Kind::Special("a device"),
        };
        Self {
            kind,
            mode: stat.st_mode & 0o7777,
            size: stat.st_size.cast_unsigned(),
            has_hard_links: stat.st_nlink > 1,
            changed: Time(stat.st_ctime, stat.st_ctime_nsec.cast_signed()),
        }
    }
}

impl Time {
    /// Returns whether a file that changed last at this time had changed before `start`.
    pub(super) fn is_before(self, start: Self) -> bool {
        match self {
            // Some file systems know seconds only.
            Self(seconds, 0) => seconds < start.0,
            it => it < start,
        }
    }
}

/// Returns whether more than [`MOST_DEPTH`] directories are above a file.
pub(super) fn is_too_deep(path: &Path) -> bool {
    path.components().nth(MOST_DEPTH).is_some()
}

fn open_dir(dir: impl std::os::fd::AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    // Needs no permission to read the directory.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, path, flags, Mode::empty())
}

/// Returns the names in a directory.
pub(super) fn names(dir: &OwnedFd) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = rustix::fs::openat(dir, ITSELF, flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::new(listed)? {
        let name = entry?.file_name().to_bytes().to_owned();
        if !matches!(&name[..], b"." | b"..") {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

/// Returns the bytes of a regular file in a directory.
///
/// # Errors
/// It cannot be read, is another kind of file, or has more than `most` bytes.
pub(super) fn bytes(dir: &OwnedFd, name: &OsStr, most: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::openat(dir, name, flags | OFlags::CLOEXEC, Mode::empty())?;
    let file = File::from(file);
    let meta = file.metadata()?;
    let too_large = || io::Error::other(format!("it is larger than {} MiB", most >> 20));
    match meta.is_file() {
        false => return Err(io::Error::other("it is not a regular file")),
        true if meta.len() > most => return Err(too_large()),
        true => {}
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(too_large()),
        false => Ok(bytes),
    }
}

/// Returns the target of a link in a directory.
pub(super) fn target(dir: &OwnedFd, name: &OsStr) -> io::Result<OsString> {
    let target = rustix::fs::readlinkat(dir, name, Vec::new())?;
    Ok(OsString::from_vec(target.into_bytes()))
}

/// Returns whether a file of a layer was copied from the workspace.
pub(super) fn is_copy(dir: &OwnedFd, name: &OsStr) -> bool {
    let path = Path::new(&itself(dir)).join(name);
    rustix::fs::lgetxattr(path, "user.overlay.origin", &mut [0; 0][..]).is_ok()
}

/// Returns whether a directory of a layer hides that of the workspace.
pub(super) fn is_opaque(dir: &OwnedFd) -> bool {
    let mut value = [0];
    let read = rustix::fs::getxattr(itself(dir), "user.overlay.opaque", &mut value);
    read == Ok(1) && value == *b"y"
}

/// Opens a file in a directory, only to name it.
pub(super) fn open(dir: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// Sets the mode of an open file or directory.
pub(super) fn set_mode(file: &OwnedFd, mode: u32) -> io::Result<()> {
    fs::set_permissions(itself(file), Permissions::from_mode(mode))
}

/// Returns the time of the last change of the content of an open file or directory.
pub(super) fn modified(file: &OwnedFd) -> io::Result<Timespec> {
    let stat = rustix::fs::fstat(file)?;
    Ok(Timespec {
        tv_sec: stat.st_mtime,
        tv_nsec: stat.st_mtime_nsec.cast_signed(),
    })
}

/// Sets that time of an open directory.
pub(super) fn set_modified(dir: &OwnedFd, time: Timespec) -> io::Result<()> {
    let unchanged = Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_OMIT,
    };
    let times = Timestamps {
        last_access: unchanged,
        last_modification: time,
    };
    Ok(rustix::fs::utimensat(
        dir,
        ITSELF,
        &times,
        AtFlags::empty(),
    )?)
}

/// Returns the name of an open file.
fn itself(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
