//! The level of a tool server: the server reads the workspace, or also writes in it, and has its own directory. It answers the
//! calls of a model, and runs as long as its chats.

use std::path::Path;

use super::level::{
    Access, Calls, ClosedBy, ClosedSecrets, GrantedPlaces, Level, LevelLimits, Network,
    ShownSecrets, TmpPlace,
};

/// The name of the level of a server that only reads the workspace.
pub const NAME: &str = "server";
/// The name of the level of a server that also writes in the workspace.
pub const WRITING_NAME: &str = "writing-server";

/// The access of a tool server to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerAccess {
    Read,
    Write,
}

pub(super) fn level<'a>(
    workspace: &'a Path,
    places: &'a GrantedPlaces,
    access: ServerAccess,
    network: Network,
) -> Level<'a> {
    let (name, words, closed_by, level_access) = match access {
        ServerAccess::Read => (
            NAME,
            "read-only but for its own directory",
            ClosedBy::Rules,
            Access::Read,
        ),
        ServerAccess::Write => (
            WRITING_NAME,
            "confined to the workspace and its own directory",
            ClosedBy::WritableMounts,
            Access::Write,
        ),
    };
    Level {
        name,
        words,
        secrets: ClosedSecrets {
            workspace,
            shown: &ShownSecrets::Nothing,
            closed_by,
        },
        access: level_access,
        places: Some(places),
        // Interpreters such as node need more calls than those of programs that look.
        calls: Calls::Work { reserve: true },
        network,
        tmp: TmpPlace::Disk,
        hardens_git: access == ServerAccess::Read,
        limits: LevelLimits {
            places: true,
            ..LevelLimits::default()
        },
    }
}
