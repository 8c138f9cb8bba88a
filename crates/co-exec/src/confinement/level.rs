//! The parts of a level of confinement by the kernel.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A level of confinement by the kernel. The launcher enforces each part of the level, so a new level needs only a new value of
/// this type.
#[derive(Debug, Clone, Copy)]
pub struct Level<'a> {
    /// The name of the level, for outcomes and the audit file.
    pub(crate) name: &'static str,
    /// A short description of the level for a person.
    pub(crate) words: &'static str,
    pub(crate) secrets: ClosedSecrets<'a>,
    pub(crate) access: Access<'a>,
    /// Files and directories outside the workspace that this command may use besides those that every command may use.
    pub(crate) places: Option<&'a GrantedPlaces>,
    pub(crate) calls: Calls,
    pub(crate) network: Network,
    pub(crate) tmp: TmpPlace,
    /// True if co sets variables that keep git from starting programs.
    pub(crate) hardens_git: bool,
    pub(crate) limits: LevelLimits,
}

/// The secrets of a workspace, and the mechanism that closes them to the command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClosedSecrets<'a> {
    pub(crate) workspace: &'a Path,
    /// The secrets that the command may open, as exceptions.
    pub(crate) shown: &'a ShownSecrets,
    pub(crate) closed_by: ClosedBy,
}

/// Files and directories outside the workspace that a command may use, by their absolute paths. Missing ones are skipped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrantedPlaces {
    /// The paths in which the command may read files and run programs.
    pub read: Vec<PathBuf>,
    /// The paths in which the command may also write.
    pub write: Vec<PathBuf>,
}

impl GrantedPlaces {
    /// Returns true if nothing is granted.
    pub(crate) fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }

    /// Returns whether a path is inside a path that the command may write.
    pub(crate) fn writes(&self, path: &Path) -> bool {
        let real = path.canonicalize();
        self.write.iter().any(|place| {
            let real_place = place.canonicalize();
            path.starts_with(place)
                || matches!((&real, &real_place), (Ok(path), Ok(place)) if path.starts_with(place))
        })
    }
}

/// The command's access to its workspace. Secrets, and files that other programs run later, are protected even if the command may
/// write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access<'a> {
    Read,
    Write,
    /// The command writes to a layer over the workspace, not to the workspace.
    Overlay(OverlayPlaces<'a>),
}

/// The directories of a trial; see [`Confinement::Trial`](super::Confinement::Trial).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverlayPlaces<'a> {
    pub(crate) layer: &'a Path,
    pub(crate) ignored: Option<&'a Path>,
    pub(crate) caches: Option<&'a Path>,
}

/// The set of system calls that a command may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Calls {
    /// The calls of programs that only read and compute.
    Look,
    /// All calls of `Look`, and the calls of builds, tests and servers.
    Work {
        /// True if programs may preallocate disk space (`fallocate`). They can do that faster than co can measure the disk usage.
        reserve: bool,
    },
}

impl Calls {
    /// Returns true for [`Self::Work`].
    pub(crate) const fn work(self) -> bool {
        matches!(self, Self::Work { .. })
    }
}

/// The network access of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    #[default]
    None,
    /// The network of the machine.
    Machine,
    /// A network namespace of the command's own, in which only the loopback interface is up. This needs user namespaces.
    Own,
}

/// The location of the private temporary directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TmpPlace {
    /// In memory (tmpfs), if the system allows mount namespaces.
    Memory,
    Disk,
}

/// The limits that only some levels have; see `limits`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LevelLimits {
    /// True if the settings have lower limits for commands of this level, because these commands run without a question.
    pub(crate) unasked: bool,
    /// True if nobody approves the commands of this level. Their processes then have low limits on open files, threads and
    /// pending signals, even if a person started the command.
    pub(crate) unapproved: bool,
    /// True if the disk usage of the layer and the caches is limited, even for a command of the person.
    pub(crate) layer: bool,
    /// True if the disk usage of the granted paths that the command may write is limited.
    pub(crate) places: bool,
}

/// The mechanism that closes secrets to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosedBy {
    /// Landlock rules grant reading of everything but the secrets. A file that appears beside a secret later is closed too.
    Rules,
    /// A mount over an overlay covers each secret. The mount stays even if the file below it is removed.
    OverlayMounts,
    /// A mount covers each secret. The command cannot change the workspace.
    Mounts,
    /// A mount covers each secret. The command can change the workspace, and so may itself create more secrets.
    WritableMounts,
}

/// The exceptions among the secrets of a workspace: the secret files that a command may open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ShownSecrets {
    #[default]
    Nothing,
    /// The listed files and directories, by their canonical paths.
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
