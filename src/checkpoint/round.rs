//! The open changes of a chat: those that the person has neither accepted nor taken back.
//!
//! A [`Round`] is made of the records of a chat alone, so it needs no file of its own. For each file, it has the baseline: the
//! file as the person accepted it last, with what they changed in it since. The baseline of a file that the chat has not changed
//! yet is the file itself. A call changes the file and not the baseline. Everybody else changes both: the person, `/undo`, and
//! other chats.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::change::{Change, Entry, shown};
use super::log::{AcceptedFile, By, Record};
use super::parts::{decode, of_records};
use super::snapshot::entry_at;
use super::store::Store;
use super::undo::mode;
use crate::buffers::OpenBuffers;
use crate::protocol::{Fact, FactKind, FileChange, ReviewText};
use co_edit::{FileText, Hunk, apply_hunks, carry, hunks, marked};
use co_exec::beneath::Dir;

#[cfg(test)]
mod tests;

/// The files of a workspace that a chat has changed.
#[derive(Debug, Default)]
pub struct Round {
    /// By their present paths in the workspace.
    files: BTreeMap<PathBuf, FileRound>,
    /// The directories that calls made or removed.
    directories: Vec<Change>,
}

/// A file that a chat has changed.
#[derive(Debug, Clone)]
struct FileRound {
    /// The path in the baseline.
    name: PathBuf,
    /// The baseline without what the person changed since.
    accepted: Option<Entry>,
    baseline: Option<Entry>,
    /// The file after the last known change.
    seen: Option<Entry>,
    /// The time of the first open change.
    since: Option<u64>,
}

/// A file in a commit of git.
#[derive(Debug)]
pub struct BaseFile {
    pub path: PathBuf,
    /// None if the commit does not have it.
    pub text: Option<String>,
    /// None if it has the mode that the file has now.
    pub mode: Option<u32>,
}

/// A file with open changes.
#[derive(Debug)]
pub struct OpenFile {
    /// The path in the workspace.
    pub path: PathBuf,
    /// The path in the baseline.
    name: PathBuf,
    baseline: Option<Entry>,
    seen: Option<Entry>,
    /// The text of the baseline, and the present one; none if the file cannot be compared by lines.
    texts: Option<[FileText; 2]>,
    pub parts: Vec<OpenPart>,
    /// The lines of the baseline that the person wrote since they accepted the file last.
    own: Vec<bool>,
    /// The time of the first open change, in seconds since 1970.
    pub since: Option<u64>,
}

/// A part of a change that is open.
#[derive(Debug, Clone)]
pub struct OpenPart {
    pub kind: PartKind,
    /// Its first line in the present text, from 1.
    pub line: usize,
    /// The indexes of the records of the calls that made it.
    pub records: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartKind {
    /// The file has another path.
    Moved,
    Mode,
    Lines(Hunk),
    /// All of the file, which cannot be compared by lines.
    Whole,
}

/// The verdict of the person on a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is still open.
    Open,
    Accepted,
    /// Accepted with other lines.
    Edited(String),
    Refused,
}

/// The result of the answers to the parts of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct AnsweredFile {
    /// The refused parts, as changes that were made.
    pub refused: Vec<Change>,
    /// The file in the baseline; none if no part was accepted.
    pub accepted: Option<AcceptedFile>,
}

impl Round {
    /// Returns the round of a chat with these records in the workspace `root`.
    ///
    /// # Errors
    /// The store cannot take a text.
    pub fn of(records: &[Record], root: &Path, store: &Store) -> io::Result<Self> {
        let mut round = Self::default();
        for record in records.iter().filter(|it| it.workspace == root) {
            match &record.by {
                By::Accepted { files } => files.iter().for_each(|it| round.accept(it)),
                By::Call { .. } | By::Redo => round.add(record, true, store)?,
                By::Undo | By::TakenBack => round.add(record, false, store)?,
            }
        }
        Ok(round)
    }

    /// Returns the round whose baseline is a commit of git. All that changed since is open, whoever changed it.
    ///
    /// # Errors
    /// The store cannot take a text.
    pub fn since_base(files: Vec<BaseFile>, root: &Dir, store: &Store) -> io::Result<Self> {
        let mut round = Self::default();
        for BaseFile { path, text, mode } in files {
            let seen = entry_at(root, &path, store)?;
            let mode = mode.or(self::mode(&seen)).unwrap_or(0o644);
            let blob = text.map(|it| store.put(it.as_bytes())).transpose()?;
            let baseline = blob.map(|blob| Entry::File {
                mode,
                blob: Some(blob),
            });
            let file = FileRound {
                seen,
                ..FileRound::new(&path, baseline)
            };
            round.files.insert(path, file);
        }
        Ok(round)
    }

