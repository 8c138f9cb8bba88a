//! Limits on the resources of commands. The kernel enforces the limits on each process. This process or a cgroup enforces the
//! limits on a command with all its processes.

use std::fmt;
use std::io;

use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};

use crate::command::Caller;
use crate::confinement::Mechanism;
use crate::confinement::level::Level;
use crate::settings::ExecSettings;
use co_text::size_text;

/// The limits that the kernel enforces on each process of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProcessLimits {
    pub(crate) cpu_seconds: Option<u64>,
    pub(crate) open_files: Option<u64>,
    /// The largest size in bytes of a file that the process writes.
    pub(crate) file_size: Option<u64>,
    /// The number of threads that the user may start besides those that exist already. Does not apply to root.
    pub(crate) more_threads: Option<u64>,
    /// The most threads in the command's user namespace, if it has one. Does not apply to root.
    pub(crate) own_threads: Option<u64>,
    /// The most pending signals and timers of the user's processes.
    pub(crate) pending_signals: Option<u64>,
}

/// The number of threads by which the kernel's limit exceeds the command's limit. The margin lets a command exceed its limit, so
/// that co notices it and reports it.
const SPARE_THREADS: u64 = 8;

/// The most open files of each process of a confined command. When such a process sends descriptors over a socket, the kernel
/// also compares this limit with the number of descriptors in flight of all the user's programs.
pub(crate) const CONFINED_OPEN_FILES: u64 = 1024;

/// The most pending signals of a command that nobody approved. All programs of the user share the limit of Linux, whose default
/// depends on the size of the memory.
const UNAPPROVED_SIGNALS: u64 = 1024;

/// The limits on a command together with all its processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandLimits {
    /// The most bytes of memory that the command may use.
    pub(crate) memory: Option<u64>,
    /// The most processes and threads that the command may have.
    pub(crate) processes: Option<u64>,
    /// The most bytes in the private temporary directory of the command.
    pub(crate) disk: Option<u64>,
    /// The most bytes in the granted paths that the command may write.
    pub(crate) places: Option<u64>,
    /// The most bytes in the layer of a trial.
    pub(crate) changes: Option<u64>,
    /// The most files in the layer of a trial.
    pub(crate) changed_files: Option<u64>,
    /// The most bytes in the caches of trials.
    pub(crate) caches: Option<u64>,
    /// The most files in the caches of trials.
    pub(crate) cached_files: Option<u64>,
    /// True if the command must respect each [`Quota`].
    pub(crate) shared: bool,
}

/// The limit that a command exceeded, so that co killed the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExceededLimit {
    /// The limit on memory, in bytes.
    Memory(u64),
    /// The limit on the number of processes and threads.
    Processes(u64),
    /// The limit on the private temporary directory, in bytes.
    Disk(u64),
    /// The limit on the granted paths that the command may write, in bytes.
    Places(u64),
    /// The limit on the changes of a trial in the workspace, in bytes.
    Changes(u64),
    /// The limit on the number of files that a trial changes in the workspace.
    #[serde(rename = "changed-files")]
    ChangedFiles(u64),
    /// The limit on the caches of a workspace's trials, in bytes.
    Caches(u64),
    /// The limit on the number of files in the caches of a workspace's trials.
    #[serde(rename = "cached-files")]
    CachedFiles(u64),
    Quota(Quota),
}

/// A quota that a command exceeded. A quota protects a resource that all programs of a user or of the machine share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quota {
    /// The limit on the number of epoll descriptors.
    Epolls(u64),
    /// The limit on the number of files that epoll watches.
    Watches(u64),
    /// The limit on the number of files that one epoll descriptor watches. An ordinary program watches only files that it has
    /// open, so it stays below this limit.
    WatchesOfOne(u64),
    /// The user's limit on epoll watches: no further file can be watched.
    LastWatch,
    /// The limit on the number of open files of all the command's processes.
    Descriptors(u64),
    /// The limit on the number of descriptors in flight: sent over a socket, and not yet received.
    WaitingDescriptors(u64),
    /// The limit on the buffers of TCP and UDP, in bytes.
    NetworkBuffers(u64),
}

impl CommandLimits {
    /// Returns the limits on a command. A person's command has limits only in a trial: on the bytes and files that it writes, and
    /// on its use of resources that other programs share.
    pub(crate) fn of(settings: &ExecSettings, caller: Caller, mechanism: Mechanism<'_>) -> Self {
        let level = match mechanism {
            // The engine limits a container.
            Mechanism::Engine(_) => return Self::default(),
            Mechanism::None => None,
            Mechanism::Kernel(level) => Some(level),
        };
        let mut limits = Self::default();
        if level.is_some_and(|level| level.limits.layer) {
            limits.changes = settings.trial_size;
            limits.changed_files = settings.trial_files;
            limits.caches = settings.trial_cache;
            limits.cached_files = settings.trial_files.map(|most| most / 10);
            limits.shared = true;
        }
        if caller == Caller::Agent {
            (limits.memory, limits.processes) = (settings.memory, settings.processes);
            limits.disk = settings.tmp_size.filter(|_| level.is_some());
            let in_places = level.is_some_and(|level| level.limits.places);
            limits.places = settings.tmp_size.filter(|_| in_places);
            limits.shared = level.is_some();
            if level.is_some_and(|level| level.limits.unasked) {
                limits.memory = lower(limits.memory, settings.unasked_memory);
                limits.processes = lower(limits.processes, settings.unasked_processes);
            }
        }
        limits
    }

