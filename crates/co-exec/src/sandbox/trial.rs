//! Tries whether overlay file systems work, for the probe of the kernel.

use std::fs;
use std::io::{self, Read, Write};

use nix::sched::CloneFlags;
use nix::unistd::ForkResult;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, WaitOptions};

use super::namespaces;
use super::plan::Mounts;
use crate::confinement::level::Network;
use crate::fork::fork;

/// The subdirectory of the probe's own workspace in which the overlay is tested.
pub(super) const PROBED: &str = ".co-probed";

/// Tries an overlay in a child of this process. If the covered directory has a subdirectory [`PROBED`], also replaces that
/// subdirectory to test writing.
///
/// # Errors
/// The overlay does not work. The error is a sentence for a person.
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
    let _locks = namespaces::enter(mounts, Network::Own, CloneFlags::CLONE_NEWPID)?;
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
