//! Files that several backends change, such as saved rules. A lock allows only one backend at a time to change them. A changed
//! file replaces the old one atomically.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// The name of the lock file. Its lock protects all files in the same directory.
pub(crate) const LOCK: &str = "lock";
/// The time-out for the lock. It is short, because the holder of the lock only writes one small file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Locks the files in `dir` against changes by other chats and Neovims, until the returned file is dropped. Read the file to
/// change under this lock too: otherwise the change could restore entries that were removed in the meantime.
///
/// # Errors
/// The directory or the lock file cannot be made, or another process holds the lock.
pub(crate) fn lock(dir: &Path) -> io::Result<File> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
        .open(dir.join(LOCK))?;
    let end = Instant::now() + LOCK_TIMEOUT;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if Instant::now() < end => {
                std::thread::sleep(LOCK_RETRY_INTERVAL)
            }
            Err(Errno::WOULDBLOCK) => {
                let why = "another Neovim uses it; continue in that one, or end it";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, why));
            }
            Err(Errno::INTR) => {}
            // A file system without locks: as it would be without asking for one.
            Ok(()) | Err(Errno::NOLCK | Errno::OPNOTSUPP) => return Ok(file),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Replaces a file atomically, so that readers never see half of the text. Only the owner can read the new file.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map(drop).map_err(|error| error.error)
}
