//! Starts the process of a command: by an absolute path, in a new session, and with only three inherited descriptors.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, PidfdFlags, WaitOptions};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::beneath;
use crate::command::Program;
use crate::confinement::level::Level;
use crate::environment::Variables;
use crate::error::Error;
use crate::error::refusal::SandboxRefusal;
use crate::limits::ProcessLimits;
use crate::process::cgroup::Group;
use crate::process::mark::Mark;
use crate::process::spawn::{self, SpawnRequest, WorkingDirectory};
use crate::process::streams::{self, CommandPipes, Streams};
use crate::process::{children, env};
use crate::program_search::{is_program, search};
use crate::sandbox::{ConfinedCommand, GateEnd, LaunchRequest, Launcher};
use crate::secrets::exposure::SecretWatch;

/// The paths of bash that co tries before it searches PATH for bash. co judged the command as a script for bash, so another shell
/// must not run it.
const BASH: &[&str] = &["/bin/bash", "/usr/bin/bash"];

/// A command to start, with its environment and limits.
pub(crate) struct StartRequest<'a> {
    pub(crate) program: Program,
    /// The shell and its flags for [`Program::Shell`]. `None` means bash.
    pub(crate) shell: Option<&'a [OsString]>,
    pub(crate) cwd: &'a Path,
    /// True if `cwd` is a canonical path, no component of which may have become a symbolic link.
    pub(crate) is_real_cwd: bool,
    pub(crate) stdin: Option<&'a [u8]>,
    pub(crate) streams: Streams,
    /// The level of confinement, if the kernel confines the command.
    pub(crate) level: Option<Level<'a>>,
    pub(crate) env: Variables,
    pub(crate) limits: ProcessLimits,
    /// The most bytes that the command may write in its private temporary directory.
    pub(crate) tmp_size: Option<u64>,
    pub(crate) group: Option<Group>,
    pub(crate) launcher: Option<Launcher>,
    /// True if standard error gets its own stream.
    pub(crate) reports: bool,
    /// The watch for the workspace's secrets, which must be hidden from the command.
    pub(crate) secrets: Option<SecretWatch>,
    /// The addresses of the command's own loopback interface at which co gets listening sockets.
    pub(crate) ports: &'a [SocketAddr],
}

/// The reason why the command did not begin although its process had started.
#[derive(Debug)]
pub(crate) enum NotBegun {
    /// A secret was moved before it was hidden.
    Moved(PathBuf),
    /// co did not receive all listening sockets of the command's network.
    SocketsLost,
}

/// A process that has started.
#[derive(Debug)]
pub(crate) struct StartedProcess {
    pub(crate) pid: Pid,
    pub(crate) mark: Mark,
    /// The process handle (pidfd), which becomes readable when the process ends.
    pub(crate) ended: AsyncFd<OwnedFd>,
    /// The read end of standard output and standard error.
    pub(crate) output: AsyncFd<OwnedFd>,
    /// The write end of standard input, if the input stays open.
    pub(crate) input: Option<AsyncFd<OwnedFd>>,
    /// The read end of standard error, if standard error has its own stream.
    pub(crate) reports: Option<AsyncFd<OwnedFd>>,
    /// The pipes for the caller, which reads and writes them itself.
    pub(crate) pipes: Option<CommandPipes>,
    /// The confinement of the command, with its private temporary directory.
    pub(crate) confined: Option<ConfinedCommand>,
    pub(crate) group: Option<Group>,
    /// The number of listening sockets that the launcher will pass to co.
    pub(crate) sockets: usize,
}

