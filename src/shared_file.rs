//! Files that several backends change, such as saved rules: a lock lets one backend change them at a time, and a changed
//! file replaces the old one as a whole.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// The file whose lock holds for all files beside it.
pub(crate) const LOCK: &str = "lock";
/// The longest wait for the lock: its holder writes one small file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Keeps every other chat and Neovim from changing the files of `dir` until the lock is dropped. A change reads the file under
/// the lock too, or it would write back entries that were removed meanwhile.
///
/// # Errors
/// The directory or its lock cannot be made, or another process holds the lock.
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

/// Replaces a file whole, so that no reader meets half of it. Its owner alone may read it.
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
