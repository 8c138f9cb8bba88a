//! Reads one file of a layer or of the workspace.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;

use crate::checkpoint::{Entry, Store};
use crate::workspace::edits::disk;
use co_exec::beneath::{Dir, Kind, Node};
use co_text::size_text;

/// The largest number of bytes of a file that can be kept. `/undo` has the same limit.
const MOST_BYTES: u64 = disk::MAX_FILE_BYTES;

/// The mode bits that let a program run as another user or group.
const SETUID: u32 = 0o6000;

/// A file and its content.
#[derive(Debug, PartialEq)]
pub(super) enum Content {
    File { mode: u32, bytes: Vec<u8> },
    Link { target: PathBuf },
    Dir { mode: u32 },
}

impl Content {
    /// Reads a file in a directory.
    ///
    /// # Errors
    /// The reason why the file cannot be kept, as a clause.
    pub(super) fn read(dir: &Dir, name: &OsStr, node: Node) -> Result<Self, String> {
        let unreadable = |error: io::Error| format!("it cannot be read: {error}");
        match node.kind {
            Kind::File if node.size() > MOST_BYTES => {
                Err(format!("it is larger than {}", size_text(MOST_BYTES)))
            }
            Kind::File => Ok(Self::File {
                mode: node.mode,
                bytes: dir.read(name, MOST_BYTES).map_err(unreadable)?,
            }),
            Kind::Dir => Ok(Self::Dir { mode: node.mode }),
            Kind::Link => {
                let target = dir.target(name).map_err(unreadable)?;
                match target.to_str() {
                    Some(_) => Ok(Self::Link { target }),
                    None => Err("its target is not UTF-8".to_owned()),
                }
            }
            Kind::Whiteout => Err("it is a device".to_owned()),
            Kind::Special(what) => Err(format!("it is {what}")),
        }
    }

    pub(super) fn is_dir(&self) -> bool {
        matches!(self, Self::Dir { .. })
    }

    /// Returns true if the file lets a program run as another user or group, and `before` did not.
    pub(super) fn adds_setuid(&self, before: Option<&Self>) -> bool {
        let bits = |it: &Self| match it {
            Self::File { mode, .. } => mode & SETUID,
            Self::Link { .. } | Self::Dir { .. } => 0,
        };
        bits(self) & !before.map_or(0, bits) != 0
    }

    /// Returns the size of the file's copy in bytes.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::File { bytes, .. } => bytes.len() as u64,
            Self::Link { .. } | Self::Dir { .. } => 0,
        }
    }

    /// Stores a copy of the file.
    ///
    /// # Errors
    /// The store cannot store the copy.
    pub(super) fn into_entry(self, store: &Store) -> io::Result<Entry> {
        Ok(match self {
            Self::File { mode, bytes } => Entry::File {
                mode,
                blob: Some(store.put(&bytes)?),
            },
            Self::Link { target } => Entry::Link { target },
            Self::Dir { mode } => Entry::Dir { mode },
        })
    }
}
