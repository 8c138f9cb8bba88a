//! Sessions on disk: one file each, one line of JSON for each item, only ever appended to.
//!
//! Knows nothing of what the items mean. A line is on disk when [`TranscriptWriter::append`] returns; a line that cannot
//! be read stays where it is and is told of, never lost. One process writes a session at a time.

mod export;
mod file;
mod header;
mod log;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use co_llm::transcript::{self, End, Item, Usage};

pub use export::export_markdown;
pub use log::TranscriptWriter;

use file::Contents;
use header::Header;

/// Raised whenever a line changes its meaning.
const VERSION: u32 = 1;

/// Why a session could not be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no session {id}")]
    NotFound { id: String },
    #[error("the session {id} is open in another Neovim")]
    Busy { id: String },
    #[error("the session {id} was written by a later version of co (format {version})")]
    Newer { id: String, version: u32 },
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// What is known of a session from its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    pub workspace: PathBuf,
    pub cwd: PathBuf,
    /// Empty: the first prompt stands for it.
    pub title: String,
}

/// A session as it was read.
#[derive(Debug)]
pub struct LoadedChat {
    /// Repaired: every call has its outcome, the last turn its end.
    pub items: Vec<Item>,
    /// Sentences about what could not be read or had to be mended.
    pub notices: Vec<String>,
    pub meta: Meta,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatSummary {
    pub id: String,
    pub title: String,
    pub workspace: PathBuf,
    pub modified: SystemTime,
    pub items: usize,
}

/// The sessions in a data directory.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// Nothing is made before the first session is.
    pub fn new(data_dir: PathBuf) -> Self {
        Self {
            directory: data_dir.join("sessions"),
        }
    }

    /// Begins a session.
    pub fn create(&self, meta: Meta) -> Result<TranscriptWriter, Error> {
        self.create_with(Header::new(file::new_id(), meta))
    }

    /// Opens a session to go on with it; nobody else can until the log is dropped.
    ///
    /// What a process that was killed left open is closed: in the items, and in the file.
    pub fn open(&self, id: &str) -> Result<(TranscriptWriter, LoadedChat), Error> {
        let path = self.path(id)?;
        let mut log = TranscriptWriter::open(id, &path)?;
        let contents = Contents::read(id, &path)?;
        log.after_torn_line(contents.torn);
        let mut notices = contents.notices();
        let answered = answered(&contents.items);
        let (mut items, _) = transcript::repair(contents.items);
        let mut added: Vec<Item> = items
            .iter()
            .filter(
                |item| matches!(item, Item::Outcome(outcome) if !answered.contains(&outcome.call)),
            )
            .cloned()
            .collect();
        let lost = transcript::lost_jobs(&items);
        items.extend(lost.iter().cloned());
        added.extend(lost);
        if transcript::unfinished(&items) {
            let end = Item::End {
                reason: End::Interrupted,
                usage: Usage::default(),
            };
            items.push(end.clone());
            added.push(end);
        }
        added.iter().try_for_each(|item| log.append(item))?;
        if !added.is_empty() {
            notices.push(
                "What was going on when co ended was interrupted; it is marked so.".to_owned(),
            );
        }
        let loaded = LoadedChat {
            items,
            notices,
            meta: contents.header.meta(),
        };
        Ok((log, loaded))
    }

    /// Returns the sessions, the last changed first; of one workspace where one is given.
    pub fn list(&self, workspace: Option<&Path>) -> Vec<ChatSummary> {
        let Ok(directory) = std::fs::read_dir(&self.directory) else {
            return Vec::new();
        };
        let mut entries: Vec<ChatSummary> = directory
            .flatten()
            .filter_map(|entry| file::entry(&entry.path()))
            .filter(|entry| workspace.is_none_or(|workspace| entry.workspace == workspace))
            .collect();
        entries.sort_by(|a, b| b.modified.cmp(&a.modified).then(b.id.cmp(&a.id)));
        entries
    }

    /// Gives a session that nobody has open another title.
    pub fn rename(&self, id: &str, title: &str) -> Result<(), Error> {
        let path = self.path(id)?;
        let mut log = TranscriptWriter::open(id, &path)?;
        log.after_torn_line(Contents::read(id, &path)?.torn);
        log.rename(title)
    }

    /// Deletes a session that nobody has open.
    pub fn delete(&self, id: &str) -> Result<(), Error> {
        let path = self.path(id)?;
        // Held until the file is gone.
        let _log = TranscriptWriter::open(id, &path)?;
        std::fs::remove_file(&path).map_err(|source| Error::Write { path, source })
    }

    /// Begins a session with the first `upto` items of another, which may be open.
    pub fn fork(&self, id: &str, upto: usize) -> Result<TranscriptWriter, Error> {
        let contents = Contents::read(id, &self.path(id)?)?;
        let (mut items, _) = transcript::repair(contents.items);
        items.truncate(upto);
        let (items, _) = transcript::repair(items);
        let mut header = Header::new(file::new_id(), contents.header.meta());
        header.forked_from = Some(id.to_owned());
        let mut log = self.create_with(header)?;
        for item in &items {
            log.append(item)?;
        }
        Ok(log)
    }

    /// Deletes the sessions that were not touched for `age` and that nobody has open; returns how many.
    pub fn prune(&self, age: Duration) -> Result<usize, Error> {
        let now = SystemTime::now();
        let mut pruned = 0;
        for entry in self.list(None) {
            let old = now
                .duration_since(entry.modified)
                .is_ok_and(|idle| idle > age);
            if !old {
                continue;
            }
            match self.delete(&entry.id) {
                Ok(()) => pruned += 1,
                Err(Error::Busy { .. } | Error::NotFound { .. } | Error::Newer { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(pruned)
    }

    fn create_with(&self, header: Header) -> Result<TranscriptWriter, Error> {
        file::make_private(&self.directory).map_err(|source| Error::Write {
            path: self.directory.clone(),
            source,
        })?;
        let path = self.directory.join(format!("{}.jsonl", header.id));
        TranscriptWriter::create(&path, &header)
    }

    /// An id comes from a person: it names a file in here, or nothing.
    fn path(&self, id: &str) -> Result<PathBuf, Error> {
        let plain = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let path = self.directory.join(format!("{id}.jsonl"));
        if plain && path.is_file() {
            Ok(path)
        } else {
            Err(Error::NotFound { id: id.to_owned() })
        }
    }
}

/// Returns the calls that have an outcome on disk.
fn answered(items: &[Item]) -> HashSet<String> {
    items
        .iter()
        .filter_map(|item| match item {
            Item::Outcome(outcome) => Some(outcome.call.clone()),
            _ => None,
        })
        .collect()
}
