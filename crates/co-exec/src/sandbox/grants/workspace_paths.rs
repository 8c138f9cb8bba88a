//! The paths of a workspace from which co makes the grants and mounts of its commands.

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

/// The time after which cached paths expire, because changes outside the listed directories do not show in the stamps.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(10);

/// The most Landlock rules for hiding the secrets of a workspace. Each rule makes the start of a command slower.
pub(super) const MAX_SECRET_RULES: usize = 10_000;

/// A request for the paths of one command.
pub(in crate::sandbox) struct GrantRequest<'a> {
    pub level: Level<'a>,
    pub tmp: &'a Path,
    /// The most bytes in the temporary directory, if the directory is in memory.
    pub tmp_size: u64,
    pub env: &'a [(OsString, OsString)],
    pub namespaces: bool,
    /// The survey of the workspace's secrets, if the command must not open them.
    pub survey: Option<&'a Survey>,
}

/// The granted and the protected paths of one command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::sandbox) struct FoundPaths {
    pub grants: Vec<Grant>,
    pub opened: Vec<OpenedDirectory>,
    pub mounts: Option<Mounts>,
    /// Variables to set for the command.
    pub env: Vec<(OsString, OsString)>,
    /// The paths whose state co records before the command and compares after it.
    pub watched: Vec<PathBuf>,
    /// Paths in `watched` that are missing, so that nothing protects them.
    pub absent: BTreeSet<PathBuf>,
    /// Protected paths that do not exist, so that they need a placeholder.
    pub missing: Vec<PathBuf>,
}

/// The paths that do not depend on the level or on the temporary directory.
#[derive(Debug)]
pub(super) struct WorkspacePaths {
    pub(super) workspace: PathBuf,
    pub(super) named: Vec<tools::NamedPath>,
    pub(super) at: Instant,
    pub(super) stamps: Vec<(PathBuf, Option<SystemTime>)>,
    /// The canonical path of the workspace.
    pub(super) real: PathBuf,
    /// The paths outside the workspace that commands may read.
    pub(super) reads: Vec<Grant>,
    pub(super) secrets: Vec<PathBuf>,
    pub(super) home: PathBuf,
    pub(super) trusted: bool,
    /// True if commands cannot read the person's git configuration, because it contains a credential.
    pub(super) git_closed: bool,
    /// The paths that git's configuration names. co asks git for them before the first command that may write.
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

    /// Returns the directories of the workspace that are granted entry by entry, because they contain a secret.
    pub(super) fn opened(
        &self,
        survey: Option<&Survey>,
    ) -> Result<Vec<OpenedDirectory>, SandboxRefusal> {
        opened_directories(&self.real, &self.secrets, survey)
    }

    /// Returns the secrets in the workspace that the command must not open, and other paths in the workspace that are always
    /// closed.
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

    /// Returns the paths that git's configuration names. Asks git only once.
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

/// Returns the directories of a workspace that are granted entry by entry, because they contain a closed path.
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

/// Grants `root`. If `root` contains a path in `avoid`, grants everything else in `root` instead.
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

/// Removes grants that another grant of the same right covers, because each grant makes every start slower.
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
