//! Opens, creates and removes the files of a workspace. Paths are relative to a directory descriptor, and no call follows a
//! symbolic link.
//!
//! A confined command may replace a directory by a symbolic link at any moment, while co has the rights of the person. So co
//! resolves a path only once, when it judges the call. From then on, co uses the resolved path with this module, and a component
//! that has become a symbolic link is an error. A command may also move a directory, but that is harmless: the directory stays
//! where the command itself may write.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, StatxFlags,
    openat, openat2, renameat, renameat_with, statat, statx, unlinkat,
};
use rustix::io::Errno;

use crate::regular::{self, ChangeTime, FileStamp};

/// The flags for opening a file without access to its contents (`O_PATH`), which needs no permission to read the file.
const NAMED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const DIRECTORY: OFlags = NAMED.union(OFlags::DIRECTORY);
/// The flags for opening a file for reading. With them, opening a FIFO does not wait for a writer.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
const LIST: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

/// The name by which a directory refers to itself.
const ITSELF: &str = ".";

/// The most attempts to open a path while other programs rename files. Also the most attempts to find an unused temporary name.
const MAX_TRIES: usize = 100;

/// An open directory. Its methods take paths that are relative to this directory and have no `..`. An empty path means the
/// directory itself.
#[derive(Debug)]
pub struct Dir(OwnedFd);

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Dir,
    Link,
    /// The mark for a removed file in the layer of an overlay file system: a character device with the device number 0.
    Whiteout,
    /// A file of another kind, such as a FIFO. Contains a description of the kind.
    Special(&'static str),
}

/// The length in bytes at which a path becomes too long for a system call.
pub(crate) const MAX_PATH_BYTES: usize = 4096;

/// The metadata of a file or symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    pub kind: Kind,
    pub mode: u32,
    /// The number of hard links to the file.
    pub names: u64,
    /// The ids of the owner and of the group.
    pub owner: (u32, u32),
    pub stamp: FileStamp,
}

impl Node {
    /// Returns true for a regular file with several hard links. Returns false for a directory, whose link count also counts the
    /// `..` of each subdirectory.
    pub fn is_linked(&self) -> bool {
        self.kind == Kind::File && self.names > 1
    }
}

/// Opens the parent directories of paths. Keeps the last directory open, because the next path is often in the same directory.
#[derive(Debug)]
pub struct Parents<'a> {
    root: &'a Dir,
    last: Option<(PathBuf, Dir)>,
}

/// A file or symbolic link with a temporary name. Dropping it removes the file, unless the file has got its final name.
#[derive(Debug)]
pub struct Unfinished<'a> {
    dir: &'a Dir,
    name: Option<String>,
}

impl Dir {
    /// Opens a directory by its canonical path, no component of which may be a symbolic link.
    ///
    /// # Errors
    /// The directory cannot be opened, or a component of the path has become a symbolic link.
    pub fn open(real: &Path) -> io::Result<Self> {
        let (top, below) = split_real(real)?;
        top.dir(below)
    }

