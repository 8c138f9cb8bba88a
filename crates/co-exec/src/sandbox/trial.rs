//! The namespaces and mounts of a trial, in the launcher, and a try of them.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use nix::sched::CloneFlags;
use nix::unistd::ForkResult;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, WaitOptions};

use super::plan::Mounts;
use super::{loopback, mounts, restriction};
use crate::directory_lock;
use crate::fork::fork;

/// The directory of the probe's own workspace in which the overlay is tried.
pub(super) const PROBED: &str = ".co-probed";

/// Enters the namespaces of a trial: those of its mounts, of its processes from the next child on, of its network, in
/// which only the loopback interface is up, and of its shared memory. Returns the locks on the directories below the
/// overlay. The kernel releases them when the last process that has them ends: this one or its child, not the command.
///
/// # Errors
/// The system refuses a step. The error is a reason for a person.
pub(super) fn enter(mounts: &Mounts) -> Result<Vec<OwnedFd>, String> {
    let locks =
        lock_below(mounts).map_err(|e| format!("what is below the overlay changes: {e}"))?;
    let others = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC;
    mounts::enter(mounts, others).map_err(|error| match error.raw_os_error() {
        Some(_) => restriction::of_namespaces(&error),
        None => error.to_string(),
    })?;
    loopback::set_up().map_err(|e| format!("no network of its own: {e}"))?;
    Ok(locks)
}

/// Locks the directories below the overlay that co changes when no trial runs.
fn lock_below(mounts: &Mounts) -> io::Result<Vec<OwnedFd>> {
    let overlays = mounts.overlays.iter();
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

/// Tries an overlay in a child of this process. If the directory below the overlay has a [`PROBED`], which is not empty,
/// also writes there.
///
/// # Errors
/// It does not work. The error is a reason for a person.
pub(super) fn probe(mounts: &Mounts) -> Result<(), String> {
    let told = |error: rustix::io::Errno| format!("it could not be tried: {error}");
    let (read, write) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(told)?;
    match fork().map_err(|error| format!("it could not be tried: {error}"))? {
        ForkResult::Child => {
            drop(read);
            let why = attempt(mounts).err().unwrap_or_default();
            let told = fs::File::from(write).write_all(why.as_bytes());
            std::process::exit(i32::from(told.is_err()));
        }
        ForkResult::Parent { child } => {
            drop(write);
            let mut why = String::new();
            let heard = fs::File::from(read).read_to_string(&mut why);
            let child = Pid::from_raw(child.as_raw());
            let ended = rustix::process::waitpid(child, WaitOptions::empty()).map_err(told)?;
            let tried = ended.is_some_and(|(_, status)| status.exit_status() == Some(0));
            match why.is_empty() {
                true if tried && heard.is_ok() => Ok(()),
                true => Err("the try ended early".to_owned()),
                false => Err(why),
            }
        }
    }
}

fn attempt(mounts: &Mounts) -> Result<(), String> {
    let _locks = enter(mounts)?;
    let overlay = mounts
        .overlays
        .first()
        .ok_or("there is no overlay to try")?;
    let dir = overlay.at.0.join(PROBED);
    if !dir.exists() {
        return Ok(());
    }
    // A directory in place of another needs extended attributes.
    let replace = || {
        fs::remove_dir_all(&dir)?;
        fs::create_dir(&dir)?;
        fs::write(dir.join("new"), "")?;
        Ok::<_, io::Error>(fs::read_dir(&dir)?.count())
    };
    match replace() {
        Ok(1) => Ok(()),
        Ok(_) => Err("an overlay shows what was removed from it".to_owned()),
        Err(error) => Err(format!("an overlay cannot be written: {error}")),
    }
}
