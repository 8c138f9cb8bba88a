//! The inputs of the filter, and a refused argument.

use nix::libc;

use crate::confinement::level::{Calls, Network};

/// The inputs of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sandbox) struct FilterConfig {
    pub calls: Calls,
    /// The Landlock version that is used together with the filter.
    pub abi: i32,
    pub network: Network,
    /// True if a read-only file system already prevents some calls.
    pub mounted: bool,
    /// True if the command has its own PID namespace, so that it cannot signal processes outside.
    pub pid_namespace: bool,
}

/// The arguments for which an allowed system call is refused, and the error.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefusedCall {
    pub(super) call: i64,
    pub(super) when: Condition,
    /// A further condition.
    pub(super) and: Condition,
    pub(super) errno: i32,
}

/// The condition on the low words of the arguments for which a call is refused.
#[derive(Debug, Clone, Copy)]
pub(super) enum Condition {
    Always,
    /// A bit of the mask is set in the argument.
    AnyBit(u8, u32),
    /// The masked argument equals the value.
    Masked(u8, u32, u32),
    In(u8, &'static [u32]),
    NotIn(u8, &'static [u32]),
    /// The argument, a pointer, is not null.
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
