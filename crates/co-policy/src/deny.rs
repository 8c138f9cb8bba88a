//! Built-in deny rules. They refuse a command unless the person lifts the rule in the settings.

use std::path::Path;

use crate::bash::{SimpleCommand, Word, path_from};
use crate::facts::LocalFacts;
use crate::paths;
use crate::wrappers::base_name;

pub(crate) mod glob;
mod root;

/// The names of the built-in deny rules, for the setting that lifts them.
pub const NAMES: [&str; 4] = ["root-deletion", "raw-disk", "fork-bomb", "own-files"];

/// A built-in deny rule that matches a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenyRuleMatch {
    pub rule: &'static str,
    pub why: String,
}

/// Programs that change, move or remove their operands.
const CHANGERS: [&str; 19] = [
    "rm", "rmdir", "unlink", "mv", "cp", "ln", "tee", "dd", "truncate", "shred", "chmod", "chown",
    "chattr", "touch", "install", "rsync", "sed", "perl", "patch",
];

/// Programs that write to a device among their operands.
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

/// Returns the built-in deny rules that match a command.
pub(super) fn check(command: &SimpleCommand, local: &LocalFacts) -> Vec<DenyRuleMatch> {
    let mut denied = check_writes(command, local);
    let words = command.texts();
    let Some((name, rest)) = words.split_first() else {
        return denied;
    };
    let name = base_name(name);
    let here = |path: &str| path_from(command.dir.as_deref(), path);
    if let Some(target) = root::deleted_operand(name, rest, command.dir.as_deref(), local) {
        denied.push(DenyRuleMatch {
            rule: "root-deletion",
            why: format!("it would remove `{target}`"),
        });
    }
    if (DISK_WRITERS.contains(&name) || name.starts_with("mkfs"))
        && let Some(device) = rest.iter().find(|word| {
            is_disk(&here(word.strip_prefix("of=").unwrap_or(word))) && !word.starts_with("if=")
        })
    {
        denied.push(DenyRuleMatch {
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
                let fact = local.path(&here(word.strip_prefix("of=").unwrap_or(word)));
                fact.co_file || (whole && fact.holds_co_files)
            });
        if let Some(own) = own {
            denied.push(own_file_rule(own));
        }
    }
    denied
}

/// Returns the built-in deny rules that match the targets of a command's redirections.
fn check_writes(command: &SimpleCommand, local: &LocalFacts) -> Vec<DenyRuleMatch> {
    let mut denied = Vec::new();
    for target in command.writes().flat_map(Word::forms) {
        let here = path_from(command.dir.as_deref(), target);
        if is_disk(&here) {
            denied.push(DenyRuleMatch {
                rule: "raw-disk",
                why: format!("it would write to the disk `{target}`"),
            });
        } else if !target.is_empty() && local.path(&here).co_file {
            denied.push(own_file_rule(target));
        }
    }
    denied
}

/// Returns a match of the rule `fork-bomb`, which forbids functions that start themselves without end.
pub(super) fn fork_bomb() -> DenyRuleMatch {
    DenyRuleMatch {
        rule: "fork-bomb",
        why: "it has a function that starts itself again and again, which fills the machine"
            .to_owned(),
    }
}

fn own_file_rule(path: &str) -> DenyRuleMatch {
    DenyRuleMatch {
        rule: "own-files",
        why: format!("it would change `{path}`, by which co itself is held in check"),
    }
}

fn is_disk(word: &str) -> bool {
    const DISKS: [&str; 14] = [
        "sd", "hd", "nvme", "vd", "xvd", "mmcblk", "disk", "rdisk", "loop", "dm-", "md", "mapper/",
        "mem", "kmem",
    ];
    let path = paths::normalize_lexically(Path::new(word));
    path.strip_prefix("/dev")
        .ok()
        .and_then(Path::to_str)
        .is_some_and(|name| DISKS.iter().any(|disk| name.starts_with(disk)))
}
