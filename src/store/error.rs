//! The errors of the store.

use std::io;
use std::path::PathBuf;

/// A failure to find, read or write a transcript.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no chat {id}")]
    NotFound { id: String },
    #[error("the chat {id} is open in another Neovim")]
    Busy { id: String },
    #[error("the chat {id} was written by a later version of co (format {version})")]
    Newer { id: String, version: u32 },
    #[error("cannot write {}: {source}; check its disk and who owns it", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
}
