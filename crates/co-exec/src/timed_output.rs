//! Runs programs for co itself, such as git, with limits on time, memory and output, because they may read files that a command
//! created.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions};
use rustix::process::{getrlimit, kill_process_group, prlimit, waitid};

/// The most bytes of writable memory that the program may have.
const MAX_MEMORY: u64 = 2 << 30;
/// The most bytes of the program's output. A program that prints more fails.
const MAX_OUTPUT: u64 = 256 << 20;

/// Runs a program and returns its output. Returns `None` if the program was killed after the time `limit`.
///
/// # Errors
/// The program did not start.
pub fn timed_output(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    // Its own processes may hold its streams open, so the whole group is killed.
    let streams = command
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = streams.spawn()?;
    let pid = Pid::from_child(&child);
    limit_memory(pid);
    let (done, wait) = channel::<()>();
    let timer = std::thread::Builder::new()
        .name("time-limit".to_owned())
        .spawn(move || {
            let late = wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                // The child is not reaped yet, so the id is still valid.
                let _ = kill_process_group(pid, Signal::KILL);
            }
            late
        });
    let timer = timer.inspect_err(|_| {
        let _ = child.kill();
        let _ = child.wait();
    })?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let streams = (child.stdout.take(), child.stderr.take());
    // Incomplete output is no valid answer, so errors need no care here.
    std::thread::scope(|scope| {
        // At the same time: a program waits if nobody reads what it writes. Without a thread, its messages are lost.
        let messages = || {
            streams
                .1
                .map(|it| it.take(MAX_OUTPUT).read_to_end(&mut stderr))
        };
        let _ = std::thread::Builder::new().spawn_scoped(scope, messages);
        let _ = streams
            .0
            .map(|it| it.take(MAX_OUTPUT).read_to_end(&mut stdout));
    });
    // It may have closed its streams long before its end.
    let _ = waitid(
        WaitId::Pid(pid),
        WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
    );
    drop(done);
    let late = timer.join().unwrap_or(true);
    let status = child.wait()?;
    Ok((!late).then_some(Output {
        status,
        stdout,
        stderr,
    }))
}

/// Limits the memory of a process. If the system refuses, only the time is limited.
fn limit_memory(process: Pid) {
    // Files that it only reads do not count, such as the packs of git.
    let most = getrlimit(Resource::Data).maximum;
    let most = most.map_or(MAX_MEMORY, |most| most.min(MAX_MEMORY));
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    // It may have ended.
    if let Err(error) = prlimit(Some(process), Resource::Data, limit) {
        tracing::debug!(%error, "the memory of a program is not limited");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, limit: Duration) -> Option<String> {
        let output = timed_output(Command::new("sh").args(["-c", script]), limit).unwrap();
        output.map(|it| String::from_utf8(it.stdout).unwrap())
    }

    #[test]
    fn a_long_message_does_not_stop_a_program() {
        let script = "head -c 1000000 /dev/zero >&2; echo done";
        assert_eq!(run(script, Duration::from_secs(60)), Some("done\n".into()));
    }

    #[test]
    fn memory_and_output_are_limited() {
        // In KB. The shell may still run when the limit is set.
        let script = "until [ $(ulimit -d) = 2097152 ]; do :; done; ulimit -d";
        let limit = Duration::from_secs(60);
        assert_eq!(run(script, limit), Some("2097152\n".into()));
        let mut endless = Command::new("cat");
        let output = timed_output(endless.arg("/dev/zero"), limit)
            .unwrap()
            .unwrap();
        assert!(!output.status.success());
        assert_eq!(output.stdout.len() as u64, MAX_OUTPUT);
    }

    #[test]
    fn the_limit_holds_for_a_program_that_closed_its_streams() {
        let script = "exec > /dev/null 2>&1; exec sleep 600";
        assert_eq!(run(script, Duration::from_millis(100)), None);
    }
}
