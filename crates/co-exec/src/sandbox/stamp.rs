//! Which build a plan is of: a version lasts over many changes to what a plan comes to.

use crate::fnv;

/// The version that people know.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// All that a launcher reads a plan with and holds a command by.
const SOURCES: [&[u8]; 9] = [
    include_bytes!("filter.rs"),
    include_bytes!("filter/tables.rs"),
    include_bytes!("launch.rs"),
    include_bytes!("mounts.rs"),
    include_bytes!("plan.rs"),
    include_bytes!("rules.rs"),
    include_bytes!("support.rs"),
    include_bytes!("../inherited.rs"),
    include_bytes!("../limits.rs"),
];

const BUILD: u64 = fnv::hash(&SOURCES);

/// The version, and a number that is another one where the launcher's sources are others.
pub(super) fn stamp() -> String {
    format!("{VERSION}/{BUILD:016x}")
}

/// The version in a stamp, or in a version by itself.
pub(super) fn version(stamp: &str) -> &str {
    stamp.split_once('/').map_or(stamp, |(version, _)| version)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// How many of the sources lie elsewhere.
    const ELSEWHERE: usize = 2;
    /// What only prepares plans, or tests.
    const OTHERS: &[&str] = &[
        "appeared.rs",
        "choice.rs",
        "git.rs",
        "grants.rs",
        "mod.rs",
        "names.rs",
        "placeholder.rs",
        "removal.rs",
        "seatbelt.rs",
        "stamp.rs",
        "tests.rs",
        "tmp.rs",
        "toolchains.rs",
    ];

    #[test]
    fn a_stamp_begins_with_the_version() {
        assert_eq!(version(&stamp()), VERSION);
        assert_eq!(version("1.2.3-beta+1"), "1.2.3-beta+1");
    }

    #[test]
    fn every_source_counts_or_is_known_not_to() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sandbox");
        let mut counted = 0;
        for dir in [dir.join("filter"), dir] {
            for entry in fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap();
                if path.is_dir() || OTHERS.contains(&name) {
                    continue;
                }
                let text = fs::read(&path).unwrap();
                let counts = SOURCES.iter().any(|source| **source == text[..]);
                assert!(counts, "{name}: name it in SOURCES or in OTHERS");
                counted += 1;
            }
        }
        assert_eq!(counted + ELSEWHERE, SOURCES.len());
    }
}
