//! The short list of what needs a person to lift the rule first.

use std::path::{Component, Path};

use super::facts::Facts;
use super::paths;
use super::wrap::Look;

/// The names by which a person lifts a rule.
pub const NAMES: [&str; 4] = ["root-deletion", "raw-disk", "fork-bomb", "own-files"];

/// A built-in deny rule that a command meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    pub rule: &'static str,
    pub why: String,
}

/// Directories that a machine does not survive without.
const SYSTEM: [&str; 22] = [
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
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

/// Programs that write, move or remove what they are given.
const CHANGERS: [&str; 19] = [
    "rm", "rmdir", "unlink", "mv", "cp", "ln", "tee", "dd", "truncate", "shred", "chmod", "chown",
    "chattr", "touch", "install", "rsync", "sed", "perl", "patch",
];

/// Programs that write to the device they are given.
const DISK_WRITERS: [&str; 13] = [
    "dd",
    "cp",
    "tee",
    "shred",
    "wipefs",
    "blkdiscard",
    "mkswap",
    "fdisk",
    "sfdisk",
    "sgdisk",
    "parted",
    "cryptsetup",
    "hdparm",
];

/// Checks one command; `moved` is where a `cd` before it in the same list led, as written.
pub(super) fn check(
    look: &Look,
    moved: Option<&str>,
    cwd: &Path,
    facts: &dyn Facts,
) -> Vec<Denied> {
    let mut denied = Vec::new();
    let Some(name) = look.words.first() else {
        return writes(look, cwd, facts);
    };
    let name = name.rsplit('/').next().unwrap_or(name);
    let rest = &look.words[1..];
    if let Some(target) = root_deletion(name, rest, moved, cwd, facts) {
        denied.push(Denied {
            rule: "root-deletion",
            why: format!("it would remove `{target}`"),
        });
    }
    if (DISK_WRITERS.contains(&name) || name.starts_with("mkfs"))
        && let Some(device) = rest.iter().find(|word| {
            is_disk(word.strip_prefix("of=").unwrap_or(word)) && !word.starts_with("if=")
        })
    {
        denied.push(Denied {
            rule: "raw-disk",
            why: format!("it would write to the disk `{device}`"),
        });
    }
    let edits = name != "sed"
        || rest
            .iter()
            .any(|word| word.starts_with("-i") || word.starts_with("--in-place"));
    if CHANGERS.contains(&name) && edits {
        let whole = ["rm", "mv", "chmod", "chown"].contains(&name);
        let own = rest
            .iter()
            .filter(|word| !word.starts_with('-'))
            .find(|word| {
                let fact = facts.path(cwd, word.strip_prefix("of=").unwrap_or(word));
                fact.own || (whole && fact.holds_own)
            });
        if let Some(own) = own {
            denied.push(own_file(own));
        }
    }
    denied.extend(writes(look, cwd, facts));
    denied
}

/// What redirections write to.
fn writes(look: &Look, cwd: &Path, facts: &dyn Facts) -> Vec<Denied> {
    let mut denied = Vec::new();
    for target in &look.writes {
        if is_disk(target) {
            denied.push(Denied {
                rule: "raw-disk",
                why: format!("it would write to the disk `{target}`"),
            });
        } else if !target.is_empty() && facts.path(cwd, target).own {
            denied.push(own_file(target));
        }
    }
    denied
}

fn own_file(path: &str) -> Denied {
    Denied {
        rule: "own-files",
        why: format!("it would change `{path}`, by which co itself is held in check"),
    }
}

fn root_deletion(
    name: &str,
    rest: &[String],
    moved: Option<&str>,
    cwd: &Path,
    facts: &dyn Facts,
) -> Option<String> {
    let flag = |letters: &[char], long: &str| {
        rest.iter().any(|word| {
            (long.starts_with(word.as_str()) && word.len() > 3)
                || (word.starts_with('-') && !word.starts_with("--") && word.contains(letters))
        })
    };
    let removes = match name {
        "rm" => {
            flag(&['r', 'R'], "--recursive") || rest.iter().any(|word| word == "--no-preserve-root")
        }
        "find" => {
            rest.iter().any(|word| word == "-delete")
                || rest.windows(2).any(|two| {
                    two[0].starts_with("-exec")
                        && matches!(two[1].as_str(), "rm" | "shred" | "/bin/rm")
                })
        }
        "mv" => true,
        "chmod" | "chown" | "chgrp" => flag(&['R'], "--recursive"),
        _ => false,
    };
    if !removes {
        return None;
    }
    let mut operands: Vec<&String> = rest.iter().filter(|word| !word.starts_with('-')).collect();
    match name {
        "mv" => drop(operands.pop()),
        "find" => operands.truncate(
            rest.iter()
                .take_while(|word| !word.starts_with('-'))
                .count(),
        ),
        _ => {}
    }
    operands
        .into_iter()
        .find(|word| is_root(word, moved, cwd, facts))
        .cloned()
}

/// True for the root, a system directory or the home directory, in any spelling, or all that is in it.
fn is_root(word: &str, moved: Option<&str>, cwd: &Path, facts: &dyn Facts) -> bool {
    let word = word
        .replace("${HOME}", "~")
        .replace("$HOME", "~")
        .replace("${HOME:?}", "~");
    if let Some(target) = moved
        && matches!(word.as_str(), "*" | "." | "./*" | ".*" | "./" | "..")
    {
        return is_root(target, None, cwd, facts);
    }
    let mut bare = word.as_str();
    while let Some(shorter) = ["/*", "/.*", "/.", "/"]
        .iter()
        .find_map(|end| bare.strip_suffix(end))
    {
        bare = shorter;
    }
    if bare.is_empty() && word.starts_with('/') {
        return true;
    }
    if bare.starts_with('~') && !bare.contains('/') {
        return true;
    }
    let whole = if bare.starts_with('/') {
        paths::lexical(Path::new(bare))
    } else if bare.split('/').any(|part| part == "..") {
        facts.path(cwd, bare).absolute
    } else {
        return false;
    };
    let parts: Vec<_> = whole
        .components()
        .filter(|c| matches!(c, Component::Normal(_)))
        .collect();
    match parts.as_slice() {
        [] => true,
        [Component::Normal(first)] => first.to_str().is_some_and(|first| SYSTEM.contains(&first)),
        [Component::Normal(first), Component::Normal(_)]
            if *first == "home" || *first == "Users" =>
        {
            true
        }
        _ => facts.path(cwd, bare).home,
    }
}

fn is_disk(word: &str) -> bool {
    const DISKS: [&str; 14] = [
        "sd", "hd", "nvme", "vd", "xvd", "mmcblk", "disk", "rdisk", "loop", "dm-", "md", "mapper/",
        "mem", "kmem",
    ];
    let path = paths::lexical(Path::new(word));
    path.strip_prefix("/dev")
        .ok()
        .and_then(Path::to_str)
        .is_some_and(|name| DISKS.iter().any(|disk| name.starts_with(disk)))
}
