//! Starts one process: by absolute path, in a session of its own, with nothing inherited but three streams.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::Access;
use rustix::process::{Pid, PidfdFlags, WaitOptions};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::cgroup::Group;
use super::env::{self, Variables};
use super::limits::PerProcess;
use super::mark::Mark;
use super::sandbox::{Held, Launcher, Wrapped};
use super::spawn::{self, Start};
use super::{Confinement, Error, Program, Streams, children, long_script, streams};
use crate::secrets::Survey;

/// Where bash is looked for, before the command's PATH: what was judged must be what runs.
const BASH: &[&str] = &["/bin/bash", "/usr/bin/bash"];

/// What to start.
pub(super) struct Plan<'a> {
    pub(super) program: &'a Program,
    /// The words before the text of a [`Program::Shell`], if they are not those for bash.
    pub(super) shell: Option<&'a [OsString]>,
    pub(super) cwd: &'a Path,
    pub(super) stdin: Option<&'a [u8]>,
    pub(super) streams: Streams,
    pub(super) confinement: &'a Confinement,
    pub(super) env: Variables,
    pub(super) limits: PerProcess,
    pub(super) group: Option<&'a Group>,
    pub(super) launcher: Option<&'a Launcher>,
    /// The secrets of the workspace, to be hidden from the command.
    pub(super) survey: Option<Arc<Survey>>,
}

/// A process that runs.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) pid: Pid,
    pub(super) mark: Mark,
    /// Readable once the process has ended; pins nothing by itself.
    pub(super) ended: AsyncFd<OwnedFd>,
    /// Both of its output streams.
    pub(super) output: AsyncFd<OwnedFd>,
    /// Where its standard input can still be written to.
    pub(super) input: Option<AsyncFd<OwnedFd>>,
    /// What holds it, with its private temporary directory; none where nothing does.
    pub(super) confined: Option<Wrapped>,
}

/// Starts it.
pub(super) fn start(plan: Plan<'_>) -> Result<Started, Error> {
    if !plan.cwd.is_absolute() {
        return Err(Error::RelativeCwd(plan.cwd.to_owned()));
    }
    check_proved(&plan)?;
    let Plan { mut env, .. } = plan;
    let mut argv = argv((plan.program, plan.shell), plan.cwd, &env)
        .map_err(|error| check_cwd(plan.cwd).err().unwrap_or(error))?;
    let name = argv[0].to_string_lossy().into_owned();
    let long_script = long_script::of(plan.program);
    let mut confined = None;
    let plain = *plan.confinement == Confinement::Plain;
    if !plain || !plan.limits.is_empty() || plan.group.is_some() {
        // What confines a command looks into it too, and has its own words for one that is gone.
        check_cwd(plan.cwd)?;
        let launcher = plan.launcher.ok_or_else(|| {
            let why = "co has no launcher to confine or limit the command: see `co-nvim doctor`";
            Error::Sandbox(why.to_owned())
        })?;
        let entrance = plan.group.map(Group::entrance);
        let held = Held {
            confinement: plan.confinement,
            cwd: plan.cwd,
            limits: plan.limits,
            group: entrance.as_deref(),
            survey: plan.survey,
            long_script: long_script.is_some(),
        };
        let wrapped = launcher
            .hold(&held, argv, &mut env)
            .map_err(|refused| Error::Sandbox(refused.0))?;
        argv = wrapped.argv.clone();
        confined = Some(wrapped);
    }
    let system = |what| move |source: io::Error| Error::System { what, source };
    let ends = streams::open(plan.streams, plan.stdin).map_err(system("make its streams"))?;
    let script = long_script.map(|text| streams::file("script", text.as_bytes()));
    let script = script.transpose().map_err(system("pass its script"))?;
    let started = children::spawn(|| {
        spawn::start(&Start {
            argv: &argv,
            env: &env,
            cwd: plan.cwd,
            stdin: &ends.stdin,
            output: &ends.write,
            script: script.as_ref(),
            terminal: matches!(plan.streams, Streams::Terminal(_)),
        })
    });
    let (pid, mark) = started.map_err(|source| match check_cwd(plan.cwd) {
        Err(gone) => gone,
        Ok(()) if source.kind() == io::ErrorKind::ArgumentListTooLong => Error::TooLong,
        Ok(()) => Error::Spawn {
            program: name,
            source,
        },
    })?;
    // This closes the other end of the output. Otherwise the output would never end.
    let streams::Ends { output, input, .. } = ends;
    let (ended, output, input) = watch(pid, output, input).map_err(|error| {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
        children::reap(pid);
        system("watch a command")(error)
    })?;
    Ok(Started {
        pid,
        mark,
        ended,
        output,
        input,
        confined,
    })
}

type Watched = AsyncFd<OwnedFd>;

/// Registers the end of a new process, its output and its input with the runtime.
fn watch(
    pid: Pid,
    output: OwnedFd,
    input: Option<OwnedFd>,
) -> io::Result<(Watched, Watched, Option<Watched>)> {
    let ended = rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK)?;
    for fd in std::iter::once(&output).chain(&input) {
        rustix::io::ioctl_fionbio(fd, true)?;
    }
    let input = input.map(|it| register(it, Interest::WRITABLE));
    let readable = |it| register(it, Interest::READABLE);
    Ok((readable(ended)?, readable(output)?, input.transpose()?))
}

#[expect(unsafe_code, reason = "the safe forms are deprecated")]
pub(super) fn register(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open, and the same descriptor, until the `AsyncFd` that owns it is dropped.
    let registered = unsafe { AsyncFd::register_with_interest(fd, interest) };
    registered.map_err(|error| error.into_parts().1)
}

/// Refuses a proved command outside the read-only confinement, unless nothing can confine commands here.
fn check_proved(plan: &Plan<'_>) -> Result<(), Error> {
    let cannot_confine = |it: &Launcher| it.check().is_err() && !it.probe_failed();
    match (plan.program, plan.confinement) {
        (Program::Shell(_) | Program::Argv(_), _)
        | (Program::Proved(_), Confinement::ReadOnly { .. }) => Ok(()),
        (Program::Proved(_), Confinement::Plain) if plan.launcher.is_none_or(cannot_confine) => {
            Ok(())
        }
        (Program::Proved(_), Confinement::Plain | Confinement::Workspace { .. }) => {
            Err(Error::Unconfined)
        }
    }
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

/// Returns the program by absolute path, and its arguments.
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
        (Program::Proved(proved), _) => {
            let long = long_script::of(program).is_some();
            let text = if long {
                long_script::READ
            } else {
                proved.script()
            };
            match bash(text, &path) {
                words if words.len() == 5 => words,
                // Another shell would read it otherwise.
                _ => vec!["bash".into()],
            }
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

/// Looks `name` up in the absolute directories of a PATH: others depend on where one is.
pub(super) fn search(name: impl AsRef<Path>, path: &OsString) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name.as_ref()))
        .find(|it| is_program(it))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}
