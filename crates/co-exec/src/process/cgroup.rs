//! Cgroups (control groups): one for each command of a model, if the system allows it.
//!
//! The kernel enforces the limits of a cgroup on processes and memory, even for root, and kills the whole cgroup in one call.
//! This needs cgroup v2 and a cgroup directory that the user may write. A desktop session has such a directory; an SSH login
//! usually does not.
//!
//! A cgroup has a random name, and its owner holds a lock on its directory. If nobody holds the lock, the owner has ended. A
//! process id could not show this, because the id may have been reused, or may belong to another PID namespace.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::directory_lock::{lock, open};
use crate::limits::CommandLimits;

/// The mechanism that enforces the limits of commands on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitEnforcement {
    /// The kernel enforces the limits, in a cgroup below this directory.
    Kernel(PathBuf),
    /// co checks the limits itself. If a command exceeds a limit, co kills all its processes in one call, by a cgroup below this
    /// directory.
    Group(PathBuf),
    /// co checks the limits itself, because it cannot create cgroups.
    Watched,
}

impl LimitEnforcement {
    /// Finds the mechanism that this process can use.
    pub fn find() -> Self {
        match GroupsDirectory::find() {
            Some(place) if place.limits => Self::Kernel(place.dir),
            Some(place) => Self::Group(place.dir),
            None => Self::Watched,
        }
    }
}

/// The prefix of a cgroup's name. A random number follows.
const PREFIX: &str = "co-";
/// The file in a cgroup's directory to which a process writes its id to enter the cgroup.
const PROCESSES: &str = "cgroup.procs";
/// The most attempts to create or to enter a cgroup that other processes remove.
const MAX_TRIES: usize = 10;

/// The directory in which co creates cgroups.
#[derive(Debug)]
pub(crate) struct GroupsDirectory {
    dir: PathBuf,
    /// True if cgroups in the directory can limit memory and processes. Otherwise they only serve to kill all processes in one
    /// call.
    limits: bool,
}

/// The cgroup of one command. Dropping it removes the cgroup if no process is left in it.
#[derive(Debug)]
pub(crate) struct Group {
    dir: PathBuf,
    limits: CommandLimits,
    /// True if the cgroup limits memory and processes.
    enforces: bool,
    /// The lock that shows that the owner lives; see [`GroupsDirectory::prune`].
    _lock: OwnedFd,
}

impl GroupsDirectory {
    /// Returns a directory for cgroups: the directory of this process's own cgroup, or one above it. Prefers a directory with the
    /// controllers for memory and processes. Returns `None` if the user may not write any of them.
    pub(crate) fn find() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let (own, mount) = directory(&mounts, &own)?;
        let may_write = |dir: &Path| {
            let writable = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
            // Moving a process needs write permission in the group that contains both groups.
            writable(dir) && writable(&dir.join(PROCESSES))
        };
        let places = own.ancestors().take_while(|dir| dir.starts_with(&mount));
        let mut places = places.take_while(|dir| may_write(dir)).map(|dir| Self {
            limits: holds_limits(dir),
            dir: dir.to_owned(),
        });
        let nearest = places.next()?;
        let place = match nearest.limits {
            true => nearest,
            false => places.find(|place| place.limits).unwrap_or(nearest),
        };
        place.prune();
        Some(place)
    }

    /// Returns whether cgroups in this directory can limit memory and processes.
    pub(crate) fn has_limits(&self) -> bool {
        self.limits
    }

    /// Creates the cgroup of a command. Returns `None` if the system refuses.
    pub(crate) fn make(&self, limits: &CommandLimits) -> Option<Group> {
        let mut made = self.try_make(limits);
        for _ in 1..MAX_TRIES {
            // Another process may remove a group that is not locked yet.
            made = made.or_else(|_| self.try_make(limits));
        }
        made.inspect_err(|error| tracing::warn!(%error, "no control group for a command"))
            .ok()
    }

    fn try_make(&self, limits: &CommandLimits) -> io::Result<Group> {
        let dir = self.dir.join(format!("{PREFIX}{:016x}", fastrand::u64(..)));
        fs::create_dir(&dir)?;
        let held = open(&dir)?;
        lock(&held)?;
        if rustix::fs::fstat(&held)?.st_ino != fs::metadata(&dir)?.ino() {
            return Err(io::ErrorKind::NotFound.into());
        }
        set_limits(&dir, limits);
        Ok(Group {
            dir,
            limits: *limits,
            enforces: self.limits,
            _lock: held,
        })
    }

    /// Removes the cgroups whose owners have ended.
    fn prune(&self) {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let named = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
        };
        for dir in entries.filter(named).map(|entry| entry.path()) {
            if open(&dir).and_then(|held| lock(&held)).is_ok() {
                // This fails if a process runs in it.
                let _ = fs::remove_dir(dir);
            }
        }
    }
}

/// Moves this process into the cgroup `dir`. If the cgroup is gone, creates it again with these limits.
///
/// # Errors
/// The system refuses.
pub(crate) fn enter(dir: &Path, limits: &CommandLimits) -> io::Result<()> {
    // The number 0 means this process.
    let mut entered = fs::write(dir.join(PROCESSES), "0");
    for _ in 1..MAX_TRIES {
        if entered.is_ok() {
            break;
        }
        if fs::create_dir(dir).is_ok() {
            set_limits(dir, limits);
        }
        entered = fs::write(dir.join(PROCESSES), "0");
    }
    entered
}

