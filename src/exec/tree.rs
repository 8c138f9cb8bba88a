//! All that a job started: found wherever it went, and ended.
//!
//! What stays in the command's group is found by its group. What leaves it (`setsid`, a double fork)
//! comes to this process as its subreaper, and is told apart by a marker in its environment; what had
//! cleared its environment was seen as somebody's child before.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::procfs::{self, Process};
use super::{Background, children};

/// The variable whose value says which job a process belongs to.
pub(super) const MARKER: &str = "CO_JOB";
/// From TERM to KILL.
pub const GRACE: Duration = Duration::from_millis(200);
/// From the first KILL until it is given up.
const LIMIT: Duration = Duration::from_secs(2);

/// The processes of one job.
#[derive(Debug)]
pub(super) struct Tree {
    /// The command's own process, and the id of its group.
    leader: i32,
    /// What only this job's marker holds.
    token: String,
    /// Start times of all members ever seen, by id.
    known: HashMap<i32, u64>,
    /// The leader has ended with all its threads: it has no children any more, and need not be looked at.
    exited: bool,
    /// Somebody waited for the leader: its id may be another's, unless its group still has members.
    reaped: bool,
    /// Every orphan is a command's, so those without a marker are this one's if no other runs.
    pub(super) alone: bool,
}

impl Tree {
    pub(super) fn new(leader: i32, token: String) -> Self {
        Self {
            leader,
            token,
            known: HashMap::new(),
            exited: false,
            reaped: false,
            alone: false,
        }
    }

    /// The leader has ended, as its handle says: that comes after the end of its last thread.
    pub(super) fn exited(&mut self) {
        self.exited = true;
    }

    /// The leader was waited for.
    pub(super) fn reaped(&mut self) {
        self.reaped = true;
    }

    /// Returns every living process of the job.
    pub(super) fn members(&mut self) -> Vec<Process> {
        let leader = (!self.reaped && !self.exited).then(|| Process::read(self.leader));
        let mut queue: Vec<Process> = leader.flatten().into_iter().collect();
        let adopted = children::adopted().into_iter().filter_map(Process::read);
        queue.extend(adopted.filter(|process| !process.zombie && self.owns(process)));
        let mut seen = HashSet::new();
        let mut members = Vec::new();
        while let Some(process) = queue.pop() {
            if !seen.insert(process.pid) {
                continue;
            }
            // A zombie's children are gone, but a zombie leader may have threads that still run.
            queue.extend(
                procfs::children(process.pid)
                    .into_iter()
                    .filter_map(Process::read),
            );
            if !process.zombie {
                self.known.insert(process.pid, process.start);
                members.push(process);
            }
        }
        members
    }

    /// Returns whether there was ever more to it than the leader.
    pub(super) fn saw_orphans(&self) -> bool {
        self.known.keys().any(|pid| *pid != self.leader)
    }

    /// Reaps those of its orphans that have ended.
    pub(super) fn sweep(&self) {
        children::sweep(|orphan| {
            orphan.group == self.leader || self.known.get(&orphan.pid) == Some(&orphan.start)
        });
    }

    fn owns(&self, orphan: &Process) -> bool {
        if orphan.group == self.leader || self.known.get(&orphan.pid) == Some(&orphan.start) {
            return true;
        }
        match procfs::variable(orphan.pid, MARKER) {
            Some(value) => value.contains(&self.token),
            None => self.alone && is_stray(orphan),
        }
    }

    /// Returns what still runs beside the leader, named.
    pub(super) fn background(&mut self) -> Vec<Background> {
        if self.exited && !children::any_lives() {
            return Vec::new();
        }
        let leader = self.leader;
        let mut left: Vec<_> = self
            .members()
            .iter()
            .filter(|process| process.pid != leader)
            .map(|process| Background {
                pid: process.pid,
                name: process.title(),
            })
            .collect();
        left.sort_by_key(|process| process.pid);
        left
    }

    /// Ends all of it: TERM, a grace, then KILL until nothing is left. Returns whether nothing is.
    ///
    /// Takes [`GRACE`] and [`LIMIT`] at most. Needs no thread and no process: a command that forks in a
    /// loop may have taken all there are.
    pub(super) async fn end(&mut self) -> bool {
        let began = Instant::now();
        // Before any of it ends: what cleared its environment and left the group is known only as somebody's child.
        self.members();
        if !self.reaped {
            // In one call before it is looked up again: what forks in a loop is fewer afterwards.
            self.signal_group(Signal::TERM);
        }
        let mut members = self.members();
        self.signal(&members, Signal::TERM);
        // A stopped process acts on nothing but KILL until it goes on.
        self.signal(&members, Signal::CONT);
        let mut pause = Duration::from_millis(1);
        while !members.is_empty() && began.elapsed() < GRACE {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(10));
            self.sweep();
            members = self.members();
        }
        let began = Instant::now();
        pause = Duration::from_millis(1);
        while !members.is_empty() && began.elapsed() < LIMIT {
            self.signal(&members, Signal::KILL);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
            self.sweep();
            members = self.members();
        }
        self.sweep();
        members.is_empty()
    }

    fn signal(&self, members: &[Process], signal: Signal) {
        // Members pin the group's id, also when the leader is gone.
        if members.iter().any(|process| process.group == self.leader) {
            self.signal_group(signal);
        }
        for process in members.iter().filter(|it| it.group != self.leader) {
            process.signal(signal);
        }
    }

    /// Signals the group in one call: a process that forks meanwhile cannot slip through.
    fn signal_group(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.leader) {
            // It fails where nobody is left, which is what is wanted.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }
}

impl Drop for Tree {
    /// Ends the group of a command whose supervisor was given up with its runtime.
    fn drop(&mut self) {
        if !self.reaped {
            self.signal_group(Signal::KILL);
        }
    }
}

/// Returns whether an orphan without a marker was a command's: what we start otherwise stays in our session.
fn is_stray(orphan: &Process) -> bool {
    children::commands() <= 1 && children::own_session() != orphan.session
}

/// Ends every process whose marker holds `token`, and what it started.
///
/// For the one who is not their parent: it looks through all of `/proc`. Returns whether none is left.
pub(super) fn end_marked(token: &str) -> bool {
    end_found(|| {
        let marked = procfs::all()
            .into_iter()
            .filter(|pid| procfs::variable(*pid, MARKER).is_some_and(|it| it.contains(token)));
        below(marked.collect())
    })
}

/// Ends every child of this process, and what they started. Returns whether none is left.
pub(super) fn end_children() -> bool {
    end_found(|| {
        children::sweep(|_| true);
        below(children::adopted())
    })
}

fn end_found(find: impl Fn() -> Vec<Process>) -> bool {
    let began = Instant::now();
    loop {
        let found = find();
        if found.is_empty() {
            return true;
        }
        let signal = if began.elapsed() < GRACE {
            Signal::TERM
        } else {
            Signal::KILL
        };
        for process in &found {
            process.signal(signal);
            if signal == Signal::TERM {
                process.signal(Signal::CONT);
            }
        }
        if began.elapsed() > GRACE + LIMIT {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the living ones of `pids` and of all below them, but for this process.
fn below(pids: Vec<i32>) -> Vec<Process> {
    let mut queue = pids;
    let mut seen = HashSet::from([children::own_pid()]);
    let mut found = Vec::new();
    while let Some(pid) = queue.pop() {
        if !seen.insert(pid) {
            continue;
        }
        queue.extend(procfs::children(pid));
        found.extend(Process::read(pid).filter(|process| !process.zombie));
    }
    found
}
