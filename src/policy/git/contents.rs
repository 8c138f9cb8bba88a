//! Which git commands print the contents of files, and of which ones.

use std::path::{Path, PathBuf};

use super::Scene;
use crate::policy::facts::Kind;
use crate::policy::options::Parsed;

/// Options of diffs that print no contents.
const NAMES: [&str; 12] = [
    "--name-only",
    "--name-status",
    "--stat",
    "--numstat",
    "--shortstat",
    "--summary",
    "--raw",
    "--quiet",
    "--compact-summary",
    "--dirstat",
    "--no-patch",
    "-s",
];

/// Options that print contents also where they are not the default, or beside names.
const PATCH: [&str; 22] = [
    "-p",
    "-u",
    "--patch",
    "--patch-with-raw",
    "--patch-with-stat",
    "-U",
    "--unified",
    "--binary",
    "--check",
    "-W",
    "--function-context",
    "-c",
    "--cc",
    "-m",
    "--dd",
    "--diff-merges",
    "--remerge-diff",
    "--word-diff",
    "--word-diff-regex",
    "--color-words",
    "--full-diff",
    "--follow",
];

/// Options of `git grep` that print no lines.
const GREP_NAMES: [&str; 9] = [
    "-l",
    "-L",
    "-c",
    "-q",
    "--name-only",
    "--files-with-matches",
    "--files-without-match",
    "--count",
    "--quiet",
];

/// Returns a secret whose contents a command may print, as a reason to ask. Secrets are found by the names that git
/// tracks or ever tracked.
pub(super) fn secret(name: &str, parsed: &Parsed, scene: &Scene) -> Option<String> {
    if !prints(name, parsed) {
        return None;
    }
    let Some(secrets) = scene.facts.committed_secrets(scene.cwd) else {
        return Some("the history may hold secrets: git did not list its files in time".to_owned());
    };
    if secrets.is_empty() {
        return None;
    }
    let paths = paths(name, parsed, scene);
    let printed = |secret: &&PathBuf| {
        let below = |path: &PathBuf| secret.starts_with(path) || path.starts_with(secret);
        paths.is_empty() || paths.iter().any(below)
    };
    let secret = secrets.iter().find(printed)?;
    Some(format!(
        "git may print `{}`, which looks like a secret",
        secret.display()
    ))
}

fn prints(name: &str, parsed: &Parsed) -> bool {
    match name {
        "git diff" | "git diff-tree" | "git range-diff" | "git stash show" => {
            parsed.has(&PATCH) || !parsed.has(&NAMES)
        }
        "git show" => {
            let blobs =
                !parsed.operands.is_empty() && parsed.operands.iter().all(|it| is_path(&it.text));
            !blobs && (parsed.has(&PATCH) || !parsed.has(&NAMES))
        }
        "git log" | "git whatchanged" | "git reflog" | "git reflog show" | "git stash list" => {
            parsed.has(&PATCH)
        }
        "git grep" => !parsed.has(&GREP_NAMES),
        "git cat-file" => {
            !parsed.has(&["-t", "-s", "-e"])
                && !parsed.operands.last().is_some_and(|it| is_path(&it.text))
        }
        _ => false,
    }
}

/// True for a file of a revision, whose name was looked at: `HEAD:src/main.rs`.
fn is_path(operand: &str) -> bool {
    let named = |(revision, path): (&str, &str)| !revision.is_empty() && !path.is_empty();
    !operand.contains('{') && operand.split_once(':').is_some_and(named)
}

/// Returns the paths that limit a command, below the workspace; none if it may print any file.
fn paths(name: &str, parsed: &Parsed, scene: &Scene) -> Vec<PathBuf> {
    if parsed.has(&["--full-diff", "--follow"]) {
        return Vec::new();
    }
    let pattern = name == "git grep" && !parsed.has(&["-e"]);
    let operands = parsed.operands.iter().skip(usize::from(pattern));
    let path = |text: &str| {
        let fact = scene.facts.path(scene.cwd, text);
        let plain = !text.contains([':', '*', '?', '[', '\\']);
        let inside = fact
            .inside
            .filter(|_| plain && fact.kind != Kind::Missing)?;
        Some(inside.written).filter(|path| path != Path::new(""))
    };
    operands.filter_map(|operand| path(&operand.text)).collect()
}
