//! The whole stream of a command in a file, up to a cap, and the directory of such files.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};

/// Pieces of one read each that may wait for the disk: 1 MiB, then the command waits too.
const QUEUE: usize = 16;
/// How long a disk may take for what still waits.
const PATIENCE: Duration = Duration::from_secs(5);
const SUFFIX: &str = "out";

/// Returns where the stream of a job is kept, if it is.
pub(super) fn path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.{SUFFIX}"))
}

/// Says where a stream of `bytes` is whose file takes the first `cap` of them.
pub(super) fn place(path: &Path, bytes: u64, cap: u64) -> String {
    let path = path.display();
    if bytes > cap {
        format!("the first {cap} bytes of it: {path}")
    } else {
        format!("all of it: {path}")
    }
}

/// A file being written on a thread of its own, so that a slow disk stalls nobody else.
#[derive(Debug)]
pub(super) struct Spill {
    queue: mpsc::Sender<Vec<u8>>,
    written: oneshot::Receiver<Option<PathBuf>>,
    /// What the cap leaves.
    left: u64,
}

impl Spill {
    /// Starts a file in `dir`, named after the job.
    pub(super) fn start(dir: &Path, name: &str, cap: u64) -> Self {
        let (queue, pieces) = mpsc::channel(QUEUE);
        let path = path(dir, name);
        let (tell, written) = oneshot::channel();
        let thread = std::thread::Builder::new().name("spill".to_owned());
        // Where there is no thread to be had both channels close, and the end reports no file.
        let _ = thread.spawn(move || tell.send(write(path, pieces)));
        Self {
            queue,
            written,
            left: cap,
        }
    }

    /// Queues the next bytes; what is beyond the cap is left out.
    pub(super) async fn write(&mut self, mut bytes: Vec<u8>) {
        let len = usize::try_from(self.left).unwrap_or(usize::MAX);
        bytes.truncate(len);
        if bytes.is_empty() {
            return;
        }
        self.left -= bytes.len() as u64;
        // It fails once the file could not be written, which the end reports.
        let _ = self.queue.send(bytes).await;
    }

    /// Returns whether the cap leaves room.
    pub(super) fn open(&self) -> bool {
        self.left > 0
    }

    /// Waits for the last write, within reason; returns the file, none where it could not be written.
    pub(super) async fn finish(self) -> Option<PathBuf> {
        drop(self.queue);
        let written = tokio::time::timeout(PATIENCE, self.written).await;
        written.ok()?.ok().flatten()
    }
}

fn write(path: PathBuf, mut pieces: mpsc::Receiver<Vec<u8>>) -> Option<PathBuf> {
    let next = || pieces.blocking_recv();
    let written = create(&path).and_then(|mut file| {
        let all = std::iter::from_fn(next).try_for_each(|piece| file.write_all(&piece));
        // A piece of it is of no use to anybody, and the disk may be full.
        all.inspect_err(|_| drop(fs::remove_file(&path)))
    });
    match written {
        Ok(()) => Some(path),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot keep a command's output");
            None
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Removes the files of `dir` that are older than `age`, then the oldest beyond `total` bytes.
pub(super) fn prune(dir: &Path, age: Duration, total: u64) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|it| it == SUFFIX))
        .filter_map(|entry| {
            let facts = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((facts.modified().ok()?, facts.len(), entry.path()))
        })
        .collect();
    files.sort_unstable_by(|one, other| other.cmp(one));
    let now = SystemTime::now();
    let mut kept = 0_u64;
    for (changed, size, path) in files {
        let old = now.duration_since(changed).is_ok_and(|it| it > age);
        kept = kept.saturating_add(size);
        if old || kept > total {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn writes_privately_up_to_the_cap() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("spill");
        let mut spill = Spill::start(&inner, "job", 10);
        spill.write(b"01234567".to_vec()).await;
        spill.write(b"89abcdef".to_vec()).await;
        assert!(!spill.open());
        let path = spill.finish().await.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"0123456789");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            fs::metadata(&inner).unwrap().permissions().mode() & 0o777,
            0o700
        );
    }

    #[tokio::test]
    async fn a_file_that_is_there_already_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(path(dir.path(), "job"), "another's").unwrap();
        let mut spill = Spill::start(dir.path(), "job", 10);
        spill.write(b"x".to_vec()).await;
        assert_eq!(spill.finish().await, None);
        assert_eq!(fs::read(path(dir.path(), "job")).unwrap(), b"another's");
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_is_no_file() {
        let mut spill = Spill::start(Path::new("/dev/null/x"), "job", 10);
        spill.write(b"x".to_vec()).await;
        assert_eq!(spill.finish().await, None);
    }

    #[test]
    fn prunes_by_age_and_by_size() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, hours: u64| {
            let path = dir.path().join(name);
            fs::write(&path, [0; 100]).unwrap();
            let changed = SystemTime::now() - Duration::from_secs(hours * 3600);
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(changed)
                .unwrap();
        };
        for (name, hours) in [
            ("a.out", 1),
            ("b.out", 2),
            ("c.out", 3),
            ("d.out", 50),
            ("e.txt", 50),
        ] {
            make(name, hours);
        }
        prune(dir.path(), Duration::from_secs(24 * 3600), 250);
        let mut left: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["a.out", "b.out", "e.txt"]);
    }
}
