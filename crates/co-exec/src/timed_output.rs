//! Runs a program of co's own, such as git, with a time limit.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Runs a command and returns its output, or none if it was killed after `limit`.
pub fn timed_output(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    // Its own processes may hold its streams open, so the whole group is killed.
    let streams = command
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = streams.spawn()?;
    let pid = rustix::process::Pid::from_child(&child);
    let (done, wait) = channel::<()>();
    let timer = std::thread::Builder::new()
        .name("time-limit".to_owned())
        .spawn(move || {
            let late = wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                // The child is not reaped yet, so the id is still valid.
                let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
            }
            late
        });
    let timer = timer.inspect_err(|_| {
        let _ = child.kill();
        let _ = child.wait();
    })?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    // Incomplete output is no valid answer, so errors need no care here.
    let _ = child
        .stdout
        .take()
        .map(|mut it| it.read_to_end(&mut stdout));
    let _ = child
        .stderr
        .take()
        .map(|mut it| it.read_to_end(&mut stderr));
    drop(done);
    let late = timer.join().unwrap_or(true);
    let status = child.wait()?;
    Ok((!late).then_some(Output {
        status,
        stdout,
        stderr,
    }))
}
