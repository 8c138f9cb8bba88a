//! The paths that a command at the workspace level may write.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use co_policy::obeyed;

use super::super::git::{self, ConfiguredPaths, GitLimits, Layout};
use super::super::plan::{Grant, Mounts, PathBytes, Right};
use super::workspace_paths::{FoundPaths, GrantRequest, WorkspacePaths, around};
use crate::error::refusal::SandboxRefusal;

/// The paths that are protected from a command that may write.
struct ProtectedWrites {
    limits: GitLimits,
    /// Paths outside git directories that other programs run or read as configuration.
    later: Vec<PathBuf>,
    /// All protected paths. They may not exist.
    all: BTreeSet<PathBuf>,
}

/// Adds to `found` and `grants` the paths that the command may write, without the protected paths.
pub(super) fn add(
    kept: &WorkspacePaths,
    request: &GrantRequest<'_>,
    found: &mut FoundPaths,
    grants: &mut BTreeSet<Grant>,
) -> Result<(), SandboxRefusal> {
    around(
        &kept.real,
        Right::Read,
        &kept.secrets,
        grants,
        &mut Vec::new(),
    );
    let layout = Layout::of(&kept.real);
    let mut writable = vec![kept.real.clone()];
    writable.extend(layout.outside().map(Path::to_owned));
    let protected = ProtectedWrites::new(kept, request, &layout, &writable)?;
    if request.namespaces {
        for path in &writable {
            around(path, Right::Write, &kept.secrets, grants, &mut Vec::new());
        }
        // A protected file is no longer protected once somebody outside replaces it.
        let git_dir = kept.real.join(".git");
        let git_dir = layout.outside().unwrap_or(&git_dir);
        let git_dir = git_dir.join("HEAD").is_file().then_some(git_dir);
        let watched = protected
            .later
            .iter()
            .chain(&protected.limits.watched)
            .chain(&protected.all);
        let watched: BTreeSet<&Path> = watched.map(PathBuf::as_path).chain(git_dir).collect();
        found.watched = watched.into_iter().map(Path::to_owned).collect();
        let (mounts, absent) = protected.mounts(kept, writable, request.tmp);
        (found.mounts, found.absent) = (Some(mounts), absent);
        found.missing = protected.limits.obeyed;
    } else {
        let mut avoid = kept.secrets.clone();
        avoid.extend(protected.all);
        for path in protected
            .limits
            .allowed
            .iter()
            .filter(|it| !it.is_symlink())
        {
            around(path, Right::Write, &avoid, grants, &mut Vec::new());
        }
        avoid.push(kept.real.join(".git"));
        avoid.extend(protected.limits.pinned);
        around(&kept.real, Right::Write, &avoid, grants, &mut Vec::new());
    }
    Ok(())
}

impl ProtectedWrites {
    fn new(
        kept: &WorkspacePaths,
        request: &GrantRequest<'_>,
        layout: &Layout,
        writable: &[PathBuf],
    ) -> Result<Self, SandboxRefusal> {
        let limits = layout.limits();
        let inside = |path: &PathBuf| writable.iter().any(|it| path.starts_with(it) && path != it);
        let mut later: Vec<PathBuf> = obeyed::held().map(|name| kept.real.join(name)).collect();
        let ConfiguredPaths { hooks, files } = kept.configured(request)?;
        let hooks: Vec<PathBuf> = hooks.iter().map(|path| resolved(path)).collect();
        if let Some(hooks) = hooks.iter().find(|hooks| kept.real.starts_with(hooks)) {
            return Err(SandboxRefusal::Unable(format!(
                "git's core.hooksPath is {}, which contains the workspace, so each file in it could be a hook: name a directory \
                 that contains only hooks, or set sandbox_backend = \"subprocess\"",
                hooks.display()
            )));
        }
        let files = files.iter().map(|path| resolved(path));
        later.extend(hooks.into_iter().chain(files).filter(inside));
        let mut all: BTreeSet<PathBuf> = [&later, &limits.held, &limits.obeyed]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let links: Vec<PathBuf> = all.iter().flat_map(|path| git::links(path)).collect();
        all.extend(links.into_iter().filter(inside));
        Ok(Self { limits, later, all })
    }

    /// Returns the mounts. Also returns protected paths that no mount can protect, because they are missing.
    fn mounts(
        &self,
        kept: &WorkspacePaths,
        mut writable: Vec<PathBuf>,
        tmp: &Path,
    ) -> (Mounts, BTreeSet<PathBuf>) {
        let roots = writable.clone();
        writable.extend(self.limits.writable.iter().cloned());
        writable.push(tmp.to_owned());
        let mut held = self.all.clone();
        let below = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        held.extend(kept.secrets.iter().filter(|path| below(path)).cloned());
        // co puts placeholders in place of missing configuration before the command starts.
        let there = |path: &PathBuf| path.symlink_metadata().is_ok();
        let is_held = |path: &PathBuf| there(path) || self.limits.obeyed.contains(path);
        let (held, absent): (BTreeSet<_>, BTreeSet<_>) = held.into_iter().partition(is_held);
        let held: BTreeSet<PathBuf> = held.iter().map(|path| in_real_directory(path)).collect();
        let pinned = self.limits.pinned.iter().filter(|path| there(path));
        let mut pinned: BTreeSet<PathBuf> = pinned.map(|path| in_real_directory(path)).collect();
        for path in &held {
            // A command cannot rename entries of a protected directory, and a mount there would be writable.
            let above = path.ancestors().skip(1);
            let above = above.take_while(|dir| below(dir) && !roots.iter().any(|root| root == dir));
            pinned.extend(
                above
                    .filter(|dir| !dir.ancestors().any(|it| held.contains(it)))
                    .map(Path::to_owned),
            );
        }
        let mounts = Mounts {
            writable: texts(&writable),
            pinned: texts(&pinned),
            held: texts(&held),
            ..Mounts::default()
        };
        (mounts, absent)
    }
}

/// Resolves the symbolic links in the parent directory of a path, but not the last component.
fn in_real_directory(path: &Path) -> PathBuf {
    let above = path.parent().and_then(|dir| dir.canonicalize().ok());
    let real = above.zip(path.file_name());
    real.map_or_else(|| path.to_owned(), |(dir, name)| dir.join(name))
}

fn texts<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<PathBytes> {
    paths.into_iter().map(PathBytes::from).collect()
}

/// Returns the canonical path of the existing part of a path, followed by the rest as written.
///
/// The code that judges calls resolves paths in the same way. But it refuses a symbolic link to a missing target, because a
/// verdict must not depend on that target. Here, a path that cannot be resolved is protected as written.
fn resolved(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut at = path;
    loop {
        if let Ok(real) = at.canonicalize() {
            return rest.iter().rev().fold(real, |path, name| path.join(name));
        }
        let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
            return path.to_owned();
        };
        rest.push(name);
        at = parent;
    }
}