    fn accept(&mut self, file: &AcceptedFile) {
        let since = self.files.get(&file.path).and_then(|it| it.since);
        let file_round = FileRound {
            name: file.name.clone(),
            accepted: file.baseline.clone(),
            baseline: file.baseline.clone(),
            seen: file.seen.clone(),
            since,
        };
        self.files.insert(file.path.clone(), file_round);
    }

    fn add(&mut self, record: &Record, is_asked: bool, store: &Store) -> io::Result<()> {
        let moves = self.moves(&record.changes);
        let is_moved = |it: &Change| moves.iter().any(|(from, _)| from.path == it.path);
        for change in record.changes.iter().filter(|it| !is_moved(it)) {
            if change.is_directory() {
                self.directories.extend(is_asked.then(|| change.clone()));
                continue;
            }
            let (path, after) = (&change.path, &change.after);
            let from = moves.iter().find(|(_, to)| to.path == *path);
            let before = from.map_or(&change.before, |(from, _)| &from.before);
            let from = from.map_or(path, |(from, _)| &from.path);
            let known = self.files.remove(from);
            let mut file = known.unwrap_or_else(|| FileRound::new(from, before.clone()));
            file.follow(before, store)?;
            // The person moves the baseline too.
            if from != path && (file.baseline.is_none() || !is_asked && file.name == *from) {
                file.name.clone_from(path);
            }
            if is_asked {
                let at = record.at;
                file.since = file.since.filter(|_| file.is_open(path)).or(at);
                file.seen.clone_from(after);
            } else {
                file.follow(after, store)?;
            }
            // A file that was moved and removed is removed.
            let is_free = |it: &PathBuf| self.files.get(it).is_none_or(FileRound::is_gone);
            let key = match file.seen.is_none() && is_free(&file.name) {
                true => file.name.clone(),
                false => path.clone(),
            };
            self.files.insert(key, file);
        }
        Ok(())
    }

    /// Returns the files that some changes move: the change that removes the file, and the one that makes it.
    fn moves<'a>(&self, changes: &'a [Change]) -> Vec<(&'a Change, &'a Change)> {
        let is_file = |it: &Option<Entry>| matches!(it, Some(Entry::File { .. }));
        let gone = changes
            .iter()
            .filter(|it| is_file(&it.before) && it.after.is_none());
        let mut made: Vec<_> = (changes.iter())
            .filter(|it| it.before.is_none() && is_file(&it.after))
            .filter(|it| self.files.get(&it.path).is_none_or(FileRound::is_gone))
            .collect();
        let mut moves = Vec::new();
        for change in gone {
            let name = self.files.get(&change.path).map(|it| &it.name);
            let is_back = |it: &&Change| name == Some(&it.path);
            let is_same = |it: &&Change| blob(&it.after) == blob(&change.before);
            let has_name = |it: &&Change| it.path.file_name() == change.path.file_name();
            let at = made.iter().position(is_back);
            let at = at.or_else(|| made.iter().position(|it| is_same(it) && has_name(it)));
            if let Some(at) = at.or_else(|| made.iter().position(is_same)) {
                moves.push((change, made.remove(at)));
            }
        }
        moves
    }

    /// Takes what has changed since the last record for the person's. `open` has the buffers of the files.
    ///
    /// # Errors
    /// The workspace cannot be opened, or the store cannot take a text.
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
            file.follow(&now, store)?;
        }
        Ok(())
    }

    /// Returns the paths of the files that may have open changes.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let open = self.files.iter().filter(|(path, file)| file.is_open(path));
        open.map(|(path, _)| path.as_path())
    }

    /// Returns the time of the first open change, in seconds since 1970.
    pub fn since(&self) -> Option<u64> {
        let open = self.files.iter().filter(|(path, file)| file.is_open(path));
        open.filter_map(|(_, file)| file.since).min()
    }

    /// Returns the files with open changes. `records` are those of the calls that are named.
    pub fn open_files(&self, records: &[Record], store: &Store) -> Vec<OpenFile> {
        let files = self.files.iter();
        let open = files.filter_map(|(path, it)| OpenFile::new(path, it, records, store));
        open.collect()
    }

    /// Returns the directories that were made for, or removed with, the files of some changes.
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
            name: path.to_owned(),
            accepted: entry.clone(),
            baseline: entry.clone(),
            seen: entry,
            since: None,
        }
    }

    fn is_open(&self, path: &Path) -> bool {
        self.baseline != self.seen || self.seen.is_some() && self.name != path
    }

    fn is_gone(&self) -> bool {
        self.baseline.is_none() && self.seen.is_none()
    }

    /// Takes what makes the file like `now` for a change of the person.
    fn follow(&mut self, now: &Option<Entry>, store: &Store) -> io::Result<()> {
        self.baseline = carried(&self.baseline, &self.seen, now, store)?;
        self.seen.clone_from(now);
        Ok(())
    }
}

