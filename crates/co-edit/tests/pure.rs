//! Checks that the sources use no file, process, network or environment variable.

#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

/// Modules that read or change the system.
const SYSTEM: [&str; 5] = ["std::fs", "std::process", "std::net", "std::env", "std::os"];

/// Returns the sources of the crate.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let found = entries.flat_map(|path| match path.is_dir() {
        true => sources(&path),
        false => vec![path],
    });
    found
        .filter(|path| path.extension().is_some_and(|it| it == "rs"))
        .collect()
}

#[test]
fn the_crate_reads_and_changes_nothing() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(
        sources.len() > 9,
        "only {} sources were found",
        sources.len()
    );
    for path in sources {
        let text = fs::read_to_string(&path).unwrap();
        let found = SYSTEM.iter().find(|word| text.contains(**word));
        assert_eq!(found, None, "{}", path.display());
    }
}
