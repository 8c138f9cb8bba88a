//! Finds the trusted git directories of a workspace.
//!
//! Anybody can write a `.git` file, and an archive can contain a complete `.git` directory. So a directory outside the workspace
//! is trusted only if it belongs to the same user and its own files name this workspace. This module runs no program.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::beneath::{self, Dir, Kind};

pub use links::Untrusted;

mod links;
#[cfg(test)]
mod tests;

/// The prefix of the names of co's temporary directories, in which commands can write.
pub const OUR_TMP: &str = "co-tmp-";

/// The names of the files and directories in a git directory that git runs or reads as configuration. A command must not create
/// one that is missing.
pub(crate) const OBEYED_NAMES: &[&str] = &[
    "config",
    "config.worktree",
    "commondir",
    "hooks",
    "info",
    "modules",
    "branches",
    "remotes",
];

/// The names of the files and directories in `worktrees/NAME` of a git directory that git runs or reads as configuration.
pub(crate) const OBEYED_IN_WORK_TREE: &[&str] = &["config.worktree", "modules"];

/// The names of the files and directories in a git directory that git's own commands change, such as commit, merge, rebase, stash
/// and gc. These commands also change files with names in capitals (`HEAD`, `MERGE_MSG`) and lock files.
pub(crate) const CHANGED_NAMES: &[&str] = &[
    "objects",
    "refs",
    "reftable",
    "logs",
    "index",
    "packed-refs",
    "shallow",
    "worktrees",
    "rebase-merge",
    "rebase-apply",
    "sequencer",
    "rr-cache",
    "lost-found",
    "lfs",
    "gc.pid",
    "gc.log",
    "ADD_EDIT.patch",
];

/// The names of other files that git creates in a git directory. git neither reads these files as configuration nor changes them
/// later.
const OTHER_NAMES: [&str; 1] = ["description"];

/// The git directories of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// The git directory of this work tree only.
    pub own: PathBuf,
    /// The git directory that all work trees of the repository share. It may be the same as `own`.
    pub common: PathBuf,
}

/// Returns the git directories of `workspace`, a canonical path. Returns `None` if there is no repository.
///
/// # Errors
/// `.git` exists, but co cannot prove that the git directory to which it leads belongs to this workspace.
pub fn find(workspace: &Path) -> Result<Option<Dirs>, Untrusted> {
    let dot = workspace.join(".git");
    let Ok(kind) = dot.symlink_metadata() else {
        return Ok(None);
    };
    let dirs = if dot.is_dir() {
        if is_empty(&dot) {
            return Ok(None);
        }
        of_directory(workspace, &dot)?
    } else if kind.is_file() {
        outside(workspace, &dot)?
    } else {
        return Err(Untrusted("`.git` is neither a directory nor a file".into()));
    };
    for dir in [&dirs.own, &dirs.common] {
        keeps_to_itself(dir)?;
    }
    Ok(Some(dirs))
}

/// Returns true if this directory is empty, so that git does not accept it as a repository.
pub fn is_empty(dir: &Path) -> bool {
    let entries = dir.canonicalize().and_then(|real| Dir::open(&real)?.list());
    entries.is_ok_and(|mut entries| entries.next().is_none())
}

/// Returns whether git may accept this directory as a git directory.
pub fn is_git_dir(dir: &Path) -> bool {
    has_git_names(|name| match name {
        "objects" | "refs" => dir.join(name).is_dir(),
        _ => dir.join(name).symlink_metadata().is_ok(),
    })
}

/// Returns whether git may accept an open directory as a git directory.
pub(crate) fn is_open_git_dir(dir: &Dir) -> bool {
    has_git_names(|name| match name {
        "objects" | "refs" => matches!(dir.node(name), Ok(Some(node)) if node.kind == Kind::Dir),
        _ => matches!(dir.node(name), Ok(Some(_))),
    })
}

