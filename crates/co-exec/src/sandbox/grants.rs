//! Finds the paths that a command may read and write. Caches the paths until one of the directories that were listed to find them
//! changes.

mod granted;
mod mount_points;
mod opened;
mod packages;
mod path;
mod place_pattern;
mod real_paths;
#[cfg(test)]
mod tests;
mod tools;
mod trial;
mod workspace_paths;
mod writes;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;

use self::real_paths::RealPaths;
use self::workspace_paths::{WorkspacePaths, around, changed, outermost};
use super::plan::{Grant, HiddenPaths, MemoryDirectory, Mounts, PathBytes, Right};
use super::{git, tmp};
use crate::confinement::level::{Access, TmpPlace};
use crate::error::refusal::SandboxRefusal;
use crate::places::{home, system};
use crate::secrets::{Survey, config_credential};

pub use self::path::is_tool_directory;
pub(super) use self::workspace_paths::{FoundPaths, GrantRequest};

/// Finds and caches the paths that commands may read and write.
#[derive(Debug)]
pub(super) struct Grants {
    home: PathBuf,
    own: Vec<PathBuf>,
    /// The paths of the setting `read_roots`, which commands may read too. A path that starts with `~/` is in the home directory.
    read_roots: Vec<PathBuf>,
    root: bool,
    /// The paths of the last environments, with the newest one first. Agents and tool servers have other variables than commands.
    kept: Mutex<Vec<Arc<WorkspacePaths>>>,
}

/// The most paths that are kept.
const MOST_KEPT: usize = 4;

impl Grants {
    pub(super) fn new(home: PathBuf, own: Vec<PathBuf>) -> Self {
        Self {
            home,
            own,
            read_roots: Vec::new(),
            root: rustix::process::geteuid().is_root(),
            kept: Mutex::default(),
        }
    }

    /// Returns new grants with other paths of the setting `read_roots`, and with an empty cache.
    pub(super) fn with_read_roots(&self, read_roots: Vec<PathBuf>) -> Self {
        Self {
            read_roots,
            ..Self::new(self.home.clone(), self.own.clone())
        }
    }

