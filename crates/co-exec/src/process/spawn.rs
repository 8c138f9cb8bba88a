//! Starts a program as the leader of a new session, with `posix_spawn`. Unlike `fork`, this does not become slower when this
//! process uses much memory.

use std::ffi::{CString, OsStr, OsString};
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

use crate::beneath::Dir;
use crate::environment::Variables;

/// A program to start, with its arguments, environment, working directory and streams.
pub(crate) struct SpawnRequest<'a> {
    /// The arguments. The first one is the absolute path of the program.
    pub(crate) argv: &'a [OsString],
    pub(crate) env: &'a Variables,
    pub(crate) cwd: WorkingDirectory<'a>,
    pub(crate) stdin: &'a OwnedFd,
    /// The standard output of the command, and also its standard error if `error` is `None`.
    pub(crate) output: &'a OwnedFd,
    /// The standard error of the command, if it differs from the standard output.
    pub(crate) error: Option<&'a OwnedFd>,
    /// Descriptors for the command's launcher, which knows their numbers.
    pub(crate) inherited: Vec<&'a OwnedFd>,
    /// True if `stdin` and `output` are a terminal. It becomes the terminal of the new session.
    pub(crate) terminal: bool,
}

/// The working directory in which to start a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkingDirectory<'a> {
    pub(crate) path: &'a Path,
    /// True if `path` must be canonical: if a component of the path has become a symbolic link since the path was resolved,
    /// entering the directory fails.
    pub(crate) is_real: bool,
}

impl WorkingDirectory<'_> {
    fn enter(self) -> io::Result<()> {
        match self.is_real {
            true => rustix::process::fchdir(Dir::open(self.path)?)?,
            false => rustix::process::chdir(self.path)?,
        }
        Ok(())
    }
}

/// Starts the program.
///
/// # Errors
/// The system refuses the program, the directory or another process.
pub(crate) fn start(start: &SpawnRequest<'_>) -> io::Result<Pid> {
    let (argv, env) = (texts(start.argv)?, entries(start.env.iter().cloned())?);
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
    to_pid(pid)
}

/// Starts a program as the leader of a new session. The program gets the environment, the directory and the streams of this
/// process. If `terminal` is true, the streams are a terminal, which becomes the terminal of the session.
///
/// # Errors
/// The system refuses the program or another process.
pub(crate) fn start_here(argv: &[OsString], terminal: bool) -> io::Result<Pid> {
    let (argv, env) = (texts(argv)?, entries(std::env::vars_os())?);
    let program = argv.first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut actions = PosixSpawnFileActions::init()?;
    if terminal {
        // Standard input is closed before it is opened anew.
        add_terminal(&mut actions, 1)?;
    }
    to_pid(nix::spawn::posix_spawnp(
        program.as_c_str(),
        &actions,
        &attributes()?,
        &argv,
        &env,
    )?)
}

fn to_pid(pid: nix::unistd::Pid) -> io::Result<Pid> {
    Pid::from_raw(pid.as_raw()).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn texts(texts: &[OsString]) -> io::Result<Vec<CString>> {
    texts.iter().map(|it| text(it)).collect()
}

/// Returns the variables in the form `NAME=value`, as a program gets them.
fn entries(env: impl Iterator<Item = (OsString, OsString)>) -> io::Result<Vec<CString>> {
    let entry = |(mut name, value): (OsString, OsString)| {
        name.push("=");
        name.push(value);
        text(&name)
    };
    env.map(entry).collect()
}

fn text(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

fn actions(start: &SpawnRequest<'_>) -> io::Result<PosixSpawnFileActions> {
    let mut actions = PosixSpawnFileActions::init()?;
    if start.terminal {
        add_terminal(&mut actions, start.stdin.as_raw_fd())?;
    } else {
        actions.add_dup2(start.stdin.as_raw_fd(), 0)?;
    }
    let output: RawFd = start.output.as_raw_fd();
    actions.add_dup2(output, 1)?;
    actions.add_dup2(start.error.map_or(output, AsRawFd::as_raw_fd), 2)?;
    for kept in &start.inherited {
        // To duplicate a descriptor to itself keeps it open on exec.
        actions.add_dup2(kept.as_raw_fd(), kept.as_raw_fd())?;
    }
    Ok(actions)
}

/// Makes the terminal `fd` the standard input and the controlling terminal of the new session.
fn add_terminal(actions: &mut PosixSpawnFileActions, fd: RawFd) -> io::Result<()> {
    // A session leader that opens an unused terminal gets it as its own. This opens it by its descriptor, because
    // /dev/pts may be another one than its path names.
    let itself = format!("/proc/self/fd/{fd}");
    Ok(actions.add_open(0, itself.as_str(), OFlag::O_RDWR, Mode::empty())?)
}

/// Returns the attributes that start a new session and reset signals to their default actions.
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

/// Runs `work` in the directory `cwd`, because `posix_spawn` passes on the working directory of this process.
///
/// No other code in this process may depend on its working directory.
fn in_directory<T>(
    cwd: WorkingDirectory<'_>,
    work: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    // This gives the thread its own directory. If the system refuses that, the whole process changes directory for
    // this time.
    let _ = nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS);
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let before = rustix::fs::open(".", flags, rustix::fs::Mode::empty());
    cwd.enter()?;
    let done = work();
    // The directory may be closed by now. The program has started anyway.
    let back = before.and_then(rustix::process::fchdir);
    let _ = back.or_else(|_| rustix::process::chdir("/"));
    done
}
