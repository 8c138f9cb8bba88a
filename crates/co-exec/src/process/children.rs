//! The children of this process: commands, which have a supervisor, and orphans, which do not.
//!
//! The kernel keeps one list of children for the whole process, so the list of commands is global too. Without it, two executors
//! in one process, or two tests, would reap each other's commands.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use parking_lot::Mutex;
use rustix::process::{Pid, WaitOptions};

use crate::process::mark::Mark;
use crate::process::procfs::{self, Process};

/// The most attempts to read the list of children. A further attempt is necessary only if a process ended during the last one.
const MAX_READINGS: usize = 20;

static OWNED: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Returns the session id of this process, or 0 if the leader of the session is outside this PID namespace. This is a plain
/// number because the session type of `rustix` cannot be 0.
pub(crate) fn own_session() -> i32 {
    nix::unistd::getsid(None).map_or(0, nix::unistd::Pid::as_raw)
}

/// Starts a command with `start`. Returns its process id and its mark. Until [`reap`] is called, no other code waits for the
/// process.
///
/// A [`sweep`] skips the command until `reap` is called. If the command has not ended by then, a later sweep reaps it.
///
/// # Errors
/// The error of `start`.
pub(crate) fn spawn(start: impl FnOnce() -> io::Result<Pid>) -> io::Result<(Pid, Mark)> {
    // Locked during the spawn: a sweep must not see the child before it is listed, and the mark belongs to the whole
    // process.
    let mut owned = OWNED.lock();
    let mark = Mark::next();
    let started = start();
    // Other children of this process belong to no command.
    Mark::next();
    let pid = started?;
    owned.insert(pid.as_raw_nonzero().get());
    Ok((pid, mark))
}

/// Runs `start`. The process that it starts belongs to no command, and gets no mark of a command.
pub(crate) fn unmarked<T>(start: impl FnOnce() -> T) -> T {
    // Locked, because the mark of a command belongs to the whole process while the command starts.
    let _owned = OWNED.lock();
    start()
}

/// Reaps a command and returns its exit status. Returns `None` if the command has not ended; a later [`sweep`] then reaps it.
pub(crate) fn reap(pid: Pid) -> Option<ExitStatus> {
    // Locked during the wait: after it, the id may belong to another command.
    let mut owned = OWNED.lock();
    let status = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    owned.remove(&pid.as_raw_nonzero().get());
    let (_, status) = status.ok().flatten()?;
    Some(ExitStatus::from_raw(status.as_raw()))
}

/// Returns the running orphans that `ours` selects. Orphans are the children that [`spawn`] did not start. If the result is
/// empty, there is certainly no such orphan.
pub(crate) fn orphans(ours: impl Fn(i32) -> bool) -> Vec<Process> {
    let owned = OWNED.lock();
    running(|pid| !owned.contains(&pid) && ours(pid))
}

/// Returns the running children that `ours` selects. If the result is empty, there is certainly no such child.
pub(crate) fn all(ours: impl Fn(&Process) -> bool) -> Vec<Process> {
    // Locked, so that nothing is reaped meanwhile.
    let _owned = OWNED.lock();
    running(|pid| Process::read(pid).is_some_and(|process| ours(&process)))
}

/// Returns the running children that `ours` selects. If children still end during the last of [`MAX_READINGS`] readings, a
/// running child may be missing, so returns the ended children instead of an empty list.
///
/// When a process ends, the kernel appends its children to the list of their new parent. So a list is complete if all processes
/// in it had ended before it was read. Otherwise a running process may be missing, and the list is read again.
fn running(ours: impl Fn(i32) -> bool) -> Vec<Process> {
    let mut known = HashSet::new();
    let mut left = Vec::new();
    for _ in 0..MAX_READINGS {
        let listed = procfs::first_threads_children(procfs::own_pid()).into_iter();
        let listed = listed.filter(|pid| ours(*pid)).filter_map(Process::read);
        let (ended, running): (Vec<_>, Vec<_>) = listed.partition(Process::ended);
        if !running.is_empty() {
            return running;
        }
        left = ended;
        left.retain(|process| known.insert(process.pid));
        if left.is_empty() {
            break;
        }
    }
    left
}

/// Returns true if any child of this process still runs, command or orphan.
pub(crate) fn any_runs() -> bool {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    // Linux counts only children that may still stop. On a kernel that counts ended ones too, this always returns
    // true, which is only slower.
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    waitid(Id::All, flags | WaitPidFlag::__WALL) != Err(nix::Error::ECHILD)
}

/// Reaps the ended orphans that `ours` selects. Waits for each orphan by its process id, because a wait for any child could take
/// the exit status of a command.
pub(crate) fn sweep(ours: impl Fn(&Process) -> bool) {
    // Locked during the sweep, so that no other thread starts a command meanwhile.
    let owned = OWNED.lock();
    for pid in procfs::first_threads_children(procfs::own_pid()) {
        if owned.contains(&pid) {
            continue;
        }
        let ended = Process::read(pid).is_some_and(|it| it.ended() && ours(&it));
        if let (true, Some(pid)) = (ended, Pid::from_raw(pid)) {
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Returns true if a process is in another session than this process. Among the children of this process, this is true for
/// commands only.
pub(crate) fn is_outside(process: &Process) -> bool {
    process.session != own_session()
}

#[cfg(test)]
pub(crate) mod tests {
    use rustix::process::{WaitId, WaitIdOptions};

    use super::*;

    /// Starts a command line with its own mark; returns it once it has become the program.
    pub(crate) fn marked(line: &str) -> (Mark, i32) {
        let mut command = std::process::Command::new("bash");
        command.args(["-c", line]);
        let (pid, given) = spawn(|| {
            let child = command.spawn()?;
            Ok(Pid::from_child(&child))
        })
        .unwrap();
        (given, pid.as_raw_nonzero().get())
    }

    /// This happens with a command whose processes each start the next one and end.
    #[test]
    fn a_child_whose_parent_ends_while_the_list_is_read_is_found() {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
        let (mark, leader) = marked("bash -c 'sleep 300 & wait' &");
        let (parent, child) = loop {
            let found = orphans(|pid| mark.is_on(pid));
            if let [parent] = &found[..]
                && let [child] = procfs::children(parent.pid)[..]
            {
                break (parent.pid, child);
            }
        };
        let pid = Pid::from_raw(parent).unwrap();
        let ended = std::cell::Cell::new(false);
        let found = running(|listed| {
            if listed == parent && !ended.replace(true) {
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
                let flags = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                rustix::process::waitid(WaitId::Pid(pid), flags).unwrap();
            }
            mark.is_on(listed)
        });
        let found: Vec<i32> = found.iter().map(|process| process.pid).collect();
        end(&[leader, parent, child]);
        assert_eq!(found, [child]);
        assert!(running(|listed| mark.is_on(listed)).is_empty());
    }

    pub(crate) fn end(pids: &[i32]) {
        for pid in pids {
            let pid = Pid::from_raw(*pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            rustix::process::waitpid(Some(pid), WaitOptions::empty()).unwrap();
            OWNED.lock().remove(&pid.as_raw_nonzero().get());
        }
    }
}
