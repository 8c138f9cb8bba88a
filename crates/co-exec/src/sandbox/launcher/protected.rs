//! Finds the paths of a workspace that a container must protect: the same paths that mounts protect at the workspace level.

use std::path::{Path, PathBuf};

use super::Launcher;
use crate::confinement::level::{ClosedSecrets, Network};
use crate::confinement::{ContainerLevel, workspace_level};
use crate::environment::Variables;
use crate::error::refusal::SandboxRefusal;
use crate::sandbox::grants::{FoundPaths, GrantRequest};
use crate::sandbox::plan::PathBytes;
use crate::secrets::Survey;

/// The paths of a workspace that a container must protect from its commands.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProtectedPaths {
    /// Directories that commands cannot rename.
    pub(crate) pinned: Vec<PathBuf>,
    /// Paths that commands cannot change. Some of them may not exist.
    pub(crate) held: Vec<PathBuf>,
    /// Directories inside `held` directories that commands may change, as exceptions.
    pub(crate) writable: Vec<PathBuf>,
    /// Secrets, which commands cannot open.
    pub(crate) hidden: Vec<PathBuf>,
    /// Paths that git reads as configuration. A missing path needs a placeholder.
    pub(crate) obeyed: Vec<PathBuf>,
    /// The paths whose state co records before a command and compares after it.
    pub(crate) watched: Vec<PathBuf>,
}

impl Launcher {
    /// Returns the paths that a container must protect. A read-only container must protect only the secrets.
    ///
    /// Blocks on files.
    ///
    /// # Errors
    /// No command can be confined in this workspace.
    pub(crate) fn protected(
        &self,
        level: ContainerLevel<'_>,
        env: &Variables,
        survey: Option<&Survey>,
    ) -> Result<ProtectedPaths, SandboxRefusal> {
        let ClosedSecrets {
            workspace, shown, ..
        } = level.secrets;
        let request = GrantRequest {
            // An engine mounts what the kernel would.
            level: workspace_level(workspace, Network::None, shown),
            // No path in the workspace.
            tmp: Path::new("/"),
            tmp_size: 0,
            env,
            namespaces: true,
            survey,
        };
        let inside = |paths: Vec<PathBytes>| -> Vec<PathBuf> {
            let paths = paths.into_iter().map(|path| path.0);
            paths
                .filter(|path| path.starts_with(workspace) && path != workspace)
                .collect()
        };
        if level.read_only {
            let hidden = self.grants.hidden(&request)?;
            return Ok(ProtectedPaths {
                hidden: inside(hidden.paths),
                ..ProtectedPaths::default()
            });
        }
        let FoundPaths {
            mounts,
            mut missing,
            mut watched,
            ..
        } = self.grants.find(&request)?;
        let mounts = mounts.unwrap_or_default();
        // A container lives long, so an empty repository would be in the person's way. A new one is named instead.
        let repository = workspace.join(".git");
        if missing.contains(&repository) {
            missing.retain(|path| *path != repository);
            watched.push(repository);
        }
        // Placeholders come later, and are no change.
        watched.retain(|path| !missing.contains(path));
        missing.retain(|path| path.starts_with(workspace));
        Ok(ProtectedPaths {
            pinned: inside(mounts.pinned),
            held: inside(mounts.held),
            writable: inside(mounts.writable),
            hidden: inside(mounts.hidden.paths),
            obeyed: missing,
            watched,
        })
    }
}
