//! Forks this process.

use std::io;

use nix::unistd::ForkResult;

/// Forks this process. Call it before any thread starts.
///
/// A fork keeps the capabilities of this process. A second exec of the program would lose them, and would take twice as long.
///
/// # Errors
/// The system refuses another process.
#[expect(unsafe_code, reason = "there is no other way to be two processes")]
pub(crate) fn fork() -> io::Result<ForkResult> {
    // SAFETY: no thread has been started, so the child has everything that the parent had, no lock is held by
    // anybody else, and it may do what it likes.
    Ok(unsafe { nix::unistd::fork() }?)
}
