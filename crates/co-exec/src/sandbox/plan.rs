//! The plan for starting a command. The launcher reads it from a descriptor, because the rules around many secrets are longer
//! than an argument may be. The plan does not depend on the environment.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::fs::MemfdFlags;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::confinement::level::{Calls, Network};
use crate::inherited;
use crate::limits::{CommandLimits, ProcessLimits};
use crate::process::cgroup::Group;

/// The lowest number of a descriptor for the launcher. Lower numbers are for the command.
pub(super) const LOWEST_DESCRIPTOR: RawFd = 10;

/// The task of a launcher process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Task {
    /// Probes the features that this kernel supports. Contains the mounts with which the probe tries a trial, if they could be
    /// prepared.
    Probe(Option<Box<Mounts>>),
    /// Becomes a command.
    Start(Box<Plan>),
}

/// The limits and the confinement of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub cwd: PathBytes,
    pub limits: ProcessLimits,
    pub group: Option<ControlGroup>,
    /// The confinement. `None` for a command that is only limited.
    pub confined: Option<ConfinedPlan>,
}

/// The confinement of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfinedPlan {
    /// The version of Landlock to use, which the kernel supports.
    pub abi: i32,
    pub calls: Calls,
    pub network: Network,
    pub grants: Vec<Grant>,
    /// The directories of the workspace that are granted entry by entry. Each directory comes before its subdirectories.
    pub opened: Vec<OpenedDirectory>,
    /// The mounts of the command's mount namespace. `None` if it gets no such namespace.
    pub mounts: Option<Mounts>,
    /// The descriptor of the start gate, at which the launcher waits after the secrets are hidden. `None` if there is no gate.
    pub gate: Option<RawFd>,
    /// The addresses of the command's own loopback interface at which the launcher creates listening sockets. The start gate
    /// passes these sockets on.
    pub ports: Vec<SocketAddr>,
    /// The PID namespace of the command. `None` if it gets no such namespace.
    pub processes: Option<PidNamespace>,
}

/// A path, and the right to it and to everything below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Grant(pub Right, pub PathBytes);

/// A directory that contains, at any depth, a path that the command must not read. Only the listed entries are readable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenedDirectory {
    /// The number of opened directories above this one. The parent of this directory is the last directory before it in the list
    /// that has a smaller number.
    pub depth: usize,
    /// The name of the directory in its parent. For the first directory, its whole path.
    pub name: PathBytes,
    /// The names of subdirectories that are readable with everything below them.
    pub dirs: Vec<PathBytes>,
    pub files: Vec<PathBytes>,
}

/// The kind of access that a grant allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Right {
    /// Listing names, but not reading contents.
    #[serde(rename = "l")]
    List,
    /// Reading files, listing directories and executing programs.
    #[serde(rename = "r")]
    Read,
    /// Reading and writing existing files, such as devices.
    #[serde(rename = "d")]
    Device,
    /// Everything except creating device files.
    #[serde(rename = "w")]
    Write,
}

/// The cgroup of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlGroup {
    pub dir: PathBytes,
    /// The limits with which the launcher creates the cgroup again if it is gone.
    pub limits: CommandLimits,
}

impl From<&Group> for ControlGroup {
    fn from(group: &Group) -> Self {
        Self {
            dir: PathBytes::from(group.dir()),
            limits: *group.limits(),
        }
    }
}

/// The PID namespace of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PidNamespace {
    /// True if the namespace can mount its own `/proc`.
    pub own_proc: bool,
    /// True if the command's streams are a terminal, which becomes the terminal of the command's session.
    pub terminal: bool,
    /// The id of the process that started the launcher. When that process ends, the command ends.
    pub starter: i32,
}

/// The mounts of a command. The whole file system is read-only, except for `writable`, `replaced` and overlays. The paths in
/// `held` are read-only even inside these directories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mounts {
    /// The overlays. The first one covers the workspace.
    pub overlays: Vec<Overlay>,
    /// Overlays over package directories of toolchains. If the system refuses an overlay, its directory stays read-only.
    pub downloads: Vec<PackageOverlay>,
    pub writable: Vec<PathBytes>,
    /// Directories over which another directory is mounted. The command may write in the mounted directory.
    pub replaced: Vec<ReplacedDirectory>,
    /// Directories that the command cannot rename, sorted by depth.
    pub pinned: Vec<PathBytes>,
    pub held: Vec<PathBytes>,
    /// A directory on which a new file system in memory is mounted.
    pub memory: Option<MemoryDirectory>,
    pub hidden: HiddenPaths,
}

/// An overlay file system: it shows the files of some directories, and redirects changes to another directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Overlay {
    pub at: PathBytes,
    /// The directories whose files the overlay shows. A file in an earlier directory hides files with the same path in later
    /// ones. The last directory belongs to the person. co itself changes the others, under a lock.
    pub lower: Vec<PathBytes>,
    /// The directory to which the overlay redirects changes.
    pub upper: PathBytes,
    /// An empty work directory for the kernel, on the same file system as `upper`.
    pub work: PathBytes,
}

