//! A bounded walk that finds the secrets of a workspace.

use std::collections::{HashSet, VecDeque};
use std::fs::FileType;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::content;
use crate::regular::Stamp;
use crate::repository;
use co_policy::secret_names as names;

#[cfg(test)]
mod tests;

/// Entries that a survey may meet.
const MAX: usize = 50_000;

/// Bytes of all paths in a survey: they have to fit into one argument of a program, 128 KiB, beside other paths.
const MAX_PATHS: usize = 64 << 10;

/// Directories of many files that other programs made. They are walked last.
const MADE: [&str; 8] = [
    "node_modules",
    "target",
    "build",
    "dist",
    "vendor",
    "venv",
    ".venv",
    "__pycache__",
];

/// The secrets of a workspace, by their real paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Secret files outside `dirs`, and every other name of a secret file.
    pub files: Vec<PathBuf>,
    /// Directories in which everything is secret; none lies in another.
    pub dirs: Vec<PathBuf>,
    /// The files below `dirs`.
    pub within: Vec<PathBuf>,
    /// Files outside the workspace that links with secret names lead to.
    pub outside: Vec<PathBuf>,
    /// False if there may be more secrets: the walk was cut short, or their paths are too long together.
    pub complete: bool,
    walked: Vec<Walked>,
}

/// A directory that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Walked {
    path: PathBuf,
    /// `None` for a directory that has to be read again.
    stamp: Option<Stamp>,
}

impl Survey {
    /// True while no directory of the workspace has changed since it was read.
    pub fn is_current(&self) -> bool {
        !self.walked.is_empty()
            && self
                .walked
                .iter()
                .all(|dir| dir.stamp.is_some() && dir.stamp == Stamp::of(&dir.path))
    }

    /// True if nothing in the workspace is secret.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.dirs.is_empty()
    }
}

/// Walks the workspace `root` and returns its secrets.
///
/// Links are not followed, but the target of a link with a secret name is secret. So is a directory that cannot be
/// listed. The objects and branches of git's directories are left out, because branches may have any name.
pub fn survey(root: &Path) -> Survey {
    let Ok(root) = root.canonicalize() else {
        return Survey::default();
    };
    let mut walk = Walk {
        survey: Survey {
            complete: true,
            ..Survey::default()
        },
        left: MAX,
        ordinary: Vec::new(),
        sources: Vec::new(),
        links: Vec::new(),
    };
    walk.tree(&root, false);
    walk.follow(&root);
    walk.hard_links();
    walk.finish()
}

struct Walk {
    survey: Survey,
    left: usize,
    /// Files that are no secrets by name. One may be another name of a secret file.
    ordinary: Vec<PathBuf>,
    /// Source text below secret directories.
    sources: Vec<PathBuf>,
    /// Links that have the name of a secret.
    links: Vec<PathBuf>,
}

