//! Control groups: one for each command of a model, if the system allows it.
//!
//! The kernel limits the processes and the memory of a group, also for root, and kills the whole group in one call. A
//! group needs cgroup v2 and a directory that this user may write. A desktop session has such a directory, an ssh
//! login mostly has none.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::limits::CommandLimits;
use crate::process::procfs;

/// The way in which the limits of a command are enforced on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitEnforcement {
    /// The kernel enforces them, in a control group below this directory.
    Kernel(PathBuf),
    /// This process checks them. It kills a command that exceeds one in one call, by a control group below this
    /// directory.
    Group(PathBuf),
    /// This process checks them, because no control group can be made.
    Watched,
}

impl LimitEnforcement {
    /// Returns the way for this process.
    pub fn find() -> Self {
        match GroupsDirectory::find() {
            Some(place) if place.limits => Self::Kernel(place.dir),
            Some(place) => Self::Group(place.dir),
            None => Self::Watched,
        }
    }
}

/// The prefix of the name of a group. The id of this process follows.
const PREFIX: &str = "co-";

/// The directory in which groups are made.
#[derive(Debug)]
pub(crate) struct GroupsDirectory {
    dir: PathBuf,
    /// True if its groups also limit memory and processes. Otherwise they only kill all processes in one call.
    limits: bool,
}

/// The group of one command. Removed when dropped, if it has no process any more.
#[derive(Debug)]
pub(crate) struct Group {
    dir: PathBuf,
    /// True if it limits memory and processes.
    limits: bool,
}

impl GroupsDirectory {
    /// Returns the nearest directory above this process that may be used, if there is one. One with controllers comes
    /// before others.
    pub(crate) fn find() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let (own, mount) = directory(&mounts, &own)?;
        let may_write = |dir: &Path| {
            let writable = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
            // Moving a process needs write permission in the group that contains both groups.
            writable(dir) && writable(&dir.join("cgroup.procs"))
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

    /// Makes the group of a command; none if the system refuses.
    pub(crate) fn make(&self, number: u64, limits: &CommandLimits) -> Option<Group> {
        let name = format!("{PREFIX}{}-{number}", procfs::own_pid());
        let dir = self.dir.join(name);
        // A directory of this name is a leftover of a process with the same id, and is empty.
        let _ = fs::remove_dir(&dir);
        fs::create_dir(&dir)
            .inspect_err(|error| tracing::warn!(%error, "no control group for a command"))
            .ok()?;
        let group = Group {
            dir,
            limits: self.limits,
        };
        group.set("pids.max", limits.processes);
        group.set("memory.max", limits.memory);
        group.set("memory.swap.max", limits.memory.map(|_| 0));
        group.set("memory.oom.group", limits.memory.map(|_| 1));
        Some(group)
    }

    /// Removes the groups that killed processes left.
    fn prune(&self) {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let pid = name
                .to_str()
                .and_then(|it| it.strip_prefix(PREFIX)?.split_once('-'));
            let Some((pid, _)) = pid else {
                continue;
            };
            if !Path::new("/proc").join(pid).exists() {
                // This fails if a process runs in it.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

impl Group {
    /// Returns the file to which a process writes its id to enter the group.
    pub(crate) fn procs_file(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// Returns whether the kernel enforces the group's limits of memory and processes.
    pub(crate) fn limits(&self) -> bool {
        self.limits
    }

    /// Kills all processes of the group in one call, so that no fork escapes.
    pub(crate) fn kill(&self) {
        // Before Linux 5.14, this file does not exist.
        let _ = fs::write(self.dir.join("cgroup.kill"), "1");
    }

    /// Returns whether the kernel killed a process because the group came to its limit of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        // If the machine lacks memory, there are kills, but the group refused no allocation.
        let has_event = |event| self.has_event("memory.events", event);
        has_event("oom_kill") && has_event("oom")
    }

    /// Returns whether the kernel refused a process to the group. The kernel never lets the group exceed its limit,
    /// so counting processes cannot detect this.
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

    fn set(&self, file: &str, value: Option<u64>) {
        if let Some(value) = value {
            // This file may be missing: then co checks the limit, as it checks the others.
            let _ = fs::write(self.dir.join(file), value.to_string());
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A later process removes a group that is not empty.
        let _ = fs::remove_dir(&self.dir);
    }
}

fn holds_limits(dir: &Path) -> bool {
    let given = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
    let given: Vec<&str> = given.split_ascii_whitespace().collect();
    given.contains(&"memory") && given.contains(&"pids")
}

/// Returns the directory of this process's group and the mount point of its file system, from the contents of
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
    fn what_the_kernel_held_it_to_is_read_of_its_events() {
        let dir = tempfile::tempdir().unwrap();
        let group = Group {
            dir: dir.path().to_owned(),
            limits: true,
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