    /// Returns the granted paths, the mounts and the protected names for one command.
    ///
    /// # Errors
    /// The workspace does not exist, is itself in a directory of secrets, or has secrets that cannot be hidden yet.
    pub(super) fn find(&self, request: &GrantRequest<'_>) -> Result<FoundPaths, SandboxRefusal> {
        let kept = self.request_paths(request)?;
        let mut found = FoundPaths::default();
        let mut grants = BTreeSet::new();
        grants.extend(
            system::DEVICES
                .iter()
                .map(|path| Grant(Right::Device, PathBytes::from(path))),
        );
        grants.insert(Grant(Right::Write, PathBytes::from(request.tmp)));
        if request.level.calls.work() {
            grants.insert(Grant(Right::Device, PathBytes::from(system::ZERO)));
        }
        match request.level.access {
            Access::Read => {
                found.opened = kept.opened(request.survey)?;
                grants.insert(match found.opened.is_empty() {
                    true => Grant(Right::Read, PathBytes::from(&kept.real)),
                    false => Grant(Right::List, PathBytes::from(&kept.real)),
                });
                found.mounts = request.namespaces.then(Mounts::default);
            }
            Access::Write => {
                writes::add(&kept, request, &mut found, &mut grants)?;
                if let Some(mounts) = &mut found.mounts {
                    mounts.hidden = kept.hidden(request);
                }
            }
            Access::Overlay(places) => {
                trial::add(&kept, places, request, &mut found, &mut grants)?;
            }
        }
        if let Some(places) = request.level.places {
            granted::add(places, &kept, &mut found, &mut grants);
        }
        if let (TmpPlace::Memory, Some(mounts)) = (request.level.tmp, &mut found.mounts) {
            mounts.memory = Some(MemoryDirectory {
                path: PathBytes::from(request.tmp),
                bytes: request.tmp_size,
                files: tmp::MAX_FILES,
            });
        }
        if kept.git_closed {
            // git ends if it cannot read a configuration.
            found
                .env
                .push(("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()));
        }
        found.grants = kept.reads.iter().cloned().chain(grants).collect();
        Ok(found)
    }

    /// Returns the secrets that the command must not open.
    ///
    /// # Errors
    /// The workspace does not exist, or is itself in a directory of secrets.
    pub(super) fn hidden(&self, request: &GrantRequest<'_>) -> Result<HiddenPaths, SandboxRefusal> {
        let kept = self.request_paths(request)?;
        Ok(kept.hidden(request))
    }

    /// Checks that a command can be allowed to read the workspace without its secrets.
    ///
    /// # Errors
    /// As for [`Grants::find`] at the read-only level.
    pub(super) fn check(
        &self,
        workspace: &Path,
        env: &[(OsString, OsString)],
        survey: &Survey,
    ) -> Result<(), SandboxRefusal> {
        let kept = self.workspace_paths(workspace, tools::named(env))?;
        kept.opened(Some(survey)).map(drop)
    }

    /// Returns whether a command with the environment `env` can read a path outside the workspace.
    ///
    /// # Errors
    /// As for [`Grants::find`].
    pub(super) fn can_read(
        &self,
        workspace: &Path,
        env: &[(OsString, OsString)],
        path: &Path,
    ) -> Result<bool, SandboxRefusal> {
        let kept = self.workspace_paths(workspace, tools::named(env))?;
        let places = kept.reads.iter().map(|Grant(_, place)| place.0.as_path());
        let mut places = places.chain(system::DEVICES.iter().map(Path::new));
        Ok(places.any(|place| path.starts_with(place)))
    }

    /// Returns the paths for a request. Ignores a variable that names a path in the command's own granted directories: the
    /// command may have replaced such a path by a symbolic link in an earlier run, so the variable would grant the target of the
    /// link.
    fn request_paths(
        &self,
        request: &GrantRequest<'_>,
    ) -> Result<Arc<WorkspacePaths>, SandboxRefusal> {
        let mut named = tools::named(request.env);
        if let Some(places) = request.level.places {
            named.retain(|(_, path)| !places.writes(path));
        }
        self.workspace_paths(request.level.secrets.workspace, named)
    }

    fn workspace_paths(
        &self,
        workspace: &Path,
        named: Vec<tools::NamedPath>,
    ) -> Result<Arc<WorkspacePaths>, SandboxRefusal> {
        let mut all = self.kept.lock();
        if let Some(kept) = all.iter().find(|kept| kept.serves(workspace, &named)) {
            return Ok(Arc::clone(kept));
        }
        let is_other =
            |kept: &Arc<WorkspacePaths>| kept.workspace != workspace || kept.named != named;
        all.retain(is_other);
        let kept = Arc::new(self.find_paths(workspace, named)?);
        all.insert(0, Arc::clone(&kept));
        all.truncate(MOST_KEPT);
        Ok(kept)
    }

    fn find_paths(
        &self,
        workspace: &Path,
        named: Vec<tools::NamedPath>,
    ) -> Result<WorkspacePaths, SandboxRefusal> {
        let (real, home) = (real(workspace)?, self.real_home());
        let mut real_paths = RealPaths::default();
        let secrets = self.secrets(&home, &named, &mut real_paths);
        check_place(workspace, &real, (&home, &secrets))?;
        let mut reads = BTreeSet::new();
        let mut listed = vec![home.clone()];
        let mut places = self.system(&mut listed);
        let looked = (&mut real_paths, &mut listed);
        places.extend(tools::places(&home, &real, &named, looked));
        places.extend(self.read_roots.iter().map(|path| in_home(path, &home)));
        let mut git_files = git::configuration(&home);
        git_files.extend(tools::git_config(&named));
        places.extend(git_files.iter().cloned());
        let git = git::Layout::of(&real);
        // If a file appears or changes, all of these may change.
        let dot = real.join(".git");
        listed.extend((!dot.is_dir()).then_some(dot));
        listed.extend(git.configuration());
        let closed = closed_configs(&mut places, &git_files, &mut listed);
        let git_closed = closed
            .iter()
            .any(|path| is_of_git(path) || git_files.contains(path));
        listed.extend([".gitconfig", ".config/git/config"].map(|name| home.join(name)));
        // The workspace has rules of its own, also if it lies in one of those places.
        let avoid: Vec<PathBuf> = secrets.iter().chain([&real]).cloned().collect();
        for path in places.iter().filter_map(|path| real_paths.find(path)) {
            if !home.starts_with(&path) {
                around(&path, Right::Read, &avoid, &mut reads, &mut listed);
            }
        }
        if let Some(path) = git.outside() {
            around(path, Right::Read, &secrets, &mut reads, &mut listed);
        }
        let reads = outermost(reads);
        Ok(WorkspacePaths {
            workspace: workspace.to_owned(),
            named,
            at: Instant::now(),
            stamps: listed
                .into_iter()
                .map(|path| (path.clone(), changed(&path)))
                .collect(),
            real,
            reads,
            secrets,
            home,
            trusted: git.trusted,
            git_closed,
            configured: OnceLock::new(),
        })
    }

    fn real_home(&self) -> PathBuf {
        let real = self.home.canonicalize();
        real.unwrap_or_else(|_| self.home.clone())
    }

    /// Returns the system paths that commands may read. File modes protect the secrets in `/etc` from all users but root, so for
    /// root, single entries of `/etc` replace the whole directory.
    fn system(&self, listed: &mut Vec<PathBuf>) -> Vec<PathBuf> {
        let etc = Path::new("/etc");
        let mut places: Vec<PathBuf> = system::readable().map(PathBuf::from).collect();
        if self.root {
            places.retain(|path| path != etc);
            listed.push(etc.to_owned());
            let wanted = |path: &PathBuf| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                system::ETC.split_whitespace().any(|wanted| {
                    let begin = wanted.strip_suffix('*');
                    begin.map_or(name == wanted, |begin| name.starts_with(begin))
                })
            };
            let entries = etc.read_dir().into_iter().flatten().flatten();
            places.extend(entries.map(|entry| entry.path()).filter(wanted));
        }
        places
    }

    /// Returns the canonical paths of existing files and directories that commands must never read.
    fn secrets(
        &self,
        home: &Path,
        named: &[tools::NamedPath],
        real_paths: &mut RealPaths,
    ) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = home::secrets().map(|name| home.join(name)).collect();
        all.extend(self.own.iter().cloned());
        all.extend(
            named.iter().flat_map(|(_, path)| {
                ["credentials", "credentials.toml"].map(|name| path.join(name))
            }),
        );
        if self.root {
            all.extend(system::SECRETS.iter().map(PathBuf::from));
        }
        let real = all.iter().filter_map(|path| real_paths.find(path));
        real.collect()
    }
}

