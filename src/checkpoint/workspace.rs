//! Takes the snapshots of one workspace, and assigns each change to a call.

use std::collections::{HashMap, HashSet};
use std::io;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use super::change::{Change, Entry};
use super::head::HeadMove;
use super::log::{self, Record};
use super::snapshot::{Differences, Snapshot, SnapshotSource, entry_at};
use super::store::Store;
use crate::workspace::edits::PlannedEdit;
use crate::workspace::judge::Judge;
use co_edit::FileText;
use co_exec::beneath::Dir;
use co_exec::watcher::{ChangeMark, Changes};

/// The reason why no change can be taken back while co takes the first snapshot.
pub(super) const NOT_YET: &str = "the first checkpoint of the workspace is being made";

/// The largest number of files that are compared with the state in which a chat left them.
const MOST_COMPARED: usize = 500;

/// The snapshots of one workspace.
pub struct Workspace {
    root: PathBuf,
    pub(super) judge: Arc<Judge>,
    pub(super) store: Arc<Store>,
    /// The number of the person's own commands that run now, in any workspace.
    runs: Arc<AtomicUsize>,
    /// The reason why there is no snapshot; none if there is one.
    missing: Mutex<Option<String>>,
    latest: Mutex<LatestSnapshot>,
    /// The files that the person saved, or that edits changed, since the last snapshot.
    touched: Mutex<HashSet<PathBuf>>,
    /// The number of checkpoints that are open or will open soon.
    open_checkpoints: AtomicUsize,
    ids: AtomicU64,
}

/// The last snapshot, and the checkpoints that are open since then.
#[derive(Default)]
struct LatestSnapshot {
    snapshot: Snapshot,
    /// The mark of the file watcher for the moment just before the snapshot; none if no watcher ran. The watcher reports the
    /// changes since a mark.
    mark: Option<ChangeMark>,
    /// The time of the snapshot; none before the first snapshot.
    taken: Option<Instant>,
    open: Vec<CheckpointChanges>,
}

/// The changes that belong to an open checkpoint so far.
struct CheckpointChanges {
    id: u64,
    is_job: bool,
    found: CallChanges,
    /// The record of an agent's turn, which can be written before the checkpoint ends; none for the checkpoint of a command or
    /// job.
    open_record: Option<OpenRecord>,
}

/// The record of an open checkpoint, without its changes.
struct OpenRecord {
    chat: String,
    record: Record,
}

/// The checkpoint of a running command. If it is dropped, its changes are forgotten.
pub struct OpenCheckpoint {
    workspace: Arc<Workspace>,
    id: u64,
}

/// The files that an edit changes, in the state before the edit. The paths are relative to the workspace.
pub type EditedFiles = Vec<(PathBuf, Option<Entry>)>;

/// A path relative to the workspace, and the current file; none if it does not exist.
pub type CurrentFile = (PathBuf, Option<Entry>);

/// The changes of the files during a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallChanges {
    /// The changes, from the first to the last. A path may occur several times.
    pub changes: Vec<Change>,
    /// The move of git's HEAD during the call.
    pub head: Option<HeadMove>,
    /// The files that changed, but perhaps not because of this call: the person saved them, or another command ran at the same
    /// time.
    pub unclear: Vec<PathBuf>,
    /// The reason why the changes are unknown; none if they are known.
    pub unknown: Option<String>,
}

impl CallChanges {
    /// Returns a value without changes. It says that the changes are unknown, for the reason `why`.
    pub fn unknown(why: String) -> Self {
        Self {
            unknown: Some(why),
            ..Self::default()
        }
    }

    /// Returns a record that contains these changes.
    pub fn in_record(self, record: Record) -> Record {
        Record {
            changes: self.changes,
            head: self.head,
            unclear: self.unclear,
            unknown: self.unknown,
            ..record
        }
    }
}

