//! The confinement of a command: the list of levels. Each level has a file of its own.
//!
//! A level is a value that consists of parts; see [`level::Level`]. Code that starts, limits or supervises a command uses these
//! parts, and does not depend on the level itself. Only code that chooses a level asks for the level, with
//! [`Confinement::shown_mut`] and [`Confinement::only_looks`]. To add a level, add a file such as [`read_only`], and its lines in
//! this file.

mod agent;
mod container;
pub(crate) mod level;
mod read_only;
mod server;
mod trial;
mod workspace;

use std::path::{Path, PathBuf};

pub use agent::{NAME as AGENT, WORDS as AGENT_WORDS};
pub use container::WORDS as CONTAINER_WORDS;
pub use read_only::NAME as READ_ONLY;
pub use server::{NAME as SERVER, ServerAccess, WRITING_NAME as WRITING_SERVER};
pub use trial::WORDS as TRIAL_WORDS;
pub use workspace::WORDS as WORKSPACE_WORDS;

pub(crate) use container::ContainerLevel;
pub(crate) use workspace::level as workspace_level;

use level::{ClosedBy, ClosedSecrets, GrantedPlaces, Level, Network, OverlayPlaces, ShownSecrets};

/// A level of confinement, with the paths that the level needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Confinement {
    #[default]
    Plain,
    /// The command writes only in a private temporary directory, has no network, and reads no credentials.
    ReadOnly { workspace: PathBuf },
    /// The command writes only in the workspace and in a private temporary directory.
    Workspace {
        workspace: PathBuf,
        network: Network,
        shown: ShownSecrets,
    },
    /// The command may change the workspace, but its changes go to a separate layer: the workspace itself stays unchanged. The
    /// command has its own network, which reaches nothing outside itself.
    Trial {
        workspace: PathBuf,
        /// A private directory outside the workspace, which the caller creates. After the trial, its subdirectory `upper`
        /// contains the changes, in the format of Linux's overlay file system (`userxattr`).
        layer: PathBuf,
        /// A directory outside the workspace, in the format of Linux's overlay file system. Its files hide the files of the
        /// workspace. A trial holds a shared lock (`flock`) on it until the last process of the trial has ended. Code that
        /// changes the directory must hold an exclusive lock.
        ignored: Option<PathBuf>,
        /// A directory outside the workspace that contains the caches of programs. The command may change these caches; the
        /// changes go to `caches` in the layer. The locks are the same as for `ignored`.
        ///
        /// The command may also change the directories where toolchains keep packages. These changes go to `downloads` in the
        /// layer. The directory `downloads`, beside the directory of caches, contains such changes of earlier trials.
        caches: Option<PathBuf>,
        /// Files and directories outside the workspace in which the command's changes persist.
        places: GrantedPlaces,
    },
    /// The process is another agent. It writes in the workspace, in a private temporary directory, and in its own granted paths.
    Agent {
        workspace: PathBuf,
        places: GrantedPlaces,
        /// True if the agent uses the network of the machine. Otherwise the agent has its own network, which reaches nothing
        /// outside itself.
        whole_network: bool,
    },
    /// The process is a tool server. It writes in a private temporary directory and in its own granted paths. `access` says
    /// whether it may also write in the workspace.
    Server {
        workspace: PathBuf,
        places: GrantedPlaces,
        access: ServerAccess,
        network: Network,
    },
    /// The command runs in a container that mounts the workspace.
    Container {
        workspace: PathBuf,
        shown: ShownSecrets,
        /// True for a read-only command: it writes only in `/tmp`, and has no network.
        read_only: bool,
    },
}

