//! Enters the namespaces of a command, in the launcher: those for mounts, network and processes. The PID namespace applies from
//! the next child on.

use std::io;
use std::os::fd::OwnedFd;

use nix::sched::CloneFlags;

use super::plan::Mounts;
use super::{mounts, network, restriction};
use crate::confinement::level::Network;
use crate::directory_lock;

/// Enters the mount, network and PID namespaces of a command, and sets up its network. Returns locks on the lower directories of
/// its overlays. This process and its child hold the locks, but the command does not. The kernel releases them when both have
/// ended.
///
/// # Errors
/// The system refuses a step. The error is a sentence for a person.
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

/// Locks the lower directories of each overlay, except the last one, which belongs to the person. co itself changes the locked
/// directories while no trial runs.
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
