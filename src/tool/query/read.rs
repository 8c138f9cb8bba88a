//! The tool `read_file`: reads lines of one file.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use serde::Deserialize;
use serde_json::json;

use crate::tool::schema::{self, BadCall, arguments, number};
use crate::workspace::files::READ as NAME;
use crate::workspace::files::limits::{
    Deadline, FileQueryError, FileQueryResult, FileScope, cut_lines, shorten,
};
use co_edit::{FileText, NotText};
use co_llm::ToolSpec;
use co_llm::transcript::Call;

const DEFAULT_LINES: usize = 2_000;
const MOST_LINES: usize = 20_000;
/// The largest number of bytes of a line in the result.
const LONGEST_LINE: usize = 2_000;
/// The size in bytes up to which a whole file is decoded. Lines of a larger file are read as UTF-8.
const MAX_DECODED_BYTES: u64 = 16 << 20;
/// The number of first bytes of a file that are checked for a NUL. A file with a NUL there is not text.
const BINARY_CHECK_BYTES: usize = 8 << 10;

/// The arguments of a `read_file` call, as [`spec`] describes them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    path: String,
    offset: Option<i64>,
    limit: Option<i64>,
}

/// A query for lines of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadQuery {
    pub(super) path: String,
    offset: usize,
    limit: usize,
}

/// Returns the description of `read_file` for a model.
pub(super) fn spec() -> ToolSpec {
    let description = format!(
        "Returns lines of one text file of the workspace, with what the person has typed there and not saved. The last \
        line of the result says in brackets which lines they are, how to go on, and the hash of the whole text. A line of more than {LONGEST_LINE} bytes is cut. Runs at once. Files outside the \
        workspace and files that look like secrets are refused."
    );
    let properties = json!({
        "path": {
            "type": "string",
            "description": "The file. A relative path starts at the working directory.",
        },
        "offset": {
            "type": "integer",
            "minimum": 1,
            "description": "The first line to return; 1 is the first one of the file. Default: 1.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_LINES,
            "description": format!("The most lines to return. Default: {DEFAULT_LINES}."),
        },
    });
    schema::spec(NAME, description, properties, &["path"])
}

impl ReadQuery {
    pub(super) fn parse(call: &Call) -> Result<Self, BadCall> {
        let given: ReadArguments = arguments(call)?;
        Ok(Self {
            offset: number(call, "offset", given.offset, 1, 1..=usize::MAX >> 1)?,
            limit: number(call, "limit", given.limit, DEFAULT_LINES, 1..=MOST_LINES)?,
            path: given.path,
        })
    }

    pub(super) fn line(&self) -> String {
        match self.offset {
            1 => format!("{NAME} {}", self.path),
            from => format!("{NAME} {} from line {from}", self.path),
        }
    }

    pub(super) fn run(&self, scope: &FileScope) -> Result<FileQueryResult, FileQueryError> {
        let fail =
            |error: io::Error| FileQueryError(format!("Cannot read {}: {error}.", self.path));
        let text = Text::open(scope).map_err(fail)?;
        let (size, whole, unsaved, note) = (text.size, text.whole, text.unsaved, text.note);
        let mut lines = Lines {
            reader: text.reader,
            end: &scope.end,
        };
        if lines.binary().map_err(fail)? {
            return Ok(FileQueryResult {
                text: String::new(),
                summary: format!("{} is not text: {size} bytes, not shown", self.path),
                short: String::new(),
                whole: None,
            });
        }
        let mut result = self.window(&mut lines, scope).map_err(fail)??;
        result.whole = whole;
        if unsaved {
            result.add("; from its buffer, which has unsaved changes");
        }
        if let Some(note) = note {
            result.add(&format!("; {note}"));
        }
        Ok(result)
    }

