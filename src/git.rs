//! The repository of a workspace: its state, and changes of it that a person approved. All is read and made by the person's
//! git, without hooks, filters and replaced objects.
//!
//! `names` has the names of objects and refs, `index` reads the index, and `stash` the stash. `change` has the changes of a
//! repository. `compose` joins several changes into one and inverts changes, and `describe` puts them into words. `state` finds
//! the changes that are made, and checks that the others can be made. `keep` makes them. This module knows no trial and no chat.
//! It blocks on files and processes: call it from `spawn_blocking`.

mod change;
mod compose;
mod describe;
mod index;
mod keep;
mod names;
mod stash;
mod state;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::MemfdFlags;

use co_exec::sandbox::{PrivateTmp, Removals};
use co_exec::{GIT_ENVIRONMENT, repository, timed_output};
use co_policy::one_line;

pub use change::{HeadChange, PathChange, RefChange, RepositoryChange, StagedFile};
pub use index::{Index, MOST_INDEX};
pub use keep::PreparedChange;
pub use names::{Head, ObjectName, RefTarget, Refs, object_lines, objects, parse_refs};
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
    /// An empty directory. With the files of the workspace, git would run filters to compare them with the index.
    work_tree: Arc<PrivateTmp>,
    /// The hooks of the configuration, which git runs from version 2.54 on.
    hooks: Arc<[OsString]>,
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
            Ok(Some(dirs)) if dirs.own == dir && dirs.common == dir => {}
            Ok(_) => return Err("its git directory is not `.git` in the workspace".to_owned()),
            Err(why) => return Err(why.to_string()),
        }
        // Git asks for that only if it finds the repository by itself.
        if ![root, &dir].into_iter().all(repository::is_own) {
            return Err("it belongs to another user".to_owned());
        }
        let work_tree = PrivateTmp::new_in(&std::env::temp_dir(), &Removals::default());
        let mut opened = Self {
            git: git.to_owned(),
            root: root.to_owned(),
            work_tree: Arc::new(work_tree.map_err(|error| error.to_string())?),
            hooks: Arc::default(),
            objects: None,
            index: None,
        };
        opened.hooks = hooks(&opened.run(["config", "--list", "--name-only", "-z"], b"")?);
        Ok(opened)
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
            .env("GIT_DIR", self.root.join(".git"))
            .env("GIT_WORK_TREE", self.work_tree.path())
            .env("LC_ALL", "C")
            .current_dir(self.work_tree.path())
            .stdin(Stdio::from(stdin));
        let own = GIT_ENVIRONMENT
            .iter()
            .filter(|(name, _)| name.starts_with("GIT_CONFIG_KEY_"));
        let own = own.count();
        for (number, key) in (own..).zip(self.hooks.iter()) {
            command
                .env(format!("GIT_CONFIG_KEY_{number}"), key)
                .env(format!("GIT_CONFIG_VALUE_{number}"), "false");
        }
        command.env("GIT_CONFIG_COUNT", (own + self.hooks.len()).to_string());
        if let Some(dir) = &self.objects {
            command.env("GIT_OBJECT_DIRECTORY", dir).env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                quoted(&self.file("objects")),
            );
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
                Err(failed(&message(&said)))
            }
        }
    }
}

/// Returns the start of what git printed about a failure, in one line.
pub fn message(printed: &str) -> String {
    // Git prints its advice after an empty line.
    let printed = printed.trim().split("\n\n").next();
    let line = one_line(printed.unwrap_or_default());
    line.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// Returns the keys of the configuration that switch off the hooks of a list of keys, each of which ends with a NUL.
fn hooks(keys: &[u8]) -> Arc<[OsString]> {
    let switches = keys.split(|byte| *byte == 0).filter_map(|key| {
        let rest = key.strip_prefix(b"hook.")?;
        let name = &rest[..rest.iter().rposition(|byte| *byte == b'.')?];
        Some(OsString::from_vec([b"hook.", name, b".enabled"].concat()))
    });
    let switches: BTreeSet<_> = switches.collect();
    switches.into_iter().collect()
}

/// Returns a path for a list of paths with colons between them.
fn quoted(path: &Path) -> OsString {
    let mut quoted = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}

/// Returns a file without a name that has these bytes.
fn input_file(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("input", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hook_of_the_configuration_is_switched_off() {
        let keys = b"core.bare\0hook.jobs\0hook.a.event\0hook.a.command\0hook.B.c\n.event\0";
        assert_eq!(*hooks(keys), ["hook.B.c\n.enabled", "hook.a.enabled"]);
    }
}
