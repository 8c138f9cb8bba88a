//! Facts about files, programs and git. The caller of the policy implements [`Facts`]; the policy reads no file itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::glob;

pub(super) mod cache;

/// Answers questions about files, programs and git.
pub trait Facts {
    /// Returns the file that bash would start for the bare name of a program.
    fn program(&self, name: &str, cwd: &Path) -> ProgramFact;
    /// Returns the facts about a path. Symbolic links are followed.
    fn path(&self, cwd: &Path, path: &str) -> PathFact;
    /// Expands a glob. Returns `None` if it matches too many files.
    fn glob(&self, cwd: &Path, pattern: &glob::Glob) -> Option<Vec<String>>;
    /// Returns the facts about the repository of a directory.
    fn git(&self, cwd: &Path) -> GitFact;
    /// Returns the first file with one of these names in `cwd` or a directory above it, up to the workspace's root.
    fn find_upward(&self, cwd: &Path, names: &[&str]) -> Option<PathBuf>;
    /// Returns the files below a directory that a program must not read without approval.
    fn risky_files(&self, root: &Path) -> RiskyFiles;
    /// Returns the files tracked by git that a program must not read without approval.
    fn risky_tracked_files(&self, cwd: &Path) -> RiskyFiles;
    /// Returns the locale for proved commands; names sort by bytes in it.
    fn locale(&self) -> &'static str {
        "C"
    }
    /// The files with secret names that git tracks or ever tracked, below the workspace. Returns `None` if the list is
    /// unavailable.
    fn committed_secrets(&self, cwd: &Path) -> Option<Arc<[PathBuf]>>;
}

/// The location of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramFact {
    /// A file that only its owner and root can change.
    Trusted(PathBuf),
    /// No such program: the command cannot start.
    Missing,
    /// A file that other users can change, or that is in the workspace.
    Untrusted(PathBuf),
}

/// The facts about one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFact {
    /// The path relative to the workspace; `None` if it is outside.
    pub inside: Option<WorkspacePath>,
    pub kind: FileKind,
    /// True for a directory that this process can enter.
    pub enterable: bool,
    /// The absolute path. `.` and `..` are removed from the text, without a look at links.
    pub absolute: PathBuf,
    /// True for a file that may contain a secret for another reason than its name.
    pub secret: bool,
    /// True for a file that configures co or holds its state.
    pub co_file: bool,
    /// True for a directory that contains such a file.
    pub holds_co_files: bool,
    /// True for the home directory and the directories above it.
    pub home: bool,
}

/// A path relative to the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspacePath {
    /// The path as written.
    pub written: PathBuf,
    /// The path after all symbolic links are followed.
    pub real: PathBuf,
}

/// The type of the file at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Missing,
    File,
    Directory,
    /// A device, FIFO or socket.
    Special,
}

/// The facts about a git repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitFact {
    /// Reasons why git requires approval here, one sentence each.
    pub hazards: Vec<String>,
}

/// Files that a program must not read without approval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RiskyFiles {
    /// Links that leave the workspace, devices and FIFOs.
    pub irregular: Vec<PathBuf>,
    /// Secret files.
    pub secret: Vec<PathBuf>,
    /// Files whose names xargs would split or pass on as options.
    pub unsafe_names: Vec<PathBuf>,
    /// False if there are too many files to list them all.
    pub complete: bool,
}

/// The facts about one working directory.
#[derive(Clone, Copy)]
pub struct LocalFacts<'a> {
    pub facts: &'a dyn Facts,
    pub cwd: &'a Path,
}

impl LocalFacts<'_> {
    /// Returns the location of a program.
    pub fn program(&self, name: &str) -> ProgramFact {
        self.facts.program(name, self.cwd)
    }

    /// Returns the facts about a path.
    pub fn path(&self, path: &str) -> PathFact {
        self.facts.path(self.cwd, path)
    }
}
