//! The end of a session's file, where lines are added.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use super::Error;
use super::header::{Header, Renamed};
use co_llm::transcript::Item;

/// A session that is being written. Dropping it lets others open the session.
#[derive(Debug)]
pub struct TranscriptWriter {
    id: String,
    path: PathBuf,
    file: File,
    /// The last line has no end: the next one must not be glued to it.
    torn: bool,
}

impl TranscriptWriter {
    /// Adds an item; it is on disk when this returns.
    pub fn append(&mut self, item: &Item) -> Result<(), Error> {
        self.line(item)
    }

    /// Gives the session another title.
    pub fn rename(&mut self, title: &str) -> Result<(), Error> {
        self.line(&Renamed {
            title: title.to_owned(),
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn create(path: &Path, header: &Header) -> Result<Self, Error> {
        let write = |source| Error::Write {
            path: path.to_owned(),
            source,
        };
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(write)?;
        let mut log = Self {
            id: header.id.clone(),
            path: path.to_owned(),
            file,
            torn: false,
        };
        log.lock()?;
        log.line(header)?;
        // The name of the file is on disk as well.
        if let Some(directory) = path.parent() {
            File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(write)?;
        }
        Ok(log)
    }

    pub(super) fn open(id: &str, path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(|source| Error::Write {
                path: path.to_owned(),
                source,
            })?;
        let log = Self {
            id: id.to_owned(),
            path: path.to_owned(),
            file,
            torn: false,
        };
        log.lock()?;
        Ok(log)
    }

    pub(super) fn after_torn_line(&mut self, torn: bool) {
        self.torn = torn;
    }

    /// The lock goes with the file's description: it ends with this process, however that ends.
    fn lock(&self) -> Result<(), Error> {
        flock(&self.file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| {
            if errno == rustix::io::Errno::WOULDBLOCK {
                Error::Busy {
                    id: self.id.clone(),
                }
            } else {
                self.failed(errno.into())
            }
        })
    }

    fn line(&mut self, content: &impl Serialize) -> Result<(), Error> {
        let mut line = Vec::with_capacity(256);
        if self.torn {
            line.push(b'\n');
        }
        serde_json::to_writer(&mut line, content).map_err(|error| self.failed(error.into()))?;
        line.push(b'\n');
        // Until it is known that the whole line is there.
        self.torn = true;
        self.file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
            .map_err(|source| self.failed(source))?;
        self.torn = false;
        Ok(())
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Write {
            path: self.path.clone(),
            source,
        }
    }
}

impl Drop for TranscriptWriter {
    /// Unlocks by hand: a child that is being started at this moment holds the file open a little longer.
    fn drop(&mut self) {
        if let Err(error) = flock(&self.file, FlockOperation::Unlock) {
            tracing::warn!(%error, "a session stayed locked until its file is closed");
        }
    }
}