impl StartedProcess {
    /// Waits until all secrets are hidden, then lets the command begin. Returns the command and the listening sockets of its
    /// network, one for each requested port. Dropping the returned future kills the process.
    ///
    /// # Errors
    /// The command did not begin, and its process has ended.
    pub(crate) async fn begin(mut self) -> Result<(Self, Vec<TcpListener>), NotBegun> {
        let confined = self.confined.as_mut();
        let Some(gate) = confined.and_then(ConfinedCommand::take_gate) else {
            return Ok((self, Vec::new()));
        };
        let mut given_up = KillOnDrop(Some(self.pid));
        let secrets = self.confined.as_ref().and_then(ConfinedCommand::secrets);
        let secrets = secrets.cloned();
        let prepare = async || {
            let starts = move || secrets.iter().for_each(SecretWatch::command_starts);
            // If it fails, what the command makes counts as made by others.
            let _done = tokio::task::spawn_blocking(starts).await;
        };
        let why = match gate.open(self.sockets, prepare).await {
            Ok(GateEnd::Moved(path)) => NotBegun::Moved(path),
            Ok(GateEnd::SocketsLost) => NotBegun::SocketsLost,
            // Without a message, the outcome of the process has the reason.
            Err(_) | Ok(GateEnd::Failed) => {
                given_up.0 = None;
                return Ok((self, Vec::new()));
            }
            Ok(GateEnd::Started(listeners)) => {
                given_up.0 = None;
                return Ok((self, listeners));
            }
        };
        // It ends by itself. A trial's layer is in use until then.
        let _ended = self.ended.readable().await;
        Err(why)
    }
}

/// Kills and reaps the process when it is dropped, unless the process is `None`.
struct KillOnDrop(Option<Pid>);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            children::reap(pid);
        }
    }
}

/// Starts the process of the command.
pub(crate) fn start(request: StartRequest<'_>) -> Result<StartedProcess, Error> {
    if !request.cwd.is_absolute() {
        return Err(Error::RelativeCwd(request.cwd.to_owned()));
    }
    let StartRequest {
        mut env, secrets, ..
    } = request;
    let mut argv = argv((&request.program, request.shell), request.cwd, &env)
        .map_err(|error| check_cwd(request.cwd).err().unwrap_or(error))?;
    let name = argv[0].to_string_lossy().into_owned();
    let terminal = matches!(request.streams, Streams::Terminal(_));
    let mut confined = None;
    if request.level.is_some() || !request.limits.is_empty() || request.group.is_some() {
        // The sandbox reads the directory too, and has other words for a missing one.
        check_cwd(request.cwd)?;
        let launcher = request.launcher.as_ref().ok_or_else(|| {
            let why = "co has no launcher to confine or limit the command: see `co-nvim doctor`";
            Error::Sandbox(SandboxRefusal::Unable(why.to_owned()))
        })?;
        let launch = LaunchRequest {
            cwd: request.cwd,
            limits: request.limits,
            tmp_size: request.tmp_size,
            group: request.group.as_ref(),
            secrets,
            waits: true,
            ports: request.ports,
            terminal,
        };
        let wrapped = match request.level {
            Some(level) => launcher.confine(level, &launch, argv, &mut env),
            None => launcher.limit(&launch, argv),
        };
        let wrapped = wrapped.map_err(Error::Sandbox)?;
        argv = wrapped.argv.clone();
        confined = Some(wrapped);
    }
    let system = |what| move |source: io::Error| Error::System { what, source };
    let ends = streams::open(request.streams, request.stdin).map_err(system("make its streams"))?;
    let reports = request
        .reports
        .then(|| rustix::pipe::pipe_with(PipeFlags::CLOEXEC));
    let (reports, error) = reports
        .transpose()
        .map_err(|error| system("make its streams")(error.into()))?
        .unzip();
    let namespaced = confined.as_ref().is_some_and(|it| it.pid_namespace);
    let started = children::spawn(|| {
        spawn::start(&SpawnRequest {
            argv: &argv,
            env: &env,
            cwd: WorkingDirectory {
                path: request.cwd,
                is_real: request.is_real_cwd,
            },
            stdin: &ends.stdin,
            output: &ends.write,
            error: error.as_ref().or(ends.error.as_ref()),
            inherited: (confined.iter().flat_map(ConfinedCommand::inherited)).collect(),
            // In a PID namespace, the session of the command itself gets it.
            terminal: terminal && !namespaced,
        })
    });
    let (pid, mark) = started.map_err(|source| match check_cwd(request.cwd) {
        Err(gone) => gone,
        Ok(()) if beneath::is_link_error(&source) => Error::Cwd {
            path: request.cwd.to_owned(),
            source,
        },
        Ok(()) if source.kind() == io::ErrorKind::ArgumentListTooLong => Error::TooLong,
        Ok(()) => Error::Spawn {
            program: name,
            source,
        },
    })?;
    // This closes the other end of the output. Otherwise the output would never end.
    let streams::StreamEnds {
        output,
        input,
        pipes,
        ..
    } = ends;
    drop(error);
    let watched = watch(pid, output, input).and_then(|watched| {
        let pipes = pipes.map(CommandPipes::new).transpose()?;
        let reports = reports.map(|fd| {
            rustix::io::ioctl_fionbio(&fd, true)?;
            streams::register(fd, Interest::READABLE)
        });
        Ok((watched, reports.transpose()?, pipes))
    });
    let ((ended, output, input), reports, pipes) = watched.map_err(|error| {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
        children::reap(pid);
        system("watch a command")(error)
    })?;
    Ok(StartedProcess {
        pid,
        mark,
        ended,
        output,
        input,
        reports,
        pipes,
        confined,
        group: request.group,
        sockets: request.ports.len(),
    })
}

