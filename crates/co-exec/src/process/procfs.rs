//! Reads information about processes from `/proc`. Knows nothing of commands.

use std::fs;

use rustix::process::{PidfdFlags, Signal};

/// The state of a process at the time when `/proc` was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// True if the first thread has ended. Other threads may still run.
    first_ended: bool,
    /// The number of threads. It includes the first thread even if that has ended.
    pub(crate) threads: u64,
    /// The start time in clock ticks after boot. Together with `pid`, it identifies the process.
    pub(crate) start: u64,
    name: String,
}

impl Process {
    /// Reads the state of the process `pid`. Returns `None` if there is no such process.
    pub(crate) fn read(pid: i32) -> Option<Self> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &String::from_utf8_lossy(&text))
    }

    fn parse(pid: i32, text: &str) -> Option<Self> {
        // The name may contain spaces and parentheses, so the fields start after the last one.
        let (front, rest) = text.rsplit_once(')')?;
        let name = front.split_once('(')?.1.to_owned();
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next()?;
        let _parent = fields.next()?;
        let group = fields.next()?.parse().ok()?;
        let session = fields.next()?.parse().ok()?;
        let threads = fields.nth(13)?.parse().ok()?;
        let start = fields.nth(1)?.parse().ok()?;
        let first_ended = matches!(state, "Z" | "X");
        Some(Self {
            pid,
            group,
            session,
            first_ended,
            threads,
            start,
            name,
        })
    }

    /// Returns true if all threads have ended.
    pub(crate) fn ended(&self) -> bool {
        self.first_ended && self.threads <= 1
    }

    /// Returns the id of a running thread of the process, because `/proc` shows no memory for an ended thread. If all threads
    /// have ended, returns the id of the process.
    pub(crate) fn running_thread(&self) -> i32 {
        if !self.first_ended {
            return self.pid;
        }
        let mut others = threads(self.pid).filter(|thread| *thread != self.pid);
        others.next().unwrap_or(self.pid)
    }

    /// Returns the command line, shortened and without line breaks. Returns the name if there is no command line.
    pub(crate) fn title(&self) -> String {
        let line = fs::read(format!("/proc/{}/cmdline", self.running_thread())).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        let line: String = line
            .trim_end_matches('\0')
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(80)
            .collect();
        if line.is_empty() {
            self.name.clone()
        } else {
            line
        }
    }

    /// Sends `signal` to this process, but never to another process that has got the same id.
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(pid) = rustix::process::Pid::from_raw(self.pid) else {
            return;
        };
        let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
            return;
        };
        if Self::read(self.pid).is_some_and(|now| now.start == self.start) {
            // This fails if the process has ended, which is the goal.
            let _ = rustix::process::pidfd_send_signal(handle, signal);
        }
    }
}

/// Returns the id of this process.
pub(crate) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Returns the ids of the children of all threads of a process.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    threads(pid)
        .flat_map(|thread| threads_children(pid, thread))
        .collect()
}

/// Returns the ids of the children of a process's first thread. As long as that thread lives, the kernel gives it the orphans
/// that the process adopts (`find_new_reaper` in `exit.c`).
pub(crate) fn first_threads_children(pid: i32) -> Vec<i32> {
    threads_children(pid, pid)
}

fn threads_children(pid: i32, thread: i32) -> Vec<i32> {
    let path = format!("/proc/{pid}/task/{thread}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(to_pid).collect()
}

/// Returns the ids of the threads of a process.
fn threads(pid: i32) -> impl Iterator<Item = i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    tasks.filter_map(|task| to_pid(task.file_name().to_str()?))
}

/// Returns the size of a process's table of descriptors, which is the most descriptors that it can have at the moment. This works
/// even if the descriptors themselves cannot be read. Returns 0 if the process is ending.
pub(crate) fn room_for_descriptors(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    // An ending process first frees its memory and then closes its files. In between, the kernel hides the files.
    if field(&status, "VmSize:").is_none() {
        return 0;
    }
    let room = field(&status, "FDSize:").and_then(|room| room.parse().ok());
    room.unwrap_or(0)
}

/// Returns the signals that this process ignores, as a bit mask whose lowest bit is signal 1.
pub(crate) fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = field(&status, "SigIgn:").and_then(|mask| u64::from_str_radix(mask, 16).ok());
    mask.unwrap_or(0)
}

/// Returns the value in the line of `text` that begins with `name`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.map(str::trim)
}

/// Reads the number of kibibytes in the line of `text` that begins with `name`, and returns it in bytes. Returns 0 if there is
/// no such line.
pub(crate) fn kibibytes(text: &str, name: &str) -> u64 {
    let number = field(text, name).and_then(|value| value.split_ascii_whitespace().next());
    number.and_then(|it| it.parse().ok()).unwrap_or(0_u64) * 1024
}

/// Returns the limit of file locks of a process. Returns `None` if the process does not exist or has no such limit.
pub(crate) fn limit_of_locks(pid: i32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn to_pid(text: &str) -> Option<i32> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_name_with_parentheses() {
        let text = "7 (a) b (c)) S 1 5 6 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987 0 0";
        let process = Process::parse(7, text).unwrap();
        assert_eq!((process.group, process.session, process.start), (5, 6, 987));
        assert_eq!(process.threads, 1);
        assert_eq!(process.name, "a) b (c)");
    }

    #[test]
    fn a_process_has_ended_when_all_its_threads_have() {
        for (state, threads, ended) in [("S", 1, false), ("Z", 1, true), ("Z", 2, false)] {
            let text = format!("7 (a) {state} 1 5 6 0 -1 0 1 2 3 4 5 6 7 8 20 0 {threads} 0 9 0 0");
            assert_eq!(Process::parse(7, &text).unwrap().ended(), ended, "{text}");
        }
    }

    #[test]
    fn a_title_is_a_line_and_a_signal_is_for_one_process() {
        use std::io::{Read, Write};
        use std::os::unix::process::ExitStatusExt;
        let mut child = std::process::Command::new("cat")
            .args(["-", "a\nb", &"x".repeat(100)])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // It has a command line by the time that it answers.
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        input.write_all(b"x").unwrap();
        output.read_exact(&mut [0]).unwrap();
        let process = Process::read(i32::try_from(child.id()).unwrap()).unwrap();
        let title = process.title();
        assert_eq!(title, format!("cat - a b {}", "x".repeat(70)));
        // One that had the id before.
        let other = Process {
            start: process.start - 1,
            ..process.clone()
        };
        other.signal(Signal::KILL);
        drop(input);
        assert_eq!(child.wait().unwrap().signal(), None);
        assert_eq!(process.title(), "cat", "it has no command line any more");
    }

    #[test]
    fn finds_itself() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert_eq!(Process::read(me).unwrap().pid, me);
    }
}
