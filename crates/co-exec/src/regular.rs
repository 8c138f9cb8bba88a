//! Reads regular files, and only those: a read of a FIFO or a device might never end. Follows symbolic links in the paths.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::libc;
use rustix::fs::{AtFlags, Stat};

use crate::path_map::{Unpacker, pack_number};
use co_text::size_text;

/// The most bytes of a small file, such as a settings file.
pub const SMALL_FILE_BYTES: u64 = 1 << 20;

/// A time that is longer than the resolution of file times: changes further apart get different times.
const FILE_TIME_RESOLUTION: Duration = Duration::from_millis(100);

/// The identity of a file, its size and its times. If the file changes, its stamp changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    written: ChangeTime,
    changed: ChangeTime,
}

/// The time of a file's last change, in nanoseconds since 1970. Times before 1678 or after 2262 are clamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeTime(i64);

const NANOS_PER_SECOND: i64 = 1_000_000_000;

impl FileStamp {
    /// Returns the stamp of the file at a path, or `None` if the file does not exist.
    pub fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|meta| Self::from(&meta))
    }

    /// Returns the stamp of the file at a path relative to an open directory. This is faster than by an absolute path.
    pub fn below(dir: impl AsFd, path: &Path, flags: AtFlags) -> Option<Self> {
        let path = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        let stat = rustix::fs::statat(dir, path, flags).ok()?;
        Some(Self::from(&stat))
    }

    /// Appends the bytes of this stamp, for a value of a [`PathMap`](crate::path_map::PathMap).
    pub fn pack(&self, bytes: &mut Vec<u8>) {
        for number in [self.device, self.inode, self.size] {
            pack_number(number, bytes);
        }
        bytes.extend_from_slice(&self.written.0.to_le_bytes());
        // Most often it is the same time.
        let later = self.changed.0.wrapping_sub(self.written.0);
        pack_number(later.cast_unsigned(), bytes);
    }

    /// Reads a stamp that [`Self::pack`] wrote.
    pub fn unpack(bytes: &mut Unpacker<'_>) -> Option<Self> {
        let (device, inode, size) = (bytes.number()?, bytes.number()?, bytes.number()?);
        let written = i64::from_le_bytes(bytes.array()?);
        let later = bytes.number()?.cast_signed();
        Some(Self {
            device,
            inode,
            size,
            written: ChangeTime(written),
            changed: ChangeTime(written.wrapping_add(later)),
        })
    }

    /// Returns the size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the time of the file's last change (ctime).
    pub fn changed(&self) -> ChangeTime {
        self.changed
    }

    /// Returns the device and the inode, which stay the same when the file is renamed.
    pub fn inode(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns true if the file is the same as in `before` and only its metadata has changed, such as its mode, its owner or its
    /// number of hard links.
    pub(crate) fn is_unwritten_since(&self, before: &Self) -> bool {
        let contents = |it: &Self| (it.inode(), it.size, it.written);
        contents(self) == contents(before) && self.changed != before.changed
    }

    /// Returns true if any later change of the file is certain to change the stamp. This is so if the last change is longer ago
    /// than the resolution of file times.
    pub fn is_settled(&self) -> bool {
        let Ok(nanos) = u64::try_from(self.changed.0) else {
            return false;
        };
        let changed = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
        let passed = SystemTime::now().duration_since(changed);
        passed.is_ok_and(|passed| passed > FILE_TIME_RESOLUTION)
    }
}

impl ChangeTime {
    fn new(seconds: i64, nanos: i64) -> Self {
        let since = seconds.saturating_mul(NANOS_PER_SECOND);
        Self(since.saturating_add(nanos))
    }

    /// Returns a time shortly before now. Every file that changes from now on has a later change time.
    pub fn shortly_ago() -> Self {
        Self::from(SystemTime::now() - FILE_TIME_RESOLUTION)
    }

    /// Returns true if a file with this change time was changed before `start`.
    pub fn is_before(self, start: Self) -> bool {
        let second = |it: Self| it.0.div_euclid(NANOS_PER_SECOND);
        match self.0 % NANOS_PER_SECOND {
            // Some file systems know seconds only.
            0 => second(self) < second(start),
            _ => self < start,
        }
    }
}

impl From<SystemTime> for ChangeTime {
    fn from(time: SystemTime) -> Self {
        let since = time
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let nanos = i64::from(since.subsec_nanos());
        Self::new(since.as_secs().cast_signed(), nanos)
    }
}

impl From<&Metadata> for FileStamp {
    fn from(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            written: ChangeTime::new(meta.mtime(), meta.mtime_nsec()),
            changed: ChangeTime::new(meta.ctime(), meta.ctime_nsec()),
        }
    }
}

impl From<&Stat> for FileStamp {
    fn from(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size.cast_unsigned(),
            written: ChangeTime::new(stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
            changed: ChangeTime::new(stat.st_ctime, stat.st_ctime_nsec.cast_signed()),
        }
    }
}

/// Returns the contents of a regular file. Follows symbolic links.
///
/// # Errors
/// The file cannot be read, is not a regular file, or has more than `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Checked before opening too, because opening some devices has effects.
    fits(&fs::metadata(path)?, most)?;
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    read_open(file, most)
}

/// Returns the contents of an open regular file.
///
/// # Errors
/// As for [`read`].
pub(crate) fn read_open(file: File, most: u64) -> io::Result<Vec<u8>> {
    let meta = file.metadata()?;
    fits(&meta, most)?;
    // Room to see the end, so that a large file is not copied to more room.
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).map_or(0, |size| size + 1));
    // The file may grow meanwhile.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(too_large(most)),
        false => Ok(bytes),
    }
}

/// Returns the text of a regular file of at most [`SMALL_FILE_BYTES`] bytes.
///
/// # Errors
/// As for [`read`], or the file is not UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path, SMALL_FILE_BYTES)?).map_err(io::Error::other)
}

pub(crate) fn fits(meta: &Metadata, most: u64) -> io::Result<()> {
    match meta.is_file() {
        true if meta.len() > most => Err(too_large(most)),
        true => Ok(()),
        false => Err(not_regular()),
    }
}

pub(crate) fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}

fn too_large(most: u64) -> io::Error {
    io::Error::other(format!("it is larger than {}", size_text(most)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_regular_file_of_some_size_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a"), "text").unwrap();
        symlink("a", at("link")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        fs::write(at("odd"), [0xff]).unwrap();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(text(&at("link")).unwrap(), "text");
        assert_eq!(read(&at("a"), 4).unwrap(), b"text");
        let why = |name: &str, most| read(&at(name), most).unwrap_err().to_string();
        assert_eq!(why("a", 3), "it is larger than 3 bytes");
        // It is said to hold nothing, as what grows meanwhile was.
        let maps = Path::new("/proc/self/maps");
        assert_eq!(fs::metadata(maps).unwrap().len(), 0);
        assert!(read(maps, 10).is_err() && read(maps, SMALL_FILE_BYTES).is_ok());
        for name in ["pipe", "zero", "."] {
            assert_eq!(
                why(name, SMALL_FILE_BYTES),
                "it is not a regular file",
                "{name}"
            );
        }
        assert_eq!(
            text(&at("none")).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert!(text(&at("odd")).is_err());
    }
}
