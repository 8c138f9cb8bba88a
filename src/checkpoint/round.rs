//! The open changes of a chat. The person has neither accepted nor rejected them yet.
//!
//! A [`Round`] is computed from the records of chats alone, so it needs no file of its own. For each file, it has the baseline:
//! the file in the state that the person accepted last, with the person's own changes since then. The baseline of a file that the
//! chat has not changed yet is the file itself. A call of the chat changes the file, but not its baseline. The person, `/undo`
//! and other chats change both. If changes of another chat are taken back, they disappear from the baseline too. A [`Weave`]
//! knows the author of each line. An [`AuthoredValue`] knows the author of a name, a mode, or a content that is not text.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::authored::AuthoredValue;
use super::change::{Change, Entry, shown};
use super::log::{AcceptedFile, ChangeCause, Record};
use super::moves::{MovedFiles, blob};
use super::snapshot::entry_at;
use super::store::Store;
use super::undo::{decode, mode};
use crate::buffers::OpenBuffers;
use crate::protocol::{Fact, FactKind, FileChange, ReviewText};
use crate::workspace::edits::lines_as_text;
use co_edit::{EditBy, FileText, Hunk, Mark, Weave, apply_hunks, hunks, marked};
use co_exec::beneath::Dir;

#[cfg(test)]
mod tests;

/// The number of the [`Round`]'s chat among the authors of changes.
const OWN: usize = Weave::FIRST;
/// The number of a change whose record is not known. It replaces the index of the record.
const UNKNOWN: usize = usize::MAX;
/// The mode of files in comparisons that ignore the mode.
const ANY_MODE: u32 = 0;

/// The number of a chat, and one of the records of this chat. The chat of a [`Round`] has the number 0.
pub type ChatRecord = (usize, Record);

/// The files of a workspace that a chat has changed.
#[derive(Debug, Default)]
pub struct Round {
    /// The files, by their current paths relative to the workspace.
    files: BTreeMap<PathBuf, FileRound>,
    /// The changes by which calls created or removed directories.
    directories: Vec<Change>,
}

/// A file that a chat has changed.
#[derive(Debug, Clone)]
struct FileRound {
    /// The paths of the file. The base is the path in the baseline.
    names: AuthoredValue<PathBuf>,
    /// The modes of the file; a mode is `None` while there is no file.
    modes: AuthoredValue<Option<u32>>,
    /// The contents of the file, with [`ANY_MODE`]. It is `None` if the contents are texts, because `weave` then knows their
    /// changes.
    contents: Option<AuthoredValue<Option<Entry>>>,
    /// The baseline without the changes that the person made since the last acceptance.
    accepted: Option<Entry>,
    baseline: Option<Entry>,
    /// The file after the last known change.
    seen: Option<Entry>,
    /// The authors of the lines; none if the content is not text, or if the authors are not known yet.
    weave: Option<Weave>,
    /// The chat that created the file, if the person has not accepted the file.
    made_by: Option<usize>,
    /// The calls that changed the file. The bool is true if the call changed more than the text.
    calls: Vec<(Mark, bool)>,
    /// The time of the first open change, in seconds since 1970.
    since: Option<u64>,
}

/// A file in a commit of git, to which the current file is compared.
#[derive(Debug)]
pub struct BaseFile {
    pub path: PathBuf,
    /// The text in the commit; none if the commit does not contain the file.
    pub text: Option<String>,
    /// The mode in the commit; none if it is the current mode of the file.
    pub mode: Option<u32>,
}

/// A file with open changes.
#[derive(Debug, Clone)]
pub struct OpenFile {
    /// The current path, relative to the workspace.
    pub path: PathBuf,
    /// The path in the baseline, relative to the workspace.
    name: PathBuf,
    baseline: Option<Entry>,
    seen: Option<Entry>,
    /// The text of the baseline and the current text; none if the file cannot be compared line by line.
    texts: Option<[FileText; 2]>,
    pub parts: Vec<OpenPart>,
    /// For each line of the baseline, true if the person wrote the line since they accepted the file last.
    own: Vec<bool>,
    /// The time of the first open change, in seconds since 1970.
    pub since: Option<u64>,
}

/// An open part of a file's changes.
#[derive(Debug, Clone)]
pub struct OpenPart {
    pub kind: PartKind,
    /// The number of the first line of the part in the current text. Lines are numbered from 1.
    pub line: usize,
    /// The indexes of the records of the calls that made the part.
    pub records: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartKind {
    /// The file was moved to another path.
    Moved,
    Mode,
    Lines(Hunk),
    /// The whole file, because it cannot be compared line by line.
    Whole,
}

/// The person's answer about a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The person has not answered yet.
    Open,
    Accepted,
    /// The person accepted the part with other lines.
    Edited(String),
    Refused,
}

