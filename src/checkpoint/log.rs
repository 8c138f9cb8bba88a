//! The log of each chat's changes: one file for each chat, with one line of JSON for each call that changed files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use memchr::memmem;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use super::change::{Blob, Change, Entry};
use super::head::HeadMove;
use crate::paths::{self, private_dir};
use crate::workspace::edits::disk::WriteOptions;
use co_llm::transcript::Decision;

/// The changes of one call, or of one `/undo`, `/redo` or review of the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The number of the turn in its chat.
    pub turn: usize,
    pub by: ChangeCause,
    /// The canonical path of the workspace.
    pub workspace: PathBuf,
    pub changes: Vec<Change>,
    /// The move of git's HEAD during a command; none if HEAD did not move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<HeadMove>,
    /// True if an older version of co also made changes in `.git`. No version takes these changes back now.
    #[serde(
        default,
        rename = "repository",
        deserialize_with = "is_there",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub of_git: bool,
    /// The files that changed during the call, but perhaps not because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unclear: Vec<PathBuf>,
    /// The reason why the changes of the call are unknown; none if they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// True if this record was written before the changes were made. The next record of the chat has the result. If no record
    /// follows, co was killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub planned: bool,
    /// The time in seconds since 1970. `append` sets it. Older versions of co did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The nanoseconds of the time, as a fraction of the second `at`.
    #[serde(default)]
    pub nanos: u32,
}

/// A file whose changes the person accepted in a review, wholly or partly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedFile {
    pub path: PathBuf,
    /// The path of the file in the baseline. It differs from `path` if the person has not accepted a move of the file yet.
    pub name: PathBuf,
    /// The file with the accepted changes only.
    pub baseline: Option<Entry>,
    /// The file with all changes, including the changes that are not accepted yet.
    pub seen: Option<Entry>,
}

/// The cause of a change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeCause {
    Call {
        /// The command, or the tool and its file.
        what: String,
        decision: Decision,
        /// True if the call is a command. A command may change more than files of the workspace.
        command: bool,
    },
    Undo,
    Redo,
    /// co took back the parts of a turn that the person rejected.
    TakenBack,
    /// The person accepted changes in a review. Such a record changes no file.
    Accepted {
        files: Vec<AcceptedFile>,
    },
}

/// The changes of one turn, or of several turns that were taken back together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnChanges {
    pub turn: usize,
    /// The number of the last turn, if several turns were taken back together; otherwise the same as `turn`.
    pub last: usize,
    /// The records, from the first to the last.
    pub records: Vec<Record>,
}

/// The turns of a chat that changed files. The oldest turn comes first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    pub done: Vec<TurnChanges>,
    /// The turns that were taken back, each with the changes that `/undo` made to files. A later change of the chat clears this
    /// list.
    pub undone: Vec<TurnChanges>,
}

impl Record {
    /// Returns a record without changes.
    pub fn new(turn: usize, by: ChangeCause, workspace: &Path) -> Self {
        Self {
            turn,
            by,
            workspace: workspace.to_owned(),
            changes: Vec::new(),
            head: None,
            of_git: false,
            unclear: Vec::new(),
            unknown: None,
            planned: false,
            at: None,
            nanos: 0,
        }
    }

    /// Returns the paths that the record changes, relative to the workspace.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.changes.iter().map(|it| it.path.as_path())
    }

    /// Returns the time since 1970; none if an older version of co wrote the record.
    pub(super) fn time(&self) -> Option<Duration> {
        self.at.map(|at| Duration::new(at, self.nanos))
    }

    /// Returns true if the record says that the person accepted changes. Such a record changes no file.
    fn is_accepted(&self) -> bool {
        matches!(self.by, ChangeCause::Accepted { .. })
    }
}

impl ChangeCause {
    /// Returns the cause of changes by a command of the model.
    pub fn command(what: String, decision: Decision) -> Self {
        let command = true;
        Self::Call {
            what,
            decision,
            command,
        }
    }

    /// Returns the cause of a change that co itself makes for a call.
    pub fn change(what: String, decision: Decision) -> Self {
        let command = false;
        Self::Call {
            what,
            decision,
            command,
        }
    }

