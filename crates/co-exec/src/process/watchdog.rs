//! The watchdog: the parent of the process that starts commands (the supervised process). If the supervised process ends, even by
//! SIGKILL, the watchdog kills the processes that remain.
//!
//! The watchdog is a subreaper, so it adopts the orphans when the supervised process has ended. So it finds every remaining
//! process, whatever its session, environment or parent. If the supervised process does not end when it should, the watchdog
//! kills it too: it may be stopped.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::ForkResult;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus};

use crate::error::Error;
use crate::fork::fork;
use crate::inherited;
use crate::process::{command_processes, procfs, streams};

/// The message that tells the watchdog to kill nothing.
const RELEASE: u8 = b'r';
/// The longest time in which the watchdog tries to kill remaining processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest time for which the watchdog stays idle so that the supervised process can start fast. Signals wait during this
/// time.
const START_TIMEOUT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};
/// The time from SIGTERM or the end of the input until the watchdog sends SIGKILL. Neovim kills the watchdog itself after 2 s.
const BACKEND_GRACE_PERIOD: Duration = Duration::from_millis(1500);
/// The signals that the watchdog forwards. Other signals end the watchdog; the kernel then signals the supervised process.
const FORWARDED: [Signal; 4] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
];

/// The handle by which the supervised process reaches its watchdog.
#[derive(Debug)]
pub struct Watchdog {
    pipe: File,
    /// The process id of the watchdog.
    pid: i32,
}

impl Watchdog {
    /// Tells the watchdog not to kill the processes that remain when this process ends.
    pub fn release(mut self) {
        // This fails if the watchdog has just ended.
        let _ = self.pipe.write_all(&[RELEASE]);
    }
}

impl Drop for Watchdog {
    /// Continues a watchdog that was stopped, so that it can end too.
    fn drop(&mut self) {
        let parent = nix::unistd::getppid();
        if parent.as_raw() == self.pid {
            // This fails if the watchdog has just ended.
            let _ = nix::sys::signal::kill(parent, Signal::SIGCONT);
        }
    }
}

/// The process in which [`split_process`] returned.
#[derive(Debug)]
pub enum Role {
    /// The child, which may start commands. The kernel sends it SIGTERM if its watchdog ends.
    Supervised(Watchdog),
    /// The watchdog. The supervised process has ended with this exit status, and the watchdog has killed its remaining processes,
    /// unless it was released.
    Watchdog(ExitCode),
}

/// The event, besides signals, after which the supervised process must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCondition {
    /// No event: the supervised process ends when its work is done.
    Done,
    /// The end of the standard input, which shows that Neovim has ended.
    EndOfInput,
}

/// Forks this process. The parent becomes the watchdog, and the child continues as the supervised process.
///
/// Call it before any thread starts.
///
/// # Errors
/// The system refuses another process, or the watchdog ended at once.
pub fn split_process(end: EndCondition) -> Result<Role, Error> {
    split(end).map_err(|source| Error::System {
        what: "start its watchdog",
        source,
    })
}

fn split(end: EndCondition) -> io::Result<Role> {
    // Opened first, because nobody may go on without a watchdog.
    let null = streams::null()?;
    let own = procfs::own_pid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    // A process that ignores this signal cannot wait for its children.
    inherited::restore(Signal::SIGCHLD)?;
    // These signals wait until the child exists. Other blocked signals of the parent do not.
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
            Ok(Role::Supervised(Watchdog { pipe, pid: own }))
        }
        ForkResult::Parent { child } => {
            drop(write);
            let child = Pid::from_raw(child.as_raw()).ok_or(io::ErrorKind::NotFound)?;
            let_child_start(&read);
            let input = match end {
                EndCondition::Done => None,
                // Reads only to find the end; the supervised process reads the contents.
                EndCondition::EndOfInput => {
                    Some(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?)
                }
            };
            // A program that waits for the end of these files waits for the supervised process.
            rustix::stdio::dup2_stdin(&null)?;
            rustix::stdio::dup2_stdout(&null)?;
            let watch = WatchLoop {
                handle: rustix::process::pidfd_open(child, PidfdFlags::empty())?,
                child,
                end: File::from(read),
                signals: SignalFd::with_flags(&signals, SfdFlags::SFD_CLOEXEC)?,
                input,
            };
            watch.run().map(Role::Watchdog)
        }
    }
}