/// The result of the person's answers about the parts of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct AnsweredFile {
    /// The rejected parts, as changes that co can take back.
    pub refused: Vec<Change>,
    /// The new state of the file in the baseline; none if no part was accepted.
    pub accepted: Option<AcceptedFile>,
}

/// Returns the records of several chats, sorted by time. The records of each chat keep their order. `chats[0]` is the chat of the
/// round.
pub fn in_order(chats: Vec<Vec<Record>>) -> Vec<ChatRecord> {
    let mut all: Vec<(Option<u64>, u32, ChatRecord)> = Vec::new();
    for (number, records) in chats.into_iter().enumerate() {
        let mut last = (None, 0);
        for record in records {
            // A clock may be set back.
            last = last.max((record.at, record.nanos));
            all.push((last.0, last.1, (number, record)));
        }
    }
    all.sort_by_key(|(at, nanos, _)| (*at, *nanos));
    all.into_iter().map(|(_, _, record)| record).collect()
}

impl Round {
    /// Returns the round of a chat in the workspace `root`. `records` are the records of all chats, sorted by time.
    ///
    /// # Errors
    /// The store cannot store a text.
    pub fn of(records: &[ChatRecord], root: &Path, store: &Store) -> io::Result<Self> {
        let mut round = Self::default();
        let is_own = |it: &&ChatRecord| it.0 == OWN && it.1.workspace == root;
        let own = records.iter().filter(is_own);
        let mut known: BTreeSet<_> = own.flat_map(|(_, it)| it.paths()).collect();
        for (number, (chat, record)) in records.iter().enumerate() {
            let is_accepted = matches!(record.by, ChangeCause::Accepted { .. });
            let is_known = is_accepted || record.paths().any(|it| known.contains(it));
            if record.workspace != root || !is_known {
                continue;
            }
            known.extend(record.paths());
            let mark = Mark {
                author: *chat,
                change: number,
            };
            match &record.by {
                ChangeCause::Accepted { files } => {
                    for file in files {
                        round.accept(file, mark, store)?;
                    }
                }
                ChangeCause::Call { .. } | ChangeCause::Redo => {
                    round.add(record, EditBy::Author(mark), store)?
                }
                ChangeCause::Undo | ChangeCause::TakenBack => {
                    round.add(record, EditBy::TakingBack(*chat), store)?
                }
            }
        }
        Ok(round)
    }

    /// Returns the round whose baseline is a commit of git. Every change since that commit is open, no matter who made it.
    ///
    /// `known` is the round of the chat. It knows the calls that made the changes.
    ///
    /// # Errors
    /// The store cannot store a text.
    pub fn since_base(
        files: Vec<BaseFile>,
        mut known: Self,
        root: &Dir,
        store: &Store,
    ) -> io::Result<Self> {
        let mut changes = Vec::new();
        for BaseFile { path, text, mode } in files {
            let after = entry_at(root, &path, store)?;
            let mode = mode.or(self::mode(&after)).unwrap_or(0o644);
            let blob = text.map(|it| store.put(it.as_bytes())).transpose()?;
            let before = blob.map(|blob| Entry::File {
                mode,
                blob: Some(blob),
            });
            changes.push(Change {
                path,
                before,
                after,
            });
        }
        let mut round = Self::default();
        let moves = round.moves(&changes, store);
        let mut files = BTreeMap::new();
        for change in changes.iter().filter(|it| !moves.is_old(it)) {
            let from = moves.to(&change.path).unwrap_or(change);
            let of_chat = known.files.remove(&change.path);
            let mut file = of_chat.unwrap_or_else(|| FileRound::new(&change.path, None));
            file.follow(&change.after, EditBy::Owner, store)?;
            file.names = AuthoredValue::changed(from.path.clone(), OWN, change.path.clone());
            file.modes = AuthoredValue::changed(mode(&from.before), OWN, mode(&file.seen));
            file.contents = None;
            file.accepted.clone_from(&from.before);
            file.baseline.clone_from(&from.before);
            files.insert(change.path.clone(), file);
        }
        round.files = files;
        Ok(round)
    }

    fn accept(&mut self, file: &AcceptedFile, by: Mark, store: &Store) -> io::Result<()> {
        if by.author != OWN && !self.files.contains_key(&file.path) {
            return Ok(());
        }
        let new = || FileRound::new(&file.path, file.seen.clone());
        let known = self.files.entry(file.path.clone()).or_insert_with(new);
        known.follow(&file.seen, EditBy::Owner, store)?;
        known.accept(file, by, store);
        Ok(())
    }