/// Takes the configuration files with a credential out of `places`, and returns their paths. Adds every configuration file of
/// `places` to `listed`, because a credential may be added later.
fn closed_configs(
    places: &mut Vec<PathBuf>,
    git_files: &[PathBuf],
    listed: &mut Vec<PathBuf>,
) -> Vec<PathBuf> {
    let is_config = |path: &Path| {
        let named = ["config", "config.toml", "go/env"];
        let named = named.iter().any(|name| path.ends_with(name));
        (named || is_of_git(path) || git_files.iter().any(|it| it == path)) && path.is_file()
    };
    let mut closed = Vec::new();
    places.retain(|path| {
        if !is_config(path) {
            return true;
        }
        listed.push(path.clone());
        let open = !config_credential::is_in(path);
        if !open {
            closed.push(path.clone());
        }
        open
    });
    closed
}

fn is_of_git(config: &Path) -> bool {
    config.ends_with(".gitconfig") || config.ends_with("git/config")
}

/// Expands `~/` at the start of a path from the settings to the home directory.
fn in_home(path: &Path, home: &Path) -> PathBuf {
    let below = path.strip_prefix("~");
    below.map_or_else(|_| path.to_owned(), |below| home.join(below))
}

/// Returns the canonical path of a workspace.
fn real(workspace: &Path) -> Result<PathBuf, SandboxRefusal> {
    workspace.canonicalize().map_err(|error| {
        SandboxRefusal::Unable(format!(
            "{} cannot be entered ({error}): work in a directory that exists",
            workspace.display()
        ))
    })
}

/// Refuses a workspace that is a home directory, contains one, or is in a directory of secrets.
fn check_place(
    workspace: &Path,
    real: &Path,
    (home, secrets): (&Path, &[PathBuf]),
) -> Result<(), SandboxRefusal> {
    if home.starts_with(real) {
        return Err(SandboxRefusal::Unable(format!(
            "{} is your home directory or contains it, so nothing runs confined there: work in a directory below it, \
             or set sandbox_backend = \"subprocess\" and approve commands yourself",
            workspace.display()
        )));
    }
    if secrets.iter().any(|secret| real.starts_with(secret)) {
        return Err(SandboxRefusal::Unable(format!(
            "{} holds credentials or co's own files, so nothing runs confined there: work in another directory",
            workspace.display()
        )));
    }
    Ok(())
}
