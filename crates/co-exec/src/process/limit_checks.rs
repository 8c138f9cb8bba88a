//! Checks the memory, processes and disk that a command and its descendants use.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::limits::{CommandLimits, ExceededLimit};
use crate::process::memory;
use crate::process::procfs::Process;

/// The pause before the first check of memory and processes. Each later pause is twice as long.
pub(crate) const FIRST_INTERVAL: Duration = Duration::from_millis(50);
/// The longest pause between two checks.
pub(crate) const MAX_INTERVAL: Duration = Duration::from_millis(500);
/// The pause between two checks of the disk, as a multiple of the duration of a check.
const DISK_INTERVAL_FACTOR: u32 = 20;

/// Returns the limit that the processes `members` of a command exceed. The memory of the directory `tmp` counts too, if
/// they see another file system there.
pub(crate) fn exceeded(
    limits: &CommandLimits,
    members: &[Process],
    tmp: Option<&Path>,
) -> Option<ExceededLimit> {
    let threads: u64 = members.iter().map(|process| process.threads).sum();
    if let Some(most) = limits.processes
        && threads > most
    {
        return Some(ExceededLimit::Processes(most));
    }
    let most = limits.memory?;
    let threads: Vec<i32> = members.iter().map(Process::running_thread).collect();
    let files = tmp.and_then(|dir| memory::of_directory(dir, &threads));
    let left = most.checked_sub(files.unwrap_or(0));
    let over = left.is_none_or(|left| memory::exceeds(&threads, left));
    over.then_some(ExceededLimit::Memory(most))
}

/// Returns once the tree `dir` uses more than `most` bytes of the disk.
pub(crate) async fn disk(dir: PathBuf, most: u64) {
    let mut pause = MAX_INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        let began = Instant::now();
        let (tell, told) = oneshot::channel();
        let dir = dir.clone();
        let look = std::thread::Builder::new().name("disk".to_owned());
        // No thread may be available, as beside a fork bomb. Then the next check tries again.
        let _ = look.spawn(move || tell.send(used(&dir, most)));
        if told.await.is_ok_and(|used| used > most) {
            return;
        }
        pause = MAX_INTERVAL.max(began.elapsed() * DISK_INTERVAL_FACTOR);
    }
}

/// Returns the bytes of the disk that a tree uses. Stops counting above `most`.
fn used(dir: &Path, most: u64) -> u64 {
    let mut sum = 0;
    // Files that have several names count once.
    let mut linked = HashSet::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(facts) = entry.metadata() else {
                continue;
            };
            if facts.nlink() > 1 && !facts.is_dir() && !linked.insert((facts.dev(), facts.ino())) {
                continue;
            }
            // In units of 512 bytes, whatever the file system's are.
            sum += facts.blocks() * 512;
            if sum > most {
                return sum;
            }
            if facts.is_dir() {
                left.push(entry.path());
            }
        }
    }
    sum
}

/// Returns the bytes of files without a name that processes hold open, on the file system of `dir`.
pub(crate) fn nameless(members: &[Process], dir: &Path) -> u64 {
    let Ok(device) = dir.metadata().map(|facts| facts.dev()) else {
        return 0;
    };
    let mut seen = HashSet::new();
    let mut sum = 0;
    for process in members {
        let open = fs::read_dir(format!("/proc/{}/fd", process.pid));
        for entry in open.into_iter().flatten().flatten() {
            let Ok(facts) = fs::metadata(entry.path()) else {
                continue;
            };
            let counts = facts.is_file() && facts.nlink() == 0 && facts.dev() == device;
            if counts && seen.insert(facts.ino()) {
                sum += facts.blocks() * 512;
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::process::procfs;

    #[test]
    fn open_files_without_a_name_count() {
        let dir = tempfile::tempdir().unwrap();
        let own = Process::read(procfs::own_pid()).unwrap();
        let mut file = tempfile::tempfile_in(dir.path()).unwrap();
        io::Write::write_all(&mut file, &vec![1; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        assert!(nameless(&[own], dir.path()) >= 1 << 20);
    }

    #[test]
    fn a_file_with_several_names_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("inner")).unwrap();
        fs::write(dir.path().join("file"), vec![1; 1 << 20]).unwrap();
        let once = used(dir.path(), u64::MAX);
        assert!(once >= 1 << 20);
        for name in ["other", "inner/third"] {
            fs::hard_link(dir.path().join("file"), dir.path().join(name)).unwrap();
        }
        assert_eq!(used(dir.path(), u64::MAX), once);
    }
}