    fn add(&mut self, record: &Record, by: EditBy, store: &Store) -> io::Result<()> {
        let moves = self.moves(&record.changes, store);
        let is_own = matches!(by, EditBy::Author(mark) if mark.author == OWN);
        for change in record.changes.iter().filter(|it| !moves.is_old(it)) {
            if change.is_directory() {
                self.directories.extend(is_own.then(|| change.clone()));
                continue;
            }
            let (path, after) = (&change.path, &change.after);
            let from = moves.to(path).unwrap_or(change);
            let (before, from) = (&from.before, &from.path);
            let known = self.files.remove(from);
            let mut file = known.unwrap_or_else(|| FileRound::new(from, before.clone()));
            file.follow(before, EditBy::Owner, store)?;
            if is_own && file.since.is_none() {
                file.accepted.clone_from(&file.baseline);
            }
            if is_own && !file.is_open(from) {
                file.calls.clear();
                file.since = None;
            }
            if is_own {
                file.since = file.since.or(record.at);
            }
            if let EditBy::Author(mark) = by {
                let is_more = from != path || !is_text(before, after);
                file.calls.push((mark, is_more));
            }
            let is_new = before.is_none() && matches!(by, EditBy::Author(_));
            match is_new || is_own && file.baseline.is_none() {
                true => file.names = AuthoredValue::new(path.clone()),
                false => file.names.set(path.clone(), by),
            }
            file.follow(after, by, store)?;
            if let EditBy::TakingBack(chat) = by
                && !file.is_more_by(chat)
            {
                file.calls.retain(|(mark, _)| mark.author != chat);
            }
            // A file that the chat moved and removed is removed.
            let mut key = path;
            let name = file.names.base(OWN).clone();
            if is_own && file.seen.is_none() && self.files.get(&name).is_none_or(FileRound::is_gone)
            {
                file.names = AuthoredValue::new(name.clone());
                key = &name;
            }
            self.files.insert(key.clone(), file);
        }
        Ok(())
    }

    /// Returns the moved files among these changes.
    fn moves<'a>(&self, changes: &'a [Change], store: &Store) -> MovedFiles<'a> {
        let is_free = |path: &Path| self.files.get(path).is_none_or(FileRound::is_gone);
        let back = |path: &Path| {
            let file = self.files.get(path);
            file.map(|it| it.names.base(OWN).as_path())
        };
        let is_like = |gone: &Change, made: &Change| is_like(gone, made, store);
        MovedFiles::of(changes, back, is_free, is_like)
    }

    /// Reads the files, and counts all changes since the last record as changes of the person. `open` contains the buffers of the
    /// files.
    ///
    /// # Errors
    /// The workspace cannot be opened, or the store cannot store a text.
    pub fn look(&mut self, root: &Path, open: &OpenBuffers, store: &Store) -> io::Result<()> {
        let dir = Dir::open(root)?;
        for (path, file) in &mut self.files {
            if !file.is_open(path) {
                continue;
            }
            let mut now = entry_at(&dir, path, store)?;
            let buffer = open.get(&root.join(path)).filter(|it| it.modified);
            if let (Some(buffer), Some(Entry::File { mode, blob })) = (buffer, &now)
                && let (Some(like), Ok(text)) = (blob, buffer.file_text())
                && let Ok(blob) = store.put_like(like, &text)
            {
                let (mode, blob) = (*mode, Some(blob));
                now = Some(Entry::File { mode, blob });
            }
            file.follow(&now, EditBy::Owner, store)?;
        }
        Ok(())
    }

    /// Returns the paths of the files that may have open changes.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let open = self.files.iter().filter(|(path, file)| file.is_open(path));
        open.map(|(path, _)| path.as_path())
    }

    /// Returns the files with open changes.
    pub fn open_files(&self, store: &Store) -> Vec<OpenFile> {
        let files = self.files.iter();
        let open = files.filter_map(|(path, it)| OpenFile::new(path, it, store));
        open.collect()
    }

    /// Returns the changes of the directories that contain the files of these changes and that were created or removed together
    /// with these files.
    pub fn directories_of(&self, changes: &[Change]) -> Vec<Change> {
        let whole: Vec<_> = (changes.iter())
            .filter(|it| it.before.is_none() || it.after.is_none())
            .collect();
        let concerns = |dir: &&Change| whole.iter().any(|it| it.path.starts_with(&dir.path));
        self.directories.iter().filter(concerns).cloned().collect()
    }
}