impl Workspace {
    pub(super) fn new(judge: Arc<Judge>, store: Arc<Store>, runs: Arc<AtomicUsize>) -> Self {
        Self {
            root: judge.root().to_owned(),
            judge,
            store,
            runs,
            missing: Mutex::new(Some(NOT_YET.to_owned())),
            latest: Mutex::default(),
            touched: Mutex::default(),
            open_checkpoints: AtomicUsize::new(0),
            ids: AtomicU64::new(0),
        }
    }

    /// Returns the canonical path of the workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the reason why a command that starts now would have no checkpoint; none if it would have one. Does not block.
    pub fn missing(&self) -> Option<String> {
        self.missing.lock().clone()
    }

    /// Returns true if there is a snapshot. Does not block.
    pub(super) fn is_ready(&self) -> bool {
        // While it is locked, one is taken or compared.
        let latest = self.latest.try_lock();
        self.missing().is_none() && latest.is_none_or(|latest| latest.taken.is_some())
    }

    /// Takes the first snapshot, unless there is one. If the workspace is too large to read at once, the next call continues.
    pub fn prepare(&self) {
        let mut latest = self.latest.lock();
        if self.missing().is_some() || latest.taken.is_none() {
            // Its reason is kept for the next question.
            let _too_large = self.step(&mut latest);
        }
    }

    /// Takes a snapshot before a command.
    ///
    /// # Errors
    /// The reason why there is no snapshot.
    pub fn begin(self: &Arc<Self>) -> Result<OpenCheckpoint, String> {
        self.begin_checkpoint(false, None)
    }

    /// Takes a snapshot before the turn of an agent. `record_open` records the changes of the turn while it runs.
    ///
    /// # Errors
    /// The reason why there is no snapshot.
    pub fn begin_turn(
        self: &Arc<Self>,
        chat: String,
        record: Record,
    ) -> Result<OpenCheckpoint, String> {
        self.begin_checkpoint(false, Some(OpenRecord { chat, record }))
    }

    /// Takes a snapshot when a job starts. Files that change while a command runs at the same time do not count as changes of the
    /// job.
    ///
    /// # Errors
    /// The reason why there is no snapshot.
    pub fn begin_job(self: &Arc<Self>) -> Result<OpenCheckpoint, String> {
        self.begin_checkpoint(true, None)
    }

    fn begin_checkpoint(
        self: &Arc<Self>,
        is_job: bool,
        open_record: Option<OpenRecord>,
    ) -> Result<OpenCheckpoint, String> {
        if let Some(why) = self.missing() {
            return Err(why);
        }
        // Made first, so that a command of the person that starts meanwhile waits for the snapshot.
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        self.open_checkpoints.fetch_add(1, Ordering::Relaxed);
        let checkpoint = OpenCheckpoint {
            workspace: Arc::clone(self),
            id,
        };
        let mut latest = self.latest.lock();
        self.step(&mut latest)?;
        latest.open.push(CheckpointChanges {
            id,
            is_job,
            found: CallChanges::default(),
            open_record,
        });
        Ok(checkpoint)
    }

    /// Drops the snapshot if none was taken for `time` and no command runs. The next turn or command takes a new one.
    pub(super) fn forget_unused(&self, time: Duration) {
        // If it is locked, it is used.
        let Some(mut latest) = self.latest.try_lock() else {
            return;
        };
        let is_used = latest.taken.is_some_and(|taken| taken.elapsed() < time);
        if !is_used && !self.is_busy() {
            *latest = LatestSnapshot::default();
        }
    }

    /// Returns true if a command runs. Does not block.
    pub(super) fn is_busy(&self) -> bool {
        self.open_checkpoints.load(Ordering::Relaxed) > 0
    }

    /// Assigns the changes since the last snapshot to the running commands. Call it before a command of the person starts or
    /// ends.
    pub(super) fn divide(&self) {
        let mut latest = self.latest.lock();
        if !latest.open.is_empty() {
            // The checkpoints have the reason.
            let _unknown = self.step(&mut latest);
        }
    }

