//! The mechanism that confines a running command, and the facts that only the mechanism knows.

use std::path::PathBuf;

use crate::confinement::NO_LEVEL;
use crate::container::Inside;
use crate::sandbox::ConfinedCommand;
use crate::secrets::exposure::SecretWatch;

/// The mechanism that confines a running command; see [`Confinement`](crate::Confinement).
#[derive(Debug)]
pub(crate) enum RunningMechanism {
    None,
    /// The launcher started the command. If the command is not confined, the launcher only limits it.
    Kernel(Box<ConfinedCommand>),
    /// A container engine runs the command. The process is the engine's client.
    Engine(Box<Inside>),
}

impl RunningMechanism {
    pub(crate) fn confined(&self) -> Option<&ConfinedCommand> {
        match self {
            Self::Kernel(confined) => Some(confined),
            Self::None | Self::Engine(_) => None,
        }
    }

    pub(crate) fn inside(&self) -> Option<&Inside> {
        match self {
            Self::Engine(inside) => Some(inside),
            Self::None | Self::Kernel(_) => None,
        }
    }

    pub(crate) fn level(&self) -> &'static str {
        match self {
            Self::None => NO_LEVEL,
            Self::Kernel(confined) => confined.level,
            Self::Engine(inside) => inside.level(),
        }
    }

    /// Returns the watch for secrets that appear where the command can read.
    pub(crate) fn secrets(&self) -> Option<&SecretWatch> {
        match self {
            Self::None => None,
            Self::Kernel(confined) => confined.secrets(),
            Self::Engine(inside) => inside.secrets.as_ref(),
        }
    }

    /// Returns files that other programs run or read as configuration, and that appeared while the command ran.
    pub(crate) fn appeared(&self) -> Vec<PathBuf> {
        match self {
            Self::None => Vec::new(),
            Self::Kernel(confined) => confined.appeared(),
            Self::Engine(inside) => inside.watched.changed(),
        }
    }

    /// Waits until the container engine reports that the command has ended. Without an engine, waits forever.
    pub(crate) async fn ended(&self) {
        match self.inside() {
            Some(inside) => inside.ended().await,
            None => std::future::pending().await,
        }
    }
}
