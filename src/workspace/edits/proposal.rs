//! Changes that are proposed but not applied yet.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use super::EditRefused;
use super::disk::{self, WriteOptions};
use super::request::EditRequest;
use super::seen::SeenTexts;
use super::source::{EditPlace, EditableText, Source};
use crate::buffers::OpenBuffers;
use crate::protocol::{BufferChange, Fact, FactKind, without_lines};
use co_edit::{FileText, Hunk, Names, RebaseResult, apply, hash, hunks, marked, rebase, unified};
use co_policy::obeyed;
use co_text::one_line;

/// A proposed change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The path of the file after the change. For a deleted file, the path before the change.
    pub path: String,
    /// The unified diff.
    pub diff: String,
    /// Sentences about the places where the old text of the edit did not exactly match the text of the file.
    pub notes: Vec<String>,
    /// True if the buffer of the file has unsaved changes.
    pub unsaved: bool,
    /// True if the person answered about each part. A part that no longer applies is then left out. Otherwise, such a part makes
    /// the whole change fail.
    by_parts: bool,
    hunks: Vec<Hunk>,
    change: ProposedChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ProposedChange {
    Create {
        place: EditPlace,
        new: FileText,
    },
    Replace {
        place: EditPlace,
        old: EditableText,
        new: FileText,
    },
    Delete {
        place: EditPlace,
        before: Vec<u8>,
    },
    Move {
        from: EditPlace,
        to: EditPlace,
    },
}

/// The state of the files after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedEdit {
    /// The text of a file changes from `old` to `new`. `old` may be only in its buffer.
    Text {
        old: Box<FileText>,
        new: Box<FileText>,
    },
    /// A file with these bytes is created.
    Create(Vec<u8>),
    Delete,
    /// The first file is moved to the path of the second one.
    Move,
}

/// Returns the change that a request would make. `places` are the files of the request. `open` contains the buffers of the loaded
/// files. `seen` contains the texts that the model has read. This function changes nothing.
///
/// Blocks on files. Call it from `spawn_blocking`.
///
/// # Errors
/// The request cannot be applied to the current files.
pub fn propose(
    request: &EditRequest,
    places: &[EditPlace],
    open: &OpenBuffers,
    seen: &SeenTexts,
) -> Result<Proposal, EditRefused> {
    let check = |place: &EditPlace, old: &EditableText| match request.hash() {
        Some(given) => {
            (seen.check(&place.shown, given, old.text.as_str())).map_err(|why| place.refuse(why))
        }
        None => Ok(()),
    };
    let proposal = match (request, places) {
        (EditRequest::Edit { edits, .. }, [place]) => {
            let old = EditableText::of(place, open)?
                .ok_or_else(|| place.refuse("it does not exist: create it with write_file"))?;
            check(place, &old)?;
            let edited = apply(&old.text, edits).map_err(|error| place.refuse(error))?;
            let notes = edited.notes.iter().map(ToString::to_string).collect();
            replacement(place, old, edited.file, notes)
        }
        (EditRequest::Write { text, .. }, [place]) => match EditableText::of(place, open)? {
            None => {
                let new = FileText::decode(text.as_bytes());
                creation(place, new.map_err(|error| place.refuse(error))?)
            }
            Some(old) => {
                check(place, &old)?;
                let mut new = old.text.clone();
                new.rewrite(text);
                replacement(place, old, new, Vec::new())
            }
        },
        (EditRequest::Delete { .. }, [place]) => deletion(place),
        (EditRequest::Move { .. }, [from, to]) => movement(from, to),
        (
            EditRequest::Edit { .. }
            | EditRequest::Write { .. }
            | EditRequest::Delete { .. }
            | EditRequest::Move { .. },
            _,
        ) => Err(EditRefused(
            "the request does not name its files".to_owned(),
        )),
    }?;
    let unsaved = places
        .iter()
        .any(|place| open.get(&place.real).is_some_and(|it| it.modified));
    Ok(Proposal {
        unsaved,
        ..proposal
    })
}