    /// Calls `append` with a record for each open turn of a chat's agent. The record contains the changes so far.
    ///
    /// # Errors
    /// A record cannot be written. Its changes go into the next record.
    pub(super) fn record_open(
        &self,
        chat: &str,
        append: impl Fn(&Record) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut latest = self.latest.lock();
        let is_of_chat =
            |it: &CheckpointChanges| (it.open_record.as_ref()).is_some_and(|it| it.chat == chat);
        if !latest.open.iter().any(is_of_chat) {
            return Ok(());
        }
        // The checkpoints have the reason.
        let _unknown = self.step(&mut latest);
        for checkpoint in latest.open.iter_mut().filter(|it| is_of_chat(it)) {
            if let Some(open) = &checkpoint.open_record
                && checkpoint.found != CallChanges::default()
            {
                append(&checkpoint.found.clone().in_record(open.record.clone()))?;
                checkpoint.found = CallChanges::default();
            }
        }
        Ok(())
    }

    /// Assigns the changes since the last snapshot to the running turn of an agent. Call it after the person saved a file.
    pub(super) fn divide_turn(&self) {
        let mut latest = self.latest.lock();
        if latest.open.iter().any(|it| it.open_record.is_some()) {
            // The checkpoints have the reason.
            let _unknown = self.step(&mut latest);
        }
    }

    /// Returns the current entries of the files that an edit will change. The changes of the edit then do not count as changes of
    /// a running command.
    ///
    /// # Errors
    /// The store cannot store a copy.
    pub fn before_edit(&self, files: &[PathBuf]) -> Result<EditedFiles, String> {
        let paths = files
            .iter()
            .filter_map(|it| it.strip_prefix(&self.root).ok());
        let root = self.open()?;
        // With the directories that the edit makes.
        let is_missing = |path: &&Path| !matches!(root.node(path), Ok(Some(_)));
        let above = paths
            .clone()
            .flat_map(|it| it.ancestors().skip(1).filter(is_missing));
        let paths: Vec<_> = paths.clone().chain(above).map(Path::to_owned).collect();
        self.entries(&paths)
    }

    /// Returns the current state of the files that have changed since their last change in these records. If there are many
    /// files, compares only the last `MOST_COMPARED`.
    ///
    /// # Errors
    /// The workspace cannot be opened, or the store cannot store a copy.
    pub fn changed_since(&self, records: &[Record]) -> Result<Vec<CurrentFile>, String> {
        let of_here = records
            .iter()
            .filter(|it| it.workspace == self.root && !it.planned);
        let mut left: HashMap<&Path, &Option<Entry>> = HashMap::new();
        let changes: Vec<_> = of_here.flat_map(|it| &it.changes).collect();
        for change in changes.iter().rev() {
            if left.len() < MOST_COMPARED {
                left.entry(&change.path).or_insert(&change.after);
            }
        }
        let is_known = |entry: &Option<Entry>| match entry {
            None | Some(Entry::Link { .. } | Entry::File { blob: Some(_), .. }) => true,
            Some(Entry::Dir { .. } | Entry::File { blob: None, .. }) => false,
        };
        let root = self.open()?;
        let mut changed = Vec::new();
        for (path, left) in left.into_iter().filter(|(_, left)| is_known(left)) {
            let now = entry_at(&root, path, &self.store).map_err(|error| error.to_string())?;
            if now != *left {
                changed.push((path.to_owned(), now));
            }
        }
        changed.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(changed)
    }

    /// Returns the changes of an edit.
    pub fn after_edit(&self, before: EditedFiles) -> CallChanges {
        let paths: Vec<_> = before.iter().map(|(path, _)| path.clone()).collect();
        let after = match self.entries(&paths) {
            Ok(after) => after,
            Err(why) => return CallChanges::unknown(why),
        };
        let both = before.into_iter().zip(after);
        let changes = both.map(|((path, before), (_, after))| Change {
            path,
            before,
            after,
        });
        CallChanges {
            changes: changes.filter(|it| it.before != it.after).collect(),
            ..CallChanges::default()
        }
    }

    /// Returns the changes that an edit is about to make, or has made only in a buffer. The modes of the files that the edit
    /// creates are not known yet.
    pub fn planned(&self, before: EditedFiles, edit: &PlannedEdit) -> CallChanges {
        match self.planned_entries(&before, edit) {
            Ok(changes) => CallChanges {
                changes,
                ..CallChanges::default()
            },
            Err(error) => CallChanges::unknown(error.to_string()),
        }
    }

