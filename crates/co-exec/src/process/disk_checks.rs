//! Checks the disk usage of a command by counting the files in its directories.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// The pause between two checks of the free space on the file system.
const INTERVAL: Duration = Duration::from_millis(500);
/// The longest pause between two counts of the files, as a multiple of the duration of one count.
const COUNT_INTERVAL_FACTOR: u32 = 20;

/// A set of directories, and the most bytes and files that they may contain together.
#[derive(Debug, Clone)]
pub(crate) struct DirectoryLimits {
    /// The directories, all on the same file system. Empty if nothing is limited.
    pub(crate) dirs: Vec<PathBuf>,
    pub(crate) bytes: Option<u64>,
    /// The most files and directories that the directories may contain together.
    pub(crate) files: Option<u64>,
}

/// The limit that the directories exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    Bytes(u64),
    Files(u64),
}

/// The bytes and the number of files that directories use, or that are free on a file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    bytes: u64,
    files: u64,
}

/// The result of counting the files in the directories.
#[derive(Debug, Default)]
struct Count {
    used: Amount,
    /// True if a directory could not be listed, so that files are missing in the count.
    partial: bool,
}

impl DirectoryLimits {
    /// Waits until the directories exceed a limit, and returns the limit. If there is no limit or no directory, waits forever.
    pub(crate) async fn exceeded(self) -> Excess {
        let is_limited = self.bytes.is_some() || self.files.is_some();
        match self.dirs.first().cloned().filter(|_| is_limited) {
            Some(place) => self.wait(&place).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the directories exceed a limit, and returns the limit. `place` is on the same file system as the directories.
    async fn wait(self, place: &Path) -> Excess {
        let at_first = Amount::free(place);
        let mut pause = INTERVAL;
        let (mut before, mut left) = (at_first, self.left(Amount::default()));
        loop {
            let slept = Instant::now();
            // A count of many files takes long. In between, the free room tells how much may have been written.
            loop {
                tokio::time::sleep(INTERVAL).await;
                let gone = before.without(Amount::free(place));
                if slept.elapsed() >= pause || !gone.fits(left) {
                    break;
                }
            }
            let began = Instant::now();
            before = Amount::free(place);
            let (tell, told) = oneshot::channel();
            let counted = self.clone();
            let look = std::thread::Builder::new().name("disk".to_owned());
            // No thread may be available, as beside a fork bomb. Then the next check tries again.
            let _ = look.spawn(move || tell.send(counted.count()));
            if let Ok(count) = told.await {
                let mut used = count.used;
                if count.partial {
                    // All that went from the file system may be in a directory that cannot be listed.
                    used = used.at_least(at_first.without(before));
                }
                if let Some(excess) = self.excess(used) {
                    return excess;
                }
                left = self.left(used);
            }
            pause = INTERVAL.max(began.elapsed() * COUNT_INTERVAL_FACTOR);
        }
    }

    fn excess(&self, used: Amount) -> Option<Excess> {
        let bytes = self.bytes.filter(|most| used.bytes > *most);
        let files = self.files.filter(|most| used.files > *most);
        bytes.map(Excess::Bytes).or(files.map(Excess::Files))
    }

    /// Returns the amount that may still be written before a limit is exceeded.
    fn left(&self, used: Amount) -> Amount {
        let most = Amount {
            bytes: self.bytes.unwrap_or(u64::MAX),
            files: self.files.unwrap_or(u64::MAX),
        };
        most.without(used)
    }

    /// Counts the bytes and files in the directories. Stops as soon as a limit is exceeded.
    fn count(&self) -> Count {
        let mut count = Count::default();
        // Files that have several names count once.
        let mut linked = HashSet::new();
        let mut left = self.dirs.clone();
        while let Some(dir) = left.pop() {
            let Ok(entries) = fs::read_dir(dir) else {
                count.partial = true;
                continue;
            };
            for entry in entries.flatten() {
                let Ok(facts) = entry.metadata() else {
                    continue;
                };
                if facts.is_dir() {
                    left.push(entry.path());
                } else if facts.nlink() > 1 && !linked.insert((facts.dev(), facts.ino())) {
                    continue;
                }
                count.used.bytes += bytes(&facts);
                count.used.files += 1;
                if self.excess(count.used).is_some() {
                    return count;
                }
            }
        }
        count
    }
}

impl Amount {
    /// Returns the free amount on the file system of `dir`.
    fn free(dir: &Path) -> Self {
        rustix::fs::statvfs(dir).map_or_else(
            |_| Self::default(),
            |facts| Self {
                bytes: facts.f_bfree * facts.f_frsize,
                files: facts.f_ffree,
            },
        )
    }

    fn without(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            files: self.files.saturating_sub(other.files),
        }
    }

    fn at_least(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.max(other.bytes),
            files: self.files.max(other.files),
        }
    }

    fn fits(self, room: Self) -> bool {
        self.bytes <= room.bytes && self.files <= room.files
    }
}

/// Returns the number of bytes that a file occupies on the disk.
fn bytes(facts: &Metadata) -> u64 {
    // In units of 512 bytes, whatever the file system's are.
    facts.blocks() * 512
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(dir: &Path) -> DirectoryLimits {
        DirectoryLimits {
            dirs: vec![dir.to_owned()],
            bytes: Some(u64::MAX),
            files: Some(5),
        }
    }

    #[test]
    fn a_file_with_several_names_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("inner")).unwrap();
        fs::write(dir.path().join("file"), vec![1; 1 << 20]).unwrap();
        let once = limits(dir.path()).count().used;
        assert!(once.bytes >= 1 << 20 && once.files == 2);
        for name in ["other", "inner/third"] {
            fs::hard_link(dir.path().join("file"), dir.path().join(name)).unwrap();
        }
        assert_eq!(limits(dir.path()).count().used, once);
    }

    #[test]
    fn the_first_limit_that_is_exceeded_is_told() {
        let limits = limits(Path::new("/"));
        let excess = |bytes, files| limits.excess(Amount { bytes, files });
        assert_eq!(excess(1 << 40, 5), None);
        assert_eq!(excess(0, 6), Some(Excess::Files(5)));
        let left = limits.left(Amount { bytes: 1, files: 9 });
        assert_eq!((left.bytes, left.files), (u64::MAX - 1, 0));
    }
}