/// The mechanism that confines a command: nothing, the kernel, or a container engine.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mechanism<'a> {
    /// Nothing confines the command, but it may have limits.
    None,
    /// The kernel, which the launcher has set up.
    Kernel(Level<'a>),
    /// A container engine.
    Engine(ContainerLevel<'a>),
}

impl Confinement {
    /// Returns the mechanism that confines the command. The mechanism contains the parts of the level.
    pub(crate) fn mechanism(&self) -> Mechanism<'_> {
        match self {
            Self::Plain => Mechanism::None,
            Self::ReadOnly { workspace } => Mechanism::Kernel(read_only::level(workspace)),
            Self::Workspace {
                workspace,
                network,
                shown,
            } => Mechanism::Kernel(workspace::level(workspace, *network, shown)),
            Self::Trial {
                workspace,
                layer,
                ignored,
                caches,
                places,
            } => Mechanism::Kernel(trial::level(
                workspace,
                places,
                OverlayPlaces {
                    layer,
                    ignored: ignored.as_deref(),
                    caches: caches.as_deref(),
                },
            )),
            Self::Agent {
                workspace,
                places,
                whole_network,
            } => Mechanism::Kernel(agent::level(workspace, places, *whole_network)),
            Self::Server {
                workspace,
                places,
                access,
                network,
            } => Mechanism::Kernel(server::level(workspace, places, *access, *network)),
            Self::Container {
                workspace,
                shown,
                read_only,
            } => Mechanism::Engine(container::level(workspace, shown, *read_only)),
        }
    }

    /// Returns the level if the kernel confines the command.
    pub fn level(&self) -> Option<Level<'_>> {
        match self.mechanism() {
            Mechanism::Kernel(level) => Some(level),
            Mechanism::None | Mechanism::Engine(_) => None,
        }
    }

    /// Returns the name and the description of the level, and the secrets that it closes to the command. Returns `None` if
    /// nothing confines the command.
    fn parts(&self) -> Option<(&'static str, &'static str, ClosedSecrets<'_>)> {
        match self.mechanism() {
            Mechanism::None => None,
            Mechanism::Kernel(level) => Some((level.name, level.words, level.secrets)),
            Mechanism::Engine(level) => Some((level.name, level.words, level.secrets)),
        }
    }

    /// Returns the secrets that the level closes to the command. Returns `None` if nothing confines the command.
    pub(crate) fn secrets(&self) -> Option<ClosedSecrets<'_>> {
        self.parts().map(|(_, _, secrets)| secrets)
    }

    /// Returns the name of the level: `none`, `read-only`, `workspace`, `trial`, `agent`, `server`, `writing-server` or
    /// `container`.
    pub fn name(&self) -> &'static str {
        self.parts().map_or(NO_LEVEL, |(name, _, _)| name)
    }

    /// Returns a short description of the level for a person, or `None` if nothing confines the command.
    pub fn words(&self) -> Option<&'static str> {
        self.parts().map(|(_, words, _)| words)
    }

    /// Returns whether the command has its own network. In such a network, the command reaches hosts only through the listening
    /// sockets of [`Executor::start_listening`](crate::Executor::start_listening).
    pub fn has_own_network(&self) -> bool {
        self.level()
            .is_some_and(|level| level.network == Network::Own)
    }

    /// Returns the workspace, or `None` if nothing confines the command.
    pub fn workspace(&self) -> Option<&Path> {
        self.secrets().map(|secrets| secrets.workspace)
    }

    /// Returns whether mounts hide secrets from the command.
    pub fn masks_secrets(&self) -> bool {
        self.secrets().is_some_and(|secrets| {
            secrets.closed_by != ClosedBy::Rules && *secrets.shown != ShownSecrets::Everything
        })
    }

    /// Returns the list of secrets that the command may open, if the level lets a person choose them.
    pub fn shown_mut(&mut self) -> Option<&mut ShownSecrets> {
        match self {
            Self::Workspace { shown, .. }
            | Self::Container {
                shown,
                read_only: false,
                ..
            } => Some(shown),
            _ => None,
        }
    }

    /// Returns true if the command is read-only.
    pub fn only_looks(&self) -> bool {
        self.name() == read_only::NAME
    }
}

/// The name for "no level": nothing confines the command.
pub(crate) const NO_LEVEL: &str = "none";