    /// Returns the options with which the changes are written. `unfinished` is the prefix of the names of temporary files.
    pub(super) fn write_options<'a>(&self, unfinished: &'a str) -> WriteOptions<'a> {
        let of_trial = matches!(self, Self::Call { .. });
        WriteOptions {
            unfinished,
            mode: None,
            // A trial may have many files, so they are not synced. A loss of power may lose them, and the journal too.
            sync: !of_trial,
            // A directory that the person removed after a trial must not come back.
            makes_dirs: !of_trial,
        }
    }
}

impl TurnChanges {
    /// Returns all changes, from the first to the last.
    pub fn changes(&self) -> impl DoubleEndedIterator<Item = &Change> {
        self.records.iter().flat_map(|record| &record.changes)
    }

    /// Returns true if this value contains the changes of the turn with this number.
    pub fn has_turn(&self, turn: usize) -> bool {
        (self.turn..=self.last).contains(&turn)
    }

    pub fn has_changes(&self) -> bool {
        self.changes().next().is_some()
    }

    /// Returns the canonical path of the workspace.
    pub fn workspace(&self) -> &Path {
        let first = self.records.first();
        first.map_or(Path::new(""), |record| record.workspace.as_path())
    }

    /// Returns the absolute paths of the changed files.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.changes()
            .map(|change| self.workspace().join(&change.path))
    }
}

impl History {
    fn add(&mut self, record: Record) {
        let turn = record.turn;
        match record.by {
            ChangeCause::Call { .. } => {
                self.undone.clear();
                match self.done.last_mut().filter(|last| last.turn == turn) {
                    Some(last) => last.records.push(record),
                    None => self.done.push(TurnChanges {
                        turn,
                        last: turn,
                        records: vec![record],
                    }),
                }
            }
            // It takes back all turns from this one on.
            ChangeCause::Undo => {
                let last = self.done.last().map_or(turn, |it| it.last.max(turn));
                self.done.retain(|it| it.turn < turn);
                self.undone.push(TurnChanges {
                    turn,
                    last,
                    records: vec![record],
                });
            }
            ChangeCause::Redo => {
                let is_it = |it: &TurnChanges| it.turn == turn;
                let undone = self.undone.iter().rposition(is_it);
                let last = undone.map_or(turn, |at| self.undone.remove(at).last);
                match self.done_turn(turn) {
                    Some(done) => done.records.push(record),
                    None => self.done.push(TurnChanges {
                        turn,
                        last,
                        records: vec![record],
                    }),
                }
            }
            // The rest of the turn stays.
            ChangeCause::TakenBack => {
                self.undone.push(TurnChanges {
                    turn,
                    last: turn,
                    records: vec![record.clone()],
                });
                if let Some(done) = self.done_turn(turn) {
                    done.records.push(record);
                }
            }
            ChangeCause::Accepted { .. } => {}
        }
    }

    fn done_turn(&mut self, turn: usize) -> Option<&mut TurnChanges> {
        self.done.iter_mut().find(|it| it.has_turn(turn))
    }
}

/// Returns the records of a chat, from the first to the last. Leaves out lines that cannot be read. Leaves out a planned record
/// if a record with its result follows. A record of accepted changes does not count as such a result.
pub(super) fn records(store: &Path, chat: &str) -> Vec<Record> {
    without_old_plans(read(&file(store, chat)))
}

fn without_old_plans(mut records: Vec<Record>) -> Vec<Record> {
    let is_done = |it: &Record| !it.planned && !it.is_accepted();
    let last = records.iter().rposition(is_done);
    let mut at = 0..;
    records.retain(|it| at.next() > last || !it.planned);
    records
}

/// Returns the turns of a chat.
pub(super) fn history(store: &Path, chat: &str) -> History {
    let mut history = History::default();
    for record in records(store, chat) {
        history.add(record);
    }
    history
}

