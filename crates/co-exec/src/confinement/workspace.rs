//! The workspace level: approved commands, which may write in the workspace.

use std::path::Path;

use super::level::{
    Access, Calls, ClosedBy, ClosedSecrets, Level, LevelLimits, Network, ShownSecrets, TmpPlace,
};

/// A short description of the workspace level for a person.
pub const WORDS: &str = "confined to the workspace (landlock)";

pub(crate) fn level<'a>(
    workspace: &'a Path,
    network: Network,
    shown: &'a ShownSecrets,
) -> Level<'a> {
    Level {
        name: "workspace",
        words: WORDS,
        secrets: ClosedSecrets {
            workspace,
            shown,
            closed_by: ClosedBy::WritableMounts,
        },
        access: Access::Write,
        places: None,
        calls: Calls::Work { reserve: true },
        network,
        tmp: TmpPlace::Disk,
        hardens_git: false,
        limits: LevelLimits::default(),
    }
}
