//! The PID namespace of a command: its first process, and the launcher, which stays outside.
//!
//! The launcher forks. The parent stays outside the namespace, forwards signals, and ends in the same way as the command. The
//! child is process 1 of the namespace. It confines itself, starts the command, forwards signals and reaps. When process 1 ends,
//! the kernel ends every process of the namespace, so no process can escape.
//!
//! The launcher also ends when the process that started it ends, even by SIGKILL. The kernel then ends process 1.
//!
//! If a command leaves processes behind, process 1 continues until the last of them has ended.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::ForkResult;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::mount::{MountFlags, mount};
use rustix::pipe::PipeFlags;
use rustix::process::{DumpableBehavior, Pid, PidfdFlags, WaitOptions};

use super::plan::PidNamespace;
use crate::fork::fork;
use crate::inherited;
use crate::process::streams;

/// The size of an encoded [`Report`] in bytes.
const REPORT: usize = 5;

/// The report of process 1 that the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Report {
    status: ExitStatus,
    /// True if other processes still run in the namespace.
    left: bool,
}

/// Forks this process. The child becomes process 1 of the new PID namespace and calls `start`, which confines the child and
/// starts the command. Neither process returns from this function, except after an error.
///
/// # Errors
/// The system refuses a step, or `start` fails. The error is a sentence for a person.
pub(super) fn enter(
    namespace: &PidNamespace,
    start: impl FnOnce() -> Result<Pid, String>,
) -> Result<Infallible, String> {
    let told = |error: io::Error| {
        format!("the command was not started, for it got no PID namespace ({error})")
    };
    let signals: SigSet = Signal::iterator().collect();
    let incoming = prepare(&signals).map_err(told)?;
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|e| told(e.into()))?;
    match fork().map_err(told)? {
        ForkResult::Parent { child } => {
            drop(write);
            let forwarder = SignalForwarder {
                first: child,
                reports: File::from(read),
                incoming,
                starter: open_process(namespace.starter).map_err(told)?,
            };
            forwarder.run().map_err(told)
        }
        ForkResult::Child => {
            drop((read, incoming));
            become_first(namespace, &write).map_err(told)?;
            let null = streams::null().map_err(told)?;
            let first = FirstProcess {
                command: start()?,
                reports: Some(File::from(write)),
            };
            first.run(&null, &signals).map_err(told)
        }
    }
}

/// Prepares this process for the fork. From now on, signals are queued in the returned descriptor.
fn prepare(signals: &SigSet) -> io::Result<SignalFd> {
    // A process that ignores this signal cannot wait for its children.
    inherited::restore(Signal::SIGCHLD)?;
    signals.thread_set_mask()?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(SignalFd::with_flags(signals, SfdFlags::SFD_CLOEXEC)?)
}

/// Returns whether the next child of this process can mount the `/proc` of its PID namespace.
///
/// In some containers, parts of `/proc` are hidden, and the kernel then refuses this mount.
pub(super) fn can_mount_proc() -> bool {
    match fork() {
        Ok(ForkResult::Child) => std::process::exit(i32::from(mount_proc().is_err())),
        Ok(ForkResult::Parent { child }) => {
            let child = Pid::from_raw(child.as_raw());
            let ended = rustix::process::waitpid(child, WaitOptions::empty());
            ended.is_ok_and(|it| it.is_some_and(|(_, status)| status.exit_status() == Some(0)))
        }
        Err(_) => false,
    }
}

/// Mounts the `/proc` of this process's PID namespace.
fn mount_proc() -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    Ok(mount("proc", Path::new("/proc"), "proc", flags, None)?)
}

/// Opens a descriptor that becomes readable when the process ends. Returns `None` if the system does not support such
/// descriptors.
///
/// # Errors
/// The process has ended already.
fn open_process(number: i32) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(number) else {
        return Ok(None);
    };
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => Ok(Some(process)),
        Err(error @ rustix::io::Errno::SRCH) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