impl FileRound {
    fn new(path: &Path, entry: Option<Entry>) -> Self {
        Self {
            names: AuthoredValue::new(path.to_owned()),
            modes: AuthoredValue::new(mode(&entry)),
            contents: None,
            accepted: entry.clone(),
            baseline: entry.clone(),
            seen: entry,
            weave: None,
            made_by: None,
            calls: Vec::new(),
            since: None,
        }
    }

    fn is_open(&self, path: &Path) -> bool {
        self.baseline != self.seen || self.seen.is_some() && self.names.base(OWN) != path
    }

    /// Returns true if a chat changed more than the text of the file.
    fn is_more_by(&self, chat: usize) -> bool {
        let contents = self.contents.as_ref();
        self.names.is_by(chat)
            || self.modes.is_by(chat)
            || contents.is_some_and(|it| it.is_by(chat))
    }

    fn is_gone(&self) -> bool {
        self.baseline.is_none() && self.seen.is_none()
    }

    /// Sets the file to `now`. If somebody other than the round's chat made the change, changes the baseline too.
    fn follow(&mut self, now: &Option<Entry>, by: EditBy, store: &Store) -> io::Result<()> {
        if self.seen == *now {
            return Ok(());
        }
        let is_own = matches!(by, EditBy::Author(mark) if mark.author == OWN);
        self.modes.set(mode(now), by);
        let is_file = |it: &Option<Entry>| matches!(it, Some(Entry::File { .. }));
        let can_be = |it: &Option<Entry>| it.is_none() || is_file(it);
        // A file that the person makes or removes is theirs as a whole.
        let is_whole = by == EditBy::Owner && !(is_file(&self.seen) && is_file(now));
        let entries = [&self.baseline, &self.seen, now];
        let texts = match is_whole || !entries.into_iter().all(can_be) {
            true => [None, None, None],
            false => entries.map(|it| decode(it, store)),
        };
        let [Some(base), Some(old), Some(new)] = texts else {
            self.weave = None;
            self.made_by = self.made_by.filter(|_| !is_whole);
            let [base, old] = [&self.baseline, &self.seen].map(contents);
            let known = self.contents.take();
            let mut known = known.unwrap_or_else(|| AuthoredValue::changed(base, OWN, old));
            known.set(contents(now), by);
            if !is_own {
                let mode = self.base_mode(now);
                self.baseline = known.base(OWN).clone().map(|it| with_mode(it, mode));
            }
            self.contents = Some(known);
            self.seen.clone_from(now);
            return Ok(());
        };
        self.contents = None;
        let texts = FileText::alike([base, old, new]);
        let [base, old, new] = texts.each_ref().map(FileText::as_str);
        let known = self.weave.take();
        let known = known.filter(|it| it.base(OWN) == base && it.text() == old);
        let mut weave = known.unwrap_or_else(|| Weave::new(base, old, UNKNOWN));
        weave.edit(new, by);
        if let EditBy::Author(mark) = by
            && self.seen.is_none()
            && self.baseline.is_none()
        {
            self.made_by = Some(mark.author);
        }
        if !is_own {
            let text = weave.base(OWN);
            self.baseline = self.carried(&text, base, now, by, store)?;
            // The lines of others make the file of a chat theirs too.
            if self.baseline.is_some() && self.modes.base(OWN).is_none() {
                self.modes = AuthoredValue::changed(mode(&self.baseline), OWN, mode(now));
            }
        }
        self.weave = Some(weave);
        self.seen.clone_from(now);
        Ok(())
    }

    /// Returns the mode of the baseline after the file becomes `now`.
    fn base_mode(&self, now: &Option<Entry>) -> Option<u32> {
        let known = self.modes.base(OWN);
        known.or(mode(&self.baseline)).or(mode(now))
    }

    /// Returns the new baseline after somebody other than the round's chat changed the file to `now`. `text` is the new text of
    /// the baseline, and `base` is its old text. Returns `None` if the baseline has no file.
    fn carried(
        &self,
        text: &str,
        base: &str,
        now: &Option<Entry>,
        by: EditBy,
        store: &Store,
    ) -> io::Result<Option<Entry>> {
        let mode = self.base_mode(now);
        let is_unmade = match (self.made_by, by) {
            (Some(OWN), _) => true,
            (Some(chat), EditBy::TakingBack(by)) => chat == by,
            _ => false,
        };
        let is_none = self.baseline.is_none() || now.is_none() || is_unmade;
        // Another chat may make an empty file.
        let is_made = self.seen.is_none() && now.is_some() && matches!(by, EditBy::Author(_));
        if text.is_empty() && is_none && !(is_made && is_empty(now, store)) {
            return Ok(None);
        }
        let like = match text == base && self.baseline.is_some() || now.is_none() {
            true => &self.baseline,
            false => now,
        };
        file_like(like, text, mode, store)
    }