/// Returns whether git accepts a directory with certain names as a git directory. `has` says whether a name exists.
pub fn has_git_names(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// Returns true if a path is directly in a git directory (of any name) and has one of the names that git uses there.
pub fn is_gits(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(is_gits_name) && path.parent().is_some_and(is_git_dir)
}

/// Returns true if a path is below the directory `root`, and if the path or a directory between the two is an entry of git
/// ([`is_gits`]).
pub fn is_below_gits(root: &Path, path: &Path) -> bool {
    let mut above = path.ancestors().take_while(|it| *it != root);
    path.starts_with(root) && above.any(is_gits)
}

/// Returns whether git may use a file or directory with this name in a git directory.
pub fn is_gits_name(name: &str) -> bool {
    OTHER_NAMES.contains(&name) || may_change(name) || OBEYED_NAMES.contains(&name)
}

/// Returns whether a command may change the entry with this name in a git directory.
pub(crate) fn may_change(name: &str) -> bool {
    let name = name.strip_suffix(".lock").unwrap_or(name);
    let reference = name.bytes().all(|c| c.is_ascii_uppercase() || c == b'_');
    reference || CHANGED_NAMES.contains(&name) || name.starts_with("sharedindex.")
}

/// Returns the git directories inside `workspace` (a canonical path) to which its `.git` leads, trusted or not. `.git` is a
/// directory, a symbolic link, or a file that names a directory. A file `commondir` in that directory may name a second git
/// directory. The workspace itself may be among the results.
pub fn inside(workspace: &Path) -> Vec<PathBuf> {
    let dot = workspace.join(".git");
    let own = match dot.is_dir() {
        true => dot.canonicalize().ok(),
        false => git_file(workspace, &dot),
    };
    let common = own
        .as_deref()
        .and_then(|own| git_file_target(own, "commondir"));
    let mut dirs: Vec<_> = own.into_iter().chain(common).collect();
    dirs.retain(|dir| dir.starts_with(workspace) && dir.is_dir());
    dirs.dedup();
    dirs
}

/// Returns the canonical path of the git directory to which a `.git` leads: a directory, a symbolic link or a file.
pub(crate) fn led_to(dot: &Path) -> Option<PathBuf> {
    match dot.is_dir() {
        true => dot.canonicalize().ok(),
        false => git_file(dot.parent()?, dot),
    }
}

/// Returns true if the file `dot` is the `.git` file of a linked work tree of the repository `common`, and the work tree has no
/// configuration of its own.
pub(crate) fn is_plain_work_tree(dot: &Path, common: &Path) -> bool {
    led_to(dot).is_some_and(|own| {
        let has = |name: &&str| own.join(name).symlink_metadata().is_ok();
        own.ancestors().nth(2) == Some(common)
            && is_worktree(&own, dot)
            && !OBEYED_IN_WORK_TREE.iter().any(has)
    })
}

/// Returns whether this user owns the file or directory at a path.
pub fn is_own(path: &Path) -> bool {
    let owner = path.metadata().map(|meta| meta.uid());
    owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw())
}

/// Returns the git directories of a workspace whose `.git` is a directory.
fn of_directory(workspace: &Path, dot: &Path) -> Result<Dirs, Untrusted> {
    let dir = real(dot)?;
    if !dir.starts_with(workspace) {
        return Err(Untrusted(format!(
            "`.git` is a link that leads out of the workspace, to `{}`",
            dir.display()
        )));
    }
    check_independent(&dir)?;
    Ok(Dirs {
        own: dir.clone(),
        common: dir,
    })
}

/// Returns the git directories of a workspace whose `.git` is a file, as in a linked work tree or a submodule.
fn outside(workspace: &Path, dot: &Path) -> Result<Dirs, Untrusted> {
    let own = git_file(workspace, dot)
        .ok_or_else(|| Untrusted("the file `.git` names no directory".into()))?;
    let common = if is_worktree(&own, dot) {
        let common = own.ancestors().nth(2).unwrap_or(&own).to_owned();
        check_independent(&common)?;
        common
    } else if is_module(&own, workspace) {
        check_independent(&own)?;
        own.clone()
    } else {
        return Err(Untrusted(format!(
            "`.git` leads to `{}`, which does not name this workspace as its work tree",
            own.display()
        )));
    };
    for dir in [&own, &common] {
        if !is_own(dir) {
            let dir = dir.display();
            return Err(Untrusted(format!(
                "`.git` leads to `{dir}`, which belongs to another user"
            )));
        }
    }
    let ours = |part: &Path| {
        let name = part.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(OUR_TMP.as_bytes())
    };
    if common.starts_with(workspace) || common.ancestors().any(ours) {
        return Err(Untrusted(format!(
            "`.git` leads to `{}`, where commands can write",
            common.display()
        )));
    }
    Ok(Dirs { own, common })
}

/// Returns true if `own` is `COMMON/worktrees/NAME`, and `own` and the `.git` file `dot` name each other.
fn is_worktree(own: &Path, dot: &Path) -> bool {
    let Some(list) = own.parent() else {
        return false;
    };
    let Some(common) = list.parent() else {
        return false;
    };
    list.ends_with("worktrees")
        && is_git_dir(common)
        && git_file_target(own, "commondir").as_deref() == Some(common)
        && git_file_target(own, "gitdir").as_deref() == Some(dot)
}

/// Returns true if `own` is `COMMON/modules/NAME`, and its configuration names the workspace. NAME may contain slashes.
fn is_module(own: &Path, workspace: &Path) -> bool {
    let holds = |git: &Path| {
        // A linked work tree has its own submodules, beside its `HEAD`.
        let common = git.parent().filter(|list| list.ends_with("worktrees"));
        let common = common.and_then(Path::parent).unwrap_or(git);
        is_git_dir(common) && is_own(common) && !common.starts_with(workspace)
    };
    let mut above = own.ancestors().skip(1);
    let within = above.any(|dir| dir.ends_with("modules") && dir.parent().is_some_and(holds));
    within && is_git_dir(own) && names_work_tree(own, workspace)
}

