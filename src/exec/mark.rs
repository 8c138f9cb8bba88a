//! The number by which a process is known to be a command's, wherever it went.
//!
//! Each command starts with a limit of file locks of its own (`RLIMIT_LOCKS`). The kernel has not used that limit
//! since Linux 2.4.25, but still hands it on to every child: a cleared environment, a new session or a second fork
//! do not shed it. A process can lower it, and nobody but root can raise it.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit};

use super::{children, procfs};

/// The least mark that a process has used; 0 before the first.
static LEAST: AtomicU64 = AtomicU64::new(0);

/// How many marks a process leaves to those that started it: more than it can have commands.
const STRETCH: u32 = 24;

/// The mark of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark(u64);

impl Mark {
    /// Puts a new mark on this process, which what it starts from then on has.
    ///
    /// Where the system refuses, nothing is marked, and only the children of a command are known to be its own.
    pub(super) fn next() -> Self {
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
    pub(super) fn is_on(self, pid: i32) -> bool {
        procfs::limit_of_locks(pid) == Some(self.0)
    }
}

/// Returns a number below which nobody has used one: where this process is a command of another one's, that one
/// goes on counting from its own.
fn first() -> u64 {
    let given = rustix::process::getrlimit(Resource::Locks).maximum;
    let own = u64::from(children::own_pid().unsigned_abs()) << STRETCH;
    given.unwrap_or(u64::MAX >> 1).saturating_sub(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_goes_to_what_is_started_and_no_other_is_equal() {
        let (mark, child) = children::tests::marked("sleep 300");
        assert!(mark.is_on(child) && !mark.is_on(children::own_pid()));
        let (other, second) = children::tests::marked("exec env -i setsid sleep 300");
        assert!(other.is_on(second) && !mark.is_on(second) && !other.is_on(child));
        children::tests::end(&[child, second]);
    }
}