/// Prepares this process, which is process 1 of the namespace. `reports` is its end of the pipe to the launcher.
fn become_first(namespace: &PidNamespace, reports: &OwnedFd) -> io::Result<()> {
    // A separate process group: the namespace gets a signal to the group of the launcher only once.
    rustix::process::setpgid(None, None)?;
    if namespace.own_proc {
        mount_proc()?;
    }
    end_with_parent(true)?;
    // The launcher may have ended before that.
    let mut fds = [PollFd::new(reports, PollFlags::empty())];
    match rustix::event::poll(&mut fds, Some(&Timespec::default()))? {
        0 => Ok(()),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

/// Sets whether the kernel kills this process when the launcher ends.
fn end_with_parent(ends: bool) -> io::Result<()> {
    let signal = ends.then_some(rustix::process::Signal::KILL);
    Ok(rustix::process::set_parent_process_death_signal(signal)?)
}

/// Closes this process's copies of the command's streams. Otherwise the programs at the other ends of the streams would not
/// notice that the command has closed them.
fn release_streams(null: &File) -> io::Result<()> {
    rustix::stdio::dup2_stdin(null)?;
    rustix::stdio::dup2_stdout(null)?;
    Ok(rustix::stdio::dup2_stderr(null)?)
}

/// The launcher after its fork. It forwards signals to the command, and ends in the same way as the command.
struct SignalForwarder {
    first: nix::unistd::Pid,
    /// The pipe for reports, which closes when process 1 ends.
    reports: File,
    incoming: SignalFd,
    starter: Option<OwnedFd>,
}

/// The kinds of events for which the launcher waits.
enum Event {
    Report,
    Signal,
    StarterEnded,
}

impl SignalForwarder {
    /// Forwards signals until the command has ended, then ends in the same way. Ends at once if the process that started the
    /// launcher has ended.
    fn run(mut self) -> io::Result<Infallible> {
        release_streams(&streams::null()?)?;
        loop {
            match self.next_event()? {
                Event::Report => break,
                Event::Signal => {}
                Event::StarterEnded => end_as(ExitStatus::from_raw(Signal::SIGKILL as i32)),
            }
            if let Some(told) = self.incoming.read_signal()?
                && let Some(signal) = forwarded(told.ssi_signo as i32)
            {
                // This fails if process 1 has just ended.
                let _ = nix::sys::signal::kill(self.first, signal);
            }
        }
        let mut bytes = [0; REPORT];
        let report = match self.reports.read(&mut bytes)? {
            REPORT => Some(Report::from(bytes)),
            _ => None,
        };
        if let Some(Report { status, left: true }) = report {
            end_as(status);
        }
        let first = Pid::from_raw(self.first.as_raw());
        let own = rustix::process::waitpid(first, WaitOptions::empty())?;
        let own = own.map_or(0, |(_, status)| status.as_raw());
        end_as(report.map_or(ExitStatus::from_raw(own), |report| report.status))
    }

    fn next_event(&self) -> io::Result<Event> {
        let mut fds = vec![
            PollFd::new(&self.reports, PollFlags::IN),
            PollFd::new(&self.incoming, PollFlags::IN),
        ];
        fds.extend(self.starter.iter().map(|it| PollFd::new(it, PollFlags::IN)));
        rustix::event::poll(&mut fds, None)?;
        let is_ready = |at: usize| fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        Ok(if is_ready(0) {
            Event::Report
        } else if is_ready(1) {
            Event::Signal
        } else {
            Event::StarterEnded
        })
    }
}

/// Returns the signal with this number. Returns `None` for signals about children, which are not forwarded.
fn forwarded(number: i32) -> Option<Signal> {
    let signal = Signal::try_from(number).ok();
    signal.filter(|signal| *signal != Signal::SIGCHLD)
}

/// Ends this process in the same way as a process with the exit status `status` has ended.
fn end_as(status: ExitStatus) -> ! {
    let number = status.signal().unwrap_or(0);
    if let Ok(signal) = Signal::try_from(number) {
        // This process is not dumpable, so it leaves no core. If the system refuses a step, the exit status tells.
        let _ = inherited::restore(signal);
        let _ = SigSet::empty().thread_set_mask();
        let _ = nix::sys::signal::raise(signal);
    }
    std::process::exit(status.code().unwrap_or(128 + number))
}

/// Process 1 of the namespace, after it has started the command.
struct FirstProcess {
    command: Pid,
    /// The pipe for the report. `None` after the report about the command's end.
    reports: Option<File>,
}

impl FirstProcess {
    /// Forwards signals and reaps processes until no process is left.
    fn run(mut self, null: &File, signals: &SigSet) -> io::Result<Infallible> {
        release_streams(null)?;
        loop {
            let (ended, left) = self.reap()?;
            if let Some(status) = ended {
                self.report(Report { status, left })?;
            }
            if !left {
                std::process::exit(0);
            }
            if let Ok(signal) = signals.wait()
                && signal != Signal::SIGCHLD
            {
                // To every process of the namespace except this one. This fails if there is none.
                let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(-1), signal);
            }
        }
    }

    /// Reaps all processes that have ended. Returns the exit status of the command if it is among them. Also returns true if
    /// other processes still run.
    fn reap(&self) -> io::Result<(Option<ExitStatus>, bool)> {
        let mut ended = None;
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.command => {
                    ended = Some(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok((ended, true)),
                Err(rustix::io::Errno::CHILD) => return Ok((ended, false)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reports the end of the command. The launcher then ends, but this process continues.
    fn report(&mut self, report: Report) -> io::Result<()> {
        end_with_parent(false)?;
        if let Some(mut reports) = self.reports.take() {
            // This fails if the launcher was killed.
            let _ = reports.write_all(&<[u8; REPORT]>::from(report));
        }
        Ok(())
    }
}

impl From<Report> for [u8; REPORT] {
    fn from(report: Report) -> Self {
        let [a, b, c, d] = report.status.into_raw().to_ne_bytes();
        [a, b, c, d, u8::from(report.left)]
    }
}

impl From<[u8; REPORT]> for Report {
    fn from([a, b, c, d, left]: [u8; REPORT]) -> Self {
        Self {
            status: ExitStatus::from_raw(i32::from_ne_bytes([a, b, c, d])),
            left: left != 0,
        }
    }
}
