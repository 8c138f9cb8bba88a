//! Cuts this process off the terminal and what else its parent left open, before any command runs.

use std::os::fd::BorrowedFd;

/// Leaves the controlling terminal for good, so that no command finds one to ask in, and keeps every
/// descriptor beyond the standard three from the commands to come.
///
/// Call it first in `main`, before any thread starts.
pub fn detach_terminal() {
    // A leader of its group may not start a session; it can still let go of the terminal.
    if rustix::process::setsid().is_err() {
        release_terminal();
    }
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
    reason = "TIOCNOTTY has no safe form; it takes no argument"
)]
fn release_terminal() {
    use rustix::ioctl::{NoArg, ioctl};
    const TIOCNOTTY: rustix::ioctl::Opcode = 0x5422;
    if let Ok(tty) = std::fs::File::open("/dev/tty") {
        // SAFETY: TIOCNOTTY reads and writes no memory of ours.
        let _ = unsafe { ioctl(tty, NoArg::<TIOCNOTTY>::new()) };
    }
}

#[expect(
    unsafe_code,
    reason = "an inherited descriptor has no owner in this program"
)]
fn close_on_exec(fd: i32) {
    // SAFETY: it was open a moment ago; if it is closed since, the call fails and changes nothing.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    if let Ok(flags) = rustix::io::fcntl_getfd(fd) {
        let _ = rustix::io::fcntl_setfd(fd, flags | rustix::io::FdFlags::CLOEXEC);
    }
}
