//! Facts about files and programs. The caller of the policy implements [`Facts`]; the policy reads no file itself.

use std::path::{Path, PathBuf};

/// Answers questions about files and programs.
pub trait Facts {
    /// Returns the file that bash would start for the bare name of a program.
    fn program(&self, name: &str, cwd: &Path) -> ProgramFact;
    /// Returns the facts about a path. Symbolic links are followed.
    fn path(&self, cwd: &Path, path: &str) -> PathFact;
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
    /// The absolute path. Each `.` and `..` is removed from the text of the path, whatever links are in the path.
    pub absolute: PathBuf,
    /// True if a command at the read-only level can read it.
    pub readable: bool,
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
