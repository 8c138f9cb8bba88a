//! The paths that git's configuration names: directories of hooks, and further configuration files.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::super::support;
use crate::beneath;
use crate::error::refusal::SandboxRefusal;
use crate::program_search;
use crate::regular::SMALL_FILE_BYTES;
use crate::repository::{self, Dirs};
use crate::timed_output::timed_output;

/// The time-out of git, which would wait forever if a configuration file is a FIFO.
const GIT_TIMEOUT: Duration = Duration::from_secs(2);
/// The most included configuration files that are read.
const MAX_INCLUDED_FILES: usize = 50;

const KEYS: &str = r"^(core\.hookspath|include\.path|includeif\..*\.path)$";

/// The parts of these keys that a file spells out. In the names of sections and keys, git knows no escapes and no continued lines.
const KEY_PARTS: [&[u8]; 2] = [b"hookspath", b"include"];

/// Variables that name the person's git configuration.
const VARIABLES: [&str; 2] = ["XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"];

/// The inputs of a query of git's configuration.
pub(in super::super) struct GitQuery<'a> {
    pub workspace: &'a Path,
    pub home: &'a Path,
    pub env: &'a [(OsString, OsString)],
    /// True if git trusts the repository here, or if there is no repository. Otherwise git may fail; then only the person's own
    /// configuration is read.
    pub trusted: bool,
}

/// The source from which git reads configuration.
#[derive(Clone, Copy)]
enum ConfigSource<'a> {
    /// All configuration that applies in the workspace.
    Workspace,
    /// The configuration of the person and of the system, without that of the workspace.
    Person,
    /// A single file, without the files that it includes.
    File(&'a Path),
}

/// The paths that git's configuration names. They may not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct ConfiguredPaths {
    /// The directories of hooks that the configuration names.
    pub hooks: Vec<PathBuf>,
    /// The configuration files that the configuration includes.
    pub files: Vec<PathBuf>,
}

impl ConfiguredPaths {
    /// Asks git for the paths. git starts no other program for this.
    ///
    /// # Errors
    /// git cannot read its configuration.
    pub(in super::super) fn ask(query: &GitQuery<'_>) -> Result<Self, SandboxRefusal> {
        let mut found = Self::default();
        let Some(git) = program(query) else {
            return Ok(found);
        };
        // Git ignores a repository of another owner, but that owner's git would obey it. So its files are read
        // directly, and first: git would wait for the writer of a FIFO.
        let mut todo = Vec::new();
        for file in own_files(query.workspace) {
            check_regular(&file)?;
            match found.read(query, &git, ConfigSource::File(&file)) {
                Err(_) if !query.trusted => {}
                more => todo.extend(more?),
            }
        }
        let mut seen = Vec::new();
        found.read_included(query, &git, todo, &mut seen)?;
        let todo = match found.read(query, &git, ConfigSource::Workspace) {
            Err(_) if !query.trusted => found.read(query, &git, ConfigSource::Person)?,
            todo => todo?,
        };
        found.read_included(query, &git, todo, &mut seen)?;
        Ok(found)
    }

    /// Reads included files, and the files that they include in turn. Skips files in `seen`, and adds the files that it reads to
    /// `seen`.
    fn read_included(
        &mut self,
        query: &GitQuery<'_>,
        git: &Path,
        mut todo: Vec<PathBuf>,
        seen: &mut Vec<PathBuf>,
    ) -> Result<(), SandboxRefusal> {
        while let Some(file) = todo.pop() {
            if seen.len() == MAX_INCLUDED_FILES || seen.contains(&file) || !file.exists() {
                continue;
            }
            check_regular(&file)?;
            todo.extend(self.read(query, git, ConfigSource::File(&file))?);
            seen.push(file);
        }
        Ok(())
    }

