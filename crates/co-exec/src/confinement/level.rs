//! The parts of a level.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A level of confinement by the kernel. The launcher carries out each part of it, so a level needs no code but this value.
#[derive(Debug, Clone, Copy)]
pub struct Level<'a> {
    /// A word, for outcomes and the audit file.
    pub(crate) name: &'static str,
    /// A few words, for a person.
    pub(crate) words: &'static str,
    pub(crate) secrets: ClosedSecrets<'a>,
    pub(crate) access: Access<'a>,
    /// Places outside the workspace that are granted beside those of every command.
    pub(crate) places: Option<&'a GrantedPlaces>,
    pub(crate) calls: Calls,
    pub(crate) network: Network,
    pub(crate) tmp: TmpPlace,
    /// True if git gets variables that keep it from starting programs.
    pub(crate) hardens_git: bool,
    pub(crate) limits: LevelLimits,
}

/// The secrets of a workspace, and the way in which they are closed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClosedSecrets<'a> {
    pub(crate) workspace: &'a Path,
    /// The secrets that the command may open.
    pub(crate) shown: &'a ShownSecrets,
    pub(crate) closed_by: ClosedBy,
}

/// Files and directories outside the workspace that a command gets, by their absolute paths. A missing place is not granted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrantedPlaces {
    /// The command reads these, and runs programs in them.
    pub read: Vec<PathBuf>,
    /// The command also changes these.
    pub write: Vec<PathBuf>,
}

impl GrantedPlaces {
    /// Returns true if no place is granted.
    pub(crate) fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }

    /// Returns whether a path leads into a place that the command may change.
    pub(crate) fn writes(&self, path: &Path) -> bool {
        let real = path.canonicalize();
        self.write.iter().any(|place| {
            let real_place = place.canonicalize();
            path.starts_with(place)
                || matches!((&real, &real_place), (Ok(path), Ok(place)) if path.starts_with(place))
        })
    }
}

/// The access of a command to its workspace, in which the secrets and the files that run later are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access<'a> {
    Read,
    Write,
    /// The command writes to a layer over the workspace.
    Overlay(OverlayPlaces<'a>),
}

/// The directories of a trial; see [`Confinement::Trial`](super::Confinement::Trial).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverlayPlaces<'a> {
    pub(crate) layer: &'a Path,
    pub(crate) ignored: Option<&'a Path>,
    pub(crate) caches: Option<&'a Path>,
}

/// The system calls that a command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Calls {
    /// The calls of programs that read and compute.
    Look,
    /// Also the calls of builds, tests and servers.
    Work {
        /// True if programs may preallocate disk space (`fallocate`), which is faster than co counts.
        reserve: bool,
    },
}

impl Calls {
    /// Returns whether programs may do more than look.
    pub(crate) const fn work(self) -> bool {
        matches!(self, Self::Work { .. })
    }
}

/// The network of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    #[default]
    None,
    /// The network of the machine.
    Machine,
    /// A network of its own, in which only the loopback interface is up. It needs namespaces.
    Own,
}

/// The place of the private temporary directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TmpPlace {
    /// In memory, if there are mount namespaces.
    Memory,
    Disk,
}

/// The limits of a level that other levels do not have; see `limits`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LevelLimits {
    /// True if the settings have lower limits for its commands, because they run unasked.
    pub(crate) unasked: bool,
    /// True if nobody approved this command. Its processes then have limits even if a person started it, and it gets few threads
    /// and signals.
    pub(crate) unapproved: bool,
    /// True if the amounts in a layer and in caches are limited, whoever wants the command.
    pub(crate) layer: bool,
    /// True if what is in the granted places that it may change is limited.
    pub(crate) places: bool,
}

/// The mechanism that closes secrets to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosedBy {
    /// Landlock grants reading around the secrets. So a file that appears beside a secret is closed too.
    Rules,
    /// A mount over an overlay covers each secret. The mount stays if the file below is removed.
    OverlayMounts,
    /// A mount covers each secret, and the command changes nothing in the workspace.
    Mounts,
    /// A mount covers each secret, and the command itself may make other secrets.
    WritableMounts,
}

/// The secret files of the workspace that a command may open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ShownSecrets {
    #[default]
    Nothing,
    /// Files and directories by their canonical paths.
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