    /// Returns true if there is no limit to check.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn lower(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

impl ProcessLimits {
    /// Returns the limits for each process, from the settings. The limit of threads is twice the command's limit of processes,
    /// because the kernel also counts the threads of the user's other programs. co checks the command's own limit separately.
    pub(crate) fn of(
        settings: &ExecSettings,
        caller: Caller,
        level: Option<Level<'_>>,
        processes: Option<u64>,
    ) -> Self {
        let mut limits = Self {
            cpu_seconds: settings.cpu_seconds,
            open_files: settings.open_files,
            file_size: settings.file_size,
            more_threads: processes.map(|most| most.saturating_mul(2)),
            ..Self::default()
        };
        let Some(level) = level.map(|level| level.limits) else {
            return limits;
        };
        if level.unapproved || caller == Caller::Agent {
            limits.open_files = lower(limits.open_files, Some(CONFINED_OPEN_FILES));
        }
        if level.unasked {
            limits.open_files = lower(limits.open_files, settings.unasked_open_files);
        }
        if level.unapproved {
            limits.own_threads = processes.map(|most| most.saturating_add(SPARE_THREADS));
            limits.pending_signals = Some(UNAPPROVED_SIGNALS);
        }
        limits
    }

    /// Returns true if there is no limit to set.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets the limits for this process and its descendants.
    ///
    /// # Errors
    /// The system refuses a limit. The message names the limit.
    pub(crate) fn set(&self) -> Result<(), String> {
        let threads = self.more_threads.zip(threads());
        let threads = threads.map(|(more, there_are)| more.saturating_add(there_are));
        for (resource, name, value) in [
            (Resource::Cpu, "processor time", self.cpu_seconds),
            (Resource::Nofile, "open files", self.open_files),
            (Resource::Fsize, "the size of a file", self.file_size),
            (Resource::Nproc, "processes", threads),
            (
                Resource::Sigpending,
                "pending signals",
                self.pending_signals,
            ),
        ] {
            if let Some(value) = value {
                set(resource, value).map_err(|error| format!("cannot limit {name} ({error})"))?;
            }
        }
        Ok(())
    }

    /// Sets the limits that apply in the user namespace of this process. Such a limit counts only the processes of the namespace.
    ///
    /// # Errors
    /// The system refuses a limit. The message names the limit.
    pub(crate) fn set_in_namespace(&self) -> Result<(), String> {
        let counts = counts_by_namespace(rustix::system::uname().release().to_bytes());
        let threads = self.own_threads.filter(|_| counts);
        threads.map_or(Ok(()), |most| {
            set(Resource::Nproc, most).map_err(|error| format!("cannot limit processes ({error})"))
        })
    }
}

/// Returns true if this release of Linux counts the processes of each user namespace separately: release 5.14 or a later one. An
/// older Linux counts all processes of the user together.
fn counts_by_namespace(release: &[u8]) -> bool {
    let mut numbers = release
        .split(|byte| !byte.is_ascii_digit())
        .map(|digits| str::from_utf8(digits).ok()?.parse::<u32>().ok());
    let version = numbers.next().flatten().zip(numbers.next().flatten());
    version.is_some_and(|version| version >= (5, 14))
}

fn set(resource: Resource, value: u64) -> io::Result<()> {
    // A limit cannot exceed the system's maximum, which only root may raise.
    let most = rustix::process::getrlimit(resource).maximum;
    let within = |value: u64| Some(most.map_or(value, |most| value.min(most)));
    // If both are equal, SIGKILL comes at once and gives no reason; SIGXCPU does.
    let grace = u64::from(resource == Resource::Cpu);
    let limit = Rlimit {
        current: within(value),
        maximum: within(value.saturating_add(grace)),
    };
    Ok(rustix::process::setrlimit(resource, limit)?)
}

/// Returns the number of all threads on the machine, an upper bound for the threads of the user. Returns `None` if it is unknown.
fn threads() -> Option<u64> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    count_in(&load).filter(|count| *count > 0)
}

/// Returns the number of all threads on the machine from the text of `/proc/loadavg`.
fn count_in(load: &str) -> Option<u64> {
    let count = load.split_ascii_whitespace().nth(3)?;
    count.split_once('/')?.1.parse().ok()
}

