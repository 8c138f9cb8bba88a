//! Detaches this process from its terminal and its inherited descriptors, before any command runs.

use crate::inherited;

/// Gives up the controlling terminal, so that no command can ask for input there. Marks all descriptors except the three standard
/// streams as close-on-exec.
///
/// Call it in the child of the watchdog, before any thread starts.
pub fn detach_terminal() {
    // This fails only for the leader of a process group. The child of the watchdog leads none.
    let _ = rustix::process::setsid();
    inherited::keep();
}
