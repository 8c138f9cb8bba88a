//! The level of a tool server: it reads the workspace for the calls of a model, for as long as its chats, and has a directory of its own.

use std::path::Path;

use super::level::{
    Access, Calls, ClosedBy, ClosedSecrets, GrantedPlaces, Level, LevelLimits, Network,
    ShownSecrets, TmpPlace,
};

/// The name of the level.
pub const NAME: &str = "server";
/// The level in a few words.
pub const WORDS: &str = "read-only but for its own directory, without network";

pub(super) fn level<'a>(workspace: &'a Path, places: &'a GrantedPlaces) -> Level<'a> {
    Level {
        name: NAME,
        words: WORDS,
        secrets: ClosedSecrets {
            workspace,
            shown: &ShownSecrets::Nothing,
            closed_by: ClosedBy::Rules,
        },
        access: Access::Read,
        places: Some(places),
        // Interpreters such as node need more calls than those of programs that look.
        calls: Calls::Work { reserve: true },
        network: Network::None,
        tmp: TmpPlace::Disk,
        hardens_git: true,
        limits: LevelLimits::default(),
    }
}
