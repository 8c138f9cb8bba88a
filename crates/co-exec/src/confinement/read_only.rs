//! The read-only level: commands that only read, which run without a question.

use std::path::Path;

use super::level::{
    Access, Calls, ClosedBy, ClosedSecrets, Level, LevelLimits, Network, ShownSecrets, TmpPlace,
};

/// The name of the read-only level. A read-only command in a container has this level too.
pub const NAME: &str = "read-only";

pub(super) fn level(workspace: &Path) -> Level<'_> {
    Level {
        name: NAME,
        words: "read-only, without network",
        secrets: ClosedSecrets {
            workspace,
            shown: &ShownSecrets::Nothing,
            closed_by: ClosedBy::Rules,
        },
        access: Access::Read,
        places: None,
        calls: Calls::Look,
        network: Network::None,
        tmp: TmpPlace::Memory,
        hardens_git: true,
        limits: LevelLimits {
            unasked: true,
            unapproved: true,
            ..LevelLimits::default()
        },
    }
}
