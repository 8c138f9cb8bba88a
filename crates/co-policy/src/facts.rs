//! Facts about files and programs. The policy reads no file itself: its caller implements [`Facts`].

use std::path::{Path, PathBuf};

/// Answers questions about files and programs.
pub trait Facts {
    /// Returns the file that bash would start for the name of a program without a directory.
    fn program(&self, name: &str, cwd: &Path) -> ProgramFact;
    /// Returns the facts about a path. Follows symbolic links.
    fn path(&self, cwd: &Path, path: &str) -> PathFact;
}

/// The location of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramFact {
    /// The file of the program. Only its owner and root can change it.
    Trusted(PathBuf),
    /// There is no such program, so the command cannot start.
    Missing,
    /// The file of the program. Other users can change it, or it is in the workspace.
    Untrusted(PathBuf),
}

/// The facts about one path. The facts about the file itself describe the file to which the symbolic links lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFact {
    /// The path relative to the workspace. It is `None` for a path outside the workspace.
    pub inside: Option<WorkspacePath>,
    pub kind: FileKind,
    /// The absolute path. Each `.` and `..` is removed lexically, without following links.
    pub absolute: PathBuf,
    /// True if a command at the read-only level can read the file.
    pub readable: bool,
    /// True if the file may contain a secret, although its name does not show it.
    pub secret: bool,
    /// True if the file configures co or stores its state.
    pub co_file: bool,
    /// True if the path is a directory that contains files of co.
    pub holds_co_files: bool,
    /// True if the path is the home directory or a directory above it.
    pub home: bool,
}

/// A path relative to the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspacePath {
    /// The path as written, relative to the workspace.
    pub written: PathBuf,
    /// The canonical path, relative to the workspace: all symbolic links are followed.
    pub real: PathBuf,
}

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Missing,
    File,
    Directory,
    /// A device, FIFO or socket.
    Special,
}

/// The facts that are relative to one working directory.
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

    /// Returns the facts about a path, which may be relative to the working directory.
    pub fn path(&self, path: &str) -> PathFact {
        self.facts.path(self.cwd, path)
    }
}