/// Waits a moment for the child, so that parent and child do not compete for a processor at the start. Returns early if the child
/// ends.
fn let_child_start(pipe: &impl AsFd) {
    let mut ended = [PollFd::new(pipe, PollFlags::IN)];
    // Any result is fine.
    let _ = rustix::event::poll(&mut ended, Some(&START_TIMEOUT));
}

/// The state of a running watchdog.
struct WatchLoop {
    child: Pid,
    handle: OwnedFd,
    /// The read end of a pipe whose write end only the supervised process holds. The pipe closes when that process ends.
    end: File,
    signals: SignalFd,
    /// The input whose end means that the supervised process must end.
    input: Option<OwnedFd>,
}

impl WatchLoop {
    fn run(mut self) -> io::Result<ExitCode> {
        let released = self.wait()?;
        let status = rustix::process::waitpid(Some(self.child), WaitOptions::empty());
        if !released {
            kill_remaining();
        }
        let code = status?.and_then(|(_, status)| exit_status(status));
        Ok(ExitCode::from(code.unwrap_or(1)))
    }

    /// Waits until the supervised process has ended. Returns true if the watchdog must not kill the remaining processes.
    fn wait(&mut self) -> io::Result<bool> {
        let mut released = false;
        let mut deadline: Option<Instant> = None;
        loop {
            let [ended, signalled, closed] = self.poll(deadline)?;
            if ended {
                let mut said = [0; 16];
                let count = self.end.read(&mut said)?;
                released |= said[..count].contains(&RELEASE);
                if count == 0 {
                    return Ok(released);
                }
            }
            let told = signalled && self.forward_signal()?;
            if told || closed {
                // A stopped process receives neither.
                self.signal(rustix::process::Signal::CONT);
                deadline.get_or_insert_with(|| Instant::now() + BACKEND_GRACE_PERIOD);
            }
            if closed {
                self.input = None;
            }
            if deadline.is_some_and(|at| Instant::now() >= at) {
                // SIGKILL ends a stopped process too.
                self.signal(rustix::process::Signal::KILL);
                deadline = None;
            }
        }
    }

    /// Waits for the next event. Returns for each kind of event whether it happened: a message or the end of the supervised
    /// process, a signal, and the end of the input.
    fn poll(&self, deadline: Option<Instant>) -> io::Result<[bool; 3]> {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds = vec![
            PollFd::new(&self.end, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        fds.extend(
            self.input
                .iter()
                .map(|fd| PollFd::new(fd, PollFlags::RDHUP)),
        );
        match rustix::event::poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok([happened(0), happened(1), happened(2)])
    }

    /// Forwards a signal to the supervised process. Returns true if the signal was SIGTERM.
    fn forward_signal(&self) -> io::Result<bool> {
        let Some(told) = self.signals.read_signal()? else {
            return Ok(false);
        };
        let number = i32::try_from(told.ssi_signo).ok();
        let signal = number.and_then(rustix::process::Signal::from_named_raw);
        if let Some(signal) = signal {
            self.signal(signal);
        }
        Ok(signal == Some(rustix::process::Signal::TERM))
    }

    fn signal(&self, signal: rustix::process::Signal) {
        // The process may have just ended.
        let _ = rustix::process::pidfd_send_signal(&self.handle, signal);
    }
}

/// Returns the exit status as a shell reports it.
fn exit_status(status: WaitStatus) -> Option<u8> {
    let signal = status.terminating_signal().map(|signal| 128 + signal);
    u8::try_from(status.exit_status().or(signal)?).ok()
}

fn kill_remaining() {
    let began = Instant::now();
    while !command_processes::end_children(|_| true) {
        if began.elapsed() > KILL_TIMEOUT {
            return;
        }
    }
}
