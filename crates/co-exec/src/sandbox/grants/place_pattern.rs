//! Expands patterns for paths of a toolchain. Each name in a pattern may contain one `*`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Adds to `found` the paths below `base` that match the pattern `place`. Adds to `listed` the directories that it lists.
pub(super) fn expand(
    base: &Path,
    place: &str,
    found: &mut Vec<PathBuf>,
    listed: &mut Vec<PathBuf>,
) {
    let (name, rest) = place.split_once('/').unwrap_or((place, ""));
    let below = |path: PathBuf, found: &mut Vec<PathBuf>, listed: &mut Vec<PathBuf>| {
        if rest.is_empty() {
            found.push(path);
        } else {
            expand(&path, rest, found, listed);
        }
    };
    let Some((begin, end)) = name.split_once('*') else {
        return below(base.join(name), found, listed);
    };
    let Ok(entries) = base.read_dir() else {
        return;
    };
    listed.push(base.to_owned());
    for entry in entries.flatten() {
        if matches(&entry.file_name(), begin, end) {
            below(entry.path(), found, listed);
        }
    }
}

fn matches(name: &OsStr, begin: &str, end: &str) -> bool {
    let name = name.as_encoded_bytes();
    let rest = name.strip_prefix(begin.as_bytes());
    rest.is_some_and(|rest| rest.ends_with(end.as_bytes()))
}