    fn planned_entries(&self, before: &EditedFiles, edit: &PlannedEdit) -> io::Result<Vec<Change>> {
        let Some((_, first)) = before.first() else {
            return Ok(Vec::new());
        };
        let first = first.clone();
        let (before_first, after) = match edit {
            PlannedEdit::Text { old, new } => {
                let file = |text: &FileText| self.file_with(first.as_ref(), text);
                (file(old)?, vec![file(new)?])
            }
            PlannedEdit::Create(bytes) => (first, vec![Some(self.file(bytes)?)]),
            PlannedEdit::Delete => (first, vec![None]),
            PlannedEdit::Move => (first.clone(), vec![None, first]),
        };
        // The others are the directories that it makes.
        let directory = Some(Entry::Dir { mode: 0o755 });
        let after = after.into_iter().chain(std::iter::repeat(directory));
        let mut changes: Vec<_> = (before.iter().zip(after))
            .map(|((path, before), after)| Change {
                path: path.clone(),
                before: before.clone(),
                after,
            })
            .collect();
        changes[0].before = before_first;
        Ok(changes)
    }

    /// Returns a file with the text `text`, in the encoding and with the line breaks of the file on disk.
    fn file_with(&self, like: Option<&Entry>, text: &FileText) -> io::Result<Option<Entry>> {
        match like {
            Some(Entry::File {
                mode,
                blob: Some(blob),
            }) => Ok(Some(Entry::File {
                mode: *mode,
                blob: Some(self.store.put_like(blob, text)?),
            })),
            _ => self
                .file(&text.encode().map_err(io::Error::other)?)
                .map(Some),
        }
    }

    fn file(&self, bytes: &[u8]) -> io::Result<Entry> {
        Ok(Entry::File {
            mode: 0o644,
            blob: Some(self.store.put(bytes)?),
        })
    }

    fn entries(&self, paths: &[PathBuf]) -> Result<EditedFiles, String> {
        self.touched.lock().extend(paths.iter().cloned());
        let root = self.open()?;
        let entry = |path: &PathBuf| Ok((path.clone(), entry_at(&root, path, &self.store)?));
        let entries: io::Result<_> = paths.iter().map(entry).collect();
        entries.map_err(|error| error.to_string())
    }

    fn open(&self) -> Result<Dir, String> {
        let opened = Dir::open(&self.root);
        opened.map_err(|error| format!("the workspace cannot be opened: {error}"))
    }

    /// Notes that somebody other than a running command changes a file. `file` is its canonical path.
    pub(super) fn touch(&self, file: &Path) {
        if let Ok(path) = file.strip_prefix(&self.root) {
            self.touched.lock().insert(path.to_owned());
        }
    }

    /// Takes a snapshot. Assigns the changes since the last snapshot to the running command, if only one command runs. Otherwise,
    /// their cause is unclear.
    fn step(&self, latest: &mut LatestSnapshot) -> Result<(), String> {
        let root = self.open();
        let since = latest.snapshot.taken();
        // Before the snapshot: what changes meanwhile is read again.
        let Changes { mark, dirs } = self.judge.changes(latest.mark.as_ref());
        (latest.mark, latest.taken) = (mark, Some(Instant::now()));
        let taken = match &root {
            Ok(root) => {
                let source = SnapshotSource::new(&self.judge, root, &self.store);
                let dirs = dirs.or_else(|| latest.snapshot.changed(&source));
                if let Some(found) = dirs.and_then(|dirs| latest.snapshot.update(&source, &dirs)) {
                    let touched = take(&mut *self.touched.lock());
                    self.attribute(&mut latest.open, found, (&touched, since));
                    return Ok(());
                }
                let taken = latest.snapshot.again(source);
                taken.map(|now| (now, root))
            }
            Err(why) => Err(Box::new((Snapshot::default(), why.clone()))),
        };
        // Taken after the snapshot: a message about a saved file may come a moment late.
        let touched = take(&mut *self.touched.lock());
        match taken {
            Ok((now, root)) => {
                let last = std::mem::replace(&mut latest.snapshot, now);
                if !latest.open.is_empty() {
                    let found = last.changes(&latest.snapshot, root);
                    self.attribute(&mut latest.open, found, (&touched, since));
                }
                *self.missing.lock() = None;
                Ok(())
            }
            Err(failed) => {
                let (part, why) = *failed;
                let last = take(&mut latest.snapshot);
                latest.snapshot = part.with_rest_of(last);
                for checkpoint in &mut latest.open {
                    checkpoint.found.unknown.get_or_insert_with(|| why.clone());
                }
                *self.missing.lock() = Some(why.clone());
                Err(why)
            }
        }
    }