impl Proposal {
    /// Returns the file that changes. For a move, returns the file that is moved.
    pub fn file(&self) -> &Path {
        &self.place().real
    }

    pub(super) fn place(&self) -> &EditPlace {
        match &self.change {
            ProposedChange::Create { place, .. }
            | ProposedChange::Replace { place, .. }
            | ProposedChange::Delete { place, .. }
            | ProposedChange::Move { from: place, .. } => place,
        }
    }

    /// Returns the canonical paths of the files that change.
    pub fn files(&self) -> Vec<PathBuf> {
        match &self.change {
            ProposedChange::Move { from, to } => vec![from.real.clone(), to.real.clone()],
            _ => vec![self.file().to_owned()],
        }
    }

    /// Returns the hunks of the change, in order.
    pub(super) fn hunks(&self) -> &[Hunk] {
        &self.hunks
    }

    /// Returns three numbers for each replaced range of lines, in order: the number of its first line, counted from 1, the number
    /// of replaced lines, and the number of new lines.
    pub fn changed_lines(&self) -> Vec<[usize; 3]> {
        let lines = |it: &Hunk| [it.at.start + 1, it.at.len(), it.text.lines().count()];
        self.hunks.iter().map(lines).collect()
    }

    /// Returns the file that no longer exists after the change. If it is moved, also returns its new path.
    pub(super) fn gone(&self) -> Option<(&Path, Option<&Path>)> {
        match &self.change {
            ProposedChange::Delete { place, .. } => Some((&place.real, None)),
            ProposedChange::Move { from, to } => Some((&from.real, Some(&to.real))),
            ProposedChange::Create { .. } | ProposedChange::Replace { .. } => None,
        }
    }

    /// Returns the number of parts that the person can accept or reject.
    pub fn parts(&self) -> usize {
        self.hunks.len().max(1)
    }

    /// Returns true if some parts of the change can be made without the others.
    pub(super) fn is_by_lines(&self) -> bool {
        self.new_text().is_some() && !self.hunks.is_empty()
    }

    /// Returns the facts that the changed lines do not show, or that a person must see first.
    pub fn facts(&self) -> Vec<Fact> {
        let fact = |kind, text: String| Fact {
            kind,
            path: one_line(&self.path),
            text: one_line(&text),
        };
        let mut facts = Vec::new();
        if !matches!(self.change, ProposedChange::Delete { .. }) {
            let why = obeyed::reason(Path::new(&self.path));
            facts.extend(why.map(|why| fact(FactKind::Runs, why)));
        }
        match &self.change {
            ProposedChange::Delete { before, .. } => {
                if self.hunks.is_empty() && !before.is_empty() {
                    facts.push(fact(
                        FactKind::Bytes,
                        format!("no text: {} bytes", before.len()),
                    ));
                }
                facts.push(fact(FactKind::Deleted, "deleted".to_owned()));
            }
            ProposedChange::Move { from, .. } => {
                let text = format!("moved from {}", from.shown);
                facts.push(fact(FactKind::Moved, text));
            }
            ProposedChange::Create { .. } | ProposedChange::Replace { .. } => {}
        }
        facts
    }

    /// Returns the whole text with marked changes; see [`co_edit::marked`].
    pub(super) fn marked(&self) -> String {
        let old = match &self.change {
            ProposedChange::Replace { old, .. } => Cow::Borrowed(old.text.as_str()),
            ProposedChange::Delete { before, .. } => match FileText::decode(before) {
                Ok(old) => Cow::Owned(old.as_str().to_owned()),
                Err(_) => Cow::Borrowed(""),
            },
            ProposedChange::Create { .. } | ProposedChange::Move { .. } => Cow::Borrowed(""),
        };
        match (&self.hunks[..], &self.change) {
            ([], ProposedChange::Create { .. }) => "@\n!a new empty file\n".to_owned(),
            ([], _) => "@\n".to_owned(),
            (hunks, _) => marked(&old, hunks),
        }
    }

