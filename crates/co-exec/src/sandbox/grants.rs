//! Finds the paths that a command may read and write. Keeps them until a directory that was listed changes.

#[cfg(test)]
mod tests;
mod tools;
mod writes;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use super::plan::{Grant, Hidden, Mounts, PathBytes, Right, SandboxLevel};
use super::{Refused, git, names};

/// The time after which paths outside the listed directories are looked up again.
const KEPT: Duration = Duration::from_secs(10);

/// Finds the grants of a command.
#[derive(Debug)]
pub(super) struct Grants {
    home: PathBuf,
    own: Vec<PathBuf>,
    root: bool,
    kept: Mutex<Option<Arc<WorkspacePaths>>>,
}

/// The command for which paths are granted.
pub(super) struct GrantRequest<'a> {
    pub workspace: &'a Path,
    pub tmp: &'a Path,
    pub env: &'a [(OsString, OsString)],
    pub level: SandboxLevel,
    pub namespaces: bool,
    /// The workspace's secrets, which the command must not open.
    pub hidden: &'a [PathBuf],
}

/// The granted and protected paths of one command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FoundPaths {
    pub grants: Vec<Grant>,
    pub mounts: Option<Mounts>,
    /// Paths to compare when the command has ended.
    pub watched: Vec<PathBuf>,
    /// Protected names that do not exist and need a placeholder.
    pub missing: Vec<PathBuf>,
}

/// The paths that are the same for each level and temporary directory.
#[derive(Debug)]
struct WorkspacePaths {
    workspace: PathBuf,
    named: Vec<tools::Named>,
    at: Instant,
    stamps: Vec<(PathBuf, Option<SystemTime>)>,
    /// The workspace's real path.
    real: PathBuf,
    reads: Vec<Grant>,
    secrets: Vec<PathBuf>,
    home: PathBuf,
    trusted: bool,
    /// The paths that git's configuration names. The first command that writes asks git for them.
    configured: OnceLock<Result<git::Configured, Refused>>,
}

impl Grants {
    pub(super) fn new(home: PathBuf, own: Vec<PathBuf>) -> Self {
        Self {
            home,
            own,
            root: rustix::process::geteuid().is_root(),
            kept: Mutex::new(None),
        }
    }

    /// Returns the grants, mounts and protected names of one command.
    ///
    /// # Errors
    /// The workspace does not exist, or it is itself a place of secrets.
    pub(super) fn find(&self, request: &GrantRequest<'_>) -> Result<FoundPaths, Refused> {
        let kept = self.workspace_paths(request)?;
        let mut found = FoundPaths::default();
        let mut grants = BTreeSet::new();
        grants.extend(
            names::DEVICES
                .iter()
                .map(|path| Grant(Right::Device, PathBytes::from(path))),
        );
        let reads = kept.reads.iter().cloned();
        if request.level == SandboxLevel::Workspace {
            grants.insert(Grant(Right::Write, PathBytes::from(request.tmp)));
            writes::add(&kept, request, &mut found, &mut grants)?;
            found.grants = reads.map(Grant::executing).chain(grants).collect();
        } else {
            grants.insert(Grant(Right::WriteNoExecute, PathBytes::from(request.tmp)));
            found.mounts = request.namespaces.then(|| kept.read_only(request.tmp));
            found.grants = reads.chain(grants).collect();
        }
        if let Some(mounts) = &mut found.mounts {
            mounts.hidden = kept.hidden(request);
        }
        Ok(found)
    }

    fn workspace_paths(&self, request: &GrantRequest<'_>) -> Result<Arc<WorkspacePaths>, Refused> {
        let named = tools::named(request.env);
        let mut slot = self
            .kept
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(kept) = slot
            .as_ref()
            .filter(|kept| kept.serves(request.workspace, &named))
        {
            return Ok(Arc::clone(kept));
        }
        let kept = Arc::new(self.find_paths(request.workspace, named)?);
        *slot = Some(Arc::clone(&kept));
        Ok(kept)
    }