/// An overlay over a toolchain's package directory, or over a parent of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackageOverlay {
    pub overlay: Overlay,
    /// The directories in the overlay in which the command may write. They may not exist in the person's home.
    pub places: Vec<PathBytes>,
}

/// A directory over which another directory is mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplacedDirectory {
    pub at: PathBytes,
    pub by: PathBytes,
}

/// A directory on which a new file system in memory is mounted, and the limits of this file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryDirectory {
    pub path: PathBytes,
    pub bytes: u64,
    /// The most files and directories that the file system may contain.
    pub files: u64,
}

/// Files and directories that the command cannot open.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HiddenPaths {
    /// A temporary directory for the file and the directory that are mounted over the hidden paths.
    pub by: Option<PathBytes>,
    pub paths: Vec<PathBytes>,
}

/// A path that is serialized without loss: each byte becomes one character.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PathBytes(pub PathBuf);

impl<T: AsRef<OsStr> + ?Sized> From<&T> for PathBytes {
    fn from(path: &T) -> Self {
        Self(PathBuf::from(path.as_ref()))
    }
}

impl Serialize for PathBytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let bytes = self.0.as_os_str().as_bytes();
        to.collect_str(&bytes.iter().map(|b| char::from(*b)).collect::<String>())
    }
}

impl<'de> Deserialize<'de> for PathBytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
        let bytes = bytes.map_err(serde::de::Error::custom)?;
        Ok(Self(OsString::from_vec(bytes).into()))
    }
}

/// An unnamed file that contains a plan. It is close-on-exec, except in the launcher that inherits it.
#[derive(Debug)]
pub(crate) struct PlanFile(OwnedFd);

impl PlanFile {
    /// Returns the argument that tells the launcher the descriptor of the file.
    pub(super) fn argument(&self) -> OsString {
        self.0.as_raw_fd().to_string().into()
    }

    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.0
    }
}

impl From<PlanFile> for OwnedFd {
    fn from(file: PlanFile) -> Self {
        file.0
    }
}

impl Task {
    /// Writes this task to an unnamed file for the launcher.
    pub(super) fn write(&self) -> io::Result<PlanFile> {
        let file = rustix::fs::memfd_create("plan", MemfdFlags::CLOEXEC)?;
        let file = File::from(rustix::io::fcntl_dupfd_cloexec(file, LOWEST_DESCRIPTOR)?);
        (&file).write_all(&serde_json::to_vec(self)?)?;
        Ok(PlanFile(file.into()))
    }

    /// Reads the task from the descriptor that an argument names, and marks the descriptor as close-on-exec. Returns `None` if
    /// there is no valid task.
    pub(super) fn read(argument: &OsStr) -> Option<Self> {
        let number: RawFd = argument.to_str()?.parse().ok()?;
        let text = std::fs::read(format!("/proc/self/fd/{number}")).ok()?;
        let task = serde_json::from_slice(&text).ok()?;
        inherited::close_on_exec(number);
        Some(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_path_survives() {
        let bytes: Vec<u8> = (1..=255).collect();
        let path = PathBuf::from(OsString::from_vec(bytes));
        let plan = Task::Start(Box::new(Plan {
            cwd: PathBytes::from(&path),
            limits: ProcessLimits {
                open_files: Some(64),
                ..ProcessLimits::default()
            },
            group: Some(ControlGroup {
                dir: PathBytes::from(&path),
                limits: CommandLimits::default(),
            }),
            confined: Some(ConfinedPlan {
                abi: 7,
                calls: Calls::Work { reserve: true },
                network: Network::Machine,
                grants: vec![Grant(Right::Write, PathBytes::from(&path))],
                opened: vec![OpenedDirectory {
                    depth: 0,
                    name: PathBytes::from(&path),
                    dirs: vec![PathBytes::from(&path)],
                    files: vec![PathBytes::from(&path)],
                }],
                mounts: Some(Mounts::default()),
                gate: Some(11),
                ports: vec!["127.0.0.1:80".parse().unwrap()],
                processes: Some(PidNamespace::default()),
            }),
        }));
        let file = plan.write().unwrap();
        assert!(file.fd().as_raw_fd() >= LOWEST_DESCRIPTOR);
        assert_eq!(Task::read(&file.argument()), Some(plan));
    }

    #[test]
    fn other_text_is_no_plan() {
        let plan = Task::Start(Box::new(Plan {
            cwd: PathBytes::from("/"),
            limits: ProcessLimits::default(),
            group: None,
            confined: None,
        }));
        let plan = serde_json::to_string(&plan).unwrap();
        let unknown_field = plan.replace("\"cwd\"", "\"unknown\":1,\"cwd\"");
        for text in ["", "{}", &unknown_field, &format!("{plan} {plan}")] {
            let file = rustix::fs::memfd_create("other", MemfdFlags::CLOEXEC).unwrap();
            rustix::io::write(&file, text.as_bytes()).unwrap();
            let argument = OsString::from(file.as_raw_fd().to_string());
            assert_eq!(Task::read(&argument), None, "{text}");
        }
        for argument in ["", "{}", "-1", "2000000000", &plan] {
            assert_eq!(Task::read(OsStr::new(argument)), None, "{argument}");
        }
    }
}