    /// Returns the number of added lines.
    pub fn added(&self) -> usize {
        self.hunks.iter().map(Hunk::added).sum()
    }

    /// Returns the number of removed lines.
    pub fn removed(&self) -> usize {
        self.hunks.iter().map(Hunk::removed).sum()
    }

    /// Returns a text about the change, if no line differs.
    pub fn without_lines(&self) -> Option<String> {
        let is_new = matches!(self.change, ProposedChange::Create { .. });
        (self.added() + self.removed() == 0).then(|| without_lines(&self.facts(), is_new))
    }

    /// Returns the hash of the new text; none if there is no new text.
    pub fn hash(&self) -> Option<String> {
        self.new_text().map(hash)
    }

    /// Returns a change of the same file whose new text is `text`. This text contains only the accepted parts of the change. Adds
    /// `notes` to the notes of the change.
    pub(super) fn with_text(self, text: &str, notes: Vec<String>) -> Result<Self, EditRefused> {
        let mut all = self.notes;
        all.extend(notes);
        let proposal = match self.change {
            ProposedChange::Replace { place, old, .. } => {
                let mut new = old.text.clone();
                new.apply_hunks(&hunks(old.text.as_str(), text));
                replacement(&place, old, new, all)?
            }
            ProposedChange::Create { place, mut new } => {
                new.apply_hunks(&hunks(new.as_str(), text));
                Self {
                    notes: all,
                    ..creation(&place, new)?
                }
            }
            change => Self {
                notes: all,
                change,
                ..self
            },
        };
        Ok(Self {
            unsaved: self.unsaved,
            by_parts: true,
            ..proposal
        })
    }

    /// Returns the change that takes this one back.
    ///
    /// # Errors
    /// The change is not a change of a text, or the encoding of the file cannot store the text.
    pub(super) fn inverse(&self) -> Result<Self, EditRefused> {
        let ProposedChange::Replace { place, old, new } = &self.change else {
            let why = format!("cannot take the change of {} back", self.path);
            return Err(EditRefused(why));
        };
        let now = EditableText {
            text: new.clone(),
            source: old.source.clone(),
        };
        replacement(place, now, old.text.clone(), Vec::new())
    }

    /// Returns the text before the change; none if the file is created, deleted or moved.
    pub fn old_text(&self) -> Option<&str> {
        match &self.change {
            ProposedChange::Replace { old, .. } => Some(old.text.as_str()),
            _ => None,
        }
    }

    /// Returns the text after the change; none if the file is deleted or moved.
    pub fn new_text(&self) -> Option<&str> {
        match &self.change {
            ProposedChange::Create { new, .. } | ProposedChange::Replace { new, .. } => {
                Some(new.as_str())
            }
            ProposedChange::Delete { .. } | ProposedChange::Move { .. } => None,
        }
    }

    /// Returns the new text of this change, and the text of the buffer after autocommands changed it. `lines` are the lines of
    /// the buffer after the autocommands. Returns `None` if there is no buffer, or if its content is not text.
    pub(super) fn after_autocommands(&self, lines: &[u8]) -> Option<[FileText; 2]> {
        let ProposedChange::Replace { old, new, .. } = &self.change else {
            return None;
        };
        let Source::Buffer { encoding, .. } = &old.source else {
            return None;
        };
        let text = FileText::of_buffer(lines, encoding).ok()?;
        Some(FileText::alike([new.clone(), text]))
    }

