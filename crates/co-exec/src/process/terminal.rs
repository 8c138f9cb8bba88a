//! Cuts this process off the terminal and what else its parent left open, before any command runs.

use crate::inherited;

/// Leaves the controlling terminal for good, so that no command finds one to ask in, and keeps every
/// descriptor beyond the standard three from the commands to come.
///
/// Call it below a guard, before any thread starts.
pub fn detach_terminal() {
    // Only who leads a group may not start a session, and who was forked off by its guard leads none.
    let _ = rustix::process::setsid();
    inherited::keep();
}
