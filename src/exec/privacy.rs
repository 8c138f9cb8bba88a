//! Keeps this process's environment and memory, which hold the person's keys, from the commands that it starts.

use std::io;

use nix::libc;
use rustix::process::DumpableBehavior;

/// Erases the environment that `/proc` shows of this process, and forbids other programs of the same user to read
/// its memory or trace it. To this process, and to what it starts, the variables stay as they were.
///
/// Call it before any thread starts. A process that is forked later is protected as well; a program that is started
/// is not.
///
/// # Errors
/// The system refuses.
pub fn protect() -> io::Result<()> {
    move_environment();
    Ok(rustix::process::set_dumpable_behavior(
        DumpableBehavior::NotDumpable,
    )?)
}

/// Moves the variables from the place where the kernel put them, and shows them, to the heap.
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
    // The first of a name counts, so it is set last.
    for (name, value) in variables.iter().rev() {
        // `set_var` panics for such a name, and nobody could ask for it.
        if !name.as_encoded_bytes().contains(&b'=') {
            // SAFETY: as above.
            unsafe { std::env::set_var(name, value) };
        }
    }
}
