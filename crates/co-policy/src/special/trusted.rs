//! Checks the programs that other programs start.

use crate::facts::{LocalFacts, ProgramFact};
use crate::reason::Reason;

/// Returns a reason for each program that `name` starts and that other users can change.
pub(crate) fn check_started_programs<S: AsRef<str>>(
    name: &str,
    programs: &[S],
    local: &LocalFacts,
) -> Vec<Reason> {
    let untrusted = |program: &S| match local.program(program.as_ref()) {
        ProgramFact::Untrusted(path) => Some(Reason::whole(format!(
            "`{name}` runs `{}`, which others can change",
            path.display()
        ))),
        ProgramFact::Trusted(_) | ProgramFact::Missing => None,
    };
    programs.iter().filter_map(untrusted).collect()
}
