//! The mark of a command: a number that identifies its processes, even after they leave its session.
//!
//! The mark is a limit of file locks (`RLIMIT_LOCKS`) that is unique for each command. The kernel has ignored this limit since
//! Linux 2.4.25, but each child still inherits it. A new environment, session or parent does not remove it. A process can lower
//! its limit, and only root can raise it.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit};

use crate::process::procfs;

/// The lowest mark that this process has used; 0 before the first mark.
static LEAST: AtomicU64 = AtomicU64::new(0);

/// The number of low bits in a mark that count the commands of one process.
const COUNT_BITS: u32 = 24;

/// The mark of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// Sets a new mark on this process. Its children inherit the mark from now on.
    ///
    /// If the system refuses, nothing is marked, and co recognizes only the direct children of a command as its processes.
    pub(crate) fn next() -> Self {
        let last = match LEAST.load(Ordering::Acquire) {
            0 => first(),
            last => last,
        };
        let mark = last.saturating_sub(1);
        LEAST.store(mark, Ordering::Release);
        let limit = Rlimit {
            current: Some(mark),
            maximum: Some(mark),
        };
        if let Err(error) = rustix::process::setrlimit(Resource::Locks, limit) {
            tracing::warn!(%error, "commands cannot be marked");
        }
        Self(mark)
    }

    /// Returns whether the process `pid` has this mark.
    pub(crate) fn is_on(self, pid: i32) -> bool {
        procfs::limit_of_locks(pid) == Some(self.0)
    }
}

/// Returns the number from which this process counts its marks down. If another co process runs this process as a command, both
/// count down: the other process from the mark that this process has inherited, and this process from a much lower number. So
/// they never use the same mark.
fn first() -> u64 {
    let given = rustix::process::getrlimit(Resource::Locks).maximum;
    let own = u64::from(procfs::own_pid().unsigned_abs()) << COUNT_BITS;
    let given = given.unwrap_or(u64::MAX >> 1);
    given.checked_sub(own).unwrap_or(given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::children;

    #[test]
    fn a_mark_goes_to_what_is_started_and_no_other_is_equal() {
        let (mark, child) = children::tests::marked("sleep 300");
        assert!(mark.is_on(child) && !mark.is_on(procfs::own_pid()));
        let (other, second) = children::tests::marked("exec env -i setsid sleep 300");
        assert!(other.is_on(second) && !mark.is_on(second) && !other.is_on(child));
        children::tests::end(&[child, second]);
    }
}
