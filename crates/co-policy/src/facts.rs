//! What policy must be told of the world, since it looks at nothing itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::glob;

pub(super) mod cache;

/// Answers questions about files, programs and git; [`crate::tool`] implements it.
pub trait Facts {
    /// Where bash would find a program by its bare name.
    fn program(&self, name: &str, cwd: &Path) -> ProgramFact;
    /// What a path is, symbolic links followed.
    fn path(&self, cwd: &Path, path: &str) -> PathFact;
    /// What a glob expands to; none where it is too much to tell.
    fn glob(&self, cwd: &Path, pattern: &glob::Glob) -> Option<Vec<String>>;
    /// What git would meet in a directory.
    fn git(&self, cwd: &Path) -> GitFact;
    /// The first file of one of these names in a directory of the workspace or those of the workspace above it.
    fn find_upward(&self, cwd: &Path, names: &[&str]) -> Option<PathBuf>;
    /// What a walk below a directory would meet that a reader must not read unasked.
    fn risky_files(&self, root: &Path) -> RiskyFiles;
    /// The same of the files that git tracks.
    fn risky_tracked_files(&self, cwd: &Path) -> RiskyFiles;
    /// Returns the locale for proved commands; names sort by bytes in it.
    fn locale(&self) -> &'static str {
        "C"
    }
    /// The files with secret names that git tracks or ever tracked, below the workspace. Returns `None` if the list is
    /// unavailable.
    fn committed_secrets(&self, cwd: &Path) -> Option<Arc<[PathBuf]>>;
}

/// Where a program was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramFact {
    /// The path that was looked at.
    Trusted(PathBuf),
    /// Nowhere: the command cannot start.
    Missing,
    /// In a place that others, or the workspace, can write.
    Untrusted(PathBuf),
}

/// What a path is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFact {
    /// Below the workspace, as written and by its real path; none is outside.
    pub inside: Option<WorkspacePath>,
    pub kind: FileKind,
    /// True for a directory into which this process may change.
    pub enterable: bool,
    /// Absolute, with `.` and `..` taken away as text.
    pub absolute: PathBuf,
    /// True for a file that may contain a secret, as far as its name does not tell.
    pub secret: bool,
    /// True for a file of co's own.
    pub co_file: bool,
    /// True for a directory that holds one.
    pub holds_co_files: bool,
    /// True for the person's home directory and those above it.
    pub home: bool,
}

/// A path relative to the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspacePath {
    pub written: PathBuf,
    pub real: PathBuf,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Missing,
    File,
    Directory,
    /// A device, a FIFO, a socket.
    Special,
}

/// What git would meet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitFact {
    /// Why git may not run unasked here, one sentence each.
    pub hazards: Vec<String>,
}

/// What a bounded walk found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RiskyFiles {
    /// Files that a reader should not be handed: links that leave the workspace, devices, FIFOs.
    pub irregular: Vec<PathBuf>,
    /// Files with the name of a secret.
    pub secret: Vec<PathBuf>,
    /// Files whose names xargs would take apart or read as options.
    pub unsafe_names: Vec<PathBuf>,
    /// False where the walk was cut short.
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
