//! The checkpoints of a workspace. They keep the files before and after each call that may change files, so that a turn can be
//! taken back.
//!
//! `snapshot` reads the files and enforces the limits. [`Workspace`] decides when to take a snapshot, and assigns each change to
//! a call. [`Store`] keeps copies of the files in the state directory, and `log` keeps the changes of each chat. `round` finds
//! the changes that the person has neither accepted nor rejected yet; `moves` finds the moved files among them. `answers` keeps
//! the answers of a review that has not ended. `difference` shows a change. `undo` plans the changes of files that take earlier
//! changes back, or that keep the changes of a trial. `apply` makes the planned changes. `journal` finishes them if a process was
//! killed. `head` records the position of git's HEAD.
//!
//! This module knows no chat and asks no person. All of it blocks on files: call it from `spawn_blocking`.

mod answers;
mod apply;
mod authored;
mod change;
mod difference;
mod head;
mod journal;
mod log;
mod moves;
mod parts;
mod round;
mod snapshot;
mod store;
mod undo;
mod workspace;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::workspace::judge::Judge;
use co_exec::beneath::Dir;
use journal::Journal;

pub use answers::KeptAnswer;
pub use change::{Change, Entry, named, shown};
pub use head::{Head, HeadMove, way_back};
pub use journal::InterruptedKeep;
pub use log::{AcceptedFile, ChangeCause, History, Record, TurnChanges};
pub use parts::{ChangedFile, MOST_REVIEW_BYTES};
pub use round::{
    AnsweredFile, BaseFile, ChatRecord, OpenFile, OpenPart, PartKind, Round, Verdict, in_order,
};
pub use store::Store;
pub use undo::{Undo, UndoResult};
pub use workspace::{CallChanges, CurrentFile, EditedFiles, OpenCheckpoint, Workspace};

/// The checkpoints of all chats of a backend.
pub struct Checkpoints {
    dir: PathBuf,
    most: u64,
    /// The store of the copies; none until the first turn needs it.
    store: Mutex<Option<Arc<Store>>>,
    /// The reason why the store cannot be opened.
    problem: Mutex<Option<String>>,
    workspaces: Mutex<HashMap<PathBuf, Arc<Workspace>>>,
    /// The number of the person's own commands that run now.
    runs: Arc<AtomicUsize>,
    /// Notifies all chats after changes were made, accepted, rejected or taken back.
    changed: watch::Sender<()>,
}

/// A running command of the person. Files that change while it runs do not count as changes of a call.
pub struct PersonRun(Option<Arc<Checkpoints>>);

