//! The confinement of a command: the list of levels, each made in a file of its own.
//!
//! A level is a value with its parts, see [`level::Level`]. Code that starts, limits or follows a command looks at these
//! parts, and does not ask which level it is. Only [`Confinement::shown_mut`] and [`Confinement::only_looks`] do, for those who
//! choose a level. To add a level, add a file like [`read_only`] and its lines here.

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

/// A level of confinement, and the places that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Confinement {
    #[default]
    Plain,
    /// The command writes only in a private temporary directory, has no network, and reads no credentials.
    ReadOnly { workspace: PathBuf },
    /// The command writes only in the workspace and a private temporary directory.
    Workspace {
        workspace: PathBuf,
        network: Network,
        shown: ShownSecrets,
    },
    /// The command sees the workspace and may change it, but all that it writes there goes to a layer: the workspace itself stays
    /// as it is. It has a network of its own, in which there is nothing but itself.
    Trial {
        workspace: PathBuf,
        /// A private directory outside the workspace, which the caller makes. Afterwards, `upper` in it has the changes,
        /// in the form of Linux's overlay file system (`userxattr`).
        layer: PathBuf,
        /// A directory of the same form, outside the workspace, whose files hide those of the workspace. A trial holds a
        /// shared lock (`flock`) on it until its last process has ended. Code that changes it must hold an exclusive lock.
        ignored: Option<PathBuf>,
        /// A directory outside the workspace that the command may change too: the caches of programs. The changes go to `caches`
        /// in the layer. The locks are the same as for `ignored`.
        ///
        /// The command may also change the places where toolchains keep packages. These changes go to `downloads` in the layer.
        /// The directory `downloads` beside this one has the changes of earlier trials.
        caches: Option<PathBuf>,
        /// Changes in these places stay.
        places: GrantedPlaces,
    },
    /// The process is another agent. It writes in the workspace and a private temporary directory, and gets places of its own.
    Agent {
        workspace: PathBuf,
        places: GrantedPlaces,
        /// True if it has the network of the machine. Otherwise it has a network of its own, in which there is nothing but
        /// itself.
        whole_network: bool,
    },
    /// The process is a tool server. It reads the workspace or also writes in it, and changes a private temporary directory and
    /// places of its own.
    Server {
        workspace: PathBuf,
        places: GrantedPlaces,
        access: ServerAccess,
        network: Network,
    },
    /// The command runs in a container that has the workspace.
    Container {
        workspace: PathBuf,
        shown: ShownSecrets,
        /// True for a read-only command: it writes nowhere but in `/tmp`, and has no network.
        read_only: bool,
    },
}

/// The part of the system that confines a command.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Holder<'a> {
    /// Nothing. It may have limits.
    Nobody,
    /// The kernel, which the launcher set up.
    Kernel(Level<'a>),
    /// A container engine.
    Engine(ContainerLevel<'a>),
}

impl Confinement {
    /// Returns the part of the system that holds the command, with the parts of the level.
    pub(crate) fn holder(&self) -> Holder<'_> {
        match self {
            Self::Plain => Holder::Nobody,
            Self::ReadOnly { workspace } => Holder::Kernel(read_only::level(workspace)),
            Self::Workspace {
                workspace,
                network,
                shown,
            } => Holder::Kernel(workspace::level(workspace, *network, shown)),
            Self::Trial {
                workspace,
                layer,
                ignored,
                caches,
                places,
            } => Holder::Kernel(trial::level(
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
            } => Holder::Kernel(agent::level(workspace, places, *whole_network)),
            Self::Server {
                workspace,
                places,
                access,
                network,
            } => Holder::Kernel(server::level(workspace, places, *access, *network)),
            Self::Container {
                workspace,
                shown,
                read_only,
            } => Holder::Engine(container::level(workspace, shown, *read_only)),
        }
    }

    /// Returns the level, if the kernel holds the command.
    pub fn level(&self) -> Option<Level<'_>> {
        match self.holder() {
            Holder::Kernel(level) => Some(level),
            Holder::Nobody | Holder::Engine(_) => None,
        }
    }

    /// Returns the name, the words and the secrets of the level, unless nothing holds the command.
    fn parts(&self) -> Option<(&'static str, &'static str, ClosedSecrets<'_>)> {
        match self.holder() {
            Holder::Nobody => None,
            Holder::Kernel(level) => Some((level.name, level.words, level.secrets)),
            Holder::Engine(level) => Some((level.name, level.words, level.secrets)),
        }
    }

    /// Returns the secrets that the level closes, if it has a workspace.
    pub(crate) fn secrets(&self) -> Option<ClosedSecrets<'_>> {
        self.parts().map(|(_, _, secrets)| secrets)
    }

    /// Returns the name of the level: `none`, `read-only`, `workspace`, `trial`, `agent`, `server`,
    /// `writing-server`, `container`.
    pub fn name(&self) -> &'static str {
        self.parts().map_or(NO_LEVEL, |(name, _, _)| name)
    }

    /// Returns the level in a few words for a person, or `None` if nothing holds the command.
    pub fn words(&self) -> Option<&'static str> {
        self.parts().map(|(_, words, _)| words)
    }

    /// Returns whether the command has a network of its own. Listening sockets lead from it to hosts, see
    /// [`Executor::start_listening`](crate::Executor::start_listening).
    pub fn has_own_network(&self) -> bool {
        self.level()
            .is_some_and(|level| level.network == Network::Own)
    }

    /// Returns the workspace, unless nothing holds the command.
    pub fn workspace(&self) -> Option<&Path> {
        self.secrets().map(|secrets| secrets.workspace)
    }

    /// Returns whether mounts hide secrets from the command.
    pub fn masks_secrets(&self) -> bool {
        self.secrets().is_some_and(|secrets| {
            secrets.closed_by != ClosedBy::Rules && *secrets.shown != ShownSecrets::Everything
        })
    }

    /// Returns the secrets that the command may open, if a person can choose them.
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

    /// Returns whether the command can only look.
    pub fn only_looks(&self) -> bool {
        self.name() == read_only::NAME
    }
}

/// The name of the level of a command that nothing holds.
pub(crate) const NO_LEVEL: &str = "none";
