//! The level of containers, whose limits a container engine enforces.

use std::path::Path;

use super::level::{ClosedBy, ClosedSecrets, ShownSecrets};
use super::read_only;

/// A short description of the container level for a person.
pub const WORDS: &str = "confined to the workspace (container)";

/// A level of confinement by a container engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ContainerLevel<'a> {
    pub(crate) name: &'static str,
    pub(crate) words: &'static str,
    pub(crate) secrets: ClosedSecrets<'a>,
    /// True if the command is read-only.
    pub(crate) read_only: bool,
}

pub(super) fn level<'a>(
    workspace: &'a Path,
    shown: &'a ShownSecrets,
    read_only: bool,
) -> ContainerLevel<'a> {
    let (name, words, closed_by) = match read_only {
        true => (
            read_only::NAME,
            "read-only, without network, in a container",
            ClosedBy::Mounts,
        ),
        false => ("container", WORDS, ClosedBy::WritableMounts),
    };
    ContainerLevel {
        name,
        words,
        secrets: ClosedSecrets {
            workspace,
            shown,
            closed_by,
        },
        read_only,
    }
}
