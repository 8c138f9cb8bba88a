//! Passes a script that is too long for an argument: bash reads it from a descriptor, which no program of the script
//! inherits.

use crate::command::Program;

/// The most bytes of a script that is passed as an argument.
const LONG: usize = 100 << 10;

/// The number of that descriptor.
pub(crate) const DESCRIPTOR: i32 = 3;

/// The script that reads and runs the long one.
pub(crate) const READ: &str = "IFS= read -r -d '' -u 3 script; exec 3<&-; eval \"$script\"";

/// Returns the script of a program if it is too long for an argument.
pub(crate) fn of(program: &Program) -> Option<&str> {
    match program {
        Program::Proved(proved) => Some(proved.script()).filter(|script| script.len() > LONG),
        Program::Shell(_) | Program::Argv(_) => None,
    }
}