    /// Opens a directory that belongs to co, which no confined command can replace. Follows symbolic links in the path.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn open_own(path: &Path) -> io::Result<Self> {
        Ok(Self(openat(CWD, path, DIRECTORY, Mode::empty())?))
    }

    /// Opens a directory.
    ///
    /// # Errors
    /// The directory cannot be opened, or a component of the path is a symbolic link.
    pub fn dir(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        self.beneath(path.as_ref(), DIRECTORY)
            .map(Self)
            .map_err(error)
    }

    /// Opens a directory. Returns `None` if the directory does not exist, or if a component of the path is a symbolic link.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn find(&self, path: impl AsRef<Path>) -> io::Result<Option<Self>> {
        found(self.beneath(path.as_ref(), DIRECTORY)).map(|dir| dir.map(Self))
    }

    /// Opens the parent directory of a path. Returns the directory, and the last component of the path.
    ///
    /// # Errors
    /// The directory cannot be opened, or a component of its path is a symbolic link.
    pub fn parent<'a>(&self, path: &'a Path) -> io::Result<(Self, &'a OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let above = path.parent().unwrap_or(Path::new(""));
        Ok((self.dir(above)?, name))
    }

    /// Returns the metadata of a file or symbolic link. Returns `None` if the file does not exist, or if a directory in its path
    /// is a symbolic link.
    ///
    /// # Errors
    /// The system refuses.
    pub fn node(&self, path: impl AsRef<Path>) -> io::Result<Option<Node>> {
        let path = path.as_ref();
        let stat = match path.components().nth(1) {
            // One call is enough.
            None => statat(self, checked(path)?, AtFlags::SYMLINK_NOFOLLOW),
            Some(_) => self.beneath(path, NAMED).and_then(rustix::fs::fstat),
        };
        Ok(found(stat)?.as_ref().map(Node::from))
    }

    /// Returns the creation time of a file or symbolic link. Returns `None` if the file does not exist, or if the file system
    /// does not record the time.
    pub fn born(&self, path: impl AsRef<Path>) -> Option<SystemTime> {
        let file = self.beneath(path.as_ref(), NAMED).ok()?;
        let facts = statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
        let is_told = StatxFlags::from_bits_retain(facts.stx_mask).contains(StatxFlags::BTIME);
        let seconds = u64::try_from(facts.stx_btime.tv_sec).ok()?;
        let since = Duration::new(seconds, facts.stx_btime.tv_nsec);
        is_told.then(|| SystemTime::UNIX_EPOCH + since)
    }

    /// Returns the metadata of the directory itself.
    ///
    /// # Errors
    /// The system refuses.
    pub fn itself(&self) -> io::Result<Node> {
        Node::of(self)
    }

    /// Opens a regular file. Refuses files of other kinds before opening them, because opening some devices has effects.
    ///
    /// # Errors
    /// The file cannot be read, is another kind of file, or a component of the path is a symbolic link.
    pub fn file(&self, path: impl AsRef<Path>) -> io::Result<(File, Node)> {
        let path = path.as_ref();
        let file = match path.components().nth(1) {
            None => {
                let stat = statat(self, checked(path)?, AtFlags::SYMLINK_NOFOLLOW)?;
                regular_node(Node::from(&stat))?;
                openat(self, path, READ, Mode::empty())
            }
            Some(_) => {
                regular_node(Node::of(self.beneath(path, NAMED).map_err(error)?)?)?;
                self.beneath(path, READ)
            }
        };
        opened_regular(file)
    }

    /// Opens a file that [`Self::list`] has just returned as a regular file, with one system call less than [`Self::file`]. If
    /// another kind of file has replaced it since, the other file is opened for a moment and refused.
    ///
    /// # Errors
    /// The file cannot be read, or is another kind of file.
    pub fn listed_file(&self, name: &OsStr) -> io::Result<(File, Node)> {
        let name = checked(Path::new(name))?;
        opened_regular(openat(self, name, READ, Mode::empty()))
    }

    /// Returns the contents of a regular file.
    ///
    /// # Errors
    /// As for [`Self::file`], or the file has more than `most` bytes.
    pub fn read(&self, path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
        regular::read_open(self.file(path)?.0, most)
    }

    /// Fills a buffer with the contents of a regular file in this directory. Returns the number of bytes. Makes fewer system
    /// calls than [`Self::read`].
    ///
    /// # Errors
    /// The file cannot be read, is another kind of file, or does not fit into the buffer.
    pub(crate) fn fill(&self, name: &OsStr, buffer: &mut [u8]) -> io::Result<usize> {
        let file = File::from(openat(self, name, READ, Mode::empty())?);
        let meta = file.metadata()?;
        regular::fits(&meta, buffer.len() as u64)?;
        let size = usize::try_from(meta.len()).unwrap_or(buffer.len());
        (&file).read(&mut buffer[..size])
    }

    /// Returns the names of the directory's entries.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let names = self.list()?.map(|entry| Ok(entry?.0));
        names.collect()
    }

    /// Reads the directory. Returns the name and the file type of each entry.
    ///
    /// # Errors
    /// The directory cannot be read. If reading fails midway, the last item of the iterator is an error.
    pub fn list(
        &self,
    ) -> io::Result<impl Iterator<Item = io::Result<(OsString, FileType)>> + use<>> {
        let mut listed = rustix::fs::Dir::new(openat(self, ITSELF, LIST, Mode::empty())?)?;
        Ok(std::iter::from_fn(move || {
            loop {
                let entry = match listed.next()? {
                    Ok(entry) => entry,
                    Err(error) => return Some(Err(error.into())),
                };
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                let kind = match entry.file_type() {
                    // Some file systems do not tell.
                    FileType::Unknown => {
                        let dir = listed.fd();
                        match dir.and_then(|dir| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)) {
                            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                            Err(Errno::NOENT) => continue,
                            Err(error) => return Some(Err(error.into())),
                        }
                    }
                    kind => kind,
                };
                return Some(Ok((OsString::from_vec(name.to_bytes().to_owned()), kind)));
            }
        }))
    }

    /// Returns the target of a symbolic link.
    ///
    /// # Errors
    /// The path is not a symbolic link, or a directory in the path is a symbolic link.
    pub fn target(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let (dir, name) = self.parent(path.as_ref())?;
        let target = rustix::fs::readlinkat(&dir, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Returns whether this process may write a file, judging by the file's mode and owner.
    pub fn is_writable(&self, path: impl AsRef<Path>) -> bool {
        let may_write = |(dir, name): (Self, &OsStr)| {
            rustix::fs::accessat(&dir, name, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
        };
        self.parent(path.as_ref()).is_ok_and(may_write)
    }

    /// Creates the missing directories of a path. Returns the last directory of the path.
    ///
    /// # Errors
    /// A directory cannot be created, or a component of the path is no directory.
    pub fn make_dirs(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        let mut dir = self.dir("")?;
        for name in checked(path.as_ref())? {
            dir = match dir.dir(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match rustix::fs::mkdirat(&dir, name, Mode::from(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => dir.dir(name)?,
                        Err(error) => return Err(error.into()),
                    }
                }
                opened => opened?,
            };
        }
        Ok(dir)
    }

    /// Creates a directory, and opens it.
    ///
    /// # Errors
    /// The directory cannot be created, or the name is taken.
    pub(crate) fn make_dir(&self, name: &OsStr) -> io::Result<Self> {
        rustix::fs::mkdirat(self, name, Mode::from(0o777))?;
        self.dir(name)
    }

    /// Opens a regular file or a directory, so that it can be locked.
    ///
    /// # Errors
    /// The file or directory cannot be read, is of another kind, or a component of the path is a symbolic link.
    pub(crate) fn open_to_lock(&self, path: impl AsRef<Path>) -> io::Result<OwnedFd> {
        let path = path.as_ref();
        match self.node(path)?.map(|node| node.kind) {
            Some(Kind::File | Kind::Dir) => self.beneath(path, READ).map_err(error),
            Some(_) => Err(regular::not_regular()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Creates a symbolic link. Never replaces a file.
    ///
    /// # Errors
    /// The symbolic link cannot be created, or a directory in the path is a symbolic link.
    pub fn make_link(&self, target: &Path, path: impl AsRef<Path>) -> io::Result<()> {
        let (dir, name) = self.parent(path.as_ref())?;
        Ok(rustix::fs::symlinkat(target, &dir, name)?)
    }

    /// Removes a file or symbolic link.
    ///
    /// # Errors
    /// The file cannot be removed, or a directory in its path is a symbolic link.
    pub fn remove_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let (dir, name) = self.parent(path.as_ref())?;
        Ok(unlinkat(&dir, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// The directory cannot be removed, or a component of the path is a symbolic link.
    pub fn remove_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let (dir, name) = self.parent(path.as_ref())?;
        Ok(unlinkat(&dir, name, AtFlags::REMOVEDIR)?)
    }

    /// Renames a file. Never replaces another file.
    ///
    /// # Errors
    /// The new path exists, the file cannot be moved, or a directory in one of the paths is a symbolic link.
    pub fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let ((old_dir, old), (new_dir, new)) = (self.parent(from)?, self.parent(to)?);
        Ok(rename_new((&old_dir, old), (&new_dir, new))?)
    }

    /// Sets the mode of a file or directory.
    ///
    /// # Errors
    /// The mode cannot be set, or a component of the path is a symbolic link.
    pub fn set_mode(&self, path: impl AsRef<Path>, mode: u32) -> io::Result<()> {
        let file = self.beneath(path.as_ref(), NAMED).map_err(error)?;
        fs::set_permissions(name_of(&file), Permissions::from_mode(mode))
    }

    /// Changes the mode of a file to the mode that `change` returns. Returns `None` if the file does not exist, or if `change`
    /// returns `None`.
    ///
    /// # Errors
    /// As for [`Self::set_mode`].
    pub(crate) fn change_mode(
        &self,
        name: &OsStr,
        change: impl FnOnce(&Node) -> Option<u32>,
    ) -> io::Result<Option<()>> {
        let Some(file) = found(self.beneath(Path::new(name), NAMED))? else {
            return Ok(None);
        };
        // Both of the same file: another one may have the name at any moment.
        let Some(mode) = change(&Node::of(&file)?) else {
            return Ok(None);
        };
        fs::set_permissions(name_of(&file), Permissions::from_mode(mode)).map(Some)
    }

    /// Creates a file with a temporary name in this directory, and opens the file. The umask applies to `mode`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn make_unfinished(&self, prefix: &str, mode: u32) -> io::Result<(Unfinished<'_>, File)> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from(mode);
        let (unfinished, file) =
            Unfinished::new(self, prefix, |name| openat(self, name, flags, mode))?;
        Ok((unfinished, File::from(file)))
    }

    /// Creates a symbolic link with a temporary name in this directory.
    ///
    /// # Errors
    /// The symbolic link cannot be created.
    pub fn make_unfinished_link(&self, prefix: &str, target: &Path) -> io::Result<Unfinished<'_>> {
        let link = |name: &str| rustix::fs::symlinkat(target, self, name);
        Ok(Unfinished::new(self, prefix, link)?.0)
    }

    /// Returns a path through `/proc` to this directory. The path stays valid while the directory is open, even if the directory
    /// is moved.
    pub fn path(&self) -> PathBuf {
        name_of(&self.0)
    }

    fn beneath(&self, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        if path.as_os_str().is_empty() && flags.contains(OFlags::PATH) {
            // Needs no permission.
            return rustix::io::fcntl_dupfd_cloexec(self, 0);
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let path = checked(path)?;
        // A directory that is a link must be an error as such.
        let own = match flags.contains(OFlags::DIRECTORY) {
            true => flags.difference(OFlags::NOFOLLOW),
            false => flags,
        };
        for _ in 0..MAX_TRIES {
            match openat2(self, path, own, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                // Some containers refuse the call, and it takes no path that is longer than 4 KiB.
                Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG) => break,
                opened => return opened,
            }
        }
        self.by_parts(path, flags)
    }

    /// Opens a path component by component. [`Self::beneath`] does the same in one system call.
    fn by_parts(&self, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let open = |dir: BorrowedFd<'_>, name: &OsStr, flags: OFlags| {
            match openat(dir, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
                // With some flags, a link is a file that is no directory.
                Err(Errno::NOTDIR) => {
                    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
                    let is_link = FileType::from_raw_mode(stat.st_mode).is_symlink();
                    Err(if is_link { Errno::LOOP } else { Errno::NOTDIR })
                }
                opened => opened,
            }
        };
        let mut parts = path.iter().peekable();
        let mut above: Option<OwnedFd> = None;
        while let Some(name) = parts.next() {
            let dir = above.as_ref().map_or(self.as_fd(), AsFd::as_fd);
            let last = parts.peek().is_none();
            let opened = open(dir, name, if last { flags } else { DIRECTORY })?;
            above = Some(opened);
        }
        above.ok_or(Errno::INVAL)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Node {
    /// Returns the metadata of an open file.
    ///
    /// # Errors
    /// The system refuses.
    pub fn of(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::from(&rustix::fs::fstat(file)?))
    }

    /// Returns the size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.stamp.size()
    }

    /// Returns the time of the file's last change.
    pub fn changed(&self) -> ChangeTime {
        self.stamp.changed()
    }
}

impl From<&Stat> for Node {
    fn from(stat: &Stat) -> Self {
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
            names: stat.st_nlink,
            owner: (stat.st_uid, stat.st_gid),
            stamp: FileStamp::from(stat),
        }
    }
}

impl<'a> Parents<'a> {
    pub fn new(root: &'a Dir) -> Self {
        Self { root, last: None }
    }

    /// Opens the parent directory of a path; see [`Dir::parent`].
    ///
    /// # Errors
    /// The directory cannot be opened, or a component of its path is a symbolic link.
    pub fn of<'p>(&mut self, path: &'p Path) -> io::Result<(&Dir, &'p OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let above = path.parent().unwrap_or(Path::new(""));
        let last = match self.last.take() {
            Some(last) if last.0 == above => last,
            _ => (above.to_owned(), self.root.dir(above)?),
        };
        Ok((&self.last.insert(last).1, name))
    }
}