    /// Adds the changes of a chat that the person accepted to the baseline.
    fn accept(&mut self, file: &AcceptedFile, by: Mark, store: &Store) {
        let is_own = by.author == OWN;
        let texts = [&self.baseline, &self.seen, &file.baseline].map(|it| decode(it, store));
        let mut weave = self.weave.take();
        if let [Some(base), Some(old), Some(new)] = texts {
            let texts = FileText::alike([base, old, new]);
            let [base, old, new] = texts.each_ref().map(FileText::as_str);
            weave = weave.filter(|it| it.base(OWN) == base && it.text() == old);
            let weave = weave.get_or_insert_with(|| Weave::new(base, old, UNKNOWN));
            weave.accept(by.author, new, by.change);
        }
        self.weave = weave;
        if is_own {
            if *self.names.base(OWN) != file.name {
                self.names = AuthoredValue::changed(file.name.clone(), OWN, file.path.clone());
            }
            let base = mode(&file.baseline);
            if *self.modes.base(OWN) != base {
                self.modes = AuthoredValue::changed(base, OWN, mode(&file.seen));
            }
            let base = contents(&file.baseline);
            let known = self.contents.take();
            self.contents = known.filter(|it| *it.base(OWN) == base);
            self.accepted.clone_from(&file.baseline);
            self.baseline.clone_from(&file.baseline);
        } else {
            self.names.accept(by.author, &file.name);
            self.modes.accept(by.author, &mode(&file.baseline));
            if let Some(known) = &mut self.contents {
                known.accept(by.author, &contents(&file.baseline));
            }
        }
        if self.made_by == Some(by.author) && file.baseline.is_some() {
            self.made_by = None;
        }
    }
}

fn is_empty(entry: &Option<Entry>, store: &Store) -> bool {
    decode(entry, store).is_some_and(|it| it.as_str().is_empty())
}

/// Returns an entry with its mode replaced by [`ANY_MODE`].
fn contents(entry: &Option<Entry>) -> Option<Entry> {
    entry.clone().map(|it| with_mode(it, Some(ANY_MODE)))
}

/// Returns true if a removed file and a created file have at least half of their lines in common.
fn is_like(removed: &Change, made: &Change, store: &Store) -> bool {
    let (Some(old), Some(new)) = (decode(&removed.before, store), decode(&made.after, store))
    else {
        return false;
    };
    let [old, new] = FileText::alike([old, new]);
    let [old, new] = [old.as_str(), new.as_str()];
    let [old_count, new_count] = [old, new].map(|it| it.lines().count());
    let longest = old_count.max(new_count);
    if 2 * old_count.min(new_count) < longest {
        return false;
    }
    let removed: usize = hunks(old, new).iter().map(Hunk::removed).sum();
    let common = old_count.saturating_sub(removed);
    common > 0 && 2 * common >= longest
}

/// Returns true if a change affects only the text of a file.
fn is_text(before: &Option<Entry>, after: &Option<Entry>) -> bool {
    blob(before).is_some() && blob(after).is_some() && mode(before) == mode(after)
}

/// Returns a copy of the file `like` with another text and mode.
fn file_like(
    like: &Option<Entry>,
    text: &str,
    mode: Option<u32>,
    store: &Store,
) -> io::Result<Option<Entry>> {
    let Some(Entry::File {
        mode: own,
        blob: Some(blob),
    }) = like
    else {
        return Err(io::Error::other("co has no copy of it"));
    };
    let mut file = FileText::decode(&store.get(blob)?).map_err(io::Error::other)?;
    let blob = if file.as_str() == text {
        *blob
    } else {
        file.apply_hunks(&hunks(file.as_str(), text));
        store.put(&file.encode().map_err(io::Error::other)?)?
    };
    Ok(Some(Entry::File {
        mode: mode.unwrap_or(*own),
        blob: Some(blob),
    }))
}

impl Verdict {
    /// Returns the verdict for an answer. `accept` is `None` if the person has not answered. `lines` are the lines that the
    /// person wrote in place of the lines of the part.
    pub fn of(part: &OpenPart, accept: Option<bool>, lines: Option<&[String]>) -> Self {
        match (accept, lines, &part.kind) {
            (None, ..) => Self::Open,
            (Some(false), ..) => Self::Refused,
            (_, Some(lines), PartKind::Lines(hunk)) => Self::Edited(lines_as_text(lines, hunk)),
            _ => Self::Accepted,
        }
    }
}

