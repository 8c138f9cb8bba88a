//! The parent of the process that starts commands: however that one ends, SIGKILL included, it ends what is left.
//!
//! Orphans of a process that has ended go to the nearest ancestor that asked for them, and that is the
//! guard. So nothing is out of its reach: no session of its own, no cleared environment, no chain of forks.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::unistd::ForkResult;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus};

use super::{Error, children, inherited, streams, tree};

/// Written to the guard where nothing is to be ended.
const RELEASE: u8 = b'r';
/// How long it goes on against processes that do not end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time in which the guarded process comes to its first answer. Signals that come meanwhile wait.
const HEAD_START: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};
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

/// Which of the two processes a [`divide`] has returned in.
#[derive(Debug)]
pub enum Side {
    /// The one that may start commands. It is told to end, by SIGTERM, when its guard is gone.
    Guarded(Guard),
    /// The guard: the other has ended so, and nothing of it is left.
    Guard(ExitCode),
}

/// Makes two processes of this one: a guard, and below it the one that goes on.
///
/// Call it before any thread starts.
///
/// # Errors
/// There is no second process to be had, or the guard was gone at once.
pub fn divide() -> Result<Side, Error> {
    two().map_err(|source| Error::System {
        what: "start its guard",
        source,
    })
}

fn two() -> io::Result<Side> {
    // While there is nobody yet who would go on without a guard.
    let null = streams::null()?;
    let own = children::own_pid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    inherited::hear_children()?;
    // They wait until there is somebody to pass them on to. Others that the parent had blocked do not.
    let signals: SigSet = FORWARDED.into_iter().collect();
    signals.thread_set_mask()?;
    match fork()? {
        ForkResult::Child => {
            drop((read, null));
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))?;
            if nix::unistd::getppid().as_raw() != own {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            SigSet::empty().thread_set_mask()?;
            let pipe = File::from(write);
            Ok(Side::Guarded(Guard { pipe }))
        }
        ForkResult::Parent { child } => {
            drop(write);
            let child = Pid::from_raw(child.as_raw()).ok_or(io::ErrorKind::NotFound)?;
            give_way(&read);
            forward(signals, child, &null)?;
            watch(child, File::from(read)).map(Side::Guard)
        }
    }
}

/// Another start of the program in place of this costs as much as all the rest until the greeting.
#[expect(unsafe_code, reason = "there is no other way to be two processes")]
fn fork() -> io::Result<ForkResult> {
    // SAFETY: no thread has been started, so the child has everything that the parent had, no lock is held by
    // anybody else, and it may do what it likes.
    Ok(unsafe { nix::unistd::fork() }?)
}

/// Leaves the core to the other, for whose first answer somebody waits; no longer than that lives.
fn give_way(pipe: &impl AsFd) {
    let mut ended = [PollFd::new(pipe, PollFlags::IN)];
    // Whatever wakes it up early, it goes on.
    let _ = rustix::event::poll(&mut ended, Some(&HEAD_START));
}

fn watch(child: Pid, mut pipe: File) -> io::Result<ExitCode> {
    let mut said = Vec::new();
    // It ends with the guarded process, which alone has the other end.
    let _ = pipe.read_to_end(&mut said);
    let status = rustix::process::waitpid(Some(child), WaitOptions::empty());
    if !said.contains(&RELEASE) {
        end_all();
    }
    let code = status?.and_then(|(_, status)| code(status));
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// Returns what a shell would make of it.
fn code(status: WaitStatus) -> Option<u8> {
    let signal = status.terminating_signal().map(|signal| 128 + signal);
    u8::try_from(status.exit_status().or(signal)?).ok()
}

/// Passes signals on, in a thread of its own, and lets go of standard input and output: who waits for their
/// end waits for the guarded process.
fn forward(signals: SigSet, child: Pid, null: &File) -> io::Result<()> {
    let handle = rustix::process::pidfd_open(child, PidfdFlags::empty())?;
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
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
    while !tree::end_children(|_| true) {
        if began.elapsed() > PATIENCE {
            return;
        }
    }
}