impl Checkpoints {
    /// Returns checkpoints that are kept in the directory `dir`. The directory is created when the first turn needs it.
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            most: store::MAX_BYTES,
            store: Mutex::default(),
            problem: Mutex::default(),
            workspaces: Mutex::default(),
            runs: Arc::default(),
            changed: watch::Sender::new(()),
        }
    }

    /// Notifies all chats that changes of a chat were made, accepted, rejected or taken back.
    pub fn tell_changed(&self) {
        self.changed.send_replace(());
    }

    /// Returns a receiver that is notified by [`Self::tell_changed`].
    pub fn changed(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns the checkpoints of a workspace. `judge` is the judge of the workspace, and knows its secret files.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn workspace(&self, judge: &Arc<Judge>) -> io::Result<Arc<Workspace>> {
        let store = self.store()?;
        let mut workspaces = self.workspaces.lock();
        let new = || {
            Arc::new(Workspace::new(
                Arc::clone(judge),
                store,
                Arc::clone(&self.runs),
            ))
        };
        Ok(Arc::clone(
            workspaces
                .entry(judge.root().to_owned())
                .or_insert_with(new),
        ))
    }

    /// Drops the snapshots that no command has used for `time`.
    pub fn forget_unused(&self, time: Duration) {
        let workspaces: Vec<_> = self.workspaces.lock().values().cloned().collect();
        for workspace in workspaces {
            workspace.forget_unused(time);
        }
    }

    /// Returns the store of copies.
    ///
    /// # Errors
    /// The directory of the store cannot be made.
    pub fn store(&self) -> io::Result<Arc<Store>> {
        let mut store = self.store.lock();
        if let Some(store) = &*store {
            return Ok(Arc::clone(store));
        }
        let opened = Store::open(&self.dir, self.most);
        *self.problem.lock() = opened.as_ref().err().map(ToString::to_string);
        Ok(Arc::clone(store.insert(Arc::new(opened?))))
    }

    /// Returns the reason why a command that starts now in the workspace `root` would have no checkpoint; none if it would have
    /// one. Does not block.
    pub fn missing(&self, root: &Path) -> Option<String> {
        match self.workspaces.lock().get(root) {
            Some(workspace) => workspace.missing(),
            None => {
                let problem = self.problem.lock().clone();
                Some(problem.unwrap_or_else(|| workspace::NOT_YET.to_owned()))
            }
        }
    }

    /// Returns true if there is a snapshot of the workspace `root`, so that co can find the changes of a command that starts now.
    /// Does not block.
    pub fn is_ready(&self, root: &Path) -> bool {
        let workspaces = self.workspaces.lock();
        workspaces.get(root).is_some_and(|it| it.is_ready())
    }

    /// Notes that the person saved a file in Neovim. Does not block.
    pub fn saved(&self, file: &Path) {
        for workspace in self.workspaces.lock().values() {
            workspace.touch(file);
        }
    }

    /// Records the changes that the running turns of agents have made so far. Call it after the person saved a file.
    pub fn divide_turns(&self) {
        let workspaces: Vec<_> = self.workspaces.lock().values().cloned().collect();
        let busy = workspaces.iter().filter(|workspace| workspace.is_busy());
        busy.for_each(|workspace| workspace.divide_turn());
    }

    /// Records the changes that the running turn of a chat's agent has made so far. Does nothing if no such turn runs.
    ///
    /// # Errors
    /// The changes cannot be written.
    pub fn record_open(&self, chat: &str) -> io::Result<()> {
        let workspaces: Vec<_> = self.workspaces.lock().values().cloned().collect();
        let mut busy = workspaces.iter().filter(|workspace| workspace.is_busy());
        let append = |record: &Record| self.append(chat, record);
        busy.try_for_each(|workspace| workspace.record_open(chat, append))
    }

    /// Returns true if a command of any chat runs. Does not block.
    pub fn is_busy(&self) -> bool {
        let workspaces = self.workspaces.lock();
        workspaces.values().any(|workspace| workspace.is_busy())
    }

    /// Notes that a command of the person starts. If a command of a chat runs, call [`Self::divide`] first.
    pub fn person_runs(self: &Arc<Self>) -> PersonRun {
        self.runs.fetch_add(1, Ordering::Relaxed);
        PersonRun(Some(Arc::clone(self)))
    }

    fn person_ran(&self) {
        self.divide();
        self.runs.fetch_sub(1, Ordering::Relaxed);
    }

    /// Assigns the changes since the last snapshot to the running commands.
    pub fn divide(&self) {
        let workspaces: Vec<_> = self.workspaces.lock().values().cloned().collect();
        let busy = workspaces.iter().filter(|workspace| workspace.is_busy());
        busy.for_each(|workspace| workspace.divide());
    }

    /// Returns the turns of a chat that changed files.
    pub fn history(&self, chat: &str) -> History {
        log::history(&self.dir, chat)
    }

    /// Returns the records of all changes of a chat, from the first to the last.
    pub fn records(&self, chat: &str) -> Vec<Record> {
        log::records(&self.dir, chat)
    }

    /// Returns the ids of the other chats, with their records in a workspace. Leaves out the chats that have recorded nothing
    /// since `since`, in seconds since 1970.
    pub fn others(
        &self,
        chat: &str,
        root: &Path,
        since: Option<u64>,
    ) -> Vec<(String, Vec<Record>)> {
        log::others(&self.dir, chat, root, since)
    }

    /// Returns the saved answers of a chat's review that has not ended.
    pub fn kept_answers(&self, chat: &str) -> Vec<KeptAnswer> {
        answers::read(&self.dir, chat)
    }

    /// Saves the answers of a chat's review that has not ended.
    ///
    /// # Errors
    /// The answers cannot be written.
    pub fn keep_answers(&self, chat: &str, kept: &[KeptAnswer]) -> io::Result<()> {
        answers::write(&self.dir, chat, kept)
    }

    /// Appends the changes of a call to the records of its chat.
    ///
    /// # Errors
    /// The changes cannot be written.
    pub fn append(&self, chat: &str, record: &Record) -> io::Result<()> {
        log::append(&self.dir, chat, record)
    }

    /// Makes the changes of `undo` to files in the workspace `root`. Does not make its changes to buffers. If co is killed
    /// meanwhile, [`Self::finish`] makes the remaining changes. If co was killed before the first change, `finish` drops all
    /// changes.
    ///
    /// # Errors
    /// Nothing was changed, because the journal could not be written or the workspace was replaced.
    pub fn make(&self, undo: Undo, root: &Path, by: ChangeCause) -> io::Result<UndoResult> {
        let dir = Dir::open(root).map_err(|_| {
            let why = format!("{} is no longer the same directory", root.display());
            io::Error::other(why)
        })?;
        let store = self.store()?;
        let record = Record {
            planned: true,
            changes: undo.changes,
            ..Record::new(0, by, root)
        };
        let journal = Journal::begin(&self.dir, &record)?;
        let unfinished = journal.unfinished();
        let options = record.by.write_options(&unfinished);
        let done = apply::apply(record.changes, &dir, &store, options);
        journal.end();
        Ok(done)
    }

    /// Finishes the changes that killed processes were making.
    pub fn finish(&self) -> Vec<InterruptedKeep> {
        if !log::keeps(&self.dir).exists() {
            return Vec::new();
        }
        let store = self.store();
        store.map_or_else(|_| Vec::new(), |store| journal::finish(&self.dir, &store))
    }

    /// Removes the records of a chat.
    pub fn remove(&self, chat: &str) {
        log::remove(&self.dir, chat);
        answers::remove(&self.dir, chat);
    }

    /// Copies the records of the turns before `end` from the chat `from` to the chat `to`.
    pub fn copy(&self, from: &str, to: &str, end: usize) {
        log::copy(&self.dir, from, to, end);
    }
}

impl PersonRun {
    /// Notes that the command has ended. May block on files.
    pub fn end(mut self) {
        if let Some(checkpoints) = self.0.take() {
            checkpoints.person_ran();
        }
    }
}

impl Drop for PersonRun {
    fn drop(&mut self) {
        match self.0.take() {
            Some(checkpoints) if checkpoints.is_busy() => {
                std::thread::spawn(move || checkpoints.person_ran());
            }
            Some(checkpoints) => checkpoints.person_ran(),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
