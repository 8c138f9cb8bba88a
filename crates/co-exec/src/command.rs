//! A command to run: its program, its place, and the confinement that it runs in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use co_policy::Proved;

use crate::environment::Environment;

/// The time of a command that ends by itself or is ended: no ceiling holds for it.
pub const UNTIL_IT_ENDS: Duration = Duration::MAX;

/// What to run and how.
#[derive(Debug, Clone)]
pub struct Spec {
    pub program: Program,
    /// An absolute path.
    pub cwd: PathBuf,
    /// Who the command runs for: decides the forced variables and what becomes of leftovers.
    pub caller: Caller,
    /// Text for standard input; none is `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// At least a second. An agent's is cut down to the settings' ceiling, but for [`UNTIL_IT_ENDS`].
    pub timeout: Duration,
    pub confinement: Confinement,
    /// The source of its shell and variables.
    pub environment: Environment,
    /// Variables set on top of those.
    pub extra_env: Vec<(String, String)>,
}

/// The forms of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// `bash --noprofile --norc -c TEXT`, or what [`Environment::Inherit`] says in its place.
    Shell(String),
    /// No shell at all.
    Argv(Vec<String>),
    /// A command that only looks. bash runs its script, whatever the environment says, with the variables that the
    /// proof sets. It starts in the read-only confinement, or plain if nothing can confine commands.
    Proved(Box<Proved>),
}

impl Program {
    /// Returns the variables that a proof sets for it.
    pub(crate) fn env(&self) -> &[(String, String)] {
        match self {
            Self::Proved(proved) => proved.env(),
            Self::Shell(_) | Self::Argv(_) => &[],
        }
    }
}

/// Who a command runs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A model: what it leaves running is named and ended.
    Agent,
    /// A person: what it leaves running is named and kept.
    Person,
}

/// What the kernel holds a command to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Confinement {
    #[default]
    Plain,
    /// No write but a private temporary directory, no network, no reads of credentials.
    ReadOnly { workspace: PathBuf },
    /// Writes in the workspace and a private temporary directory.
    Workspace {
        workspace: PathBuf,
        network: bool,
        shown: ShownSecrets,
    },
}

/// The secrets of the workspace that a command may open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ShownSecrets {
    #[default]
    Nothing,
    /// Files and directories by their real paths.
    These(Vec<PathBuf>),
    Everything,
}

impl ShownSecrets {
    /// True if a command may open the secret file or directory at `path`.
    pub fn includes(&self, path: &Path) -> bool {
        match self {
            Self::Nothing => false,
            Self::These(paths) => paths.iter().any(|shown| shown.starts_with(path)),
            Self::Everything => true,
        }
    }
}