/// Sets the limits of the cgroup `dir`.
fn set_limits(dir: &Path, limits: &CommandLimits) {
    for (file, value) in [
        ("pids.max", limits.processes),
        ("memory.max", limits.memory),
        ("memory.swap.max", limits.memory.map(|_| 0)),
        ("memory.oom.group", limits.memory.map(|_| 1)),
    ] {
        if let Some(value) = value {
            // This file may be missing: then co checks the limit, as it checks the others.
            let _ = fs::write(dir.join(file), value.to_string());
        }
    }
}

impl Group {
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn limits(&self) -> &CommandLimits {
        &self.limits
    }

    /// Returns whether the kernel enforces the cgroup's limits on memory and processes.
    pub(crate) fn enforces_limits(&self) -> bool {
        self.enforces
    }

    /// Kills all processes of the cgroup in one call, so that no fork escapes.
    pub(crate) fn kill(&self) {
        // Before Linux 5.14, this file does not exist.
        let _ = fs::write(self.dir.join("cgroup.kill"), "1");
    }

    /// Returns true if the kernel killed a process because the cgroup reached its memory limit.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        // If the machine lacks memory, there are kills, but the group refused no allocation.
        let has_event = |event| self.has_event("memory.events", event);
        has_event("oom_kill") && has_event("oom")
    }

    /// Returns true if the kernel refused a new process in the cgroup. The kernel never lets the cgroup exceed its limit of
    /// processes, so counting the processes cannot detect this.
    pub(crate) fn ran_out_of_processes(&self) -> bool {
        self.has_event("pids.events", "max")
    }

    fn has_event(&self, file: &str, event: &str) -> bool {
        let events = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
        let counts = events.lines().filter_map(|line| line.split_once(' '));
        counts
            .filter(|(name, _)| *name == event)
            .any(|(_, count)| count.trim() != "0")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // If it is not empty, a later process removes it.
        let _ = fs::remove_dir(&self.dir);
    }
}

fn holds_limits(dir: &Path) -> bool {
    let given = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
    let given: Vec<&str> = given.split_ascii_whitespace().collect();
    given.contains(&"memory") && given.contains(&"pids")
}

/// Returns the directory of this process's cgroup, and the mount point of the cgroup file system. Reads them from the contents of
/// `/proc/self/mountinfo` and `/proc/self/cgroup`.
fn directory(mounts: &str, own: &str) -> Option<(PathBuf, PathBuf)> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let mut fields = line.split(' ').skip(3);
    let (root, mount) = (fields.next()?, Path::new(fields.next()?));
    // Only a part of it may be mounted, as in a container.
    let below = Path::new("/").join(path);
    let below = below.strip_prefix(root).ok()?;
    // The process may be in a group outside the mounted part.
    let seen = !below.components().any(|part| part.as_os_str() == "..");
    seen.then(|| (mount.join(below), mount.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 24 0:26 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs rw
31 30 0:27 /a /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    #[test]
    fn the_own_group_is_found_where_it_can_be_seen() {
        let found = |own: &str| directory(MOUNTS, own).map(|(dir, _)| dir);
        let below = found("1:name=systemd:/x\n0::/a/b.slice/c.scope\n");
        assert_eq!(
            below.as_deref(),
            Some(Path::new("/sys/fs/cgroup/unified/b.slice/c.scope"))
        );
        assert_eq!(found("0::/other\n"), None);
        assert_eq!(found("0::/a/../other\n"), None);
        assert_eq!(found("1:name=systemd:/x\n"), None);
        assert_eq!(directory("", "0::/a\n"), None);
    }

    #[test]
    fn a_group_is_removed_only_if_its_owner_has_ended() {
        let root = tempfile::tempdir().unwrap();
        let groups = GroupsDirectory {
            dir: root.path().to_owned(),
            limits: false,
        };
        let group = groups.make(&CommandLimits::default()).unwrap();
        // As of a process that was killed, with an id that another process may have.
        let left = root.path().join(format!("co-{}-1", std::process::id()));
        let other = root.path().join("other");
        fs::create_dir(&left).unwrap();
        fs::create_dir(&other).unwrap();
        groups.prune();
        assert!(group.dir().exists() && other.exists() && !left.exists());
        let dir = group.dir().to_owned();
        drop(group);
        assert!(!dir.exists());
    }

    #[test]
    fn what_the_kernel_held_it_to_is_read_of_its_events() {
        let dir = tempfile::tempdir().unwrap();
        let group = Group {
            dir: dir.path().to_owned(),
            limits: CommandLimits::default(),
            enforces: true,
            _lock: open(dir.path()).unwrap(),
        };
        let told = |processes: &str, memory: &str| {
            fs::write(dir.path().join("pids.events"), processes).unwrap();
            fs::write(dir.path().join("memory.events"), memory).unwrap();
            (group.ran_out_of_processes(), group.ran_out_of_memory())
        };
        assert_eq!(told("", ""), (false, false));
        assert_eq!(told("max 0\n", "max 5\noom_kill 0\n"), (false, false));
        assert_eq!(told("max 0\n", "oom 0\noom_kill 1\n"), (false, false));
        assert_eq!(told("max 12\n", "oom 1\noom_kill 3\n"), (true, true));
    }
}