/// Makes the change from `seen` to `now` in the baseline too. If that cannot be done by lines, all of the file is the person's.
fn carried(
    baseline: &Option<Entry>,
    seen: &Option<Entry>,
    now: &Option<Entry>,
    store: &Store,
) -> io::Result<Option<Entry>> {
    if seen == now {
        return Ok(baseline.clone());
    }
    let (None | Some(Entry::File { .. }), Some(Entry::File { .. }), Some(Entry::File { .. })) =
        (baseline, seen, now)
    else {
        return Ok(now.clone());
    };
    let texts = [baseline, seen, now].map(|it| decode(it, store));
    let [Some(base), Some(old), Some(new)] = texts else {
        return Ok(now.clone());
    };
    let [base, old, new] = FileText::alike([base, old, new]);
    let text = carry(base.as_str(), old.as_str(), new.as_str());
    let own_mode = mode(now).filter(|it| Some(*it) != mode(seen));
    let mode = own_mode.or(mode(baseline)).or(mode(now));
    if baseline.is_none() && text.is_empty() {
        return Ok(None);
    }
    let like = if text == base.as_str() && baseline.is_some() {
        baseline
    } else {
        now
    };
    file_like(like, &text, mode, store)
}

/// Returns a file with a text and a mode, else like another one.
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

impl OpenFile {
    fn new(path: &Path, file: &FileRound, records: &[Record], store: &Store) -> Option<Self> {
        if !file.is_open(path) {
            return None;
        }
        let FileRound {
            name,
            accepted,
            baseline,
            seen,
            since,
        } = file.clone();
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
        let now = texts.as_ref().map_or("", |it| it[1].as_str());
        let all = records;
        let records = of_records(path, all, &lines, now, store);
        kinds.extend(lines.into_iter().map(PartKind::Lines));
        let is_line = |it: &&PartKind| matches!(it, PartKind::Lines(_));
        let first = kinds.iter().take_while(|it| !is_line(it)).count();
        let of_file = vec![(1, of_path(path, all, texts.is_none())); first];
        let mut records = of_file.into_iter().chain(records);
        let parts = kinds.into_iter().map(|kind| {
            let (line, records) = records.next().unwrap_or((1, Vec::new()));
            OpenPart {
                kind,
                line,
                records,
            }
        });
        let parts = parts.collect();
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

    /// Returns the change of the file, with its parts, for a review.
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

    /// Returns the whole text with its changes. Lines that the person wrote have the mark `~`.
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

    fn as_change(&self) -> Change {
        Change {
            path: self.path.clone(),
            before: self.baseline.clone(),
            after: self.seen.clone(),
        }
    }

    /// Returns what the answers to the parts make of the file.
    ///
    /// # Errors
    /// The file cannot have that text, or the store cannot take it.
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

    /// Returns the path and the file with some of the parts.
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
        let (mut mode_of, mut content) = (&self.baseline, &self.baseline);
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
                content.clone().map(|it| with_mode(it, mode_of)),
            ));
        };
        let mode = mode(mode_of);
        if all_lines {
            let seen = self.seen.clone();
            let seen = match mode {
                Some(_) => seen.map(|it| with_mode(it, mode_of)),
                None => seen,
            };
            return Ok((name.clone(), seen));
        }
        let like = self.seen.as_ref().or(self.baseline.as_ref()).cloned();
        let text = apply_hunks(old.as_str(), &lines);
        Ok((name.clone(), file_like(&like, &text, mode, store)?))
    }
}

/// Returns an entry with the mode of another one.
fn with_mode(entry: Entry, of: &Option<Entry>) -> Entry {
    match (entry, mode(of)) {
        (Entry::File { blob, .. }, Some(mode)) => Entry::File { mode, blob },
        (entry, _) => entry,
    }
}

/// Returns the text for a review of a file that cannot be compared by lines.
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

/// Returns for each line of the baseline whether the person wrote it since they accepted the file.
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

/// Returns the indexes of the records of calls that changed a file; unless it is changed as a whole, those that changed more
/// of it than its text.
fn of_path(path: &Path, records: &[Record], is_whole: bool) -> Vec<usize> {
    let is_more = |it: &Change| is_whole || mode(&it.before) != mode(&it.after);
    let has = |it: &Record| {
        let mut of_file = it.changes.iter().filter(|change| change.path == path);
        matches!(it.by, By::Call { .. }) && of_file.any(is_more)
    };
    let found = records.iter().enumerate().filter(|(_, it)| has(it));
    found.map(|(at, _)| at).collect()
}

fn blob(entry: &Option<Entry>) -> Option<&super::change::Blob> {
    match entry {
        Some(Entry::File { blob, .. }) => blob.as_ref(),
        _ => None,
    }
}
