//! The paths outside the workspace that confined commands may read: system paths, and paths below the home directory.

pub(crate) mod home;
pub(crate) mod system;
