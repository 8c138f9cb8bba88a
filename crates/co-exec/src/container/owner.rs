//! The label that identifies the backend that owns a container.

use std::fs;

use crate::process::procfs::{self, Process};

/// The name of the label that co gives to each container.
pub(super) const LABEL: &str = "co.owner";

/// The owner of a container: a process, identified uniquely among all machines that use the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    /// The id of the machine. Several machines may use the same engine.
    machine: String,
    boot: String,
    /// The PID namespace to which `pid` belongs.
    namespace: String,
    pid: i32,
    /// The start time of the process, because a later process may get the same id.
    start: u64,
}

impl Owner {
    /// Returns the identity of this process.
    pub(super) fn own() -> Self {
        let read = |path: &str| {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.trim().replace('/', "-")
        };
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let pid = procfs::own_pid();
        Self {
            machine: read("/etc/machine-id") + "." + &read("/proc/sys/kernel/hostname"),
            boot: read("/proc/sys/kernel/random/boot_id"),
            namespace: namespace.to_string_lossy().into_owned(),
            pid,
            start: Process::read(pid).map_or(0, |process| process.start),
        }
    }

    /// Returns the text of the label for this owner.
    pub(super) fn label(&self) -> String {
        let Self {
            machine,
            boot,
            namespace,
            pid,
            start,
        } = self;
        format!("{machine}/{boot}/{namespace}/{pid}/{start}")
    }

    fn parse(label: &str) -> Option<Self> {
        let mut parts = label.trim().split('/').map(str::to_owned);
        Some(Self {
            machine: parts.next()?,
            boot: parts.next()?,
            namespace: parts.next()?,
            pid: parts.next()?.parse().ok()?,
            start: parts.next()?.parse().ok()?,
        })
    }

    /// Returns true if the owner that a label names has certainly ended. `self` must be the identity of this process.
    pub(super) fn has_ended(&self, label: &str) -> bool {
        let Some(other) = Self::parse(label) else {
            return false;
        };
        if other.machine != self.machine {
            return false;
        }
        if other.boot != self.boot {
            return true;
        }
        let runs =
            || Process::read(other.pid).is_some_and(|it| it.start == other.start && !it.ended());
        other.namespace == self.namespace && !runs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_owner_that_has_ended_for_sure_has_ended() {
        let own = Owner::own();
        assert_eq!(Owner::parse(&own.label()).as_ref(), Some(&own));
        let check = |change: &dyn Fn(&mut Owner), ended: bool| {
            let mut other = own.clone();
            change(&mut other);
            assert_eq!(own.has_ended(&other.label()), ended, "{other:?}");
        };
        check(&|_| {}, false);
        check(&|it| it.start += 1, true);
        check(&|it| it.pid = i32::MAX, true);
        check(&|it| it.boot = "before".into(), true);
        check(
            &|it| {
                it.pid = i32::MAX;
                it.namespace = "pid:[1]".into();
            },
            false,
        );
        check(
            &|it| {
                it.boot = "before".into();
                it.machine = "other".into();
            },
            false,
        );
        assert!(!own.has_ended("") && !own.has_ended("a/b/c/d/e"));
    }
}
