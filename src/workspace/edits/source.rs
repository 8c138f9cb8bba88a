//! The text of a file as the person sees it: the text of its buffer, or else the text on disk.

use std::io;
use std::path::{Path, PathBuf};

use super::EditRefused;
use super::disk;
use crate::buffers::OpenBuffers;
use crate::protocol::{BufferChange, BufferLine, BufferReplacement};
use co_edit::{FileText, NotText, hunks};
use co_exec::beneath::Dir;

/// A file that may be changed, and the place where co opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditPlace {
    /// The path relative to the workspace, for people and models.
    pub shown: String,
    /// The canonical path of the workspace, or of another directory that contains the file.
    pub root: PathBuf,
    /// The canonical path that the path of the request led to when it was judged. co opens it relative to `root`, and follows no
    /// symbolic link.
    pub real: PathBuf,
    /// True if the path of the request is a symbolic link to the file.
    pub is_link: bool,
    /// The reason why every change of the file requires approval: other programs run or load the file, or a link to it.
    pub obeyed: Option<String>,
}

/// The text of a file that may be changed, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditableText {
    pub text: FileText,
    pub source: Source,
}

/// The place from which a text was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// The file on disk, with its bytes.
    Disk(Vec<u8>),
    /// The buffer of the file, with its 'changedtick' and 'fileencoding'.
    Buffer { tick: u64, encoding: String },
}

impl EditPlace {
    /// Opens the directory [`Self::root`]. Returns the directory, and the path of the file relative to it.
    pub(super) fn open(&self) -> io::Result<(Dir, &Path)> {
        let path = self.real.strip_prefix(&self.root);
        Ok((Dir::open(&self.root)?, path.map_err(io::Error::other)?))
    }

    pub(super) fn refuse(&self, why: impl std::fmt::Display) -> EditRefused {
        EditRefused(format!("cannot change {}: {why}", self.shown))
    }
}

impl EditableText {
    /// Returns the text of a file; none if neither a buffer nor the file exists.
    pub(super) fn of(place: &EditPlace, open: &OpenBuffers) -> Result<Option<Self>, EditRefused> {
        let refuse = |why: &dyn std::fmt::Display| place.refuse(why);
        let (root, path) = place.open().map_err(|error| refuse(&error))?;
        let (text, source) = match open.get(&place.real) {
            Some(buffer) => {
                if let Some(problem) = &buffer.problem {
                    return Err(place.refuse(problem));
                }
                let source = Source::Buffer {
                    tick: buffer.tick,
                    encoding: buffer.encoding.clone(),
                };
                (buffer.file_text(), source)
            }
            None => match disk::read(&root, path).map_err(|error| refuse(&error))? {
                Some(bytes) => (FileText::decode(&bytes), Source::Disk(bytes)),
                None => return Ok(None),
            },
        };
        match disk::check_writable(&root, path) {
            // Only its buffer has it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            checked => checked.map_err(|error| refuse(&error))?,
        }
        let text = text.map_err(|error| refuse(&error))?;
        Ok(Some(Self { text, source }))
    }

    /// Returns the change that turns the text of the buffer into `new`; none if the text does not come from a buffer.
    ///
    /// # Errors
    /// The encoding of the buffer cannot store the new text.
    pub(super) fn buffer_change(
        &self,
        file: &Path,
        new: &FileText,
    ) -> Result<Option<BufferChange>, NotText> {
        let Source::Buffer { tick, .. } = self.source else {
            return Ok(None);
        };
        buffer_change(file, tick, &self.text, new).map(Some)
    }
}

/// Returns the change of the buffer of `file` from the text `old` to the text `new`. `tick` is the 'changedtick' of `old`.
///
/// # Errors
/// The encoding of the buffer cannot store the new text.
pub(crate) fn buffer_change(
    file: &Path,
    tick: u64,
    old: &FileText,
    new: &FileText,
) -> Result<BufferChange, NotText> {
    let (before, after) = (old.encode_buffer()?, new.encode_buffer()?);
    // Each byte is a character, because a buffer may have any bytes.
    let text = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect::<String>();
    let line = |text: &str| {
        BufferLine(
            text.chars()
                .filter_map(|it| u8::try_from(it).ok())
                .collect(),
        )
    };
    let changes = hunks(&text(&before), &text(&after));
    let replacements = changes.iter().map(|hunk| BufferReplacement {
        start: hunk.at.start,
        end: hunk.at.end,
        lines: hunk.text.split_terminator('\n').map(line).collect(),
    });
    Ok(BufferChange {
        file: file.display().to_string(),
        tick,
        replacements: replacements.collect(),
        final_newline: after.is_empty() || after.ends_with(b"\n"),
    })
}
