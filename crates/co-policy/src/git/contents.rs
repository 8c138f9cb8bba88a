//! Checks the git commands that print contents of files: none may print a secret.

use std::path::{Path, PathBuf};

use crate::args::Arg;
use crate::facts::{FileKind, LocalFacts};
use crate::options::Parsed;

/// Options with which a diff prints no contents.
const WITHOUT_CONTENTS: [&str; 12] = [
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

/// Options that print contents even with one of the options above.
const WITH_CONTENTS: [&str; 22] = [
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

/// Options with which `git grep` prints no lines.
const GREP_WITHOUT_LINES: [&str; 9] = [
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

/// Commands that print contents only of the given paths. The others ignore paths or read them differently.
const LIMITED_BY_PATHS: [&str; 6] = [
    "git diff",
    "git diff-tree",
    "git log",
    "git whatchanged",
    "git show",
    "git grep",
];

/// Returns a reason if a command may print the contents of a secret. Secrets are the secret names that git tracks or ever
/// tracked.
pub(super) fn printed_secret(name: &str, parsed: &Parsed, local: &LocalFacts) -> Option<String> {
    let prints = prints_contents(name, parsed);
    if prints || ["git show", "git cat-file", "git blame"].contains(&name) {
        let mut operands = operands(name, parsed).iter();
        if let Some(operand) = operands.find(|it| is_secret(&it.text, local)) {
            return Some(format!("`{}` may contain a secret", operand.text));
        }
    }
    if !prints {
        return None;
    }
    let Some(secrets) = local.facts.committed_secrets(local.cwd) else {
        let text = "the Git history may contain secrets: co could not list its files";
        return Some(text.to_owned());
    };
    if secrets.is_empty() {
        return None;
    }
    let limits = limiting_paths(name, parsed, local);
    let printed = |secret: &&PathBuf| {
        let below = |path: &PathBuf| secret.starts_with(path) || path.starts_with(secret);
        limits.as_ref().is_none_or(|paths| paths.iter().any(below))
    };
    let secret = secrets.iter().find(printed)?;
    Some(format!(
        "git may print `{}`, which looks like a secret",
        secret.display()
    ))
}

fn prints_contents(name: &str, parsed: &Parsed) -> bool {
    match name {
        "git diff" | "git diff-tree" | "git range-diff" | "git stash show" => {
            parsed.has(&WITH_CONTENTS) || !parsed.has(&WITHOUT_CONTENTS)
        }
        "git show" => {
            let blobs =
                !parsed.operands.is_empty() && parsed.operands.iter().all(|it| is_path(&it.text));
            !blobs && (parsed.has(&WITH_CONTENTS) || !parsed.has(&WITHOUT_CONTENTS))
        }
        "git log" | "git whatchanged" | "git reflog" | "git reflog show" | "git stash list" => {
            parsed.has(&WITH_CONTENTS)
        }
        "git grep" => !parsed.has(&GREP_WITHOUT_LINES),
        "git cat-file" => {
            !parsed.has(&["-t", "-s", "-e"])
                && !parsed.operands.last().is_some_and(|it| is_path(&it.text))
        }
        _ => false,
    }
}

/// True for a file of a revision, such as `HEAD:src/main.rs`. Its name is checked elsewhere.
fn is_path(operand: &str) -> bool {
    let named = |(revision, path): (&str, &str)| !revision.is_empty() && !path.is_empty();
    !operand.contains('{') && operand.split_once(':').is_some_and(named)
}

/// Returns the operands without the pattern of `git grep`.
fn operands<'a, 'b>(name: &str, parsed: &'a Parsed<'b>) -> &'a [&'b Arg] {
    parsed
        .operands
        .get(pattern_count(name, parsed)..)
        .unwrap_or_default()
}

/// Returns the number of operands that are patterns.
fn pattern_count(name: &str, parsed: &Parsed) -> usize {
    usize::from(name == "git grep" && !parsed.has(&["-e"]))
}

/// True if an operand names a file that is secret by its content in the work tree: `HEAD:auth.json`. The path starts at
/// the top of the work tree or in the current directory.
fn is_secret(operand: &str, local: &LocalFacts) -> bool {
    let path = operand.rsplit(':').next().unwrap_or(operand);
    let here = local.path(".").inside;
    let depth = here.map_or(0, |here| here.written.components().count());
    let top = local.cwd.ancestors().nth(depth).unwrap_or(local.cwd);
    [local.cwd, top]
        .iter()
        .any(|from| local.facts.path(from, path).secret)
}

/// Returns the paths to which a command is limited, relative to the workspace; `None` if it may print any file.
fn limiting_paths(name: &str, parsed: &Parsed, local: &LocalFacts) -> Option<Vec<PathBuf>> {
    if !LIMITED_BY_PATHS.contains(&name) || parsed.has(&["--full-diff", "--follow"]) {
        return None;
    }
    let operands = operands(name, parsed);
    // `git grep` ignores a `--` before its pattern.
    let dashes = parsed
        .dashes
        .and_then(|before| before.checked_sub(pattern_count(name, parsed)));
    let path = |text: &str| match dashes {
        Some(_) => plain_pathspec(text, local),
        None => existing_path(text, local),
    };
    let first = dashes.or_else(|| operands.iter().position(|it| path(&it.text).is_some()))?;
    let (revisions, paths) = operands.split_at_checked(first)?;
    let commits = ["git log", "git whatchanged"].contains(&name);
    if paths.is_empty() || !commits && revisions.iter().any(|it| may_name_object(&it.text)) {
        return None;
    }
    paths.iter().map(|it| path(&it.text)).collect()
}

/// Returns the path of a plain pathspec. The path need not exist now, because a revision may have it.
fn plain_pathspec(text: &str, local: &LocalFacts) -> Option<PathBuf> {
    let plain = !text.contains([':', '*', '?', '[', '\\']);
    let inside = local.path(text).inside;
    let path = inside.filter(|_| plain)?.written;
    (path != Path::new("")).then_some(path)
}

/// Returns the path of an operand without `--`. It must exist: then git refuses a revision of the same name. Git does
/// not look for files with the names of ranges and sets of parents.
fn existing_path(text: &str, local: &LocalFacts) -> Option<PathBuf> {
    let exists = local.path(text).kind != FileKind::Missing;
    let range = text.contains('^') || text.contains("..");
    plain_pathspec(text, local).filter(|_| exists && !range)
}

/// True if a revision may name a file or directory: `HEAD:src`, `1234567`, `x-g1234567`. Git ignores the paths for such a
/// file and starts them at such a directory.
fn may_name_object(revision: &str) -> bool {
    let hash = |part: &str| {
        let digits = part.strip_prefix('g').unwrap_or(part);
        digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    revision.contains(':') || revision.split(|c: char| !c.is_alphanumeric()).any(hash)
}
