//! Finds and kills the processes of a command.
//!
//! The command leads its own session. This process is a subreaper: when the parent of a process ends, this process adopts the
//! child. The [`Mark`] identifies the command to which a process belongs.
//!
//! If the command has its own PID namespace, its leader is the launcher. The launcher and process 1 of the namespace forward
//! signals. When process 1 ends, the kernel ends every process of the namespace.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::outcome::BackgroundProcess;
use crate::process::cgroup::Group;
use crate::process::children;
use crate::process::mark::Mark;
use crate::process::procfs::{self, Process};

/// The pause between SIGTERM and SIGKILL. It must be shorter than the time that co has for its own shutdown.
pub const STOP_GRACE_PERIOD: Duration = Duration::from_millis(200);
/// The longest time after the grace period in which co tries to kill all processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// The most attempts to list the remaining processes. An attempt may find only process 1 of the namespace, because each process
/// may have started the next one and ended.
const MAX_READINGS: usize = 20;
/// The longest pause between two checks for remaining processes.
const MAX_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The processes of one command.
#[derive(Debug)]
pub(crate) struct CommandProcesses {
    /// The process that leads the command. Its id is also the id of its session and its process group.
    leader: Pid,
    mark: Mark,
    group: Option<Group>,
    /// True if the command has its own PID namespace.
    namespaced: bool,
    /// True if the leader and all its threads have ended. It then has no children.
    exited: bool,
    /// True if the leader was reaped. Its id may then be reused, unless its process group still has members.
    reaped: bool,
    /// True if any check found processes other than the leader.
    grown: bool,
}

impl CommandProcesses {
    pub(crate) fn new(leader: Pid, mark: Mark, group: Option<Group>, namespaced: bool) -> Self {
        Self {
            leader,
            mark,
            group,
            namespaced,
            exited: false,
            reaped: false,
            grown: false,
        }
    }

    /// Records that the leader and all its threads have ended.
    pub(crate) fn set_exited(&mut self) {
        self.exited = true;
    }

    /// Records that the leader was reaped.
    pub(crate) fn set_reaped(&mut self) {
        self.reaped = true;
    }

    /// Returns the topmost running processes of the command, from which all its other processes descend. If the result is empty,
    /// certainly no process runs.
    fn roots(&mut self) -> Vec<Process> {
        let mut roots = Vec::new();
        // Read before the orphans: if it ends in between, its children are among them.
        if !self.reaped && !self.exited {
            let leader = Process::read(self.leader());
            roots.extend(leader.filter(|leader| !leader.ended()));
        }
        roots.extend(children::orphans(|pid| self.mark.is_on(pid)));
        self.grown |= roots.iter().any(|root| root.pid != self.leader());
        roots
    }

    /// Returns the running processes of the command, except co's own processes in its PID namespace.
    pub(crate) fn members(&mut self) -> Vec<Process> {
        let roots = self.roots();
        let members = if self.namespaced {
            with_descendants(self.commands(roots))
        } else {
            with_descendants(roots)
        };
        self.grown |= members.iter().any(|process| process.pid != self.leader());
        members
    }

    /// Returns the running children of process 1 of the namespace. Process 1 is a child of the leader, or an orphan once the
    /// leader has ended.
    fn commands(&self, roots: Vec<Process>) -> Vec<Process> {
        let leader = roots.iter().find(|root| root.pid == self.leader());
        let first = leader.map_or(roots.clone(), |leader| running_children(leader).collect());
        first.iter().flat_map(running_children).collect()
    }

    /// Returns whether any process of the command runs.
    pub(crate) fn any_runs(&mut self) -> bool {
        (!self.exited || children::any_runs()) && !self.roots().is_empty()
    }

