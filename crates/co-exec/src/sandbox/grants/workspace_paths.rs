//! The paths of a workspace, from which the grants and mounts of its commands are made.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use super::super::git;
use super::super::plan::{Grant, HiddenPaths, Mounts, OpenedDirectory, PathBytes, Right};
use super::{opened, tools};
use crate::beneath;
use crate::confinement::level::Level;
use crate::error::refusal::{HidingRefusal, SandboxRefusal};
use crate::secrets::Survey;

/// The time after which paths outside the listed directories are looked up again.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(10);

/// The most Landlock rules that hide the secrets of a workspace. Each rule makes the start of a command slower.
pub(super) const MAX_SECRET_RULES: usize = 10_000;

/// The command for which paths are granted.
pub(in crate::sandbox) struct GrantRequest<'a> {
    pub level: Level<'a>,
    pub tmp: &'a Path,
    /// The most bytes in the temporary directory, if it is in memory.
    pub tmp_size: u64,
    pub env: &'a [(OsString, OsString)],
    pub namespaces: bool,
    /// The secrets of the workspace, if the command must not open them.
    pub survey: Option<&'a Survey>,
}

/// The granted and protected paths of one command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::sandbox) struct FoundPaths {
    pub grants: Vec<Grant>,
    pub opened: Vec<OpenedDirectory>,
    pub mounts: Option<Mounts>,
    /// Variables for the command.
    pub env: Vec<(OsString, OsString)>,
    /// Paths to compare when the command has ended.
    pub watched: Vec<PathBuf>,
    /// Watched paths that nothing protects, because they are missing.
    pub absent: BTreeSet<PathBuf>,
    /// Protected names that do not exist and need a placeholder.
    pub missing: Vec<PathBuf>,
}

/// The paths that are the same for each level and temporary directory.
#[derive(Debug)]
pub(super) struct WorkspacePaths {
    pub(super) workspace: PathBuf,
    pub(super) named: Vec<tools::NamedPath>,
    pub(super) at: Instant,
    pub(super) stamps: Vec<(PathBuf, Option<SystemTime>)>,
    /// The workspace's canonical path.
    pub(super) real: PathBuf,
    /// The readable paths outside the workspace.
    pub(super) reads: Vec<Grant>,
    pub(super) secrets: Vec<PathBuf>,
    pub(super) home: PathBuf,
    pub(super) trusted: bool,
    /// True if the person's git configuration is closed, because it contains a credential.
    pub(super) git_closed: bool,
    /// The paths that git's configuration names. The first command that writes asks git for them.
    pub(super) configured: OnceLock<Result<git::ConfiguredPaths, SandboxRefusal>>,
}

impl WorkspacePaths {
    pub(super) fn serves(&self, workspace: &Path, named: &[tools::NamedPath]) -> bool {
        self.at.elapsed() < LOOKUP_INTERVAL
            && self.workspace == workspace
            && self.named == named
            && self
                .stamps
                .iter()
                .all(|(path, stamp)| changed(path) == *stamp)
    }

    /// Returns the directories of the workspace that are granted entry by entry.
    pub(super) fn opened(
        &self,
        survey: Option<&Survey>,
    ) -> Result<Vec<OpenedDirectory>, SandboxRefusal> {
        opened_directories(&self.real, &self.secrets, survey)
    }

    /// Returns the secrets in the workspace that the command must not open, and the closed places in it.
    pub(super) fn hidden(&self, request: &GrantRequest<'_>) -> HiddenPaths {
        let surveyed = request.survey.into_iter().flat_map(Survey::closed);
        let surveyed = surveyed.filter(|path| !request.level.secrets.shown.includes(path));
        let closed = self.secrets.iter();
        let closed = closed.filter(|path| path.starts_with(&self.real));
        let paths: BTreeSet<&PathBuf> = closed.chain(surveyed).collect();
        HiddenPaths {
            by: Some(PathBytes::from(request.tmp)),
            paths: paths.into_iter().map(PathBytes::from).collect(),
        }
    }

    /// Returns the paths that git's configuration names.
    pub(super) fn configured(
        &self,
        request: &GrantRequest<'_>,
    ) -> Result<git::ConfiguredPaths, SandboxRefusal> {
        let ask = || {
            git::ConfiguredPaths::ask(&git::GitQuery {
                workspace: &self.real,
                home: &self.home,
                env: request.env,
                trusted: self.trusted,
            })
        };
        self.configured.get_or_init(ask).clone()
    }
}

/// Returns the directories of a workspace that are granted entry by entry, around closed paths.
fn opened_directories(
    workspace: &Path,
    places: &[PathBuf],
    survey: Option<&Survey>,
) -> Result<Vec<OpenedDirectory>, SandboxRefusal> {
    let Some(survey) = survey.filter(|survey| survey.complete) else {
        return Err(HidingRefusal::NotSurveyed(workspace.to_owned()).into());
    };
    let closed: HashSet<&Path> = (places.iter().chain(survey.closed()))
        .map(PathBuf::as_path)
        .filter(|path| path.starts_with(workspace))
        .collect();
    let opened = opened::around(workspace, &closed, survey);
    let rules = opened.iter().map(|dir| dir.dirs.len() + dir.files.len());
    match rules.sum() {
        rules if rules > MAX_SECRET_RULES => Err(HidingRefusal::TooManyRules {
            workspace: workspace.to_owned(),
            rules,
        }
        .into()),
        _ => Ok(opened),
    }
}

/// Grants `root`. If it contains a path to avoid, grants the paths around it instead.
pub(super) fn around(
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
    for (name, kind) in beneath::list_real(root) {
        // A link is replaced by its target, which has its own grant if it may be read.
        if !kind.is_symlink() {
            around(&root.join(name), right, avoid, grants, listed);
        }
    }
}

/// Removes grants that another grant of the same right covers, because each makes every start slower.
pub(super) fn outermost(grants: BTreeSet<Grant>) -> Vec<Grant> {
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

pub(super) fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().ok()?.modified().ok()
}