    /// Returns the state of [`Self::files`] after the edit.
    ///
    /// # Errors
    /// The encoding of the file cannot store the new text.
    pub fn planned(&self) -> Result<PlannedEdit, EditRefused> {
        Ok(match &self.change {
            ProposedChange::Create { place, new } => {
                PlannedEdit::Create(new.encode().map_err(|error| place.refuse(error))?)
            }
            ProposedChange::Replace { old, new, .. } => PlannedEdit::Text {
                old: Box::new(old.text.clone()),
                new: Box::new(new.clone()),
            },
            ProposedChange::Delete { .. } => PlannedEdit::Delete,
            ProposedChange::Move { .. } => PlannedEdit::Move,
        })
    }

    /// Returns the change, rebased on the current text of the file.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    ///
    /// # Errors
    /// The lines of the change have changed meanwhile, or the file cannot be read.
    pub(super) fn rebased(self, open: &OpenBuffers) -> Result<Self, EditRefused> {
        let ProposedChange::Replace { place, old, .. } = &self.change else {
            return Ok(self);
        };
        let now =
            EditableText::of(place, open)?.ok_or_else(|| place.refuse("it no longer exists"))?;
        if now == *old {
            return Ok(self);
        }
        let moved = rebase(old.text.as_str(), &self.hunks, now.text.as_str());
        let (mut fit, mut stale) = (Vec::new(), Vec::new());
        for one in moved {
            match one {
                RebaseResult::Moved(hunk) => fit.push(hunk),
                RebaseResult::Stale(hunk) => stale.push(hunk),
            }
        }
        if fit.is_empty() || !(stale.is_empty() || self.by_parts) {
            return Err(place.refuse("the lines to change have changed meanwhile: read it again"));
        }
        let mut notes = self.notes.clone();
        notes.extend(stale.iter().map(|hunk| {
            let line = hunk.at.start + 1;
            format!(
                "the change at line {line} was left out after all, because its lines have changed meanwhile"
            )
        }));
        let mut new = now.text.clone();
        new.apply_hunks(&fit);
        Ok(Self {
            unsaved: self.unsaved,
            by_parts: self.by_parts,
            ..replacement(place, now, new, notes)?
        })
    }

    /// Returns the change of the file's buffer; none if the file is not loaded in a buffer.
    pub(crate) fn buffer_change(&self) -> Result<Option<BufferChange>, EditRefused> {
        match &self.change {
            ProposedChange::Replace { place, old, new } => {
                let change = old.buffer_change(&place.real, new);
                change.map_err(|error| place.refuse(error))
            }
            _ => Ok(None),
        }
    }

    /// Applies the change to the files on disk, if they have not changed meanwhile.
    ///
    /// Blocks on files. Call it from `spawn_blocking`.
    ///
    /// # Errors
    /// A file has changed meanwhile, or cannot be written. Nothing is written then.
    pub fn apply_to_disk(&self) -> Result<(), EditRefused> {
        let applied = self.try_apply();
        applied.map_err(|error| EditRefused(format!("cannot change {}: {error}", self.path)))
    }

    fn try_apply(&self) -> io::Result<()> {
        let options = WriteOptions::default();
        match &self.change {
            ProposedChange::Create { place, new } => {
                let (root, path) = place.open()?;
                let bytes = new.encode().map_err(io::Error::other)?;
                disk::create(&root, path, &bytes, options)
            }
            ProposedChange::Replace { place, old, new } => {
                let (root, path) = place.open()?;
                let after = new.encode().map_err(io::Error::other)?;
                match &old.source {
                    Source::Disk(before) => disk::replace(&root, path, before, &after, options),
                    Source::Buffer { .. } => Err(io::Error::other("its buffer has the text")),
                }
            }
            ProposedChange::Delete { place, before } => {
                let (root, path) = place.open()?;
                disk::remove(&root, path, before)
            }
            ProposedChange::Move { from, to } => {
                let ((root, from), (_, to)) = (from.open()?, to.open()?);
                disk::rename(&root, from, to)
            }
        }
    }
}

