//! Checks the memory and processes that a command and its descendants use.

use std::path::Path;
use std::time::Duration;

use crate::limits::{CommandLimits, ExceededLimit};
use crate::process::memory;
use crate::process::procfs::Process;

/// The pause before the first check of memory and processes. Each later pause is twice as long.
pub(crate) const FIRST_INTERVAL: Duration = Duration::from_millis(50);
/// The longest pause between two checks.
pub(crate) const MAX_INTERVAL: Duration = Duration::from_millis(500);
/// Returns the limit that the processes `members` of a command exceed. The files in `directory` count too, if they
/// see another file system there.
pub(crate) fn exceeded(
    limits: &CommandLimits,
    members: &[Process],
    directory: Option<&Path>,
) -> Option<ExceededLimit> {
    let threads: u64 = members.iter().map(|process| process.threads).sum();
    if let Some(most) = limits.processes
        && threads > most
    {
        return Some(ExceededLimit::Processes(most));
    }
    let most = limits.memory?;
    let threads: Vec<i32> = members.iter().map(Process::running_thread).collect();
    let files = directory.and_then(|dir| memory::of_directory(dir, &threads));
    let left = most.checked_sub(files.unwrap_or(0));
    let over = left.is_none_or(|left| memory::exceeds(&threads, left));
    over.then_some(ExceededLimit::Memory(most))
}
