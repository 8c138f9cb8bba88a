//! The facts about one workspace that the policy asks for: about the programs of PATH, and about paths.
//!
//! The policy itself does no I/O; it asks [`WorkspaceFacts`].

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use co_exec::regular::FileStamp;
use co_exec::sandbox::Launcher;
use co_exec::secrets::content;
use co_policy::facts::{Facts, FileKind, PathFact, ProgramFact, WorkspacePath};
use co_policy::paths;

/// The time for which the [`FileStamp`]s of PATH's directories stay valid. It is long enough for the commands of one list.
const STAMP_LIFETIME: Duration = Duration::from_millis(20);

/// The sandbox for commands that run without approval.
#[derive(Debug)]
pub(super) struct Sandbox {
    pub launcher: Launcher,
    /// The environment variables of a command.
    pub env: Vec<(OsString, OsString)>,
}

/// The [`FileStamp`]s of the directories in PATH.
type Stamps = Arc<[FileStamp]>;

/// The facts about one workspace.
pub struct WorkspaceFacts {
    workspace: PathBuf,
    /// The canonical path of the workspace.
    root: PathBuf,
    home: PathBuf,
    path: Vec<PathBuf>,
    own: Vec<PathBuf>,
    sandbox: Option<Sandbox>,
    programs: Mutex<HashMap<String, (Stamps, ProgramFact)>>,
    path_stamps: Mutex<Option<(Instant, Stamps)>>,
}

impl WorkspaceFacts {
    /// Returns the facts about `workspace`. `path` is the PATH of commands, and `own` are co's own files.
    pub fn new(workspace: PathBuf, home: PathBuf, path: &OsString, own: Vec<PathBuf>) -> Self {
        let root = workspace
            .canonicalize()
            .unwrap_or_else(|_| workspace.clone());
        let own = own
            .into_iter()
            .flat_map(|path| [path.canonicalize().ok(), Some(path)])
            .flatten()
            .collect();
        Self {
            workspace,
            root,
            home,
            path: std::env::split_paths(path).collect(),
            own,
            sandbox: None,
            programs: Mutex::default(),
            path_stamps: Mutex::default(),
        }
    }

    /// Returns the facts, with a sandbox added.
    pub(super) fn with_sandbox(self, sandbox: Sandbox) -> Self {
        Self {
            sandbox: Some(sandbox),
            ..self
        }
    }

    /// Returns the sandbox for commands that run without approval.
    pub(super) fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// Returns true if a command that runs without approval can read a canonical path outside the workspace.
    fn can_read(&self, real: &Path) -> bool {
        self.sandbox().is_some_and(|Sandbox { launcher, env }| {
            launcher.can_read(&self.workspace, env, real) == Ok(true)
        })
    }

    /// Returns the canonical path of the workspace.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of git in a directory of PATH outside the workspace.
    pub(super) fn git(&self) -> Option<PathBuf> {
        let outside = |dir: &&PathBuf| dir.is_absolute() && !inside(dir, &self.root);
        let dirs = self.path.iter().filter(outside);
        dirs.map(|dir| dir.join("git")).find(|git| is_program(git))
    }

    /// Returns true if a path is one of co's own files.
    pub(super) fn is_own(&self, path: &Path) -> bool {
        self.own.iter().any(|own| path.starts_with(own))
    }

    /// Returns the [`FileStamp`]s of the directories in PATH. They are read once for the commands of one list.
    fn stamps(&self) -> Stamps {
        let mut last = self.path_stamps.lock();
        if let Some((at, stamps)) = last.as_ref()
            && at.elapsed() < STAMP_LIFETIME
        {
            return stamps.clone();
        }
        let stamps: Stamps = self
            .path
            .iter()
            .filter_map(|dir| FileStamp::of(dir))
            .collect();
        *last = Some((Instant::now(), stamps.clone()));
        stamps
    }

    fn find(&self, name: &str, cwd: &Path) -> ProgramFact {
        for dir in &self.path {
            let file = cwd.join(dir).join(name);
            if !is_program(&file) {
                continue;
            }
            let trusted = dir.is_absolute() && self.is_trusted(dir) && self.is_trusted(&file);
            return if trusted {
                ProgramFact::Trusted(file)
            } else {
                ProgramFact::Untrusted(file)
            };
        }
        ProgramFact::Missing
    }