    /// Returns true if the kernel killed a process because the command's cgroup reached its memory limit.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.group.as_ref().is_some_and(Group::ran_out_of_memory)
    }

    /// Returns true if the kernel enforces the command's limits on memory and processes.
    pub(crate) fn is_limited_by_kernel(&self) -> bool {
        self.group.as_ref().is_some_and(Group::enforces_limits)
    }

    /// Returns true if the kernel refused a new process because the command's cgroup had reached its limit.
    pub(crate) fn ran_out_of_processes(&self) -> bool {
        self.group.as_ref().is_some_and(Group::ran_out_of_processes)
    }

    /// Returns true if any check found processes other than the leader.
    pub(crate) fn had_descendants(&self) -> bool {
        self.grown
    }

    /// Reaps the ended orphans of this command.
    pub(crate) fn sweep(&self) {
        children::sweep(|orphan| self.mark.is_on(orphan.pid));
    }

    fn leader(&self) -> i32 {
        self.leader.as_raw_nonzero().get()
    }

    /// Returns the running processes of the command, except its leader.
    pub(crate) fn background(&mut self) -> Vec<BackgroundProcess> {
        let leader = self.leader();
        for _ in 0..MAX_READINGS {
            if !self.any_runs() {
                break;
            }
            let mut left = self.members();
            left.retain(|process| process.pid != leader);
            left.sort_by_key(|process| process.pid);
            if !left.is_empty() {
                return left.iter().map(BackgroundProcess::from).collect();
            }
        }
        Vec::new()
    }

    /// Kills all processes: sends SIGTERM, waits for the grace period, and sends SIGKILL until no process is left. Returns true
    /// if none is left. A command that forked until its cgroup refused gets no grace period.
    ///
    /// Takes at most `grace` and [`KILL_TIMEOUT`]. Starts no thread and no process, because a command that forks in a loop may
    /// have used up all of them.
    pub(crate) async fn end(&mut self, grace: Duration) -> bool {
        if !self.reaped && !self.namespaced {
            // This call kills the whole group first, so a fork bomb has fewer processes when they are looked up.
            self.signal_group(Signal::TERM);
        }
        if let Some(group) = &self.group
            && group.ran_out_of_processes()
        {
            // Checking a fork bomb takes long, because each of its processes gets as much processor time as this one.
            group.kill();
        }
        let targets = self.targets();
        self.signal(&targets, Signal::TERM);
        // A stopped process reacts only to SIGKILL until it is continued.
        self.signal(&targets, Signal::CONT);
        self.wait(grace).await;
        if let Some(group) = &self.group {
            group.kill();
        }
        let began = Instant::now();
        while began.elapsed() < KILL_TIMEOUT {
            let targets = if self.namespaced {
                self.targets()
            } else {
                stop(|| self.members(), began + KILL_TIMEOUT)
            };
            self.signal(&targets, Signal::KILL);
            if self.wait(MAX_CHECK_INTERVAL).await {
                break;
            }
        }
        self.sweep();
        !self.any_runs()
    }

    /// Returns the processes to signal so that every process of the command gets the signal.
    fn targets(&mut self) -> Vec<Process> {
        if self.namespaced {
            self.roots()
        } else {
            self.members()
        }
    }

    /// Waits until all processes have ended, but no longer than `most`. Returns true if all have ended.
    async fn wait(&mut self, most: Duration) -> bool {
        let began = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            self.sweep();
            if !self.any_runs() {
                return true;
            }
            if began.elapsed() >= most {
                return false;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_CHECK_INTERVAL / 2);
        }
    }

    fn signal(&self, members: &[Process], signal: Signal) {
        // The id of a group stays in use while it has members, also without its leader.
        let in_group = |process: &Process| process.group == self.leader();
        if members.iter().any(in_group) {
            self.signal_group(signal);
        }
        for process in members.iter().filter(|it| !in_group(it)) {
            process.signal(signal);
        }
    }

    /// Signals the whole process group in one call, so that a process that is just forking cannot escape.
    fn signal_group(&self, signal: Signal) {
        // This fails if no process is left, which is the goal.
        let _ = rustix::process::kill_process_group(self.leader, signal);
    }
}

impl Drop for CommandProcesses {
    /// Kills the process group if the supervisor was dropped with its runtime.
    fn drop(&mut self) {
        if !self.reaped {
            self.signal_group(Signal::KILL);
        }
    }
}

/// Kills every child of this process that `ours` selects, and all its descendants: sends SIGTERM, waits for the grace period, and
/// sends SIGKILL. Returns true if no process is left.
pub(crate) fn end_children(ours: impl Fn(&Process) -> bool) -> bool {
    let find = || {
        children::sweep(&ours);
        with_descendants(children::all(&ours))
    };
    let began = Instant::now();
    for process in find() {
        process.signal(Signal::TERM);
        process.signal(Signal::CONT);
    }
    loop {
        let left = find();
        if left.is_empty() {
            return true;
        }
        if began.elapsed() > STOP_GRACE_PERIOD + KILL_TIMEOUT {
            return false;
        }
        if began.elapsed() > STOP_GRACE_PERIOD {
            for process in stop(find, began + STOP_GRACE_PERIOD + KILL_TIMEOUT) {
                process.signal(Signal::KILL);
            }
        }
        std::thread::sleep(MAX_CHECK_INTERVAL / 2);
    }
}

/// Stops all processes that `find` returns, and calls `find` again until it returns no new process. Returns the processes.
///
/// If one process of a fork bomb is killed, the others can start a new one. Stopped processes cannot.
fn stop(mut find: impl FnMut() -> Vec<Process>, until: Instant) -> Vec<Process> {
    let mut stopped = HashSet::new();
    loop {
        let found = find();
        let seen = stopped.len();
        for process in &found {
            if stopped.insert((process.pid, process.start)) {
                process.signal(Signal::STOP);
            }
        }
        if stopped.len() == seen || Instant::now() >= until {
            return found;
        }
    }
}

/// Returns the processes `roots`, which ran a moment ago, and their running descendants.
fn with_descendants(roots: Vec<Process>) -> Vec<Process> {
    let mut seen: HashSet<i32> = roots.iter().map(|process| process.pid).collect();
    seen.insert(procfs::own_pid());
    let mut found = roots;
    let mut next = 0;
    while let Some(process) = found.get(next) {
        let children = running_children(process).filter(|child| seen.insert(child.pid));
        let children: Vec<_> = children.collect();
        found.extend(children);
        next += 1;
    }
    found
}

fn running_children(process: &Process) -> impl Iterator<Item = Process> + use<> {
    let children = procfs::children(process.pid).into_iter();
    let children = children.filter_map(Process::read);
    children.filter(|child| !child.ended())
}

impl From<&Process> for BackgroundProcess {
    fn from(process: &Process) -> Self {
        Self {
            pid: process.pid,
            name: process.title(),
        }
    }
}