impl fmt::Display for ExceededLimit {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(most) => write!(to, "more than {} of memory", size_text(*most)),
            Self::Processes(most) => write!(to, "more than {most} processes and threads"),
            Self::Disk(most) => write!(to, "more than {} in its TMPDIR", size_text(*most)),
            Self::Places(most) => write!(to, "more than {} in its own directory", size_text(*most)),
            Self::Changes(most) => write!(to, "more than {} of changed files", size_text(*most)),
            Self::ChangedFiles(most) => write!(to, "more than {most} changed files"),
            Self::Caches(most) => write!(to, "more than {} of caches", size_text(*most)),
            Self::CachedFiles(most) => write!(to, "more than {most} cached files"),
            Self::Quota(quota) => quota.fmt(to),
        }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epolls(most) => write!(to, "more than {most} epoll descriptors"),
            Self::Watches(most) => write!(to, "more than {most} watches of epoll"),
            Self::WatchesOfOne(most) => {
                write!(to, "more than {most} watches of one epoll descriptor")
            }
            Self::LastWatch => to.write_str("the last watch of epoll that your programs had"),
            Self::Descriptors(most) => write!(to, "more than {most} open files"),
            Self::WaitingDescriptors(most) => {
                write!(to, "more than {most} open files that wait in sockets")
            }
            Self::NetworkBuffers(most) => {
                write!(to, "more than {} of network buffers", size_text(*most))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confinement::level::{GrantedPlaces, Network};
    use crate::confinement::{Confinement, ServerAccess};

    #[test]
    fn the_threads_of_the_machine_are_counted() {
        assert_eq!(count_in("0.52 0.58 0.59 3/602 12345\n"), Some(602));
        assert_eq!(count_in("0.00 0.00 0.00\n"), None);
        assert!(threads().is_some());
    }

    #[test]
    fn processes_are_counted_by_namespace_from_a_release_on() {
        for release in [
            "5.14.0",
            "5.14.0-427.el9.x86_64",
            "6.1",
            "6.18.44-fc",
            "10.0-rc1",
        ] {
            assert!(counts_by_namespace(release.as_bytes()), "{release}");
        }
        for release in ["5.13.19", "5.4.0-150-generic", "4.18.0", "6", "", "x.y"] {
            assert!(!counts_by_namespace(release.as_bytes()), "{release}");
        }
    }

    #[test]
    fn what_runs_unasked_gets_the_least() {
        let mut settings = ExecSettings::new("/nonexistent".into());
        settings.memory = Some(1 << 20);
        settings.processes = None;
        let workspace = std::path::PathBuf::from("/w");
        let read_only = Confinement::ReadOnly { workspace };
        let of = |caller, confinement: &Confinement| {
            CommandLimits::of(&settings, caller, confinement.mechanism())
        };
        let unasked = of(Caller::Agent, &read_only);
        assert_eq!(unasked.memory, Some(1 << 20));
        assert_eq!(unasked.processes, settings.unasked_processes);
        assert_eq!(unasked.disk, settings.tmp_size);
        assert_eq!(of(Caller::Agent, &Confinement::Plain).disk, None);
        assert!(of(Caller::Person, &read_only).is_empty());
        assert_eq!(unasked.changes, None);
    }

    #[test]
    fn the_home_of_a_tool_server_is_limited_and_that_of_an_agent_is_not() {
        let settings = ExecSettings::new("/nonexistent".into());
        let (workspace, places) = (std::path::PathBuf::from("/w"), GrantedPlaces::default());
        let server = Confinement::Server {
            workspace: workspace.clone(),
            places: places.clone(),
            access: ServerAccess::Read,
            network: Network::None,
        };
        let agent = Confinement::Agent {
            workspace,
            places,
            whole_network: false,
        };
        let of = |it: &Confinement| CommandLimits::of(&settings, Caller::Agent, it.mechanism());
        assert_eq!(of(&server).places, settings.tmp_size);
        assert_eq!(of(&agent).places, None);
    }

    #[test]
    fn what_a_trial_writes_is_limited_for_everybody() {
        let mut settings = ExecSettings::new("/nonexistent".into());
        settings.memory = Some(1 << 40);
        let trial = Confinement::Trial {
            workspace: "/w".into(),
            layer: "/l".into(),
            ignored: None,
            caches: None,
            places: crate::GrantedPlaces::default(),
        };
        let of = |caller| CommandLimits::of(&settings, caller, trial.mechanism());
        let (agent, person) = (of(Caller::Agent), of(Caller::Person));
        assert_eq!(agent.memory, Some(1 << 40));
        assert_eq!(agent.disk, settings.tmp_size);
        assert_eq!((person.memory, person.disk), (None, None));
        for limits in [agent, person] {
            assert_eq!(limits.changes, Some(2 << 30));
            assert_eq!(limits.changed_files, Some(1_000_000));
        }
    }
}