    /// Returns true if only root and the person can write a path outside the workspace.
    fn is_trusted(&self, path: &Path) -> bool {
        let Ok(real) = path.canonicalize() else {
            return false;
        };
        let Ok(meta) = real.metadata() else {
            return false;
        };
        let me = nix::unistd::geteuid().as_raw();
        let owner = meta.uid() == 0 || meta.uid() == me;
        let parent = real.parent().and_then(|parent| parent.metadata().ok());
        let parent_ok = parent.is_some_and(|parent| {
            (parent.uid() == 0 || parent.uid() == me)
                && (parent.mode() & 0o022 == 0 || parent.mode() & 0o1000 != 0)
        });
        owner && meta.mode() & 0o022 == 0 && parent_ok && !inside(&real, &self.root)
    }

    /// Makes a path canonical, even if its end does not exist: the end then stays as it is. Returns `None` if the canonical path
    /// cannot be determined.
    fn real(path: &Path) -> Option<PathBuf> {
        if let Ok(real) = path.canonicalize() {
            return Some(real);
        }
        let mut rest: Vec<&std::ffi::OsStr> = Vec::new();
        let mut at = path;
        loop {
            match at.components().next_back()? {
                Component::Normal(name) => rest.push(name),
                Component::CurDir => {}
                _ => return None,
            }
            // The target of a dangling link may be made later.
            if at.symlink_metadata().is_ok() {
                return None;
            }
            at = at.parent()?;
            match at.canonicalize() {
                Ok(real) => {
                    return Some(rest.iter().rev().fold(real, |path, name| path.join(name)));
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {}
                Err(_) => return None,
            }
        }
    }
}

fn is_program(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn inside(path: &Path, root: &Path) -> bool {
    path.starts_with(root) || path.canonicalize().is_ok_and(|real| real.starts_with(root))
}

fn kind(meta: Option<&Metadata>) -> FileKind {
    match meta {
        Some(meta) if meta.is_dir() => FileKind::Directory,
        Some(meta) if meta.is_file() => FileKind::File,
        Some(_) => FileKind::Special,
        None => FileKind::Missing,
    }
}

impl Facts for WorkspaceFacts {
    fn program(&self, name: &str, cwd: &Path) -> ProgramFact {
        let relative = self.path.iter().any(|dir| !dir.is_absolute());
        let stamps = self.stamps();
        let mut programs = self.programs.lock();
        if let Some((seen, found)) = programs.get(name)
            && !relative
            && *seen == stamps
        {
            return found.clone();
        }
        let found = self.find(name, cwd);
        programs.insert(name.to_owned(), (stamps, found.clone()));
        found
    }

    fn path(&self, cwd: &Path, path: &str) -> PathFact {
        let whole = match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(&rest[1..]),
            _ => cwd.join(path),
        };
        let absolute = paths::normalize_lexically(&whole);
        let written = [&self.workspace, &self.root]
            .into_iter()
            .find_map(|root| absolute.strip_prefix(root).ok());
        let real = Self::real(&whole);
        let real_inside = real
            .as_deref()
            .and_then(|real| real.strip_prefix(&self.root).ok());
        let own = self.own.iter().any(|own| {
            absolute.starts_with(own) || real.as_ref().is_some_and(|real| real.starts_with(own))
        });
        let inside = match (written, real_inside) {
            (Some(written), Some(real)) => Some(WorkspacePath {
                written: written.to_owned(),
                real: real.to_owned(),
            }),
            _ => None,
        };
        let meta = whole.metadata().ok();
        let readable = inside.is_none() && real.as_deref().is_some_and(|real| self.can_read(real));
        PathFact {
            inside,
            kind: kind(meta.as_ref()),
            readable,
            secret: real.as_ref().is_some_and(|real| content::is_secret(real)),
            co_file: own,
            holds_co_files: self
                .own
                .iter()
                .any(|own| own.starts_with(&absolute) && own.symlink_metadata().is_ok()),
            home: !self.home.as_os_str().is_empty() && self.home.starts_with(&absolute),
            absolute,
        }
    }
}
