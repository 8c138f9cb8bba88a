//! The types of the filter of system calls: its configuration, and a refusal of calls with certain arguments.

use nix::libc;

use crate::confinement::level::{Calls, Network};

/// The configuration of the filter of a command's system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sandbox) struct FilterConfig {
    pub calls: Calls,
    /// The version of Landlock that is used with the filter.
    pub abi: i32,
    pub network: Network,
    /// True if the command has a mount namespace, in which only the writable paths can be changed. The filter then allows calls
    /// that change modes, owners, times and extended attributes.
    pub mounted: bool,
    /// True if the command has its own PID namespace, so that it cannot signal processes outside it.
    pub pid_namespace: bool,
}

/// A refusal: the arguments for which an allowed system call fails, and the error that it returns.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefusedCall {
    pub(super) call: i64,
    pub(super) when: Condition,
    /// A second condition. The call is refused only if both conditions are true.
    pub(super) and: Condition,
    pub(super) errno: i32,
}

/// A condition on the low words of a call's arguments. The call is refused if the condition is true.
#[derive(Debug, Clone, Copy)]
pub(super) enum Condition {
    Always,
    /// True if the argument has any bit of the mask.
    AnyBit(u8, u32),
    /// True if the bits of the argument that the mask selects equal the value.
    Masked(u8, u32, u32),
    In(u8, &'static [u32]),
    NotIn(u8, &'static [u32]),
    /// True if the argument is a pointer that is not null.
    Some(u8),
}

impl RefusedCall {
    pub(super) const fn new(call: i64, when: Condition) -> Self {
        Self {
            call,
            when,
            and: Condition::Always,
            errno: libc::EPERM,
        }
    }

    pub(super) const fn and(self, and: Condition) -> Self {
        Self { and, ..self }
    }

    pub(super) const fn errno(self, errno: i32) -> Self {
        Self { errno, ..self }
    }
}
