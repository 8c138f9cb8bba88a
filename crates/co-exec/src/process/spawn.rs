//! Starts a program as the leader of a process session, with `posix_spawn`. Unlike the cost of `fork`, its cost does
//! not grow with the memory of this process.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::libc;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::Mode;
use rustix::process::Pid;

use crate::environment::Variables;

/// A program with its arguments, environment, directory and streams.
pub(crate) struct SpawnRequest<'a> {
    /// The first argument is the program's absolute path.
    pub(crate) argv: &'a [std::ffi::OsString],
    pub(crate) env: &'a Variables,
    pub(crate) cwd: &'a Path,
    pub(crate) stdin: &'a OwnedFd,
    /// Its standard output and standard error.
    pub(crate) output: &'a OwnedFd,
    /// The plan of its launcher, which names the descriptor by its number.
    pub(crate) plan: Option<&'a OwnedFd>,
    /// True if both streams are a terminal, which becomes the terminal of the new session.
    pub(crate) terminal: bool,
}

/// Starts the program.
///
/// # Errors
/// The system refuses the program, the directory or another process.
pub(crate) fn start(start: &SpawnRequest<'_>) -> io::Result<Pid> {
    let argv = start.argv.iter().map(|it| text(it));
    let argv = argv.collect::<io::Result<Vec<_>>>()?;
    let env = start.env.iter().map(|(name, value)| {
        let mut entry = name.clone();
        entry.push("=");
        entry.push(value);
        text(&entry)
    });
    let env = env.collect::<io::Result<Vec<_>>>()?;
    let program = argv.first().ok_or(io::ErrorKind::InvalidInput)?;
    let (actions, attributes) = (actions(start)?, attributes()?);
    let pid = in_directory(start.cwd, || {
        Ok(nix::spawn::posix_spawn(
            program.as_c_str(),
            &actions,
            &attributes,
            &argv,
            &env,
        )?)
    })?;
    Pid::from_raw(pid.as_raw()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn text(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

fn actions(start: &SpawnRequest<'_>) -> io::Result<PosixSpawnFileActions> {
    let mut actions = PosixSpawnFileActions::init()?;
    if start.terminal {
        // A session leader that opens an unused terminal gets it as its own. This opens it by its descriptor, because
        // /dev/pts may be another one than its path names.
        let itself = format!("/proc/self/fd/{}", start.stdin.as_raw_fd());
        actions.add_open(0, itself.as_str(), OFlag::O_RDWR, Mode::empty())?;
    } else {
        actions.add_dup2(start.stdin.as_raw_fd(), 0)?;
    }
    let output: RawFd = start.output.as_raw_fd();
    actions.add_dup2(output, 1)?;
    actions.add_dup2(output, 2)?;
    if let Some(plan) = start.plan {
        // To duplicate a descriptor to itself keeps it open on exec.
        actions.add_dup2(plan.as_raw_fd(), plan.as_raw_fd())?;
    }
    Ok(actions)
}

/// Returns the attributes for a new session and default actions of signals.
fn attributes() -> io::Result<PosixSpawnAttr> {
    let mut attributes = PosixSpawnAttr::init()?;
    // The library has no name for this flag. It is 0x80 in glibc and musl.
    let session = PosixSpawnFlags::from_bits_retain(libc::POSIX_SPAWN_SETSID as _);
    attributes.set_flags(
        session | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF | PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK,
    )?;
    // Rust ignores this signal in every program. Caught signals are reset by exec.
    attributes.set_sigdefault(&SigSet::from_iter([Signal::SIGPIPE]))?;
    attributes.set_sigmask(&SigSet::empty())?;
    Ok(attributes)
}

/// Runs `work` in the directory `cwd`, because `posix_spawn` passes on the current directory of this process.
///
/// No other code in this process may depend on its working directory.
fn in_directory<T>(cwd: &Path, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    // This gives the thread its own directory. If the system refuses that, the whole process changes directory for
    // this time.
    let _ = nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS);
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let before = rustix::fs::open(".", flags, rustix::fs::Mode::empty());
    rustix::process::chdir(cwd)?;
    let done = work();
    // The directory may be closed by now. The program has started anyway.
    let back = before.and_then(rustix::process::fchdir);
    let _ = back.or_else(|_| rustix::process::chdir("/"));
    done
}
