//! The descriptors that a parent left open beyond the three standard ones.

use std::io;

use nix::libc;
use rustix::io::FdFlags;

/// Closes them all.
///
/// # Errors
/// The kernel is older than Linux 5.9.
pub(super) fn close() -> io::Result<()> {
    range(0)
}

/// Keeps them from the programs that this process starts.
///
/// Call it before any thread starts.
pub(super) fn keep() {
    if range(libc::CLOSE_RANGE_CLOEXEC).is_err() {
        // Linux before 5.11 closes but does not mark.
        one_by_one();
    }
}

#[expect(
    unsafe_code,
    reason = "no library wraps close_range; listing /proc/self/fd takes ten times as long"
)]
fn range(flags: libc::c_uint) -> io::Result<()> {
    let (first, last) = (3_u32, u32::MAX);
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

#[expect(
    unsafe_code,
    reason = "an inherited descriptor has no owner in this program"
)]
fn close_on_exec(fd: i32) {
    // SAFETY: it was open a moment ago; if it is closed since, the call fails and changes nothing.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    if let Ok(flags) = rustix::io::fcntl_getfd(fd) {
        let _ = rustix::io::fcntl_setfd(fd, flags | FdFlags::CLOEXEC);
    }
}
