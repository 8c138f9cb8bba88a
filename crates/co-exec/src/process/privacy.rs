//! Hides the environment and the memory of this process from commands, because they contain the person's keys.

use std::io;

use nix::libc;
use rustix::process::DumpableBehavior;

/// Erases the environment in that part of this process's memory that `/proc` shows. Forbids other programs of the same user to
/// read its memory or to trace it. This process and its children still see the same variables.
///
/// Call it before any thread starts. Processes that are forked later are protected too, but not programs that they start.
///
/// # Errors
/// The system refuses.
pub fn protect() -> io::Result<()> {
    move_environment();
    Ok(rustix::process::set_dumpable_behavior(
        DumpableBehavior::NotDumpable,
    )?)
}

/// Moves the variables to the heap, from the memory that the kernel shows in `/proc`.
#[expect(
    unsafe_code,
    reason = "no safe call reaches the text that the kernel shows"
)]
fn move_environment() {
    unsafe extern "C" {
        static environ: *const *mut libc::c_char;
    }
    let variables: Vec<_> = std::env::vars_os().collect();
    // SAFETY: there is one thread, so nobody reads or changes the environment meanwhile. `environ` is null or a list
    // that ends with null, of texts that end with NUL and that may be written to. Nothing refers to one of them:
    // `variables` are copies. `clearenv` empties the list and lets go of the texts.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            std::ptr::write_bytes(*entry, 0, libc::strlen(*entry));
            entry = entry.add(1);
        }
        libc::clearenv();
    }
    // If a name occurs twice, the first value counts, so it is set last.
    for (name, value) in variables.iter().rev() {
        // `set_var` panics for such a name, and no code could read it.
        if !name.as_encoded_bytes().contains(&b'=') {
            // SAFETY: as above.
            unsafe { std::env::set_var(name, value) };
        }
    }
}
