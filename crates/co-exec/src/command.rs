//! A command to run: its program, its place, and the confinement that it runs in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::environment::Environment;

/// A time-out without a limit, for a command that ends by itself or is cancelled.
pub const UNTIL_IT_ENDS: Duration = Duration::MAX;

/// A command and all that it needs.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    pub program: Program,
    /// An absolute path. If an agent wants the command, it is a real one, and no part of it may have become a link.
    pub cwd: PathBuf,
    /// Decides the forced variables, and whether remaining processes are kept.
    pub caller: Caller,
    /// The text for standard input. None means `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// At least a second. For an agent, at most the `max_timeout` of the settings, unless it is [`UNTIL_IT_ENDS`].
    pub timeout: Duration,
    pub confinement: Confinement,
    /// The source of its shell and variables.
    pub environment: Environment,
    /// Further variables.
    pub extra_env: Vec<(String, String)>,
}

/// The forms of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// `bash --noprofile --norc -c TEXT`, or the shell of [`Environment::Inherit`].
    Shell(String),
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

/// The one for whom a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A model. Processes that remain after its command are named and ended.
    Agent,
    /// A person. Processes that remain after their command are named and kept. Those of a trial are ended.
    Person,
}

/// The limits that the kernel sets to the actions of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Confinement {
    #[default]
    Plain,
    /// It writes only in a private temporary directory, has no network, and reads no credentials.
    ReadOnly { workspace: PathBuf },
    /// It writes only in the workspace and a private temporary directory.
    Workspace {
        workspace: PathBuf,
        network: bool,
        shown: ShownSecrets,
    },
    /// It sees the workspace and may change it, but all that it writes there goes to a layer: the workspace itself
    /// stays as it is. It has a network of its own, in which there is nothing but itself.
    Trial {
        workspace: PathBuf,
        /// A private directory outside the workspace, which the caller makes. Afterwards, `upper` in it has the changes,
        /// in the form of Linux's overlay file system (`userxattr`).
        layer: PathBuf,
        /// A directory of the same form, outside the workspace, whose files hide those of the workspace. A trial holds a
        /// shared lock (`flock`) on it until its last process has ended. Who changes it must hold an exclusive one.
        ignored: Option<PathBuf>,
        /// A directory outside the workspace that the command may change too: the caches of programs. The changes go to `caches`
        /// in the layer. For who changes the directory, the same holds as for `ignored`.
        caches: Option<PathBuf>,
    },
    /// It runs in a container that has the workspace.
    Container {
        workspace: PathBuf,
        shown: ShownSecrets,
        /// True for a command that only looks: it writes nowhere but in `/tmp`, and has no network.
        read_only: bool,
    },
}

impl Confinement {
    /// Returns whether the command can only look.
    pub fn only_looks(&self) -> bool {
        matches!(
            self,
            Self::ReadOnly { .. }
                | Self::Container {
                    read_only: true,
                    ..
                }
        )
    }
}

/// The secret files of the workspace that a command may open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ShownSecrets {
    #[default]
    Nothing,
    /// Files and directories by their real paths.
    These(Vec<PathBuf>),
    Everything,
}

impl ShownSecrets {
    /// Returns whether a command may open the secret file or directory at `path`.
    pub fn includes(&self, path: &Path) -> bool {
        match self {
            Self::Nothing => false,
            Self::These(paths) => paths.iter().any(|shown| shown.starts_with(path)),
            Self::Everything => true,
        }
    }
}
