//! The repository of a workspace: its state, and changes of it that a person approved. All is read and made by the person's
//! git, without hooks, filters and replaced objects.
//!
//! `names` has the names of objects and refs, `index` reads the index, `stash` the stash. `change` has the changes of a repository, `describe`
//! puts them into words, `keep` makes them. This module knows no trial and no chat. It blocks on files and processes: call it
//! from `spawn_blocking`.

mod change;
mod describe;
mod index;
mod keep;
mod names;
mod stash;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::MemfdFlags;

use co_exec::{GIT_ENVIRONMENT, repository, timed_output};
use co_policy::one_line;

pub use change::{HeadChange, PathChange, RefChange, RepositoryChange, StagedFile};
pub use index::Index;
pub use keep::PreparedChange;
pub use names::{Head, ObjectName, RefTarget, Refs, objects, parse_refs};
pub use stash::{STASH, STASH_LOG, StashChange, StashEntry};

/// The format of `git for-each-ref` for [`parse_refs`].
pub const REF_FORMAT: &str = "--format=%(objectname) %(refname) %(symref)";

/// The longest time of one program.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The most characters of a message of git.
const MAX_MESSAGE_CHARS: usize = 300;

/// A repository whose git directory is `.git` in the workspace.
#[derive(Debug, Clone)]
pub struct Repository {
    git: PathBuf,
    root: PathBuf,
    /// The directory of new objects, if it is not that of the repository.
    objects: Option<PathBuf>,
    /// The index, if it is not that of the repository.
    index: Option<PathBuf>,
}

impl Repository {
    /// Returns the repository of the workspace `root`, a real path, for the program `git`.
    ///
    /// # Errors
    /// The workspace has none of its own, or it uses parts of others: a clause.
    pub fn open(git: &Path, root: &Path) -> Result<Self, String> {
        let dir = root.join(".git");
        match repository::find(root) {
            Ok(Some(dirs)) if dirs.own == dir && dirs.common == dir => Ok(Self {
                git: git.to_owned(),
                root: root.to_owned(),
                objects: None,
                index: None,
            }),
            Ok(_) => Err("its git directory is not `.git` in the workspace".to_owned()),
            Err(why) => Err(why.to_string()),
        }
    }

    /// Returns the same repository, which writes new objects to a directory outside of it.
    #[must_use]
    pub fn with_objects(&self, dir: PathBuf) -> Self {
        Self {
            objects: Some(dir),
            ..self.clone()
        }
    }

    fn with_index(&self, index: PathBuf) -> Self {
        Self {
            index: Some(index),
            ..self.clone()
        }
    }

    /// Returns the path of a file of the git directory.
    fn file(&self, name: &str) -> PathBuf {
        self.root.join(".git").join(name)
    }

    /// Returns the refs.
    ///
    /// # Errors
    /// Git fails, or its answer is not understood.
    pub fn refs(&self) -> Result<Refs, String> {
        parse_refs(&self.run(["for-each-ref", REF_FORMAT], b"")?)
    }

    /// Returns HEAD.
    ///
    /// # Errors
    /// It cannot be read, or has an unusual form.
    pub fn head(&self) -> Result<Head, String> {
        let path = self.file("HEAD");
        let is_file = path.symlink_metadata().is_ok_and(|it| it.is_file());
        let text = std::fs::read(path).ok().filter(|_| is_file);
        let head = text.as_deref().and_then(Head::parse);
        head.ok_or_else(|| "HEAD cannot be read".to_owned())
    }

    /// Returns the number of bytes of an object's name in its short form, which the index has.
    ///
    /// # Errors
    /// Git fails.
    pub fn hash_size(&self) -> Result<usize, String> {
        let format = self.run(["rev-parse", "--show-object-format"], b"")?;
        match format.trim_ascii() {
            b"sha256" => Ok(32),
            _ => Ok(20),
        }
    }

    /// Runs git, and returns its output.
    ///
    /// # Errors
    /// It fails, or takes too long: a clause with its message.
    fn run<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
        input: &[u8],
    ) -> Result<Vec<u8>, String> {
        let mut command = Command::new(&self.git);
        let mut args = args.into_iter().peekable();
        let what = args.peek().map(|it| it.as_ref().to_owned());
        let what = what.unwrap_or_default();
        let failed = |why: &str| format!("git {} failed: {why}", what.display());
        let stdin = input_file(input).map_err(|error| failed(&error.to_string()))?;
        command
            .args(args)
            .env_clear()
            .envs(GIT_ENVIRONMENT)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env(
                "GIT_CEILING_DIRECTORIES",
                self.root.parent().unwrap_or(&self.root),
            )
            .env("LC_ALL", "C")
            .current_dir(&self.root)
            .stdin(Stdio::from(stdin));
        if let Some(dir) = &self.objects {
            command
                .env("GIT_OBJECT_DIRECTORY", dir)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.file("objects"));
        }
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        let output = timed_output(&mut command, TIMEOUT).map_err(|e| failed(&e.to_string()))?;
        match output {
            None => Err(failed("it takes too long")),
            Some(output) if output.status.success() => Ok(output.stdout),
            Some(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = one_line(said.trim());
                Err(failed(
                    &said.chars().take(MAX_MESSAGE_CHARS).collect::<String>(),
                ))
            }
        }
    }
}

/// Returns a file without a name that has these bytes.
fn input_file(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("input", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}