    /// Assigns the changes since the snapshot at `since` to the running commands.
    fn attribute(
        &self,
        open: &mut [CheckpointChanges],
        found: Differences,
        (touched, since): (&HashSet<PathBuf>, SystemTime),
    ) {
        let Differences {
            changes,
            not_created,
        } = found;
        let only_jobs = open.iter().all(|it| it.is_job);
        let open = open.iter_mut().filter(|it| it.is_job == only_jobs);
        let mut open: Vec<_> = open.collect();
        let alone = open.len() == 1 && self.runs.load(Ordering::Relaxed) == 0;
        let left = match &*open {
            [only] if alone && !changes.is_empty() => self.left_by_others(only, since),
            _ => HashSet::new(),
        };
        let (own, others): (Vec<_>, Vec<_>) = changes.into_iter().partition(|it| {
            alone
                && !touched.contains(&it.path)
                && !left.contains(&(it.path.clone(), it.after.clone()))
        });
        // A job and the turn of an agent may take hours: not each file that is saved meanwhile is named.
        let are_long = open.iter().all(|it| it.is_job || it.open_record.is_some());
        let is_named = |path: &PathBuf| !are_long || !touched.contains(path);
        let others = others.into_iter().map(|it| it.path).filter(is_named);
        let unclear: Vec<_> = others.chain(not_created).collect();
        for checkpoint in &mut open {
            checkpoint.found.changes.extend(own.iter().cloned());
            checkpoint.found.unclear.extend(unclear.iter().cloned());
        }
    }

    /// Returns the states in which other chats have left files, by their records since `since`. The chats may be of other
    /// backends.
    fn left_by_others(&self, open: &CheckpointChanges, since: SystemTime) -> HashSet<CurrentFile> {
        let chat = open.open_record.as_ref().map_or("", |it| &it.chat);
        let since = since.duration_since(SystemTime::UNIX_EPOCH);
        let since = since.unwrap_or_default();
        // The times of files come from a coarser clock.
        let from = since.as_secs().saturating_sub(1);
        let chats = log::others(self.store.dir(), chat, &self.root, Some(from));
        let states = chats.into_iter().flat_map(|(_, records)| {
            let records = records.into_iter().filter(|it| it.time() >= Some(since));
            let states = records.flat_map(|it| it.changes);
            let states = states.map(|it| (it.path, it.after));
            // Of each file, the last state.
            states.collect::<HashMap<_, _>>()
        });
        states.collect()
    }
}

impl OpenCheckpoint {
    /// Takes a snapshot after the command, and returns the changes of the command.
    pub fn end(self) -> CallChanges {
        let workspace = &self.workspace;
        let mut latest = workspace.latest.lock();
        // The checkpoint has the reason.
        let _unknown = workspace.step(&mut latest);
        let found = latest.open.iter().position(|it| it.id == self.id);
        found.map_or_else(CallChanges::default, |at| latest.open.swap_remove(at).found)
    }
}

impl Drop for OpenCheckpoint {
    fn drop(&mut self) {
        self.workspace
            .open_checkpoints
            .fetch_sub(1, Ordering::Relaxed);
        self.workspace
            .latest
            .lock()
            .open
            .retain(|it| it.id != self.id);
    }
}