impl<'a> Unfinished<'a> {
    /// Creates a file with an unused name by calling `make` with random names.
    fn new<T>(
        dir: &'a Dir,
        prefix: &str,
        mut make: impl FnMut(&str) -> rustix::io::Result<T>,
    ) -> io::Result<(Self, T)> {
        for _ in 0..MAX_TRIES {
            let name = format!("{prefix}{:016x}", fastrand::u64(..));
            match make(&name) {
                Err(Errno::EXIST | Errno::LOOP) => {}
                made => {
                    let made = made?;
                    let name = Some(name);
                    return Ok((Self { dir, name }, made));
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns the temporary name of the file.
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// Renames the file to its final name in the same directory. Replaces an existing file of that name.
    ///
    /// # Errors
    /// The file cannot be renamed. The file is then removed.
    pub fn replace(mut self, name: &OsStr) -> io::Result<()> {
        if let Some(own) = &self.name {
            renameat(self.dir, own, self.dir, name)?;
        }
        self.name = None;
        Ok(())
    }

    /// Renames the file to its final name in the same directory. Never replaces another file.
    ///
    /// # Errors
    /// The name exists, or the file cannot be renamed. The file is then removed.
    pub fn create(mut self, name: &OsStr) -> io::Result<()> {
        if let Some(own) = &self.name {
            rename_new((self.dir, own.as_ref()), (self.dir, name))?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // It stays as a file with an odd name.
            let _stays = unlinkat(self.dir, name.as_str(), AtFlags::empty());
        }
    }
}

/// Opens a regular file by its canonical path, no component of which may be a symbolic link.
///
/// # Errors
/// As for [`Dir::file`].
pub fn open_real(path: &Path) -> io::Result<(File, Node)> {
    let name = path.file_name().ok_or_else(regular::not_regular)?;
    Dir::open(path.parent().unwrap_or(path))?.file(name)
}

/// Opens a regular file. Resolves the symbolic links of the path once. After that, no component of the path may be a symbolic
/// link.
///
/// # Errors
/// As for [`Dir::file`].
pub(crate) fn open_resolved(path: &Path) -> io::Result<(File, Node)> {
    open_real(&path.canonicalize()?)
}

/// Returns the contents of a regular file, which `open_resolved` opens.
///
/// # Errors
/// As for [`Dir::read`].
pub fn read_resolved(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    regular::read_open(open_resolved(path)?.0, most)
}

/// Returns the contents of a small text file, which `open_resolved` opens.
///
/// # Errors
/// As for [`Dir::read`], or the file is not UTF-8.
pub fn text_resolved(path: &Path) -> io::Result<String> {
    let bytes = read_resolved(path, regular::SMALL_FILE_BYTES)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// Opens a file of any kind with `O_PATH`, by its canonical path, no component of which may be a symbolic link.
///
/// # Errors
/// The file cannot be opened, or a component of the path has become a symbolic link.
pub(crate) fn open_o_path(real: &Path) -> rustix::io::Result<OwnedFd> {
    let file = open_place(real)?;
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::Symlink => Err(Errno::LOOP),
        _ => Ok(file),
    }
}

/// Opens a file of any kind, or a symbolic link, with `O_PATH`. The directories in the path must not be symbolic links.
///
/// # Errors
/// The file cannot be opened, or a directory in the path has become a symbolic link.
pub(crate) fn open_place(path: &Path) -> rustix::io::Result<OwnedFd> {
    let (top, below) = split_real(path)?;
    top.beneath(below, NAMED)
}

/// Opens `/`. Returns the open directory, and the canonical path `real` relative to it.
fn split_real(real: &Path) -> rustix::io::Result<(Dir, &Path)> {
    let below = real.strip_prefix("/").map_err(|_| Errno::INVAL)?;
    let top = openat(CWD, "/", DIRECTORY, Mode::empty())?;
    Ok((Dir(top), below))
}

/// Returns the names and the file types of a directory's entries. The directory is given by its canonical path. Skips entries
/// that cannot be read.
pub(crate) fn list_real(real: &Path) -> impl Iterator<Item = (OsString, FileType)> + use<> {
    let listed = Dir::open(real).and_then(|dir| dir.list());
    listed.into_iter().flatten().flatten()
}

/// Returns the path in the form that the methods of [`Dir`] take. Refuses `..` and absolute paths.
fn checked(path: &Path) -> rustix::io::Result<&Path> {
    let mut parts = path.components();
    match parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        true if path.as_os_str().is_empty() => Ok(Path::new(ITSELF)),
        true => Ok(path),
        false => Err(Errno::INVAL),
    }
}

/// Converts the error of an open to `None` if the file does not exist, or if a component of its path is a symbolic link, or if a
/// component before the last one is not a directory.
fn found<T>(opened: rustix::io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The error for a path with a component that is a symbolic link.
#[derive(Debug, thiserror::Error)]
#[error("it or a directory above it is a link now")]
struct LinkError;

/// Returns whether a file could not be opened because a component of its path is a symbolic link.
pub(crate) fn is_link_error(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|reason| reason.is::<LinkError>())
}

fn error(errno: Errno) -> io::Error {
    match errno {
        Errno::LOOP => io::Error::other(LinkError),
        errno => errno.into(),
    }
}

fn rename_new(
    (old_dir, old): (&Dir, &OsStr),
    (new_dir, new): (&Dir, &OsStr),
) -> rustix::io::Result<()> {
    match renameat_with(old_dir, old, new_dir, new, RenameFlags::NOREPLACE) {
        // The file system cannot do it in one step.
        Err(Errno::INVAL | Errno::NOSYS) => {
            rustix::fs::linkat(old_dir, old, new_dir, new, AtFlags::empty())?;
            unlinkat(old_dir, old, AtFlags::empty())
        }
        renamed => renamed,
    }
}

/// Returns the file that was opened, if it is a regular one.
fn opened_regular(opened: rustix::io::Result<OwnedFd>) -> io::Result<(File, Node)> {
    let file = File::from(opened.map_err(error)?);
    let node = regular_node(Node::of(&file)?)?;
    Ok((file, node))
}

/// Returns `node` if it describes a regular file. Otherwise returns an error.
fn regular_node(node: Node) -> io::Result<Node> {
    match node.kind {
        Kind::File => Ok(node),
        Kind::Link => Err(error(Errno::LOOP)),
        _ => Err(regular::not_regular()),
    }
}

/// Returns the path in `/proc` that leads to an open file.
fn name_of(file: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests;
