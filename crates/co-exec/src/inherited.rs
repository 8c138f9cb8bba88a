//! The state that this process inherited from its parent: open descriptors, and ignored signals.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use nix::libc;
use nix::sys::signal::{SigHandler, Signal};
use rustix::io::FdFlags;

/// Restores the default action of a signal.
///
/// # Errors
/// The system refuses.
#[expect(unsafe_code, reason = "the only safe form needs a runtime")]
pub(crate) fn restore(signal: Signal) -> io::Result<()> {
    // SAFETY: what a signal does by default calls nothing of this program.
    unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) }?;
    Ok(())
}

/// Closes all descriptors above `last`, except `kept`.
///
/// # Errors
/// The kernel is older than Linux 5.9.
pub(crate) fn close(last: i32, kept: Option<BorrowedFd<'_>>) -> io::Result<()> {
    match kept.map(|kept| kept.as_raw_fd()) {
        Some(kept) if kept > last => {
            if kept > last + 1 {
                range((last + 1, kept - 1), 0)?;
            }
            range((kept + 1, i32::MAX), 0)
        }
        _ => range((last + 1, i32::MAX), 0),
    }
}

/// Marks all descriptors except the three standard streams as close-on-exec, so that no command inherits them.
///
/// Call it before any thread starts.
pub(crate) fn keep() {
    if range((3, i32::MAX), libc::CLOSE_RANGE_CLOEXEC).is_err() {
        // Linux before 5.11 closes but does not mark.
        one_by_one();
    }
}

#[expect(
    unsafe_code,
    reason = "no library wraps close_range; listing /proc/self/fd takes ten times as long"
)]
fn range((first, last): (i32, i32), flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: to mark a descriptor harms nobody. They are closed only by a launcher, at a time when nothing in it
    // has opened one that is closed a second time.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn one_by_one() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open: Vec<i32> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    for fd in open {
        close_on_exec(fd);
    }
}

/// Duplicates an inherited descriptor, so that the duplicate has an owner. The duplicate is close-on-exec.
///
/// # Errors
/// The descriptor is not open.
#[expect(
    unsafe_code,
    reason = "an inherited descriptor has no owner in this program"
)]
pub(crate) fn open(fd: i32) -> io::Result<OwnedFd> {
    // SAFETY: only a launcher that inherited it calls this, before it closes anything.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 0)?)
}

/// Marks an inherited descriptor as close-on-exec.
#[expect(
    unsafe_code,
    reason = "an inherited descriptor has no owner in this program"
)]
pub(crate) fn close_on_exec(fd: i32) {
    // SAFETY: it was open a moment ago; if it is closed since, the call fails and changes nothing.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    if let Ok(flags) = rustix::io::fcntl_getfd(fd) {
        let _ = rustix::io::fcntl_setfd(fd, flags | FdFlags::CLOEXEC);
    }
}
