//! Reads and writes whole files of the workspace.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, RenameFlags};
use tempfile::NamedTempFile;

use co_exec::regular;

/// The largest file that is edited, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;

/// The mode of a new file, from which the umask takes.
const NEW_FILE: u32 = 0o666;

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
    match meta.nlink() {
        0 | 1 => Ok(()),
        names => Err(io::Error::other(format!(
            "it has {names} names (hard links), and a new file would take the place of one of them: change it in place by \
             a command"
        ))),
    }
}

/// Replaces a file whole, so that no reader meets half of it. Mode and owner stay.
///
/// # Errors
/// The file cannot be written, or it no longer has the bytes `before`.
pub(crate) fn replace(path: &Path, before: &[u8], after: &[u8]) -> io::Result<()> {
    let meta = fs::metadata(path)?;
    let file = temporary(path, after)?;
    keep_owner_and_mode(file.as_file(), &meta)?;
    check_same(path, Some(before))?;
    check_writable(path)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Creates a file with its directories. Never replaces one.
///
/// # Errors
/// The file exists or cannot be written.
pub(crate) fn create(path: &Path, text: &[u8]) -> io::Result<()> {
    create_parents(path)?;
    let file = temporary(path, text)?;
    let kept = file.persist_noclobber(path).map(drop);
    kept.map_err(|error| changed_if_exists(error.error))
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
    fs::create_dir_all(path.parent().unwrap_or(path))
}

/// Returns a file beside `path` with the bytes, which is removed unless it takes the place of `path`.
fn temporary(path: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".co-edit-")
        .permissions(Permissions::from_mode(NEW_FILE))
        .tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn keep_owner_and_mode(file: &File, like: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
        // Only root can give a file away. The group may still be one of the person's.
        let group = Some(like.gid());
        if std::os::unix::fs::fchown(file, Some(like.uid()), group).is_err() {
            let _other_group = std::os::unix::fs::fchown(file, None, group);
        }
    }
    // After the owner, whose change takes bits away.
    file.set_permissions(Permissions::from_mode(like.mode() & 0o7777))
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
