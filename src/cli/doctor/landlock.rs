//! The version of Landlock, and the features that it lacks.

use super::check::{Check, CheckLevel};

/// The first version with all features that co uses.
const COMPLETE_VERSION: u32 = 6;

/// The first version with a feature, and the effect of its absence on commands.
const HELD_FROM: [(u32, &str); 4] = [
    (2, "commands cannot move files to another directory"),
    (
        3,
        "only the system call filter protects files from being emptied",
    ),
    (
        5,
        "only the system call filter refuses requests to devices (ioctl)",
    ),
    (
        6,
        "a command cannot signal a process by its number (kill 123), not even its own",
    ),
];

/// Returns the version of Landlock and the features that it lacks; none if there is no Landlock.
pub(super) fn check(version: Option<u32>) -> Option<Check> {
    let version = version?;
    let lacks = HELD_FROM.iter().filter(|(from, _)| version < *from);
    let lacks: Vec<&str> = lacks.map(|(_, what)| *what).collect();
    Some(match lacks.is_empty() {
        true => Check::ok(
            "landlock",
            format!("version {version} has all features that co uses"),
        ),
        false => Check::bad(
            "landlock",
            CheckLevel::Warn,
            format!(
                "version {version} lacks features of version {COMPLETE_VERSION}: {}",
                lacks.join("; ")
            ),
            "use Linux 6.12 or later",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_an_older_version_lacks() {
        let check = |version, level, lacks: usize| {
            let told = super::check(Some(version)).unwrap();
            assert_eq!(told.level, level, "{told:?}");
            let parts = HELD_FROM.iter();
            let named = parts
                .filter(|(_, what)| told.message.contains(what))
                .count();
            assert_eq!(named, lacks, "{told:?}");
            assert!(
                told.message.contains(&format!("version {version} ")),
                "{told:?}"
            );
        };
        check(1, CheckLevel::Warn, 4);
        check(2, CheckLevel::Warn, 3);
        check(4, CheckLevel::Warn, 2);
        check(5, CheckLevel::Warn, 1);
        check(6, CheckLevel::Ok, 0);
        check(9, CheckLevel::Ok, 0);
        assert_eq!(super::check(None), None);
    }
}