pub(super) fn creation(place: &EditPlace, new: FileText) -> Result<Proposal, EditRefused> {
    let check = new.check_after(None);
    check.map_err(|error| place.refuse(error))?;
    let names = Names {
        old: None,
        new: Some(&place.shown),
    };
    let difference = Difference::of("", new.as_str(), names);
    let change = ProposedChange::Create {
        place: place.clone(),
        new,
    };
    Ok(proposal(place, difference, change))
}

pub(super) fn replacement(
    place: &EditPlace,
    old: EditableText,
    new: FileText,
    notes: Vec<String>,
) -> Result<Proposal, EditRefused> {
    let check = new.check_after(Some(&old.text));
    check.map_err(|error| place.refuse(error))?;
    if new == old.text {
        return Err(place.refuse("it already has this text"));
    }
    let names = Names {
        old: Some(&place.shown),
        new: Some(&place.shown),
    };
    let difference = Difference::of(old.text.as_str(), new.as_str(), names);
    let change = ProposedChange::Replace {
        place: place.clone(),
        old,
        new,
    };
    Ok(Proposal {
        notes,
        ..proposal(place, difference, change)
    })
}

fn deletion(place: &EditPlace) -> Result<Proposal, EditRefused> {
    refuse_link(place)?;
    let (root, path) = place.open().map_err(|error| place.refuse(error))?;
    let before = disk::read(&root, path).map_err(|error| place.refuse(error))?;
    let before = before.ok_or_else(|| place.refuse("it does not exist"))?;
    disk::check_writable(&root, path).map_err(|error| place.refuse(error))?;
    let names = Names {
        old: Some(&place.shown),
        new: None,
    };
    let old = FileText::decode(&before);
    let change = ProposedChange::Delete {
        place: place.clone(),
        before,
    };
    let difference = match old {
        Ok(old) => Difference::of(old.as_str(), "", names),
        Err(_) => {
            let name = co_text::one_line(&place.shown);
            Difference::told(format!("Binary file a/{name} is deleted\n"))
        }
    };
    Ok(proposal(place, difference, change))
}

fn movement(from: &EditPlace, to: &EditPlace) -> Result<Proposal, EditRefused> {
    refuse_link(from)?;
    let (root, path) = from.open().map_err(|error| from.refuse(error))?;
    let is_there = |path| matches!(root.node(path), Ok(Some(_)));
    if !is_there(path) {
        return Err(from.refuse("it does not exist"));
    }
    let (_, to_path) = to.open().map_err(|error| to.refuse(error))?;
    if to.is_link || is_there(to_path) {
        return Err(to.refuse("it exists: choose another name, or delete it first"));
    }
    disk::check_writable(&root, path).map_err(|error| from.refuse(error))?;
    let change = ProposedChange::Move {
        from: from.clone(),
        to: to.clone(),
    };
    let [old, new] = [from, to].map(|place| co_text::one_line(&place.shown));
    let renamed = format!("rename from {old}\nrename to {new}\n");
    Ok(proposal(to, Difference::told(renamed), change))
}

fn refuse_link(place: &EditPlace) -> Result<(), EditRefused> {
    match place.is_link {
        true => Err(place.refuse("the path is a link to it: name the file itself")),
        false => Ok(()),
    }
}

/// The difference between two texts of a file.
struct Difference {
    diff: String,
    hunks: Vec<Hunk>,
}

impl Difference {
    fn of(old: &str, new: &str, names: Names<'_>) -> Self {
        let hunks = hunks(old, new);
        Self {
            diff: unified(old, &hunks, names),
            hunks,
        }
    }

    /// Makes a difference in which no line differs. `diff` is a text that describes it.
    fn told(diff: String) -> Self {
        Self {
            diff,
            hunks: Vec::new(),
        }
    }
}

fn proposal(place: &EditPlace, difference: Difference, change: ProposedChange) -> Proposal {
    Proposal {
        path: place.shown.clone(),
        diff: difference.diff,
        hunks: difference.hunks,
        notes: Vec::new(),
        unsaved: false,
        by_parts: false,
        change,
    }
}