type RegisteredFd = AsyncFd<OwnedFd>;

/// Registers the process handle, the output and the input with the tokio runtime.
fn watch(
    pid: Pid,
    output: OwnedFd,
    input: Option<OwnedFd>,
) -> io::Result<(RegisteredFd, RegisteredFd, Option<RegisteredFd>)> {
    let ended = rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK)?;
    for fd in std::iter::once(&output).chain(&input) {
        rustix::io::ioctl_fionbio(fd, true)?;
    }
    let input = input.map(|it| streams::register(it, Interest::WRITABLE));
    let readable = |it| streams::register(it, Interest::READABLE);
    Ok((readable(ended)?, readable(output)?, input.transpose()?))
}

fn check_cwd(cwd: &Path) -> Result<(), Error> {
    let source = match cwd.metadata() {
        Ok(facts) if facts.is_dir() => match rustix::fs::access(cwd, Access::EXEC_OK) {
            Ok(()) => return Ok(()),
            Err(error) => error.into(),
        },
        Ok(_) => io::ErrorKind::NotADirectory.into(),
        Err(error) => error,
    };
    Err(Error::Cwd {
        path: cwd.to_owned(),
        source,
    })
}

/// Returns the argument vector, in which the program is an absolute path.
fn argv(
    (program, shell): (&Program, Option<&[OsString]>),
    cwd: &Path,
    env: &Variables,
) -> Result<Vec<OsString>, Error> {
    let path = env::value(env, "PATH").unwrap_or_default();
    let mut argv: Vec<OsString> = match (program, shell) {
        (Program::Shell(text), _) if text.trim().is_empty() => return Err(Error::Empty),
        (Program::Shell(text), None) => return no_nul(bash(text, &path)),
        (Program::Shell(text), Some(shell)) => {
            let text = OsString::from(text);
            shell.iter().cloned().chain([text]).collect()
        }
        (Program::Argv(argv), _) => argv.iter().map(OsString::from).collect(),
    };
    let name = argv.first_mut().filter(|name| !name.is_empty());
    let name = name.ok_or(Error::Empty)?;
    *name = find(name, cwd, &path)
        .ok_or_else(|| Error::NotFound {
            program: name.to_string_lossy().into_owned(),
        })?
        .into_os_string();
    no_nul(argv)
}

fn no_nul(argv: Vec<OsString>) -> Result<Vec<OsString>, Error> {
    if argv.iter().any(|it| it.as_encoded_bytes().contains(&0)) {
        return Err(Error::Nul);
    }
    Ok(argv)
}

fn bash(text: &str, path: &OsString) -> Vec<OsString> {
    let fixed = BASH.iter().map(PathBuf::from).find(|it| is_program(it));
    let words: Vec<OsString> = match fixed.or_else(|| search("bash", path)) {
        Some(bash) => vec![bash.into(), "--noprofile".into(), "--norc".into()],
        None => vec!["/bin/sh".into()],
    };
    words
        .into_iter()
        .chain(["-c".into(), text.into()])
        .collect()
}

fn find(name: &OsStr, cwd: &Path, path: &OsString) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(cwd.join(name));
    }
    search(name, path)
}