/// Returns true if the configuration in a git directory sets `core.worktree` exactly once, in a simple form, and to `workspace`.
fn names_work_tree(dir: &Path, workspace: &Path) -> bool {
    let mut values = Vec::new();
    for name in ["config", "config.worktree"] {
        let read = match beneath::text_resolved(&dir.join(name)) {
            Ok(text) => work_trees(&text, &mut values),
            Err(error) => (error.kind() == std::io::ErrorKind::NotFound).then_some(()),
        };
        if read.is_none() {
            return false;
        }
    }
    matches!(values.as_slice(), [value] if leads(dir, value.as_ref(), workspace))
}

/// Returns whether a value of `core.worktree` in the git directory `dir` leads to `workspace`.
pub fn leads(dir: &Path, value: &Path, workspace: &Path) -> bool {
    let path = dir.join(value).canonicalize();
    path.is_ok_and(|path| path == workspace)
}

/// Collects the values of `core.worktree` in the text of a git configuration into `values`. Returns `None` if the text contains
/// anything that git may understand differently.
///
/// co asks git for all other configuration. It cannot ask git for this setting, because the setting decides whether git may use
/// the directory at all. co reads the setting for each verdict.
fn work_trees(text: &str, values: &mut Vec<String>) -> Option<()> {
    let is_blank = |c| matches!(c, ' ' | '\t');
    let is_name = |name: &str, more: &[char]| {
        let fits = |c: char| c.is_ascii_alphanumeric() || more.contains(&c);
        !name.is_empty() && name.chars().all(fits)
    };
    let mut core = false;
    for line in text.lines().map(|line| line.trim_matches(is_blank)) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let header = header.strip_suffix(']')?;
            let (name, sub) = match header.split_once(' ') {
                Some((name, sub)) => (name, sub.strip_prefix('"')?.strip_suffix('"')?),
                None => (header, ""),
            };
            if !is_name(name, &['-', '.']) || sub.contains(['"', '\\']) {
                return None;
            }
            core = header.eq_ignore_ascii_case("core");
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let (key, value) = (key.trim_end_matches(is_blank), value.trim_matches(is_blank));
        // Such a value continues in the next line.
        if !is_name(key, &['-']) || value.ends_with('\\') {
            return None;
        }
        if core && key.eq_ignore_ascii_case("worktree") {
            let special = |c: char| c.is_control() || matches!(c, '"' | '\\' | '#' | ';');
            if value.is_empty() || value.contains(special) {
                return None;
            }
            values.push(value.to_owned());
        }
    }
    Some(())
}

/// Refuses a `commondir` that names another directory. A `commondir` that names its own directory has no effect.
fn check_independent(dir: &Path) -> Result<(), Untrusted> {
    let there = dir.join("commondir").symlink_metadata().is_ok();
    if there && git_file_target(dir, "commondir").as_deref() != Some(dir) {
        return Err(Untrusted(format!(
            "`{}` names another repository",
            dir.join("commondir").display()
        )));
    }
    Ok(())
}

/// Refuses a git directory that uses files or objects of another git directory, by symbolic links or alternates.
///
/// Allows a symbolic link named `hooks`, because git runs no hooks while co only reads the repository.
fn keeps_to_itself(dir: &Path) -> Result<(), Untrusted> {
    for (name, kind) in beneath::list_real(dir) {
        if kind.is_symlink() && name != "hooks" {
            links::target(&dir.join(name), dir)?;
        }
    }
    links::check_links(dir, std::time::SystemTime::now())?;
    let alternates = dir.join("objects/info/alternates");
    if alternates.metadata().is_ok_and(|meta| meta.len() > 0) {
        return Err(Untrusted(format!(
            "`{}` names objects of another repository",
            alternates.display()
        )));
    }
    Ok(())
}

/// Returns the canonical path of the directory that the `.git` file of a workspace names.
fn git_file(workspace: &Path, dot: &Path) -> Option<PathBuf> {
    let text = beneath::text_resolved(dot).ok()?;
    let path = text.strip_prefix("gitdir: ")?;
    workspace.join(line(path)).canonicalize().ok()
}

/// Returns the canonical path that the file `name` in a git directory contains.
fn git_file_target(dir: &Path, name: &str) -> Option<PathBuf> {
    let text = beneath::text_resolved(&dir.join(name)).ok()?;
    dir.join(line(&text)).canonicalize().ok()
}

/// Strips line breaks at the end, as git does. A space at the end is part of the name.
fn line(text: &str) -> &str {
    text.trim_end_matches(['\n', '\r'])
}

fn real(path: &Path) -> Result<PathBuf, Untrusted> {
    path.canonicalize()
        .map_err(|error| Untrusted(format!("`{}` cannot be read ({error})", path.display())))
}
