//! The places outside the workspace that confined commands may read: those of the system, and those of the person.

pub(crate) mod home;
pub(crate) mod system;
