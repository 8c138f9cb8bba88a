//! Reads and writes whole files of the workspace.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, RenameFlags};
use tempfile::NamedTempFile;

use co_exec::regular;

/// The largest file that is edited, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;

/// The mode of a new file, from which the umask takes.
const NEW_FILE: u32 = 0o666;

/// The start of the names of files that are not whole yet.
pub(crate) const UNFINISHED: &str = ".co-edit-";

/// The way in which a file is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteOptions<'a> {
    /// The start of the name that the file has until it is whole.
    pub(crate) unfinished: &'a str,
    /// The mode, also of a file that was read-only. None keeps that of the file, and replaces no read-only one.
    pub(crate) mode: Option<u32>,
    /// The file must survive a loss of power.
    pub(crate) sync: bool,
}

impl Default for WriteOptions<'_> {
    fn default() -> Self {
        Self {
            unfinished: UNFINISHED,
            mode: None,
            sync: true,
        }
    }
}

/// Returns the bytes of a regular file, or none if there is no file.
///
/// # Errors
/// It cannot be read, is not a regular file, or is too large.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match regular::read(path, MAX_FILE_BYTES) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Checks that a file may be replaced or removed.
///
/// # Errors
/// It is read-only, or has other names.
pub(super) fn check_writable(path: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    let none_may_write = meta.mode() & 0o222 == 0;
    // The directory alone decides whether a file can be replaced, so the file's own mode is checked here.
    let may_write = rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS);
    if none_may_write || may_write.is_err() {
        return Err(io::Error::other("it is read-only: make it writable first"));
    }
    check_links(&meta)
}

fn check_links(meta: &Metadata) -> io::Result<()> {
    match meta.nlink() {
        0 | 1 => Ok(()),
        names => Err(io::Error::other(format!(
            "it has {names} names (hard links), and a new file would take the place of one of them: change it in place by \
             a command"
        ))),
    }
}

/// Replaces a file whole, so that no reader meets half of it. The owner stays.
///
/// # Errors
/// The file cannot be written, or it no longer has the bytes `before`.
pub(crate) fn replace(
    path: &Path,
    before: &[u8],
    after: &[u8],
    options: WriteOptions<'_>,
) -> io::Result<()> {
    let meta = fs::metadata(path)?;
    let file = temporary(path, after, options)?;
    let mode = options.mode.unwrap_or(meta.mode() & 0o7777);
    keep_owner(file.as_file(), &meta, mode)?;
    check_same(path, Some(before))?;
    match options.mode {
        None => check_writable(path)?,
        Some(_) => check_links(&fs::symlink_metadata(path)?)?,
    }
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Creates a file with its directories. Never replaces one.
///
/// # Errors
/// The file exists or cannot be written.
pub(crate) fn create(path: &Path, text: &[u8], options: WriteOptions<'_>) -> io::Result<()> {
    create_parents(path)?;
    let kept = new_file(path, text, options)?.persist_noclobber(path);
    kept.map(drop)
        .map_err(|error| changed_if_exists(error.error))
}

/// Puts a file in the place of a link.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn replace_link(path: &Path, text: &[u8], options: WriteOptions<'_>) -> io::Result<()> {
    let kept = new_file(path, text, options)?.persist(path);
    kept.map(drop).map_err(|error| error.error)
}

/// Puts a link in the place of a file or another link.
///
/// # Errors
/// The link cannot be made.
pub(crate) fn replace_by_link(
    path: &Path,
    target: &Path,
    options: WriteOptions<'_>,
) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    let link = builder.prefix(options.unfinished);
    let link = link.make_in(directory(path), |path| symlink(target, path))?;
    link.persist(path).map(drop).map_err(|error| error.error)
}

/// Removes a file that has the bytes `before`.
///
/// # Errors
/// The file cannot be removed or has changed.
pub(crate) fn remove(path: &Path, before: &[u8]) -> io::Result<()> {
    check_same(path, Some(before))?;
    fs::remove_file(path)
}

/// Gives a file another name, and makes the directories of that name. Never replaces a file.
///
/// # Errors
/// The other name exists, or the file cannot be moved.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    create_parents(to)?;
    rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
        .map_err(|error| changed_if_exists(error.into()))
}

fn create_parents(path: &Path) -> io::Result<()> {
    fs::create_dir_all(directory(path))
}

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Returns the file of [`temporary`] with the mode of the options.
fn new_file(path: &Path, bytes: &[u8], options: WriteOptions<'_>) -> io::Result<NamedTempFile> {
    let file = temporary(path, bytes, options)?;
    if let Some(mode) = options.mode {
        let mode = Permissions::from_mode(mode);
        file.as_file().set_permissions(mode)?;
    }
    Ok(file)
}

/// Returns a file beside `path` with the bytes, which is removed unless it takes the place of `path`.
fn temporary(path: &Path, bytes: &[u8], options: WriteOptions<'_>) -> io::Result<NamedTempFile> {
    // Another mode is set when it is whole.
    let mode = options.mode.map_or(NEW_FILE, |_| 0o600);
    let mut file = tempfile::Builder::new()
        .prefix(options.unfinished)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(directory(path))?;
    // An error names no path of its own.
    file.as_file_mut().write_all(bytes)?;
    if options.sync {
        file.as_file().sync_all()?;
    }
    Ok(file)
}

fn keep_owner(file: &File, like: &Metadata, mode: u32) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
        // Only root can give a file away. The group may still be one of the person's.
        let group = Some(like.gid());
        if std::os::unix::fs::fchown(file, Some(like.uid()), group).is_err() {
            let _other_group = std::os::unix::fs::fchown(file, None, group);
        }
    }
    // After the owner, whose change takes bits away.
    file.set_permissions(Permissions::from_mode(mode))
}

fn check_same(path: &Path, before: Option<&[u8]>) -> io::Result<()> {
    match read(path)?.as_deref() == before {
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
