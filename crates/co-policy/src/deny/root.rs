//! Detects commands that delete the root, a system directory or the home directory, in any spelling.

use std::path::{Component, Path};

use super::glob::Glob;
use crate::bash::path_from;
use crate::facts::LocalFacts;
use crate::paths;

/// The directories in `/` that the system needs.
const SYSTEM: [&str; 23] = [
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "nix",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr",
    "var",
    "Users",
    "System",
    "Library",
    "Applications",
    "private",
];

/// The directories in `/` that contain home directories.
const HOMES: [&str; 2] = ["home", "Users"];

/// Returns the operand by which a command deletes the root, a system directory or the home directory.
pub(super) fn deleted_operand(
    name: &str,
    rest: &[String],
    at: Option<&str>,
    local: &LocalFacts,
) -> Option<String> {
    removed_operands(name, rest)?
        .into_iter()
        .find(|word| is_root(word, at, local))
        .map(str::to_owned)
}

/// Returns the operands that a command removes or changes recursively. Returns `None` if the command does neither.
fn removed_operands<'a>(name: &str, rest: &'a [String]) -> Option<Vec<&'a str>> {
    let flag = |letters: &[char], long: &str| {
        rest.iter().any(|word| {
            (long.starts_with(word.as_str()) && word.len() > 2)
                || (word.starts_with('-') && !word.starts_with("--") && word.contains(letters))
        })
    };
    let operands = || {
        rest.iter()
            .map(String::as_str)
            .filter(|w| !w.starts_with('-'))
    };
    match name {
        "rm" => {
            let whole = flag(&['r', 'R'], "--recursive")
                || rest.iter().any(|word| word == "--no-preserve-root");
            whole.then(|| operands().collect())
        }
        "chmod" | "chown" | "chgrp" => flag(&['R'], "--recursive").then(|| operands().collect()),
        "rsync" => {
            let deletes = rest.iter().any(|word| word.starts_with("--del"));
            operands()
                .next_back()
                .filter(|_| deletes)
                .map(|to| vec![to])
        }
        "mv" => Some(moved_operands(rest)),
        "find" => find_starts(rest),
        _ => None,
    }
}

/// Returns the operands of `mv` except the target.
fn moved_operands(rest: &[String]) -> Vec<&str> {
    let mut operands = Vec::new();
    let mut has_target = false;
    let mut words = rest.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if word == "-t" || word == "--target-directory" {
            words.next();
            has_target = true;
        } else if word.starts_with("-t") || word.starts_with("--target-directory=") {
            has_target = true;
        } else if !word.starts_with('-') {
            operands.push(word);
        }
    }
    if !has_target {
        operands.pop();
    }
    operands
}

/// Returns the start directories of a `find` that removes files. Returns `None` if the `find` removes no files.
fn find_starts(rest: &[String]) -> Option<Vec<&str>> {
    const REMOVERS: [&str; 4] = ["rm", "shred", "unlink", "mv"];
    let base = |word: &String| {
        word.rsplit('/')
            .next()
            .is_some_and(|b| REMOVERS.contains(&b))
    };
    let runs = |word: &String| word.starts_with("-exec") || word.starts_with("-ok");
    let removes = rest.iter().any(|word| word == "-delete")
        || rest.windows(2).any(|two| runs(&two[0]) && base(&two[1]));
    if !removes {
        return None;
    }
    let option = |word: &&str| matches!(*word, "-H" | "-L" | "-P") || word.starts_with("-O");
    let starts: Vec<&str> = rest
        .iter()
        .map(String::as_str)
        .skip_while(option)
        .take_while(|word| !word.starts_with(['-', '(', '!']))
        .collect();
    Some(if starts.is_empty() { vec!["."] } else { starts })
}

/// Returns true if a word names the root, a system directory or a home directory, or names all entries of one of these by a glob
/// (`/etc/*`).
fn is_root(word: &str, at: Option<&str>, local: &LocalFacts) -> bool {
    let mut path = expand_home(&path_from(at, word));
    while let Some((before, last)) = path.rsplit_once('/')
        && means_all(last)
    {
        let length = before.len();
        if length == 0 {
            return true;
        }
        path.truncate(length);
    }
    if means_all(&path) {
        ".".clone_into(&mut path);
    }
    let whole = match path.starts_with('/') {
        true => paths::normalize_lexically(Path::new(&path)),
        false => local.path(&path).absolute,
    };
    let parts: Vec<&str> = whole
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .filter_map(|part| part.as_os_str().to_str())
        .collect();
    let finds = |pattern: &str, names: &[&str]| {
        let pattern = Glob::new(pattern);
        names.iter().any(|name| pattern.matches(name))
    };
    match parts.as_slice() {
        [] => true,
        [first] if finds(first, &SYSTEM) => true,
        [first, _] if finds(first, &HOMES) => true,
        _ => local.path(&path).home,
    }
}

/// Returns true if the last component of a path means the directory itself or everything in it: ``, `.`, `*`, `.*`, `?*`,
/// `.[!.]*`.
fn means_all(last: &str) -> bool {
    last.is_empty()
        || last == "."
        || (last.contains('*') && last.chars().all(|c| "*.?[]!^".contains(c)))
}

/// Replaces `~` and `$HOME` by a directory in `/home`.
fn expand_home(word: &str) -> String {
    const HOME: &str = "/home/~";
    for name in ["${HOME:?}", "${HOME}", "$HOME"] {
        if let Some(rest) = word.strip_prefix(name)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return format!("{HOME}{rest}");
        }
    }
    match word.strip_prefix('~') {
        Some(rest) => match rest.split_once('/') {
            Some((_, below)) => format!("{HOME}/{below}"),
            None => HOME.to_owned(),
        },
        None => word.to_owned(),
    }
}
