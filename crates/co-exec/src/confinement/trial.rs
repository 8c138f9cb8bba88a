//! The trial level: commands whose changes go to a layer over the workspace.

use std::path::Path;

use super::level::{
    Access, Calls, ClosedBy, ClosedSecrets, GrantedPlaces, Level, LevelLimits, Network,
    OverlayPlaces, ShownSecrets, TmpPlace,
};

/// A short description of the trial level for a person.
pub const WORDS: &str =
    "a trial that leaves the workspace as it is and reaches only hosts that you allow";

pub(super) fn level<'a>(
    workspace: &'a Path,
    granted: &'a GrantedPlaces,
    places: OverlayPlaces<'a>,
) -> Level<'a> {
    Level {
        name: "trial",
        words: WORDS,
        secrets: ClosedSecrets {
            workspace,
            shown: &ShownSecrets::Nothing,
            closed_by: ClosedBy::OverlayMounts,
        },
        access: Access::Overlay(places),
        places: Some(granted).filter(|it| !it.is_empty()),
        calls: Calls::Work { reserve: false },
        network: Network::Own,
        tmp: TmpPlace::Disk,
        // A trial is for the code of the project, so the hooks and the configuration of its git run in it.
        hardens_git: false,
        limits: LevelLimits {
            unapproved: true,
            layer: true,
            ..LevelLimits::default()
        },
    }
}
