//! Changes that are made but not applied.

use std::path::{Path, PathBuf};

use super::EditRefused;
use super::disk;
use super::request::EditRequest;
use co_edit::{FileText, Names, apply, hash, hunks, unified};

/// A file that may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditPlace {
    /// The path in the workspace, for people and models.
    pub shown: String,
    /// The file that the path leads to.
    pub real: PathBuf,
    /// Whether the path is a link to that file.
    pub is_link: bool,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The path of the file after the change, or before it if the file is deleted.
    pub path: String,
    /// The unified diff.
    pub diff: String,
    pub added: usize,
    pub removed: usize,
    /// Sentences about places that were not exact.
    pub notes: Vec<String>,
    /// The hash of the new text; none if there is none.
    pub hash: Option<String>,
    change: Change,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Create {
        path: PathBuf,
        text: Vec<u8>,
    },
    Replace {
        path: PathBuf,
        before: Vec<u8>,
        after: Vec<u8>,
    },
    Delete {
        path: PathBuf,
        before: Vec<u8>,
    },
    Move {
        from: PathBuf,
        to: PathBuf,
    },
}

/// Returns what a request would change. `places` are its files. Changes nothing.
///
/// It blocks on files: call it from `spawn_blocking`.
///
/// # Errors
/// The request cannot be applied to the files as they are.
pub fn propose(request: &EditRequest, places: &[EditPlace]) -> Result<Proposal, EditRefused> {
    match (request, places) {
        (EditRequest::Edit { edits, .. }, [place]) => {
            let (bytes, file) = text_of(place)?
                .ok_or_else(|| place.refuse("it does not exist: create it with write_file"))?;
            let edited = apply(&file, edits).map_err(|error| place.refuse(error))?;
            let notes = edited.notes.iter().map(ToString::to_string).collect();
            replacement(place, bytes, &file, &edited.file, notes)
        }
        (EditRequest::Write { text, .. }, [place]) => match text_of(place)? {
            None => creation(place, text),
            Some((bytes, file)) => {
                let mut new = file.clone();
                new.rewrite(text);
                replacement(place, bytes, &file, &new, Vec::new())
            }
        },
        (EditRequest::Delete { .. }, [place]) => deletion(place),
        (EditRequest::Move { .. }, [from, to]) => movement(from, to),
        _ => Err(EditRefused(
            "the request does not name its files".to_owned(),
        )),
    }
}

impl Proposal {
    /// Returns the file that changes; of a move, the one that is moved.
    pub fn file(&self) -> &Path {
        match &self.change {
            Change::Create { path, .. }
            | Change::Replace { path, .. }
            | Change::Delete { path, .. } => path,
            Change::Move { from, .. } => from,
        }
    }

    /// Applies the change, if the files still are as they were.
    ///
    /// It blocks on files: call it from `spawn_blocking`.
    ///
    /// # Errors
    /// A file has changed meanwhile or cannot be written. Then nothing is written.
    pub fn apply(&self) -> Result<(), EditRefused> {
        let applied = match &self.change {
            Change::Create { path, text } => disk::create(path, text),
            Change::Replace {
                path,
                before,
                after,
            } => disk::replace(path, before, after),
            Change::Delete { path, before } => disk::remove(path, before),
            Change::Move { from, to } => disk::rename(from, to),
        };
        applied.map_err(|error| EditRefused(format!("cannot change {}: {error}", self.path)))
    }
}

impl EditPlace {
    fn refuse(&self, why: impl std::fmt::Display) -> EditRefused {
        EditRefused(format!("cannot change {}: {why}", self.shown))
    }
}

/// Returns the bytes and the text of a file that may be written; none if there is no file.
fn text_of(place: &EditPlace) -> Result<Option<(Vec<u8>, FileText)>, EditRefused> {
    let Some(bytes) = disk::read(&place.real).map_err(|error| place.refuse(error))? else {
        return Ok(None);
    };
    disk::check_writable(&place.real).map_err(|error| place.refuse(error))?;
    let file = FileText::decode(&bytes).map_err(|error| place.refuse(error))?;
    Ok(Some((bytes, file)))
}

fn creation(place: &EditPlace, text: &str) -> Result<Proposal, EditRefused> {
    let file = FileText::decode(text.as_bytes()).map_err(|error| place.refuse(error))?;
    let names = Names {
        old: None,
        new: Some(&place.shown),
    };
    let change = Change::Create {
        path: place.real.clone(),
        text: text.as_bytes().to_vec(),
    };
    Ok(Proposal {
        hash: Some(hash(file.as_str())),
        ..proposal(place, ("", file.as_str()), names, change)
    })
}

fn replacement(
    place: &EditPlace,
    before: Vec<u8>,
    old: &FileText,
    new: &FileText,
    notes: Vec<String>,
) -> Result<Proposal, EditRefused> {
    let after = new.encode().map_err(|error| place.refuse(error))?;
    if after == before {
        return Err(place.refuse("it already has this text"));
    }
    let names = Names {
        old: Some(&place.shown),
        new: Some(&place.shown),
    };
    let change = Change::Replace {
        path: place.real.clone(),
        before,
        after,
    };
    Ok(Proposal {
        hash: Some(hash(new.as_str())),
        notes,
        ..proposal(place, (old.as_str(), new.as_str()), names, change)
    })
}

fn deletion(place: &EditPlace) -> Result<Proposal, EditRefused> {
    refuse_link(place)?;
    let before = disk::read(&place.real).map_err(|error| place.refuse(error))?;
    let before = before.ok_or_else(|| place.refuse("it does not exist"))?;
    disk::check_writable(&place.real).map_err(|error| place.refuse(error))?;
    let names = Names {
        old: Some(&place.shown),
        new: None,
    };
    let old = FileText::decode(&before);
    let change = Change::Delete {
        path: place.real.clone(),
        before,
    };
    Ok(match old {
        Ok(old) => proposal(place, (old.as_str(), ""), names, change),
        Err(_) => Proposal {
            diff: format!("Binary file a/{} is deleted\n", place.shown),
            ..proposal(place, ("", ""), names, change)
        },
    })
}

fn movement(from: &EditPlace, to: &EditPlace) -> Result<Proposal, EditRefused> {
    refuse_link(from)?;
    if from.real.symlink_metadata().is_err() {
        return Err(from.refuse("it does not exist"));
    }
    if to.is_link || to.real.symlink_metadata().is_ok() {
        return Err(to.refuse("it exists: choose another name, or delete it first"));
    }
    disk::check_writable(&from.real).map_err(|error| from.refuse(error))?;
    let names = Names {
        old: None,
        new: None,
    };
    let change = Change::Move {
        from: from.real.clone(),
        to: to.real.clone(),
    };
    Ok(Proposal {
        diff: format!("rename from {}\nrename to {}\n", from.shown, to.shown),
        ..proposal(to, ("", ""), names, change)
    })
}

fn refuse_link(place: &EditPlace) -> Result<(), EditRefused> {
    match place.is_link {
        true => Err(place.refuse("the path is a link to it: name the file itself")),
        false => Ok(()),
    }
}

fn proposal(
    place: &EditPlace,
    (old, new): (&str, &str),
    names: Names<'_>,
    change: Change,
) -> Proposal {
    let hunks = hunks(old, new);
    Proposal {
        path: place.shown.clone(),
        diff: unified(old, new, names),
        added: hunks.iter().map(co_edit::Hunk::added).sum(),
        removed: hunks.iter().map(co_edit::Hunk::removed).sum(),
        notes: Vec::new(),
        hash: None,
        change,
    }
}
