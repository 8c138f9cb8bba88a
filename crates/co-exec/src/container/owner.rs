//! The label that says which backend a container belongs to.

use std::fs;

use crate::process::procfs::{self, Process};

/// The name of the label.
pub(super) const LABEL: &str = "co.owner";

/// The owner of a container: a process, identified across all machines that use the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    /// The machine. Several machines may use one engine.
    machine: String,
    boot: String,
    /// The PID namespace in which `pid` counts.
    namespace: String,
    pid: i32,
    /// The time when the process started.
    start: u64,
}

impl Owner {
    /// Returns this process.
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

    /// Returns the text of the label.
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

    /// Returns whether the owner that a label names has certainly ended. This process is `self`.
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