    fn find_paths(
        &self,
        workspace: &Path,
        named: Vec<tools::Named>,
    ) -> Result<WorkspacePaths, Refused> {
        let real = workspace.canonicalize().map_err(|error| {
            Refused(format!(
                "{} cannot be entered ({error}): work in a directory that exists",
                workspace.display()
            ))
        })?;
        let home = self
            .home
            .canonicalize()
            .unwrap_or_else(|_| self.home.clone());
        let secrets = self.secrets(&home, &named);
        if secrets.iter().any(|secret| real.starts_with(secret)) {
            return Err(Refused(format!(
                "{} holds credentials or co's own files, so nothing runs confined there: work in another directory",
                workspace.display()
            )));
        }
        let mut reads = BTreeSet::new();
        let mut listed = vec![home.clone()];
        let mut places = self.system(&mut listed);
        places.extend(tools::places(&home, &named, &mut listed));
        places.extend(git::configuration(&home));
        let git = git::Layout::of(&real);
        // If a file appears or changes, all of these may change.
        let dot = real.join(".git");
        listed.extend((!dot.is_dir()).then_some(dot));
        listed.extend(git.configuration());
        listed.extend([".gitconfig", ".config/git/config"].map(|name| home.join(name)));
        // Files of the workspace must not be executed, also if the workspace is below one of those places.
        let avoid: Vec<PathBuf> = secrets.iter().chain([&real]).cloned().collect();
        for path in places.iter().filter_map(|path| path.canonicalize().ok()) {
            if home.starts_with(&path) {
                continue;
            }
            let avoid = if path.starts_with(&real) {
                &secrets
            } else {
                &avoid
            };
            around(&path, Right::ReadExecute, avoid, &mut reads, &mut listed);
        }
        let own = [real.as_path()].into_iter().chain(git.outside());
        for path in own {
            around(path, Right::Read, &secrets, &mut reads, &mut listed);
        }
        if secrets.iter().any(|secret| secret.starts_with(&real)) {
            // Commands may list the top of the home directory. They see the names of secrets, never their contents.
            reads.insert(Grant(Right::List, PathBytes::from(&real)));
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
            configured: OnceLock::new(),
        })
    }

    /// Returns the grants of system directories. For users other than root, file modes protect the secrets in `/etc`.
    fn system(&self, listed: &mut Vec<PathBuf>) -> Vec<PathBuf> {
        let etc = Path::new("/etc");
        let mut places: Vec<PathBuf> = names::SYSTEM.iter().map(PathBuf::from).collect();
        if self.root {
            places.retain(|path| path != etc);
            listed.push(etc.to_owned());
            let wanted = |path: &PathBuf| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                names::ETC.iter().any(|wanted| {
                    let begin = wanted.strip_suffix('*');
                    begin.map_or(name == *wanted, |begin| name.starts_with(begin))
                })
            };
            let entries = etc.read_dir().into_iter().flatten().flatten();
            places.extend(entries.map(|entry| entry.path()).filter(wanted));
        }
        places
    }

    /// Returns the real paths of existing places that must not be read.
    fn secrets(&self, home: &Path, named: &[tools::Named]) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = names::SECRETS.iter().map(|name| home.join(name)).collect();
        all.extend(self.own.iter().cloned());
        all.extend(
            named.iter().flat_map(|(_, path)| {
                ["credentials", "credentials.toml"].map(|name| path.join(name))
            }),
        );
        if self.root {
            all.extend(names::SYSTEM_SECRETS.iter().map(PathBuf::from));
        }
        all.iter()
            .filter_map(|path| path.canonicalize().ok())
            .collect()
    }
}

impl WorkspacePaths {
    fn serves(&self, workspace: &Path, named: &[tools::Named]) -> bool {
        self.at.elapsed() < KEPT
            && self.workspace == workspace
            && self.named == named
            && self
                .stamps
                .iter()
                .all(|(path, stamp)| changed(path) == *stamp)
    }

    /// Returns the mounts of a command that only reads.
    fn read_only(&self, tmp: &Path) -> Mounts {
        // Toolchains in the workspace must run, as those in the home directory.
        let runs = |path: &Path| path.metadata().is_ok_and(|meta| meta.mode() & 0o111 != 0);
        let tools = |Grant(right, PathBytes(path)): &Grant| {
            *right == Right::ReadExecute && path.starts_with(&self.real) && runs(path)
        };
        let workspace = (!self.reads.iter().any(tools)).then_some(&*self.real);
        Mounts {
            writable: vec![PathBytes::from(tmp)],
            inert: workspace
                .into_iter()
                .chain([tmp])
                .map(PathBytes::from)
                .collect(),
            ..Mounts::default()
        }
    }

    /// Returns the secrets in the workspace, and the closed places in it.
    fn hidden(&self, request: &GrantRequest<'_>) -> Hidden {
        let closed = self.secrets.iter();
        let closed = closed.filter(|path| path.starts_with(&self.real));
        let paths: BTreeSet<&PathBuf> = closed.chain(request.hidden).collect();
        Hidden {
            by: Some(PathBytes::from(request.tmp)),
            paths: paths.into_iter().map(PathBytes::from).collect(),
        }
    }

    /// Returns the paths that git's configuration names.
    fn configured(&self, request: &GrantRequest<'_>) -> Result<git::Configured, Refused> {
        let ask = || {
            git::Configured::ask(&git::GitQuery {
                workspace: &self.real,
                home: &self.home,
                env: request.env,
                trusted: self.trusted,
            })
        };
        self.configured.get_or_init(ask).clone()
    }
}

/// Grants `root`. If it contains a path to avoid, grants the paths around it instead.
fn around(
    root: &Path,
    right: Right,
    avoid: &[PathBuf],
    grants: &mut BTreeSet<Grant>,
    listed: &mut Vec<PathBuf>,
) {
    if avoid.iter().any(|secret| root.starts_with(secret)) {
        return;
    }
    if !avoid.iter().any(|secret| secret.starts_with(root)) {
        grants.insert(Grant(right, PathBytes::from(root)));
        return;
    }
    listed.push(root.to_owned());
    let Ok(entries) = root.read_dir() else {
        return;
    };
    for entry in entries.flatten() {
        // A link is replaced by its target, which has its own grant if it may be read.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            around(&entry.path(), right, avoid, grants, listed);
        }
    }
}

/// Removes grants that another grant of the same right covers, because each makes every start slower.
fn outermost(grants: BTreeSet<Grant>) -> Vec<Grant> {
    let mut kept: Vec<Grant> = Vec::new();
    // They are sorted by right and path, so a directory comes before its contents.
    for grant in grants {
        let covered = |over: &Grant| over.0 == grant.0 && grant.1.0.starts_with(&over.1.0);
        if !kept.iter().any(covered) {
            kept.push(grant);
        }
    }
    kept
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}
