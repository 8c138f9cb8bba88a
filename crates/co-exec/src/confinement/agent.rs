//! The level of another agent: it works in the workspace as approved commands do, for as long as its chat, and has places of its
//! own.

use std::path::Path;

use super::level::{
    Access, Calls, ClosedBy, ClosedSecrets, GrantedPlaces, Level, LevelLimits, Network,
    ShownSecrets, TmpPlace,
};

/// The name of the level.
pub const NAME: &str = "agent";
/// The level in a few words.
pub const WORDS: &str = "confined to the workspace and the directory of the agent";

pub(super) fn level<'a>(
    workspace: &'a Path,
    places: &'a GrantedPlaces,
    whole_network: bool,
) -> Level<'a> {
    Level {
        name: NAME,
        words: WORDS,
        secrets: ClosedSecrets {
            workspace,
            shown: &ShownSecrets::Nothing,
            closed_by: ClosedBy::WritableMounts,
        },
        access: Access::Write,
        places: Some(places),
        calls: Calls::Work { reserve: true },
        network: match whole_network {
            true => Network::Machine,
            false => Network::Own,
        },
        tmp: TmpPlace::Disk,
        hardens_git: false,
        limits: LevelLimits::default(),
    }
}
