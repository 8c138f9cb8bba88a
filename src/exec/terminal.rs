//! Cuts this process off the terminal and what else its parent left open, before any command runs.

use super::inherited;

/// Leaves the controlling terminal for good, so that no command finds one to ask in, and keeps every
/// descriptor beyond the standard three from the commands to come.
///
/// Call it first in `main`, before any thread starts.
pub fn detach_terminal() {
    // A leader of its group may not start a session; it can still let go of the terminal.
    if rustix::process::setsid().is_err() {
        release_terminal();
    }
    inherited::keep();
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