impl OpenFile {
    /// Returns the file that a change affects. If its lines can be compared, it has several parts; otherwise, it is one part. The
    /// mode is not a separate part.
    pub fn of(change: &Change, store: &Store) -> Self {
        let both = [&change.before, &change.after].map(|it| decode(it, store));
        let texts = match both {
            [Some(old), Some(new)] => Some(FileText::alike([old, new])),
            _ => None,
        };
        let texts = texts.filter(|[old, new]| old.as_str() != new.as_str());
        let part = |kind, line| OpenPart {
            kind,
            line,
            records: Vec::new(),
        };
        let parts = match &texts {
            None => vec![part(PartKind::Whole, 1)],
            Some([old, new]) => {
                let lines = hunks(old.as_str(), new.as_str());
                let calls = calls_of(None, None, &lines);
                let parts = lines.into_iter().zip(calls);
                parts
                    .map(|(hunk, (line, _))| part(PartKind::Lines(hunk), line))
                    .collect()
            }
        };
        Self {
            path: change.path.clone(),
            name: change.path.clone(),
            baseline: change.before.clone(),
            seen: change.after.clone(),
            texts,
            parts,
            own: Vec::new(),
            since: None,
        }
    }

    fn new(path: &Path, file: &FileRound, store: &Store) -> Option<Self> {
        if !file.is_open(path) {
            return None;
        }
        let FileRound {
            names,
            modes: _,
            contents: _,
            accepted,
            baseline,
            seen,
            weave,
            made_by: _,
            calls,
            since,
        } = file.clone();
        let name = names.base(OWN).clone();
        let both = [&baseline, &seen].map(|it| decode(it, store));
        let mut texts = match both {
            [Some(old), Some(new)] => Some(FileText::alike([old, new])),
            _ => None,
        };
        let mut kinds = Vec::new();
        let has_both = baseline.is_some() && seen.is_some();
        if has_both && name != path {
            kinds.push(PartKind::Moved);
        }
        let are_files = blob(&baseline).is_some() && blob(&seen).is_some();
        if are_files && mode(&baseline) != mode(&seen) {
            kinds.push(PartKind::Mode);
        }
        let lines = texts
            .as_ref()
            .map_or_else(Vec::new, |[old, new]| hunks(old.as_str(), new.as_str()));
        if lines.is_empty() && !(are_files && blob(&baseline) == blob(&seen)) {
            texts = None;
            kinds.push(PartKind::Whole);
        }
        let is_whole = texts.is_none();
        let of_file = calls.iter().filter(|(_, is_more)| is_whole || *is_more);
        let of_file: Vec<_> = of_file.map(|(mark, _)| mark.change).collect();
        let mut parts: Vec<_> = (kinds.into_iter())
            .map(|kind| OpenPart {
                kind,
                line: 1,
                records: of_file.clone(),
            })
            .collect();
        let calls = calls_of(weave.as_ref(), texts.as_ref(), &lines);
        parts.extend(
            (lines.into_iter().zip(calls)).map(|(hunk, (line, records))| OpenPart {
                kind: PartKind::Lines(hunk),
                line,
                records,
            }),
        );
        let own = match accepted == baseline {
            true => Vec::new(),
            false => own_lines(&accepted, texts.as_ref().map(|it| &it[0]), store),
        };
        Some(Self {
            path: path.to_owned(),
            name,
            baseline,
            seen,
            texts,
            parts,
            own,
            since,
        })
    }