impl Walk {
    /// Walks below `start`; with `secret`, everything there is secret.
    fn tree(&mut self, start: &Path, secret: bool) {
        let mut todo = VecDeque::from([(start.to_owned(), secret)]);
        let mut last = Vec::new();
        while let Some((dir, secret)) = todo.pop_front().or_else(|| last.pop()) {
            for (path, kind) in self.entries(&dir) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if is_git_store(&dir, &name) {
                    continue;
                }
                // A submodule may have any name.
                let git = name == ".git" || kind.is_dir() && is_of_git(&dir);
                let named = !git
                    && (names::is_secret(&name) || kind.is_file() && content::is_secret(&path));
                match (kind.is_dir(), secret) {
                    (true, true) => todo.push_back((path, true)),
                    (true, false) if named => {
                        todo.push_back((path.clone(), true));
                        self.survey.dirs.push(path);
                    }
                    (true, false) if MADE.contains(&&*name) => last.push((path, false)),
                    (true, false) => todo.push_back((path, false)),
                    (false, true) if names::is_source(&name) => self.sources.push(path),
                    (false, true) => self.survey.within.push(path),
                    (false, false) if named && kind.is_symlink() => self.links.push(path),
                    (false, false) if named => self.survey.files.push(path),
                    (false, false) => self.ordinary.push(path),
                }
            }
        }
    }

    /// Returns the entries of a directory, and remembers its stamp.
    fn entries(&mut self, dir: &Path) -> Vec<(PathBuf, FileType)> {
        self.survey.walked.push(Walked {
            path: dir.to_owned(),
            stamp: Stamp::of(dir).filter(Stamp::is_settled),
        });
        let mut found = Vec::new();
        let entries = match dir.read_dir() {
            Ok(entries) => entries,
            // A command may give itself leave to list it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.survey.dirs.push(dir.to_owned());
                return found;
            }
            // It was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return found,
            Err(_) => {
                self.survey.complete = false;
                return found;
            }
        };
        for entry in entries.flatten() {
            if self.left == 0 {
                self.survey.complete = false;
                break;
            }
            self.left -= 1;
            if let Ok(kind) = entry.file_type() {
                found.push((entry.path(), kind));
            }
        }
        found
    }

    /// Finds the places that links with secret names lead to.
    fn follow(&mut self, root: &Path) {
        for link in std::mem::take(&mut self.links) {
            let Ok(real) = link.canonicalize() else {
                // The file may be made later.
                self.survey.outside.push(link);
                continue;
            };
            if root.starts_with(&real) {
                continue;
            }
            if !real.starts_with(root) {
                self.outside(real);
            } else if real.is_dir() {
                self.tree(&real, true);
                self.survey.dirs.push(real);
            } else {
                self.survey.files.push(real);
            }
        }
    }

    /// Takes a file outside the workspace, or the files of a directory there, but not those below.
    fn outside(&mut self, real: PathBuf) {
        if !real.is_dir() {
            return self.survey.outside.push(real);
        }
        for (path, kind) in self.entries(&real) {
            if kind.is_file() {
                self.survey.outside.push(path);
            }
        }
    }

    /// Finds the other names of secret files.
    fn hard_links(&mut self) {
        let known = self.survey.files.iter().chain(&self.survey.within);
        let inodes: HashSet<_> = known.filter_map(|path| inode(path)).collect();
        if inodes.is_empty() {
            return;
        }
        let ordinary = std::mem::take(&mut self.ordinary).into_iter();
        let others = ordinary.filter(|path| inode(path).is_some_and(|it| inodes.contains(&it)));
        self.survey.files.extend(others);
    }

    fn finish(self) -> Survey {
        let mut survey = self.survey;
        survey.dirs.sort();
        // A directory comes before those in it.
        survey
            .dirs
            .dedup_by(|inner, outer| inner.starts_with(outer));
        // Where source text is to stay readable, only the other files are secret.
        let readable = |dir: &PathBuf| {
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            names::holds_source(&name) && self.sources.iter().any(|file| file.starts_with(dir))
        };
        let (open, dirs): (Vec<_>, Vec<_>) = survey.dirs.into_iter().partition(readable);
        let below = |file: &PathBuf, dirs: &[PathBuf]| dirs.iter().any(|dir| file.starts_with(dir));
        let sources = self.sources.into_iter();
        survey
            .within
            .extend(sources.filter(|file| below(file, &dirs)));
        let (apart, within) = survey
            .within
            .into_iter()
            .partition(|file| below(file, &open));
        survey.files.extend::<Vec<_>>(apart);
        survey.files.retain(|file| !below(file, &dirs));
        (survey.dirs, survey.within) = (dirs, within);
        for list in [&mut survey.files, &mut survey.within] {
            list.sort();
            list.dedup();
        }
        let mut left = MAX_PATHS;
        for list in [&mut survey.dirs, &mut survey.files] {
            let all = list.len();
            list.retain(|path| {
                left = left.saturating_sub(path.as_os_str().len());
                left > 0
            });
            survey.complete &= list.len() == all;
        }
        survey
    }
}

/// True for names of branches and packed objects, which git itself keeps in a `.git` directory.
fn is_git_store(dir: &Path, name: &str) -> bool {
    ["objects", "refs", "logs"].contains(&name) && is_of_git(dir) && repository::is_git_dir(dir)
}

fn is_of_git(dir: &Path) -> bool {
    dir.iter().any(|part| part == ".git")
}

/// Returns the device and number of a file that has several names.
fn inode(path: &Path) -> Option<(u64, u64)> {
    let meta = path.symlink_metadata().ok()?;
    (meta.nlink() > 1).then(|| (meta.dev(), meta.ino()))
}
