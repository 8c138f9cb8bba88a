//! The text of a file as the person sees it: that of its buffer, or else that on the disk.

use std::path::{Path, PathBuf};

use super::EditRefused;
use super::disk;
use crate::buffers::OpenBuffers;
use crate::protocol::{BufferChange, Replacement};
use co_edit::{FileText, Hunk, NotText, hunks};

/// A file that may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditPlace {
    /// The path in the workspace, for people and models.
    pub shown: String,
    /// The file that the path leads to.
    pub real: PathBuf,
    /// True if the path is a link to that file.
    pub is_link: bool,
}

/// The text of a file that may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditableText {
    pub text: FileText,
    pub source: Source,
}

/// The place that a text was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// The bytes of the file.
    Disk(Vec<u8>),
    /// The 'changedtick' of its buffer.
    Buffer { tick: u64 },
}

impl EditPlace {
    pub(super) fn refuse(&self, why: impl std::fmt::Display) -> EditRefused {
        EditRefused(format!("cannot change {}: {why}", self.shown))
    }
}

impl EditableText {
    /// Returns the text of a file; none if there is neither a buffer nor a file.
    pub(super) fn of(place: &EditPlace, open: &OpenBuffers) -> Result<Option<Self>, EditRefused> {
        let refuse = |why: &dyn std::fmt::Display| place.refuse(why);
        let (bytes, source) = match open.get(&place.real) {
            Some(buffer) => {
                if let Some(problem) = &buffer.problem {
                    return Err(place.refuse(problem));
                }
                if str::from_utf8(&buffer.text).is_err() {
                    return Err(place.refuse("its buffer has bytes that are no UTF-8"));
                }
                let source = Source::Buffer { tick: buffer.tick };
                (buffer.text.clone(), source)
            }
            None => match disk::read(&place.real).map_err(|error| refuse(&error))? {
                Some(bytes) => (bytes.clone(), Source::Disk(bytes)),
                None => return Ok(None),
            },
        };
        if place.real.exists() {
            disk::check_writable(&place.real).map_err(|error| refuse(&error))?;
        }
        let text = FileText::decode(&bytes).map_err(|error| refuse(&error))?;
        Ok(Some(Self { text, source }))
    }

    /// Returns the change of the buffer that makes `new` of this text; none if it is not the text of a buffer.
    ///
    /// # Errors
    /// The new text cannot be stored in the buffer.
    pub(super) fn buffer_change(
        &self,
        file: &Path,
        new: &FileText,
    ) -> Result<Option<BufferChange>, NotText> {
        let Source::Buffer { tick } = self.source else {
            return Ok(None);
        };
        buffer_change(file, tick, &self.text, new).map(Some)
    }
}

/// Returns the change of the buffer of `file` that makes `new` of its text `old`, which it had at 'changedtick' `tick`.
///
/// # Errors
/// The new text cannot be stored in the buffer.
pub(crate) fn buffer_change(
    file: &Path,
    tick: u64,
    old: &FileText,
    new: &FileText,
) -> Result<BufferChange, NotText> {
    // With the carriage returns that lines of the buffer may end with.
    let (before, after) = (old.encode()?, new.encode()?);
    let (before, after) = (
        String::from_utf8_lossy(&before),
        String::from_utf8_lossy(&after),
    );
    Ok(BufferChange {
        file: file.display().to_string(),
        tick,
        replacements: hunks(&before, &after).iter().map(replacement).collect(),
        final_newline: after.is_empty() || after.ends_with('\n'),
    })
}

/// Returns a hunk for the editor.
pub(crate) fn replacement(hunk: &Hunk) -> Replacement {
    Replacement {
        start: hunk.at.start,
        end: hunk.at.end,
        lines: hunk
            .text
            .split_terminator('\n')
            .map(str::to_owned)
            .collect(),
    }
}
