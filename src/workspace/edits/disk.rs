//! Reads and writes whole files of the workspace, relative to its directory descriptor.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use co_exec::beneath::{Dir, Node, Unfinished};

/// The largest size in bytes of a file that can be edited.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;

/// The mode of a new file before the umask is applied.
const NEW_FILE: u32 = 0o666;

/// The prefix of the names of files that are not complete yet.
pub(crate) const UNFINISHED: &str = ".co-edit-";

/// The options for writing a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteOptions<'a> {
    /// The prefix of the file's name until the file is complete.
    pub(crate) unfinished: &'a str,
    /// The mode that the file gets, even if it was read-only. `None` keeps the mode of the file, and refuses to write a read-only
    /// file.
    pub(crate) mode: Option<u32>,
    /// True if the file must survive a power failure.
    pub(crate) sync: bool,
    /// True if the missing directories above a new file are created too.
    pub(crate) makes_dirs: bool,
}

impl Default for WriteOptions<'_> {
    fn default() -> Self {
        Self {
            unfinished: UNFINISHED,
            mode: None,
            sync: true,
            makes_dirs: true,
        }
    }
}

/// Returns the bytes of a regular file; none if the file does not exist.
///
/// # Errors
/// The file cannot be read, is not a regular file, or is too large.
pub(crate) fn read(root: &Dir, path: impl AsRef<Path>) -> io::Result<Option<Vec<u8>>> {
    match root.read(path, MAX_FILE_BYTES) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Checks that a file may be replaced or removed.
///
/// # Errors
/// The file is read-only, or has several hard links.
pub(super) fn check_writable(root: &Dir, path: impl AsRef<Path>) -> io::Result<()> {
    let node = node(root, &path)?;
    // The directory alone decides whether a file can be replaced, so the file's own mode is checked here.
    if node.mode & 0o222 == 0 || !root.is_writable(path) {
        return Err(io::Error::other("it is read-only: make it writable first"));
    }
    check_links(&node)
}

fn node(root: &Dir, path: impl AsRef<Path>) -> io::Result<Node> {
    root.node(path)?.ok_or(io::ErrorKind::NotFound.into())
}

/// Checks that a file has a single hard link.
///
/// # Errors
/// The file has several hard links.
pub(crate) fn check_links(node: &Node) -> io::Result<()> {
    match node.names {
        0 | 1 => Ok(()),
        names => Err(io::Error::other(format!(
            "it has {names} names (hard links), and a new file would take the place of one of them: change it in place by \
             a command"
        ))),
    }
}

/// Replaces a file atomically, so that no reader sees a part of the new content. The owner stays the same.
///
/// # Errors
/// The file cannot be written, or it no longer has the bytes `before`.
pub(crate) fn replace(
    root: &Dir,
    path: &Path,
    before: &[u8],
    after: &[u8],
    options: WriteOptions<'_>,
) -> io::Result<()> {
    let (dir, name) = root.parent(path)?;
    let old = node(&dir, name)?;
    let (unfinished, file) = temporary(&dir, after, options)?;
    keep_owner(&file, &old, options.mode.unwrap_or(old.mode))?;
    check_same(&dir, name, before)?;
    match options.mode {
        None => check_writable(&dir, name)?,
        Some(_) => check_links(&node(&dir, name)?)?,
    }
    unfinished.replace(name)
}

/// Creates a file. Never replaces a file.
///
/// # Errors
/// The file exists or cannot be written.
pub(crate) fn create(
    root: &Dir,
    path: &Path,
    text: &[u8],
    options: WriteOptions<'_>,
) -> io::Result<()> {
    let (dir, name) = parent_of_new(root, path, options)?;
    let made = new_file(&dir, text, options)?.create(name);
    made.map_err(changed_if_exists)
}

/// Replaces a symbolic link by a file.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn replace_link(
    root: &Dir,
    path: &Path,
    text: &[u8],
    options: WriteOptions<'_>,
) -> io::Result<()> {
    let (dir, name) = root.parent(path)?;
    new_file(&dir, text, options)?.replace(name)
}

/// Replaces a file or a symbolic link by another symbolic link.
///
/// # Errors
/// The link cannot be created.
pub(crate) fn replace_by_link(
    root: &Dir,
    path: &Path,
    target: &Path,
    options: WriteOptions<'_>,
) -> io::Result<()> {
    let (dir, name) = root.parent(path)?;
    let link = dir.make_unfinished_link(options.unfinished, target)?;
    link.replace(name)
}

/// Removes a file that has the bytes `before`.
///
/// # Errors
/// The file cannot be removed or has changed.
pub(crate) fn remove(root: &Dir, path: &Path, before: &[u8]) -> io::Result<()> {
    let (dir, name) = root.parent(path)?;
    check_same(&dir, name, before)?;
    dir.remove_file(name)
}

/// Moves a file to another path, and creates the directories of this path. Never replaces a file.
///
/// # Errors
/// The new path exists already, or the file cannot be moved.
pub(super) fn rename(root: &Dir, from: &Path, to: &Path) -> io::Result<()> {
    parent_of_new(root, to, WriteOptions::default())?;
    root.rename_new(from, to).map_err(changed_if_exists)
}

/// Opens the directory for a new file. Creates the directory if the options say so. Returns the directory, and the last component
/// of the path.
///
/// # Errors
/// The directory does not exist, or cannot be created.
pub(crate) fn parent_of_new<'a>(
    root: &Dir,
    path: &'a Path,
    options: WriteOptions<'_>,
) -> io::Result<(Dir, &'a OsStr)> {
    if options.makes_dirs {
        root.make_dirs(path.parent().unwrap_or(Path::new("")))?;
    }
    root.parent(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("its directory was removed"),
        _ => error,
    })
}

/// Creates a file as [`temporary`] does, and sets the mode from the options.
fn new_file<'a>(
    dir: &'a Dir,
    bytes: &[u8],
    options: WriteOptions<'_>,
) -> io::Result<Unfinished<'a>> {
    let (unfinished, file) = temporary(dir, bytes, options)?;
    if let Some(mode) = options.mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    Ok(unfinished)
}

/// Creates a file with these bytes. The file is removed unless it gets another name.
fn temporary<'a>(
    dir: &'a Dir,
    bytes: &[u8],
    options: WriteOptions<'_>,
) -> io::Result<(Unfinished<'a>, File)> {
    // Another mode is set when it is whole.
    let mode = options.mode.map_or(NEW_FILE, |_| 0o600);
    let (unfinished, mut file) = dir.make_unfinished(options.unfinished, mode)?;
    file.write_all(bytes)?;
    if options.sync {
        file.sync_all()?;
    }
    Ok((unfinished, file))
}

fn keep_owner(file: &File, like: &Node, mode: u32) -> io::Result<()> {
    let (user, group) = like.owner;
    if Node::of(file)?.owner != like.owner {
        // Only root can give a file away. The group may still be one of the person's.
        if std::os::unix::fs::fchown(file, Some(user), Some(group)).is_err() {
            let _other_group = std::os::unix::fs::fchown(file, None, Some(group));
        }
    }
    // After the owner, whose change takes bits away.
    file.set_permissions(Permissions::from_mode(mode))
}

fn check_same(dir: &Dir, name: &OsStr, before: &[u8]) -> io::Result<()> {
    match read(dir, name)?.as_deref() == Some(before) {
        true => Ok(()),
        false => Err(changed()),
    }
}

fn changed() -> io::Error {
    io::Error::other("it has changed meanwhile: read it again")
}

fn changed_if_exists(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => changed(),
        _ => error,
    }
}