    /// Reads one source. Returns the included files that git did not read itself.
    fn read(
        &mut self,
        query: &GitQuery<'_>,
        git: &Path,
        source: ConfigSource<'_>,
    ) -> Result<Vec<PathBuf>, SandboxRefusal> {
        if let ConfigSource::File(file) = source
            && !may_name_paths(file)
        {
            return Ok(Vec::new());
        }
        let mut command = Command::new(git);
        command.args(["config", "-z", "--show-origin", "--type=path"]);
        if let ConfigSource::File(file) = source {
            command.arg("--no-includes").arg("--file").arg(file);
        }
        command.args(["--get-regexp", KEYS]).env_clear();
        command.stdin(Stdio::null());
        let known = |(name, _): &&(OsString, OsString)| VARIABLES.iter().any(|it| name == it);
        command.envs(
            query
                .env
                .iter()
                .filter(known)
                .map(|(name, value)| (name, value)),
        );
        command.env("HOME", query.home);
        command.current_dir(match source {
            ConfigSource::Person => Path::new("/"),
            _ => query.workspace,
        });
        let output = match timed_output(&mut command, GIT_TIMEOUT) {
            Ok(Some(output)) if matches!(output.status.code(), Some(0 | 1)) => output,
            Ok(Some(output)) => return Err(refused(&String::from_utf8_lossy(&output.stderr))),
            Ok(None) => return Err(refused("`git config` takes too long")),
            Err(error) => return Err(refused(&error.to_string())),
        };
        let mut unread = Vec::new();
        let mut parts = output.stdout.split(|byte| *byte == 0);
        while let (Some(origin), Some(entry)) = (parts.next(), parts.next()) {
            let Some(end) = entry.iter().position(|byte| *byte == b'\n') else {
                continue;
            };
            let (key, value) = (&entry[..end], OsStr::from_bytes(&entry[end + 1..]));
            if key == b"core.hookspath" {
                let hooks = query.workspace.join(value);
                if !self.hooks.contains(&hooks) {
                    self.hooks.push(hooks);
                }
                continue;
            }
            let origin = origin.strip_prefix(b"file:").unwrap_or_default();
            let origin = query.workspace.join(OsStr::from_bytes(origin));
            let target = origin.parent().unwrap_or(&origin).join(value);
            if matches!(source, ConfigSource::File(_)) || key.starts_with(b"includeif.") {
                unread.push(target.clone());
            }
            if !self.files.contains(&target) {
                self.files.push(target);
            }
        }
        Ok(unread)
    }
}

/// Returns the existing configuration files of the workspace's repository, whether it is trusted or not.
fn own_files(workspace: &Path) -> Vec<PathBuf> {
    let mut dirs = match repository::find(workspace) {
        Ok(Some(Dirs { own, common })) => vec![common, own],
        Err(_) => repository::inside(workspace),
        Ok(None) if repository::is_git_dir(workspace) => vec![workspace.to_owned()],
        _ => Vec::new(),
    };
    dirs.dedup();
    let names = ["config", "config.worktree"];
    let files = dirs.iter().flat_map(|dir| names.map(|name| dir.join(name)));
    files.filter(|file| file.exists()).collect()
}

/// Returns whether one of the keys may be in a file. Without this, each start of a command would wait for a git for each file.
fn may_name_paths(file: &Path) -> bool {
    let Ok(bytes) = beneath::read_resolved(file, SMALL_FILE_BYTES) else {
        return true;
    };
    let is_in = |part: &&[u8]| {
        let mut places = bytes.windows(part.len());
        places.any(|it| it.eq_ignore_ascii_case(part))
    };
    KEY_PARTS.iter().any(is_in)
}

/// Refuses a file that is not regular, such as a FIFO.
fn check_regular(file: &Path) -> Result<(), SandboxRefusal> {
    match file.is_file() {
        true => Ok(()),
        false => Err(SandboxRefusal::Unable(format!(
            "git's configuration {} is not a regular file, so co cannot protect hooks here: remove it, or the include that names it",
            file.display()
        ))),
    }
}

fn refused(why: &str) -> SandboxRefusal {
    let why = support::as_clause(why);
    SandboxRefusal::Unable(format!(
        "git cannot read its configuration here ({why}), so co cannot protect its hooks: run `git config --list` and \
         correct the file that it names, or set sandbox_backend = \"subprocess\""
    ))
}

/// Returns the git program of the person, and never one inside the workspace.
fn program(query: &GitQuery<'_>) -> Option<PathBuf> {
    let path = query.env.iter().rev().find(|(name, _)| name == "PATH")?;
    program_search::search_all("git", &path.1)
        .filter_map(|git| git.canonicalize().ok())
        .find(|git| !git.starts_with(query.workspace))
}
