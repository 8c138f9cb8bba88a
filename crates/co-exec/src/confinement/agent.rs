//! The level of another agent: the agent writes in the workspace, as approved commands do, and in its own granted paths. It runs
//! as long as its chat.

use std::path::Path;

use super::level::{
    Access, Calls, ClosedBy, ClosedSecrets, GrantedPlaces, Level, LevelLimits, Network,
    ShownSecrets, TmpPlace,
};

/// The name of the agent level.
pub const NAME: &str = "agent";
/// A short description of the agent level for a person.
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
