//! Looking at processes.

use std::path::Path;
use std::time::{Duration, Instant};

/// Waits without a pause, so that what follows comes at the moment that is meant.
pub(crate) fn pass(time: Duration) {
    let since = Instant::now();
    wait_until(super::DEADLINE, "a moment to pass", || {
        (since.elapsed() >= time).then_some(())
    });
}

/// Waits until `cond` holds, and returns what it found.
///
/// # Panics
/// At the deadline, naming `what` was waited for.
#[track_caller]
pub(crate) fn wait_until<T>(
    deadline: Duration,
    what: &str,
    mut cond: impl FnMut() -> Option<T>,
) -> T {
    let end = Instant::now() + deadline;
    loop {
        if let Some(found) = cond() {
            return found;
        }
        assert!(Instant::now() < end, "waited {deadline:?} for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns whether a process is there, and any of its threads runs: one that ended and is not yet reaped has none.
pub(crate) fn alive(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| stat.state != 'X' && (stat.state != 'Z' || stat.threads > 1))
}

/// Returns the processes whose parent is `pid`.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let mine = |other: &i32| stat(*other).is_some_and(|stat| stat.parent == pid);
    all().into_iter().filter(mine).collect()
}

/// Returns the children of `pid`, theirs, and so on.
pub(crate) fn descendants(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut next = 0;
    while let Some(&one) = found.get(next) {
        for child in children(one) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found
}

/// Returns the living processes whose environment or command line holds `text`.
pub(crate) fn holding(text: &str) -> Vec<i32> {
    let has = |pid: &i32| {
        ["environ", "cmdline"].iter().any(|file| {
            let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            bytes.windows(text.len()).any(|it| it == text.as_bytes())
        })
    };
    let all = all().into_iter();
    all.filter(|pid| alive(*pid) && has(pid)).collect()
}

/// Returns the running processes of a user.
pub(crate) fn of_user(user: u32) -> Vec<i32> {
    let mut found = of_user_with_ended(user);
    found.retain(|pid| alive(*pid));
    found
}

/// Returns the processes of a user, with those that have ended and are not yet reaped.
pub(crate) fn of_user_with_ended(user: u32) -> Vec<i32> {
    let owner = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        field(&status, "Uid:")
    };
    let all = all().into_iter();
    all.filter(|pid| owner(pid) == Some(user.into())).collect()
}

/// Returns how often each thread of a process was given the processor and let it go again, by the thread's id.
pub(crate) fn switches(pid: i32) -> Vec<(String, u64)> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let mut found: Vec<_> = threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| {
            let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
            let count = |name| field(&status, name);
            let both = count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?;
            Some((thread.file_name().to_string_lossy().into_owned(), both))
        })
        .collect();
    found.sort();
    found
}

/// Returns how many TCP connections a process holds.
pub(crate) fn connections(pid: i32) -> usize {
    let tables = ["tcp", "tcp6"].map(|table| {
        std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default()
    });
    let known = |socket: &str| {
        let rows = tables.iter().flat_map(|table| table.lines());
        let mut inodes = rows.filter_map(|row| row.split_whitespace().nth(9));
        inodes.any(|inode| inode == socket)
    };
    let files = std::fs::read_dir(format!("/proc/{pid}/fd"));
    files
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|file| std::fs::read_link(file.path()).ok())
        .filter_map(|link| {
            let name = link.to_str()?.strip_prefix("socket:[")?;
            Some(name.strip_suffix(']')?.to_owned())
        })
        .filter(|socket| known(socket))
        .count()
}

/// Returns the number after a name at the start of a line.
fn field(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

/// A process that is killed when this is dropped.
pub(crate) struct Killed(pub(crate) std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ends `pid` at once.
pub(crate) fn kill9(pid: i32) {
    let pid = nix::unistd::Pid::from_raw(pid);
    // It may have ended by itself.
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
}

/// Stops `pid`, which keeps its place among the processes.
pub(crate) fn stop(pid: i32) {
    let pid = nix::unistd::Pid::from_raw(pid);
    // It may have ended by itself.
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP);
}

struct Stat {
    state: char,
    parent: i32,
    threads: u32,
}

fn stat(pid: i32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything, parentheses too.
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    Some(Stat {
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
        threads: fields.nth(15)?.parse().ok()?,
    })
}

fn all() -> Vec<i32> {
    let proc = Path::new("/proc");
    assert!(
        proc.join("self/stat").exists(),
        "these tests look at processes through /proc"
    );
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}
