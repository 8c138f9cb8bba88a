//! The workspace level: approved commands, which write in the workspace.

use std::path::Path;

use super::level::{
    Access, Calls, ClosedBy, ClosedSecrets, Level, LevelLimits, Network, ShownSecrets, TmpPlace,
};

/// The level in a few words.
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
