//! Transcripts on disk: one file for each chat, one line of JSON for each item. Files are only appended to.
//!
//! An item is on disk when [`TranscriptWriter::append`] returns. Unreadable lines stay in the file and are reported. Only one
//! process at a time can write a transcript. This module does not know the meaning of items.

mod error;
mod export;
mod header;
mod reader;
mod writer;

use std::collections::HashSet;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use co_exec::beneath::Dir;
use co_llm::transcript::{self, End, Item, Usage};

pub use error::Error;
pub use export::export_markdown;
pub use header::{Meta, seconds_now};
pub use reader::ChatSummary;
pub use writer::TranscriptWriter;

use header::Header;
use reader::Contents;

/// The extension of the file that contains the draft of a chat.
const DRAFT: &str = "draft";

/// A transcript as read from its file.
#[derive(Debug)]
pub struct LoadedChat {
    /// The items after repair: every call has an outcome, and the last turn has an end.
    pub items: Vec<Item>,
    /// Sentences about unreadable or repaired items.
    pub notices: Vec<String>,
    pub meta: Meta,
}

/// All transcripts in a data directory.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// Returns the store. The directory is created with the first transcript.
    pub fn new(data_dir: PathBuf) -> Self {
        Self {
            directory: data_dir.join("chats"),
        }
    }

    /// Creates a transcript with its first items, which are on disk when this method returns.
    pub fn create(&self, meta: Meta, items: &[Item]) -> Result<TranscriptWriter, Error> {
        self.create_with(&Header::new(reader::new_id(), meta), items)
    }

    /// Opens a transcript to continue it. The transcript is locked until the writer is dropped.
    ///
    /// Closes the calls and turns that a killed process left open, in the items and in the file.
    pub fn open(&self, id: &str) -> Result<(TranscriptWriter, LoadedChat), Error> {
        let path = self.path(id)?;
        let mut log = TranscriptWriter::open(id, &path)?;
        let contents = Contents::read(id, &path)?;
        log.after(&contents);
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
                explained: false,
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

    /// Returns the chats. If `workspace` is set, returns only the chats of this workspace. The chat that changed last comes
    /// first.
    pub fn list(&self, workspace: Option<&Path>) -> Vec<ChatSummary> {
        let Ok(directory) = std::fs::read_dir(&self.directory) else {
            return Vec::new();
        };
        let mut entries: Vec<ChatSummary> = directory
            .flatten()
            .filter_map(|entry| reader::entry(&entry.path()))
            .filter(|entry| workspace.is_none_or(|workspace| entry.workspace == workspace))
            .collect();
        entries.sort_by(|a, b| b.modified.cmp(&a.modified).then(b.id.cmp(&a.id)));
        entries
    }

    /// Changes the title of a chat. No process may have the chat open.
    pub fn rename(&self, id: &str, title: &str) -> Result<(), Error> {
        let path = self.path(id)?;
        let mut log = TranscriptWriter::open(id, &path)?;
        log.after(&Contents::read(id, &path)?);
        log.rename(title)
    }

    /// Saves the draft of a chat's next prompt. An empty draft removes the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save_draft(&self, id: &str, text: &str) -> Result<(), Error> {
        let path = self.path(id)?.with_extension(DRAFT);
        let write = |source| Error::Write {
            path: path.clone(),
            source,
        };
        if text.is_empty() {
            return match std::fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(write(error)),
                _ => Ok(()),
            };
        }
        let dir = Dir::open_own(&self.directory).map_err(write)?;
        let (unfinished, mut file) = dir.make_unfinished(".draft-", 0o600).map_err(write)?;
        file.write_all(text.as_bytes()).map_err(write)?;
        unfinished
            .replace(path.file_name().unwrap_or_default())
            .map_err(write)
    }

    /// Returns the draft of a chat's next prompt; none if there is no draft.
    pub fn draft(&self, id: &str) -> Option<String> {
        std::fs::read_to_string(self.path(id).ok()?.with_extension(DRAFT)).ok()
    }

    /// Deletes the transcript and the draft of a chat that no process has open.
    pub fn delete(&self, id: &str) -> Result<(), Error> {
        let path = self.path(id)?;
        // This holds the lock until the file is deleted.
        let _log = TranscriptWriter::open(id, &path)?;
        self.save_draft(id, "")?;
        std::fs::remove_file(&path).map_err(|source| Error::Write { path, source })
    }

    /// Creates a transcript with the first `upto` items of another transcript, which may be open.
    pub fn fork(&self, id: &str, upto: usize) -> Result<TranscriptWriter, Error> {
        let contents = Contents::read(id, &self.path(id)?)?;
        let title = contents.title();
        let (mut items, _) = transcript::repair(contents.items);
        items.truncate(upto);
        let (items, _) = transcript::repair(items);
        let mut header = Header::new(reader::new_id(), contents.header.meta());
        header.title = format!("copy of {title}");
        header.forked_from = Some(id.to_owned());
        self.create_with(&header, &items)
    }

    /// Deletes the transcripts that have not changed for `age` and that no process has open. Returns the number of deleted
    /// transcripts.
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

    fn create_with(&self, header: &Header, items: &[Item]) -> Result<TranscriptWriter, Error> {
        reader::make_private(&self.directory).map_err(|source| Error::Write {
            path: self.directory.clone(),
            source,
        })?;
        let path = self.directory.join(format!("{}.jsonl", header.id));
        TranscriptWriter::create(&path, header, items)
    }

    /// Returns the path of a chat's file. Checks the id of the chat first, because a person may have typed it.
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

/// Returns the ids of the calls whose outcome is on disk.
fn answered(items: &[Item]) -> HashSet<String> {
    items
        .iter()
        .filter_map(|item| match item {
            Item::Outcome(outcome) => Some(outcome.call.clone()),
            _ => None,
        })
        .collect()
}
