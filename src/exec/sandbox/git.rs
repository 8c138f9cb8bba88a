//! Where git keeps its files: directories outside the workspace, names in them that run code.

use std::path::{Path, PathBuf};

use super::names;
use crate::regular;

/// How deep the directories of submodules are looked for: their names may contain slashes.
const DEPTH: usize = 4;

/// Git's directories of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Directories that the workspace's own `.git` file leads to, if they lead back.
    pub outside: Vec<PathBuf>,
    /// Directories that hold names to be held: they must not be renamed.
    pub pinned: Vec<PathBuf>,
    held: Vec<PathBuf>,
}

impl Layout {
    pub(super) fn of(workspace: &Path) -> Self {
        let mut layout = Self::default();
        let dot = workspace.join(".git");
        let Ok(kind) = dot.symlink_metadata().map(|m| m.file_type()) else {
            return layout;
        };
        if kind.is_dir() {
            layout.add(&dot);
            return layout;
        }
        layout.held.push(dot.clone());
        if kind.is_symlink() {
            // The link itself can be replaced; where it leads is held if it is ours.
            let target = dot.canonicalize().ok();
            if let Some(target) = target.filter(|target| target.starts_with(workspace)) {
                layout.add(&target);
            }
            return layout;
        }
        let Some(directory) = pointed(workspace, &dot, "gitdir:") else {
            return layout;
        };
        if !leads_back(&directory, workspace, &dot) {
            return layout;
        }
        let common = pointed(&directory, &directory.join("commondir"), "");
        let common = common.unwrap_or(directory);
        if !common.starts_with(workspace) {
            layout.outside.push(common.clone());
        }
        layout.add(&common);
        layout
    }

    /// Names whose contents git runs or obeys, existing or not.
    pub(super) fn held(&self) -> Vec<PathBuf> {
        self.held.clone()
    }

    fn add(&mut self, directory: &Path) {
        self.hold(directory);
        self.below(&directory.join("modules"), DEPTH);
        self.below(&directory.join("worktrees"), 1);
    }

    /// The repositories under `directory`, which are told by their `HEAD`.
    fn below(&mut self, directory: &Path, depth: usize) {
        let Ok(entries) = directory.read_dir() else {
            return;
        };
        self.pinned.push(directory.to_owned());
        for entry in entries.flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if path.join("HEAD").is_file() {
                self.hold(&path);
                self.below(&path.join("modules"), depth.saturating_sub(1));
            } else if depth > 1 {
                self.below(&path, depth - 1);
            }
        }
    }

    fn hold(&mut self, directory: &Path) {
        self.pinned.push(directory.to_owned());
        self.held.extend(
            names::GIT_RUNS_LATER
                .iter()
                .map(|name| directory.join(name)),
        );
    }
}

/// The real path that a file of git's names, relative to `base`.
fn pointed(base: &Path, file: &Path, before: &str) -> Option<PathBuf> {
    let text = regular::text(file).ok()?;
    let path = text.strip_prefix(before)?.trim();
    base.join(path).canonicalize().ok()
}

/// Whether a directory outside says that the workspace is its own: anybody can write a `.git` file.
fn leads_back(directory: &Path, workspace: &Path, dot: &Path) -> bool {
    if pointed(directory, &directory.join("gitdir"), "").is_some_and(|back| back == dot) {
        return true;
    }
    let Ok(config) = regular::text(&directory.join("config")) else {
        return false;
    };
    values(&config, &["worktree"])
        .filter_map(|value| directory.join(value).canonicalize().ok())
        .any(|back| back == workspace)
}

/// The files that the person's own configuration of git names.
pub(super) fn configuration(home: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for base in [home.join(".gitconfig"), home.join(".config/git/config")] {
        let Ok(text) = regular::text(&base) else {
            continue;
        };
        let beside = base.parent().unwrap_or(home);
        files.extend(values(&text, names::GIT_FILE_KEYS).map(|value| {
            value
                .strip_prefix("~/")
                .map_or_else(|| beside.join(value), |below| home.join(below))
        }));
    }
    files.retain(|path| path.is_file());
    files
}

/// The values of some keys, whatever their section.
fn values<'a>(text: &'a str, keys: &'a [&str]) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let wanted = keys
            .iter()
            .any(|wanted| key.trim().eq_ignore_ascii_case(wanted));
        wanted.then(|| value.trim().trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_git_file_that_leads_elsewhere_opens_nothing() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("private/objects")).unwrap();
        fs::write(top.join("private/config"), "[core]\n").unwrap();
        fs::create_dir(top.join("work")).unwrap();
        fs::write(top.join("work/.git"), "gitdir: ../private\n").unwrap();
        let layout = Layout::of(&top.join("work"));
        assert!(layout.outside.is_empty());
        assert_eq!(layout.held(), [top.join("work/.git")]);
    }

    #[test]
    fn a_git_file_that_never_ends_is_not_waited_for() {
        let top = tempfile::tempdir().unwrap();
        let dot = top.path().join(".git");
        nix::unistd::mkfifo(&dot, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let work = top.path().to_owned();
        std::thread::spawn(move || tell.send(Layout::of(&work).outside.len()));
        let told = told.recv_timeout(std::time::Duration::from_secs(20));
        assert_eq!(told, Ok(0));
    }

    #[test]
    fn a_submodule_and_a_worktree_open_theirs() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let modules = top.join("super/.git/modules/sub");
        fs::create_dir_all(&modules).unwrap();
        fs::create_dir_all(top.join("super/sub")).unwrap();
        fs::write(
            modules.join("config"),
            "[core]\n\tworktree = ../../../sub\n",
        )
        .unwrap();
        fs::write(top.join("super/sub/.git"), "gitdir: ../.git/modules/sub\n").unwrap();
        assert_eq!(Layout::of(&top.join("super/sub")).outside, [modules]);

        let own = top.join("super/.git/worktrees/other");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir_all(top.join("other")).unwrap();
        let dot = top.join("other/.git");
        fs::write(own.join("gitdir"), dot.to_str().unwrap()).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        fs::write(&dot, format!("gitdir: {}\n", own.display())).unwrap();
        assert_eq!(
            Layout::of(&top.join("other")).outside,
            [top.join("super/.git")]
        );
    }

    #[test]
    fn modules_are_held_at_every_depth_of_their_names() {
        let top = tempfile::tempdir().unwrap();
        let git = top.path().join(".git");
        for name in ["modules/one", "modules/a/two", "modules/one/modules/three"] {
            fs::create_dir_all(git.join(name)).unwrap();
            fs::write(git.join(name).join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        let layout = Layout::of(top.path());
        for name in [
            "",
            "modules/one",
            "modules/a/two",
            "modules/one/modules/three",
        ] {
            assert!(
                layout.held().contains(&git.join(name).join("hooks")),
                "{name}"
            );
            assert!(layout.pinned.contains(&git.join(name)), "{name}");
        }
        assert!(layout.pinned.contains(&git.join("modules/a")));
    }

    #[test]
    fn configuration_names_further_files() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        fs::write(
            home.join(".gitconfig"),
            "[include]\n\tpath = ~/more\n[core]\n\texcludesFile = \"ignored\"\n",
        )
        .unwrap();
        fs::write(home.join("more"), "").unwrap();
        fs::write(home.join("ignored"), "").unwrap();
        assert_eq!(
            configuration(home),
            [home.join("more"), home.join("ignored")]
        );
    }
}
