//! Checks git: sub-commands that only read, and variables that stop the repository from starting programs.

use std::path::Path;

use crate::args::Arg;
use crate::facts::LocalFacts;
use crate::options::{self, Parsed};
use crate::paths::{self, PathUse};
use crate::programs::{self, Special};
use crate::reason::Reason;
use crate::secret_names as names;

mod contents;

/// Variables for each proved git command: no locks, no fetch, no pager, no file-system monitor, no hooks, no signature
/// programs, no hidden bare repository, no submodules.
pub const HARDENING: [(&str, &str); 14] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_CONFIG_COUNT", "5"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
    ("GIT_CONFIG_KEY_2", "log.showSignature"),
    ("GIT_CONFIG_VALUE_2", "false"),
    ("GIT_CONFIG_KEY_3", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_3", "explicit"),
    ("GIT_CONFIG_KEY_4", "diff.ignoreSubmodules"),
    ("GIT_CONFIG_VALUE_4", "dirty"),
];

/// Sub-commands that have sub-commands of their own.
const TWO_WORDS: [&str; 4] = ["stash", "worktree", "reflog", "remote"];

/// Returns the name with the sub-command, such as `git status`, and the index of the word after it.
pub(super) fn subcommand(args: &[Arg]) -> Option<(String, usize)> {
    let skip = args
        .iter()
        .take_while(|arg| matches!(arg.text.as_str(), "--no-pager" | "--no-optional-locks"))
        .count();
    let first = args.get(skip).filter(|arg| !arg.dynamic)?;
    let mut name = format!("git {}", first.text);
    let mut used = skip + 1;
    if TWO_WORDS.contains(&first.text.as_str())
        && let Some(second) = args.get(used)
        && !second.text.starts_with('-')
    {
        let longer = format!("{name} {}", second.text);
        if first.text != "reflog" || programs::lookup(&longer).is_some() || is_verb(&second.text) {
            name = longer;
            used += 1;
        }
    }
    Some((name, used))
}

fn is_verb(word: &str) -> bool {
    ["expire", "delete", "exists", "list", "drop", "write"].contains(&word)
}

pub(super) fn check(args: &[Arg], local: &LocalFacts) -> Vec<Reason> {
    let Some((name, used)) = subcommand(args) else {
        return vec![Reason::whole("`git` lacks its sub-command")];
    };
    let Some(program) = programs::lookup(&name) else {
        return vec![args[used - 1].reason(format!("`{name}` is not known to only look"))];
    };
    let mut reasons: Vec<Reason> = local
        .facts
        .git(local.cwd)
        .hazards
        .into_iter()
        .map(Reason::whole)
        .collect();
    if program.special == Some(Special::GitConfig) {
        reasons.extend(check_config(&args[used..]));
        return reasons;
    }
    let mut parsed = options::parse(&name, program, &args[used..]);
    check_listing(program.special, &mut parsed, &name);
    check_values(&mut parsed);
    check_operands(&name, &mut parsed, local);
    reasons.extend(contents::printed_secret(&name, &parsed, local).map(Reason::whole));
    options::check(&name, program, &mut parsed, local);
    reasons.append(&mut parsed.reasons);
    reasons
}

/// Allows only `git config --get user.name` and similar forms.
fn check_config(args: &[Arg]) -> Vec<Reason> {
    let words: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
    match words.as_slice() {
        ["user.name" | "user.email"] | ["--get" | "get", "user.name" | "user.email"] => Vec::new(),
        _ => vec![Reason::whole(
            "`git config` may change settings or print credentials",
        )],
    }
}

/// Refuses operands of `git branch` and `git tag` without a listing option, because they create something.
fn check_listing(special: Option<Special>, parsed: &mut Parsed, name: &str) {
    let listing: &[&str] = match special {
        Some(Special::GitBranch) => &[
            "--list",
            "--contains",
            "--no-contains",
            "--merged",
            "--no-merged",
            "--points-at",
        ],
        Some(Special::GitTag) => &[
            "-l",
            "--list",
            "-n",
            "--contains",
            "--no-contains",
            "--merged",
            "--no-merged",
            "--points-at",
        ],
        _ => return,
    };
    if let Some(operand) = parsed.operands.first()
        && !parsed.has(listing)
    {
        parsed.ask(
            operand,
            format!("`{name} {}` creates something", operand.text),
        );
    }
}

/// Checks option values: a format with signatures runs another program, and a path may name a secret.
fn check_values(parsed: &mut Parsed) {
    const SIGNATURES: [&str; 5] = ["%G", "%+G", "%-G", "% G", "signature"];
    for (option, value) in &parsed.options {
        let Some((value, span)) = value else { continue };
        let signatures = SIGNATURES.iter().any(|form| value.contains(form));
        let runs = signatures.then(|| format!("`{option}` with signatures runs another program"));
        let texts = runs.into_iter().chain(secret(value));
        let reasons = texts.map(|text| Reason::at(text, span.clone()));
        parsed.reasons.extend(reasons);
    }
}

/// Checks operands, which are revisions and paths: they must not name a secret or leave the workspace.
fn check_operands(name: &str, parsed: &mut Parsed, local: &LocalFacts) {
    let pattern = name == "git grep" && !parsed.has(&["-e"]);
    for operand in parsed.operands.iter().skip(usize::from(pattern)) {
        let text = operand.text.as_str();
        let named = secret(text).or_else(|| may_match_secret(text));
        parsed
            .reasons
            .extend(named.map(|text| operand.reason(text)));
        for piece in text.split(':') {
            let leaves = piece.starts_with('/') || piece.split('/').any(|part| part == "..");
            if leaves {
                let outside = paths::check(local, piece, PathUse::Read, &operand.span);
                parsed.reasons.extend(outside);
            }
        }
    }
}

/// Returns a reason if a pathspec may match a secret: it can be a glob, and its magic can change its meaning.
fn may_match_secret(text: &str) -> Option<String> {
    let path = text.rsplit(':').next().unwrap_or(text);
    let magic = text.starts_with(":(");
    let pattern = path.contains(['*', '?', '[', '\\']);
    let aims = magic || pattern && paths::glob_finds_secret(path, false);
    aims.then(|| format!("`{text}` may name a secret"))
}

/// Returns a reason if a part of a revision or path has the name of a secret.
fn secret(text: &str) -> Option<String> {
    let name = text
        .split([':', ',', '='])
        .find_map(|piece| names::secret(Path::new(piece.trim_end_matches('*'))))?;
    Some(format!("`{name}` looks like a secret"))
}
