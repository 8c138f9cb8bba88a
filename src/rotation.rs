//! A private file of limited size to which several backends append. A full file is renamed, and a new one begins.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file that is renamed when it is full.
pub(crate) struct RotatingFile {
    /// The path of the current file.
    path: PathBuf,
    /// The paths for full files, the newest first. The file at the last path is overwritten.
    full: Vec<PathBuf>,
    max: u64,
    file: Option<File>,
}

impl RotatingFile {
    /// Opens `path` to append at most `max` bytes. `full` are the paths for full files.
    ///
    /// # Errors
    /// The file cannot be opened, or is a symbolic link.
    pub(crate) fn open(path: PathBuf, full: Vec<PathBuf>, max: u64) -> io::Result<Self> {
        Ok(Self {
            file: Some(append(&path)?),
            path,
            full,
            max,
        })
    }

    /// Returns the path of the current file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the current file. Begins a new one if `length` more bytes do not fit.
    fn current(&mut self, length: usize) -> io::Result<File> {
        let file = match self.file.take() {
            Some(file) if is_at(&file, &self.path) => file,
            // Another backend has renamed it.
            _ => append(&self.path)?,
        };
        let used = file.metadata()?.len();
        if used == 0 || used + length as u64 <= self.max {
            return Ok(file);
        }
        self.rotate()?;
        append(&self.path)
    }

    fn rotate(&self) -> io::Result<()> {
        let from = || std::iter::once(&self.path).chain(&self.full);
        let pairs: Vec<_> = from().zip(&self.full).collect();
        for (from, to) in pairs.into_iter().rev() {
            match fs::rename(from, to) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Write for RotatingFile {
    /// Appends all bytes to one file. After an error, the next call opens the file again.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = self.current(bytes.len())?;
        file.write_all(bytes)?;
        self.file = Some(file);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        // Somebody else may have put a link there.
        .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
        .open(path)
}

/// Returns true if the open file is still at this path.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => open.ino() == there.ino() && open.dev() == there.dev(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_full_file_is_renamed_and_a_new_one_begins() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("co.log");
        let open = || {
            let full = vec![dir.path().join("co.log.1"), dir.path().join("co.log.2")];
            RotatingFile::open(path.clone(), full, 10).unwrap()
        };
        let (mut one, mut other) = (open(), open());
        one.write_all(b"first, long\n").unwrap();
        one.write_all(b"0123456789\n").unwrap();
        one.write_all(b"new\n").unwrap();
        other.write_all(b"other\n").unwrap();
        let text = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(text("co.log"), "new\nother\n");
        assert_eq!(text("co.log.1"), "0123456789\n");
        assert_eq!(text("co.log.2"), "first, long\n");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_link_in_its_place_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("co.log");
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert!(RotatingFile::open(path, Vec::new(), 10).is_err());
    }
}