    /// Returns the change of the file and its parts, in the form that a review shows.
    pub fn for_review(&self, store: &Store) -> FileChange {
        let change = self.as_change();
        let hunks = self.parts.iter().filter_map(|part| match &part.kind {
            PartKind::Lines(hunk) => Some(hunk.clone()),
            _ => None,
        });
        let hunks: Vec<_> = hunks.collect();
        let mut facts = change.facts(store);
        let mut text = String::new();
        for part in &self.parts {
            match part.kind {
                PartKind::Lines(_) => {}
                PartKind::Whole => text.push_str(&whole_text(&change, &facts, store)),
                PartKind::Moved => {
                    text.push_str(&format!("@\n!moved from {}\n", shown(&self.name)));
                }
                PartKind::Mode => {
                    let is_mode = |it: &mut Fact| it.kind == FactKind::Mode;
                    let mode = facts.extract_if(.., is_mode).next();
                    let mode = mode.map_or_else(String::new, |it| it.text);
                    text.push_str(&format!("@\n!{mode}\n"));
                }
            }
        }
        if let Some([old, _]) = &self.texts {
            text.push_str(&self.marked(old.as_str(), &hunks));
        }
        let (added, removed) = match &self.texts {
            Some(_) => (
                hunks.iter().map(Hunk::added).sum(),
                hunks.iter().map(Hunk::removed).sum(),
            ),
            None => {
                let (added, removed, _) = change.lines(store);
                (added, removed)
            }
        };
        let words = || match self.parts.first().map(|it| &it.kind) {
            Some(PartKind::Moved) => format!("moved from {}", shown(&self.name)),
            _ => change.in_words(store),
        };
        FileChange {
            path: shown(&self.path),
            added,
            removed,
            without_lines: (added + removed == 0).then(words),
            parts: self.parts.len(),
            whole: hunks.is_empty(),
            text: ReviewText::new(&facts, &text),
            calls: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Returns the whole text with marked changes. The lines that the person wrote have the mark `~`.
    fn marked(&self, old: &str, hunks: &[Hunk]) -> String {
        let mut own = self.own.iter().copied();
        let mut text = String::new();
        for line in marked(old, hunks).split_inclusive('\n') {
            let is_own = line.starts_with([' ', '-']) && own.next() == Some(true);
            match line.strip_prefix(' ').filter(|_| is_own) {
                Some(line) => text.extend(["~", line]),
                None => text.push_str(line),
            }
        }
        text
    }

    /// Returns an id of a part. `text` contains the lines of the part as a review shows them. Contents that are not text may have
    /// the same `text`, so the id also depends on their hashes.
    pub fn part_id(&self, part: &OpenPart, text: &str) -> String {
        match part.kind {
            PartKind::Whole => {
                let blobs = [&self.baseline, &self.seen].map(blob);
                co_edit::hash(&format!("{text}{blobs:?}"))
            }
            _ => co_edit::hash(text),
        }
    }

    /// Returns true if `path` is the current path of the file, or its path in the baseline. If a part of the changes is taken
    /// back, the file may move to its path in the baseline.
    pub fn has_path(&self, path: &Path) -> bool {
        self.path == path || self.name == path
    }

    fn as_change(&self) -> Change {
        Change {
            path: self.path.clone(),
            before: self.baseline.clone(),
            after: self.seen.clone(),
        }
    }

    /// Returns the changes that the answers about the parts mean for the file.
    ///
    /// # Errors
    /// The encoding of the file cannot store the text, or the store cannot store it.
    pub fn answered(&self, answers: &[Verdict], store: &Store) -> io::Result<AnsweredFile> {
        let is_refused = |it: &Verdict| matches!(it, Verdict::Refused);
        let is_accepted = |it: &Verdict| !matches!(it, Verdict::Open) && !is_refused(it);
        let (name, kept) = self.version(answers, |it| !is_refused(it), store)?;
        let mut refused = Vec::new();
        let change = |path: &Path, before: &Option<Entry>, after: &Option<Entry>| Change {
            path: path.to_owned(),
            before: before.clone(),
            after: after.clone(),
        };
        if name != self.path {
            refused.push(change(&name, &kept, &None));
            refused.push(change(&self.path, &None, &self.seen));
        } else if kept != self.seen {
            refused.push(change(&self.path, &kept, &self.seen));
        }
        let accepted = match answers.iter().any(is_accepted) {
            true => {
                let (name, baseline) = self.version(answers, is_accepted, store)?;
                Some(AcceptedFile {
                    path: self.path.clone(),
                    name,
                    baseline,
                    seen: self.seen.clone(),
                })
            }
            false => None,
        };
        Ok(AnsweredFile { refused, accepted })
    }

    /// Returns the path and the content that the file has with only some of its parts: the parts for which `has` returns true.
    fn version(
        &self,
        answers: &[Verdict],
        has: impl Fn(&Verdict) -> bool,
        store: &Store,
    ) -> io::Result<(PathBuf, Option<Entry>)> {
        let has_part = |kind| self.parts.iter().any(|it| it.kind == kind);
        let mut name = match has_part(PartKind::Moved) {
            true => &self.name,
            false => &self.path,
        };
        let mut mode_of = match &self.seen {
            Some(Entry::File { .. }) if !has_part(PartKind::Mode) => &self.seen,
            _ => &self.baseline,
        };
        let mut content = &self.baseline;
        let (mut lines, mut all_lines) = (Vec::new(), true);
        for (part, answer) in self.parts.iter().zip(answers) {
            let has = has(answer);
            match (&part.kind, answer) {
                (PartKind::Lines(hunk), Verdict::Edited(text)) if has => {
                    let (at, text) = (hunk.at.clone(), text.clone());
                    all_lines &= text == hunk.text;
                    lines.push(Hunk { at, text });
                }
                (PartKind::Lines(hunk), _) if has => lines.push(hunk.clone()),
                (PartKind::Lines(_), _) => all_lines = false,
                (PartKind::Moved, _) if has => name = &self.path,
                (PartKind::Mode, _) if has => mode_of = &self.seen,
                (PartKind::Whole, _) if has && has_part(PartKind::Mode) => content = &self.seen,
                (PartKind::Whole, _) if has => (mode_of, content) = (&self.seen, &self.seen),
                _ => {}
            }
        }
        let Some([old, _]) = self.texts.as_ref().filter(|_| !lines.is_empty()) else {
            return Ok((
                name.clone(),
                content.clone().map(|it| with_mode(it, mode(mode_of))),
            ));
        };
        let mode = mode(mode_of);
        if all_lines {
            let seen = self.seen.clone();
            let seen = match mode {
                Some(_) => seen.map(|it| with_mode(it, mode)),
                None => seen,
            };
            return Ok((name.clone(), seen));
        }
        let like = self.seen.as_ref().or(self.baseline.as_ref()).cloned();
        let text = apply_hunks(old.as_str(), &lines);
        Ok((name.clone(), file_like(&like, &text, mode, store)?))
    }
}

/// Returns for each hunk the number of its first line in the new text, and the indexes of the records of the calls that made it.
/// Lines are numbered from 1.
fn calls_of(
    weave: Option<&Weave>,
    texts: Option<&[FileText; 2]>,
    lines: &[Hunk],
) -> Vec<(usize, Vec<usize>)> {
    let mut moved: isize = 0;
    let ranges = lines.iter().map(|hunk| {
        let start = hunk.at.start.saturating_add_signed(moved);
        moved += hunk.added().cast_signed() - hunk.removed().cast_signed();
        (hunk.at.clone(), start..start + hunk.added())
    });
    let ranges: Vec<_> = ranges.collect();
    let marks = match (weave, texts) {
        (Some(weave), Some([old, new])) if weave.text() == new.as_str() => {
            // Else it is compared with a commit.
            match weave.base(OWN) == old.as_str() {
                true => weave.changes_of(OWN, &ranges),
                false => ranges
                    .iter()
                    .map(|(_, now)| weave.changes_at(now.clone()))
                    .collect(),
            }
        }
        _ => vec![Vec::new(); ranges.len()],
    };
    let calls = marks.into_iter().map(|marks| {
        let known = marks.iter().filter(|it| it.change != UNKNOWN);
        known.map(|it| it.change).collect()
    });
    let first = ranges.iter().map(|(_, now)| now.start + 1);
    first.zip(calls).collect()
}

/// Returns the entry with another mode, if it is a file.
fn with_mode(entry: Entry, mode: Option<u32>) -> Entry {
    match (entry, mode) {
        (Entry::File { blob, .. }, Some(mode)) => Entry::File { mode, blob },
        (entry, _) => entry,
    }
}

/// Returns the text that a review shows for a file that cannot be compared line by line.
fn whole_text(change: &Change, facts: &[Fact], store: &Store) -> String {
    let lines = change.changed_lines(store);
    let marked = lines.map_or_else(String::new, |it| marked(&it.old, &it.hunks));
    // One line begins the only part.
    let marked: String = (marked.split_inclusive('\n').filter(|it| *it != "@\n")).collect();
    match (marked.is_empty() && facts.is_empty(), &change.after) {
        (true, Some(_)) => "@\n!a new empty file\n".to_owned(),
        (true, None) => "@\n!an empty file is removed\n".to_owned(),
        (false, _) => format!("@\n{marked}"),
    }
}

/// For each line of the baseline, returns true if the person wrote the line since they accepted the file.
fn own_lines(accepted: &Option<Entry>, baseline: Option<&FileText>, store: &Store) -> Vec<bool> {
    let (Some(baseline), Some(accepted)) = (baseline, decode(accepted, store)) else {
        return Vec::new();
    };
    let mut own = Vec::new();
    let mut at = 0;
    for hunk in hunks(accepted.as_str(), baseline.as_str()) {
        own.resize(own.len() + hunk.at.start - at, false);
        own.resize(own.len() + hunk.added(), true);
        at = hunk.at.end;
    }
    own
}
