//! The parent of the process that starts commands: however that one ends, SIGKILL included, it ends what is left.
//!
//! Orphans of a process that has ended go to the nearest ancestor that asked for them, and that is the
//! guard. So nothing is out of its reach: no session of its own, no cleared environment, no chain of forks.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use rustix::process::{Pid, PidfdFlags};

use super::{children, tree};

/// First argument of a start that has a guard; the guard's id and its pipe follow.
const GUARDED: &str = "--guarded";
/// Written to the guard where nothing is to be ended.
const RELEASE: u8 = b'r';
/// How long it goes on against processes that do not end.
const PATIENCE: Duration = Duration::from_secs(20);
/// What is passed on. Others end the guard, and then the guarded process is told to end.
const FORWARDED: [Signal; 4] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

/// What a process with a guard has of it. Dropping it says nothing.
#[derive(Debug)]
pub struct Guard {
    pipe: File,
}

impl Guard {
    /// Has the guard leave alone what is left when this process ends.
    pub fn release(mut self) {
        // It fails where the guard is gone already.
        let _ = self.pipe.write_all(&[RELEASE]);
    }
}

/// Takes its arguments off a start that has a guard; none where it has none yet.
///
/// From then on this process is told to end, by SIGTERM, when its guard is gone.
///
/// # Errors
/// The guard is gone already, or what it said of itself is not true.
pub fn guarded(args: &mut Vec<OsString>) -> io::Result<Option<Guard>> {
    if args.get(1).is_none_or(|first| first != GUARDED) {
        return Ok(None);
    }
    let number = |at: usize| -> Option<i32> { args.get(at)?.to_str()?.parse().ok() };
    let (Some(guard), Some(pipe)) = (number(2), number(3)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
    let parent = nix::unistd::getppid().as_raw();
    if parent != guard {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    forwarded().thread_unblock()?;
    // The inherited one goes on only as long as this process: `detach_terminal` sees to that.
    let pipe = OpenOptions::new()
        .write(true)
        .open(format!("/proc/self/fd/{pipe}"))?;
    args.drain(1..4);
    Ok(Some(Guard { pipe }))
}

/// Starts `program` with `args` (less the program's name) under this process's guard; returns when it has
/// ended and nothing of it is left.
///
/// Call it before any thread starts.
///
/// # Errors
/// It did not start.
pub fn watch_over(program: &Path, args: &[OsString]) -> io::Result<ExitCode> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::fcntl_setfd(&write, rustix::io::FdFlags::empty())?;
    let own = [
        GUARDED.to_owned(),
        children::own_pid().to_string(),
        write.as_raw_fd().to_string(),
    ];
    // They wait until there is somebody to pass them on to, who begins with them blocked too.
    let signals = forwarded();
    signals.thread_block()?;
    let mut child = Command::new(program).args(own).args(args).spawn()?;
    drop(write);
    forward(signals, &child)?;
    let mut said = Vec::new();
    // It ends with the guarded process, which alone has the other end.
    let _ = File::from(read).read_to_end(&mut said);
    let status = child.wait();
    if !said.contains(&RELEASE) {
        end_all();
    }
    let status = status?;
    let signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signal).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn forwarded() -> SigSet {
    FORWARDED.into_iter().collect()
}

/// Passes signals on, in a thread of its own, and lets go of standard input and output: who waits for their
/// end waits for the guarded process.
fn forward(signals: SigSet, child: &Child) -> io::Result<()> {
    let handle = rustix::process::pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    let pass_on = move || {
        while let Ok(signal) = signals.wait() {
            let signal = rustix::process::Signal::from_named_raw(signal as i32);
            if let Some(signal) = signal {
                // It may have ended just now.
                let _ = rustix::process::pidfd_send_signal(&handle, signal);
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(pass_on)
        .map(drop)
}

fn end_all() {
    let began = Instant::now();
    while !tree::end_children() {
        if began.elapsed() > PATIENCE {
            return;
        }
    }
}
