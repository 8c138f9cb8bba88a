//! The errors of this crate, with messages for people.

pub(crate) mod engine;
pub(crate) mod refusal;

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use rustix::io::Errno;

use crate::error::engine::EngineFault;
use crate::error::refusal::SandboxRefusal;

/// The reason why a command did not start. A command that ran has a [`CommandOutcome`](crate::CommandOutcome) instead.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no command to run: give one")]
    Empty,
    #[error("the command holds a NUL byte, which no program can be given: remove it")]
    Nul,
    #[error("cannot run in `{}`: {source}; choose a directory that exists", path.display())]
    Cwd {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot run in `{}`: a working directory must be an absolute path", .0.display())]
    RelativeCwd(PathBuf),
    #[error("`{asked}` leads to `{}`, outside the workspace `{}`: stay inside it", to.display(), workspace.display())]
    OutsideWorkspace {
        asked: String,
        to: PathBuf,
        workspace: PathBuf,
    },
    #[error("a time-out of {asked} s is out of range: give 1 to {max} s")]
    Timeout { asked: String, max: u64 },
    #[error("no program named `{program}` on PATH: install it or give its path")]
    NotFound { program: String },
    #[error(
        "the command, or its environment, is longer than the system takes: put it into a script and run that"
    )]
    TooLong,
    #[error("cannot start `{program}`: {source}{}", program_advice(source))]
    Spawn {
        program: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot run the command confined as asked: {0}")]
    Sandbox(SandboxRefusal),
    #[error(transparent)]
    Container(#[from] EngineFault),
    #[error("`{}` is outside of `{}`, which is all that the container has: stay in it", cwd.display(), workspace.display())]
    OutsideContainer { cwd: PathBuf, workspace: PathBuf },
    #[error("`{name}` is {value}, out of range: give {} to {}", range.start(), range.end())]
    Setting {
        name: &'static str,
        value: u64,
        range: RangeInclusive<u64>,
    },
    #[error("`{0}` in `shell_env_allow` is not a variable's name: give NAME or PREFIX_*")]
    EnvName(String),
    #[error("the executor is shutting down: start no new command")]
    Closed,
    #[error("cannot {what}: {source}{}", advice(source))]
    System {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Returns true if the command was refused: a permission is missing, or the command cannot be confined.
    pub fn is_permission(&self) -> bool {
        match self {
            Self::Cwd { source, .. } | Self::Spawn { source, .. } => {
                source.kind() == io::ErrorKind::PermissionDenied
            }
            Self::Sandbox(_) => true,
            _ => false,
        }
    }
}

/// Returns advice on an error of the system.
fn advice(source: &io::Error) -> &'static str {
    match Errno::from_io_error(source) {
        Some(Errno::MFILE | Errno::NFILE) => {
            "; close a few files, or raise the limit of them (ulimit -n)"
        }
        Some(Errno::AGAIN) => "; end a few processes, or raise the limit of them (ulimit -u)",
        Some(Errno::NOMEM) => "; end a few programs, so that there is memory",
        _ => "",
    }
}

/// Returns advice on a program that does not start.
fn program_advice(source: &io::Error) -> &'static str {
    match Errno::from_io_error(source) {
        Some(Errno::NOENT) => "; give the path of a program that exists",
        Some(Errno::ACCESS) => "; give a program that you may execute (chmod +x)",
        _ => advice(source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refuses_says_what_to_do() {
        let spawn = |errno: Errno| Error::Spawn {
            program: "/x".to_owned(),
            source: errno.into(),
        };
        let system = |errno: Errno| Error::System {
            what: "make its streams",
            source: errno.into(),
        };
        for (errno, expected) in [
            (Errno::MFILE, "ulimit -n"),
            (Errno::NFILE, "ulimit -n"),
            (Errno::AGAIN, "ulimit -u"),
            (Errno::NOMEM, "memory"),
        ] {
            for told in [spawn(errno), system(errno)].map(|it| it.to_string()) {
                assert!(told.contains(expected), "{told}");
            }
        }
        for (errno, expected) in [
            (Errno::NOENT, "a program that exists"),
            (Errno::ACCESS, "chmod +x"),
        ] {
            assert!(spawn(errno).to_string().contains(expected));
            assert!(!system(errno).to_string().contains(expected));
        }
    }
}
