//! The namespaces of a command, in the launcher: its mounts, its network, and its processes from the next child on.

use std::io;
use std::os::fd::OwnedFd;

use nix::sched::CloneFlags;

use super::plan::Mounts;
use super::{mounts, network, restriction};
use crate::confinement::level::Network;
use crate::directory_lock;

/// Enters the mount, network and PID namespaces of a command, and sets up its network. Returns the locks on the directories below
/// its overlays. This process and its child hold them, not the command; the kernel releases them when both have ended.
///
/// # Errors
/// The system refuses a step. The error is a reason for a person.
pub(super) fn enter(
    mounts: &Mounts,
    network: Network,
    processes: CloneFlags,
) -> Result<Vec<OwnedFd>, String> {
    let locks = lock_below(mounts).map_err(|e| {
        format!("another process is changing the files below the overlay; try again ({e})")
    })?;
    let others = processes | network::namespaces(network);
    mounts::enter(mounts, others).map_err(|error| match error.raw_os_error() {
        Some(_) => restriction::of_namespaces(&error),
        None => error.to_string(),
    })?;
    network::set_up(network)?;
    Ok(locks)
}

/// Locks the directories below the overlay that co changes when no trial runs.
fn lock_below(mounts: &Mounts) -> io::Result<Vec<OwnedFd>> {
    let downloads = mounts.downloads.iter().map(|it| &it.overlay);
    let overlays = mounts.overlays.iter().chain(downloads);
    let changing = overlays.flat_map(|overlay| overlay.lower.iter().rev().skip(1));
    let locked = changing.map(|dir| {
        let dir = directory_lock::open(&dir.0)?;
        match directory_lock::lock_shared(&dir) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            // A file system without locks.
            Ok(()) | Err(_) => Ok(dir),
        }
    });
    locked.collect()
}
