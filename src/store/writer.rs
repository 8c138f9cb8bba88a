//! Locks a transcript file, and appends lines to it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use super::error::Error;
use super::header::{Header, Renamed};
use super::reader::Contents;
use co_llm::transcript::Item;

/// An open, locked transcript file. Dropping it unlocks the file.
#[derive(Debug)]
pub struct TranscriptWriter {
    id: String,
    title: String,
    path: PathBuf,
    file: File,
    /// True if the last line may have no line break. The next line then needs a line break before it.
    torn: bool,
}

impl TranscriptWriter {
    /// Appends an item. The item is on disk when this method returns.
    pub fn append(&mut self, item: &Item) -> Result<(), Error> {
        self.write(&[item])?;
        self.sync()
    }

    /// Appends an item that is on disk with the next one. Until then, a crash of the machine may lose it, but no crash of co.
    pub fn append_unsynced(&mut self, item: &Item) -> Result<(), Error> {
        self.write(&[item])
    }

    /// Changes the chat's title.
    pub fn rename(&mut self, title: &str) -> Result<(), Error> {
        self.write(&[Renamed {
            title: title.to_owned(),
        }])?;
        self.sync()?;
        title.clone_into(&mut self.title);
        Ok(())
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the chat's title.
    pub fn title(&self) -> &str {
        &self.title
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file with its first items. They are on disk when this returns.
    pub(super) fn create(path: &Path, header: &Header, items: &[Item]) -> Result<Self, Error> {
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
            title: header.title.clone(),
            path: path.to_owned(),
            file,
            torn: false,
        };
        let begun = log.begin(header, items);
        if begun.is_err() {
            // Else each further attempt would leave a chat in the list.
            let _stays = std::fs::remove_file(path);
        }
        begun.map(|()| log)
    }

    fn begin(&mut self, header: &Header, items: &[Item]) -> Result<(), Error> {
        self.lock()?;
        self.write(&[header])?;
        self.write(items)?;
        self.sync()?;
        // Also write the directory, which has the name of the file.
        let directory = self.path.parent().map(File::open);
        let synced = directory.map_or(Ok(()), |it| it.and_then(|it| it.sync_all()));
        synced.map_err(|source| self.failed(source))
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
            title: String::new(),
            path: path.to_owned(),
            file,
            torn: false,
        };
        log.lock()?;
        Ok(log)
    }

    /// Takes over the title of a file that already has content, and whether its last line has no line break.
    pub(super) fn after(&mut self, contents: &Contents) {
        self.torn = contents.torn;
        self.title = contents.title();
    }

    /// Locks the file. The kernel releases the lock when this process ends.
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

    fn write(&mut self, lines: &[impl Serialize]) -> Result<(), Error> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(self.torn.then_some(b'\n'));
        for line in lines {
            serde_json::to_writer(&mut bytes, line).map_err(|error| self.failed(error.into()))?;
            bytes.push(b'\n');
        }
        let written = self.file.write_all(&bytes);
        // They may be written in part.
        self.torn = written.is_err();
        written.map_err(|source| self.failed(source))
    }

    /// Waits until all that was written is on disk.
    fn sync(&mut self) -> Result<(), Error> {
        let synced = self.file.sync_data();
        // The kernel may have dropped what it could not write.
        self.torn |= synced.is_err();
        synced.map_err(|source| self.failed(source))
    }

    /// Replaces the file to which the writer appends, for example by `/dev/full`. Returns the earlier file.
    #[cfg(test)]
    pub(crate) fn replace_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Write {
            path: self.path.clone(),
            source,
        }
    }
}

impl Drop for TranscriptWriter {
    /// Unlocks the file. Closing it is not enough, because a child process that is just starting may keep it open a little
    /// longer.
    fn drop(&mut self) {
        if let Err(error) = flock(&self.file, FlockOperation::Unlock) {
            tracing::warn!(%error, "a chat stayed locked until its file is closed");
        }
    }
}