    fn window(
        &self,
        lines: &mut Lines<'_>,
        scope: &FileScope,
    ) -> io::Result<Result<FileQueryResult, FileQueryError>> {
        for skipped in 0..self.offset - 1 {
            if lines.next(0)?.is_none() {
                let why = format!("{} has only {skipped} lines.", self.path);
                return Ok(Err(FileQueryError(why)));
            }
        }
        let mut text = String::new();
        let (mut shown, mut cut) = (0, 0);
        let mut whole = false;
        while shown < self.limit && text.len() < scope.bytes {
            let Some((line, length)) = lines.next(LONGEST_LINE)? else {
                whole = true;
                break;
            };
            cut += usize::from(length > line.len() as u64);
            text.push_str(&shorten(&line, LONGEST_LINE, length));
            text.push('\n');
            shown += 1;
        }
        whole = whole || lines.at_end()?;
        let mut result = FileQueryResult {
            summary: self.summary(shown, whole),
            short: match shown {
                0 => "empty".to_owned(),
                1 => self.offset.to_string(),
                count => format!("{}-{}", self.offset, self.offset + count - 1),
            },
            text,
            whole: None,
        };
        result.add(&cut_lines(cut));
        Ok(Ok(result))
    }

    fn summary(&self, shown: usize, whole: bool) -> String {
        let last = self.offset + shown - usize::from(shown > 0);
        match (shown, whole, self.offset) {
            (0, _, 1) => "the file is empty".to_owned(),
            (0, ..) => format!("the file ends before line {}", self.offset),
            (_, true, 1) => format!("all {last} lines"),
            (_, true, from) => format!("lines {from} to {last}, the last"),
            (_, false, from) => format!(
                "lines {from} to {last}; more follows, continue with offset {}",
                last + 1
            ),
        }
    }
}

/// The text of a file, from its buffer or else from the disk.
struct Text {
    reader: BufReader<Box<dyn Read>>,
    /// The size of the file in bytes.
    size: u64,
    /// The whole text; none if the file is too large or is not text.
    whole: Option<String>,
    unsaved: bool,
    /// A remark about the bytes of the file, for the reader.
    note: Option<String>,
}

impl Text {
    fn open(scope: &FileScope) -> io::Result<Self> {
        if let Some(buffer) = scope.buffer(&scope.path) {
            let text = buffer.file_text();
            return Ok(Self::decoded(text, buffer.text.clone(), buffer.modified));
        }
        let (dir, above) = scope.open()?;
        let (file, node) = dir.file(scope.path.strip_prefix(above).unwrap_or(&scope.path))?;
        let size = node.size();
        if size > MAX_DECODED_BYTES {
            return Ok(Self::new(Box::new(file), size, None, false));
        }
        let mut bytes = Vec::new();
        file.take(MAX_DECODED_BYTES).read_to_end(&mut bytes)?;
        Ok(Self::decoded(FileText::decode(&bytes), bytes, false))
    }

    fn decoded(text: Result<FileText, NotText>, bytes: Vec<u8>, unsaved: bool) -> Self {
        let size = bytes.len() as u64;
        match text {
            Ok(file) => {
                let text = file.as_str().to_owned();
                let reader = Box::new(Cursor::new(text.clone()));
                Self {
                    note: file.encoding_note(),
                    ..Self::new(reader, size, Some(text), unsaved)
                }
            }
            Err(_) => Self::new(Box::new(Cursor::new(bytes)), size, None, unsaved),
        }
    }

    fn new(reader: Box<dyn Read>, size: u64, whole: Option<String>, unsaved: bool) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            size,
            whole,
            unsaved,
            note: None,
        }
    }
}

/// Reads lines of any length with little memory.
struct Lines<'a> {
    reader: BufReader<Box<dyn Read>>,
    end: &'a Deadline,
}

impl Lines<'_> {
    fn binary(&mut self) -> io::Result<bool> {
        let start = self.reader.fill_buf()?;
        Ok(start[..start.len().min(BINARY_CHECK_BYTES)].contains(&0))
    }

    fn at_end(&mut self) -> io::Result<bool> {
        Ok(self.reader.fill_buf()?.is_empty())
    }

    /// Returns the first `keep` bytes of the next line, and the length of the line without its line break.
    fn next(&mut self, keep: usize) -> io::Result<Option<(Vec<u8>, u64)>> {
        let mut kept = Vec::new();
        let mut length = 0;
        let mut any = false;
        loop {
            if self.end.reached() {
                return Err(io::Error::other(self.end.words()));
            }
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(any.then_some((kept, length)));
            }
            any = true;
            let end = memchr::memchr(b'\n', buffer);
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            length += piece.len() as u64;
            let room = keep.saturating_sub(kept.len()).min(piece.len());
            kept.extend_from_slice(&piece[..room]);
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some((kept, length)));
            }
        }
    }
}
