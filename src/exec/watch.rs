//! Watches what a command takes with all that it started.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::limits::{Limit, PerCommand};
use super::procfs::{self, Process};

/// The pause before the first look at memory and processes; each one after it is twice as long.
pub(super) const FIRST: Duration = Duration::from_millis(50);
/// The longest pause between two looks.
pub(super) const LONGEST: Duration = Duration::from_millis(500);
/// The pause between two looks at the disk is so many times as long as a look takes.
const SPARING: u32 = 20;

/// Returns which limit `members`, the processes of a command, exceed.
pub(super) fn exceeded(limits: &PerCommand, members: &[Process]) -> Option<Limit> {
    let threads: u64 = members.iter().map(|process| process.threads).sum();
    if let Some(most) = limits.processes
        && threads > most
    {
        return Some(Limit::Processes(most));
    }
    let most = limits.memory?;
    let sum = |of: fn(i32) -> Option<u64>| -> u64 {
        members.iter().filter_map(|process| of(process.pid)).sum()
    };
    // The first is cheap, and counts twice what two processes share.
    let over = sum(procfs::private_memory) > most && sum(procfs::proportional_memory) > most;
    over.then_some(Limit::Memory(most))
}

/// Returns once the tree `dir` takes more than `most` bytes of the disk.
pub(super) async fn disk(dir: PathBuf, most: u64) {
    let mut pause = LONGEST;
    loop {
        tokio::time::sleep(pause).await;
        let began = Instant::now();
        let (tell, told) = oneshot::channel();
        let dir = dir.clone();
        let look = std::thread::Builder::new().name("disk".to_owned());
        // Where there is no thread to be had, as beside a command that forks in a loop, the next look may have one.
        let _ = look.spawn(move || tell.send(used(&dir, most)));
        if told.await.is_ok_and(|used| used > most) {
            return;
        }
        pause = LONGEST.max(began.elapsed() * SPARING);
    }
}

/// Returns how many bytes of the disk a tree takes; more than `most` is not counted to its end.
fn used(dir: &Path, most: u64) -> u64 {
    let mut sum = 0;
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(facts) = entry.metadata() else {
                continue;
            };
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