/// Returns the records of each other chat in a workspace; see [`super::Checkpoints::others`].
pub(super) fn others(
    store: &Path,
    chat: &str,
    root: &Path,
    since: Option<u64>,
) -> Vec<(String, Vec<Record>)> {
    let since = SystemTime::UNIX_EPOCH + Duration::from_secs(since.unwrap_or_default());
    let is_later = |path: &Path| {
        let modified = path.metadata().and_then(|it| it.modified());
        modified.is_ok_and(|it| it >= since)
    };
    // Most chats are of other workspaces. To search takes less time than to read all their records.
    let workspace = serde_json::to_string(root).unwrap_or_default();
    let workspace = memmem::Finder::new(&workspace);
    let entries = fs::read_dir(store.join("chats"));
    let entries = entries.into_iter().flatten().flatten();
    let mut found = Vec::new();
    for path in entries.map(|it| it.path()).filter(|it| is_later(it)) {
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        if id == chat {
            continue;
        }
        let text = fs::read(&path).unwrap_or_default();
        if workspace.find(&text).is_none() {
            continue;
        }
        let mut records = without_old_plans(parse(&text));
        records.retain(|it| it.workspace == root);
        if !records.is_empty() {
            found.push((id.into_owned(), records));
        }
    }
    found
}

/// Appends a record to the log of a chat.
///
/// # Errors
/// The file cannot be written.
pub(super) fn append(store: &Path, chat: &str, record: &Record) -> io::Result<()> {
    let path = file(store, chat);
    let dir = path.parent().unwrap_or(store);
    private_dir(dir)?;
    let mut options = File::options();
    let opened = options.append(true).create(true).mode(0o600).open(&path);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap_or_default();
    let record = match record.at {
        Some(_) => record.clone(),
        None => Record {
            at: Some(now.as_secs()),
            nanos: now.subsec_nanos(),
            ..record.clone()
        },
    };
    // The last line may have no end.
    let line = format!("\n{}\n", serde_json::to_string(&record)?);
    let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    Ok(written.map_err(|error| paths::Error::write(dir, error))?)
}

/// Removes the log of a chat. Does nothing if it has none.
pub(super) fn remove(store: &Path, chat: &str) {
    if let Err(error) = fs::remove_file(file(store, chat))
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "the changes of a chat were not removed");
    }
}

/// Copies the records of the turns before `end` from one chat to another.
pub(super) fn copy(store: &Path, from: &str, to: &str, end: usize) {
    let records = records(store, from).into_iter();
    for record in records.filter(|record| record.turn < end) {
        if let Err(error) = append(store, to, &record) {
            tracing::warn!(%error, "the changes of a chat were not copied");
            return;
        }
    }
}

/// Returns the logs of all chats, and the journals. The file that changed last comes first.
pub(super) fn newest_first(store: &Path) -> Vec<PathBuf> {
    let dirs = [store.join("chats"), keeps(store)];
    let entries = dirs.iter().flat_map(fs::read_dir).flatten().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    files.sort_by(|a, b| b.cmp(a));
    files.into_iter().map(|(_, path)| path).collect()
}

/// Returns the names of the copies that the records in a file refer to.
pub(super) fn blobs(file: &Path) -> Vec<Blob> {
    let mut found = Vec::new();
    for record in read(file) {
        let accepted = match record.by {
            ChangeCause::Accepted { files } => files,
            _ => Vec::new(),
        };
        let accepted = accepted.into_iter().flat_map(|it| [it.baseline, it.seen]);
        let entries = record
            .changes
            .into_iter()
            .flat_map(|it| [it.before, it.after])
            .chain(accepted);
        found.extend(entries.filter_map(|entry| match entry {
            Some(Entry::File { blob, .. }) => blob,
            _ => None,
        }));
    }
    found
}

fn read(file: &Path) -> Vec<Record> {
    parse(&fs::read(file).unwrap_or_default())
}

fn parse(text: &[u8]) -> Vec<Record> {
    let lines = text.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

/// Deserializes any value. Returns true if the value is not null.
fn is_there<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    let value: Option<IgnoredAny> = Option::deserialize(from)?;
    Ok(value.is_some())
}

/// Returns the directory of the journals. A journal has the same format as the log of a chat.
pub(super) fn keeps(store: &Path) -> PathBuf {
    store.join("keeps")
}

/// Returns the path of a chat's log. `chat` contains no slash, because `Store::path` checks the ids that a person types.
fn file(store: &Path, chat: &str) -> PathBuf {
    store.join("chats").join(format!("{chat}.jsonl"))
}
