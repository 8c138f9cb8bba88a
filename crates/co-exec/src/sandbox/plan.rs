//! The plan of a confined start. The launcher reads it from a descriptor, because the rules around many secrets are
//! longer than an argument may be. Nothing in it depends on the environment.

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

/// The lowest number of a descriptor for the launcher. The command has the lower numbers.
pub(super) const LOWEST_DESCRIPTOR: RawFd = 10;

/// The task of a launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Task {
    /// To try what this kernel supports, with these mounts of a trial if they could be made.
    Probe(Option<Box<Mounts>>),
    /// To become a command.
    Start(Box<Plan>),
}

/// The limits and the confinement of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub cwd: PathBytes,
    pub limits: ProcessLimits,
    pub group: Option<ControlGroup>,
    /// `None` if nothing holds the command.
    pub confined: Option<ConfinedPlan>,
}

/// The confinement of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfinedPlan {
    /// The Landlock version to use, which the kernel supports.
    pub abi: i32,
    pub calls: Calls,
    pub network: Network,
    pub grants: Vec<Grant>,
    /// The directories of the workspace that are granted entry by entry, each one before the directories in it.
    pub opened: Vec<OpenedDirectory>,
    /// The mounts of the command's mount namespace, if it gets one.
    pub mounts: Option<Mounts>,
    /// The descriptor of the gate that the command passes when its secrets are hidden, if there is one.
    pub gate: Option<RawFd>,
    /// The addresses of the command's own loopback interface that get a listening socket, which the gate passes on.
    pub ports: Vec<SocketAddr>,
    /// The PID namespace of the command, if it gets one in addition to the mount namespace.
    pub processes: Option<PidNamespace>,
}

/// A path, and the right to it and everything below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Grant(pub Right, pub PathBytes);

/// A directory with something closed below it. Only the entries in the lists are readable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenedDirectory {
    /// The number of opened directories above it. The last directory before it with a smaller number contains it.
    pub depth: usize,
    /// The name in the directory above. For the first directory, the whole path.
    pub name: PathBytes,
    /// The names of directories that are readable with all below them.
    pub dirs: Vec<PathBytes>,
    pub files: Vec<PathBytes>,
}

/// The actions that a grant allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Right {
    /// Listing names, not reading contents.
    #[serde(rename = "l")]
    List,
    /// Reading, listing, executing.
    #[serde(rename = "r")]
    Read,
    /// The right to read and write existing files, for devices.
    #[serde(rename = "d")]
    Device,
    /// Everything except making device files.
    #[serde(rename = "w")]
    Write,
}

/// The control group of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlGroup {
    pub dir: PathBytes,
    /// The limits with which the launcher makes it again if it is gone.
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
    /// True if its own `/proc` is mounted.
    pub own_proc: bool,
    /// True if the command's streams are a terminal, which becomes that of its process session.
    pub terminal: bool,
    /// The process that started the launcher. When it ends, the command ends.
    pub starter: i32,
}

/// A file system that is read-only except for `writable`, `replaced` and overlays, in which the paths in `held` cannot change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mounts {
    /// The first overlay lies over the workspace.
    pub overlays: Vec<Overlay>,
    /// Overlays over places of toolchains. If the system refuses one, its place stays read-only.
    pub downloads: Vec<PackageOverlay>,
    pub writable: Vec<PathBytes>,
    /// Directories in whose place the command sees another directory, in which it may write.
    pub replaced: Vec<ReplacedDirectory>,
    /// Directories that cannot be renamed, ordered by depth.
    pub pinned: Vec<PathBytes>,
    pub held: Vec<PathBytes>,
    /// A directory in memory, empty at first.
    pub memory: Option<MemoryDirectory>,
    pub hidden: HiddenPaths,
}

/// A directory that shows the files of other directories, and keeps changes of them elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Overlay {
    pub at: PathBytes,
    /// The directories that it shows. A file in one of them hides the files with the same path in later ones. The last directory
    /// is the person's. co changes the others, under a lock.
    pub lower: Vec<PathBytes>,
    /// The directory that takes the changes.
    pub upper: PathBytes,
    /// An empty directory for the kernel, on the same file system as `upper`.
    pub work: PathBytes,
}

/// An overlay over a toolchain's packages, or over a directory above them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackageOverlay {
    pub overlay: Overlay,
    /// The directories, at or below the overlay, in which the command may write. The person need not have them.
    pub places: Vec<PathBytes>,
}

/// A directory that shows the files of another directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplacedDirectory {
    pub at: PathBytes,
    pub by: PathBytes,
}

/// A directory whose files lie in memory, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryDirectory {
    pub path: PathBytes,
    pub bytes: u64,
    /// The most files and directories.
    pub files: u64,
}

/// Files and directories that cannot be opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HiddenPaths {
    /// A temporary directory for the mounts that hide paths.
    pub by: Option<PathBytes>,
    pub paths: Vec<PathBytes>,
}

/// A path that JSON keeps exactly: each byte is one character.
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

/// A file without a path that contains a plan. It is closed on exec, except in the launcher that gets it.
#[derive(Debug)]
pub(crate) struct PlanFile(OwnedFd);

impl PlanFile {
    /// Returns the argument that names the file.
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
    /// Writes this task to a file for the launcher.
    pub(super) fn write(&self) -> io::Result<PlanFile> {
        let file = rustix::fs::memfd_create("plan", MemfdFlags::CLOEXEC)?;
        let file = File::from(rustix::io::fcntl_dupfd_cloexec(file, LOWEST_DESCRIPTOR)?);
        (&file).write_all(&serde_json::to_vec(self)?)?;
        Ok(PlanFile(file.into()))
    }

    /// Reads the task in the descriptor that an argument names, and closes it on exec. Returns `None` if there is none.
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
