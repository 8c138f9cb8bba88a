//! Forks this process.

use std::io;

use nix::unistd::ForkResult;

/// Forks this process. Call it before any thread starts.
///
/// Starting the program again, instead of forking, would lose the capabilities of this process, and would double the time of a
/// start.
///
/// # Errors
/// The system refuses another process.
#[expect(unsafe_code, reason = "there is no other way to be two processes")]
pub(crate) fn fork() -> io::Result<ForkResult> {
    // SAFETY: no thread has been started, so the child has everything that the parent had, no lock is held by
    // anybody else, and it may do what it likes.
    Ok(unsafe { nix::unistd::fork() }?)
}
