//! Reads transcript files, and creates ids for new ones.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::error::Error;
use super::header::{Header, Renamed, VERSION};
use co_llm::transcript::Item;
use co_text::shorten_chars;

/// The entry of a chat in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatSummary {
    pub id: String,
    pub title: String,
    pub workspace: PathBuf,
    pub modified: SystemTime,
    pub items: usize,
}

/// The largest number of characters of a title in a list.
const MAX_TITLE_CHARS: usize = 60;

/// The content of a transcript file.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) header: Header,
    pub(super) items: Vec<Item>,
    /// True if the last line has no line break at its end.
    pub(super) torn: bool,
    no_header: bool,
    unknown: usize,
    unreadable: Vec<usize>,
}

impl Contents {
    pub(super) fn read(id: &str, path: &Path) -> Result<Self, Error> {
        let bytes = fs::read(path).map_err(|source| Error::Read {
            path: path.to_owned(),
            source,
        })?;
        let contents = Self::parse(&bytes);
        if contents.header.version > VERSION {
            return Err(Error::Newer {
                id: id.to_owned(),
                version: contents.header.version,
            });
        }
        Ok(contents)
    }

    /// Returns the title for a list: the title that the person set, or the first prompt.
    pub(super) fn title(&self) -> String {
        let prompt = self.items.iter().find_map(|item| match item {
            Item::User { text, .. } => Some(text.as_str()),
            _ => None,
        });
        match self.header.title.as_str() {
            "" => title_of(prompt.unwrap_or_default()),
            title => title_of(title),
        }
    }

    pub(super) fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.no_header {
            notices.push(
                "The first line of this chat cannot be read; it stays in the file.".to_owned(),
            );
        }
        if !self.unreadable.is_empty() {
            let lines: Vec<_> = self.unreadable.iter().map(usize::to_string).collect();
            notices.push(format!(
                "Not readable, skipped, and kept in the file: line {}.",
                lines.join(", ")
            ));
        }
        if self.unknown > 0 {
            notices.push(format!(
                "{} written by a later version of co, skipped, and kept in the file.",
                match self.unknown {
                    1 => "1 line was".to_owned(),
                    count => format!("{count} lines were"),
                }
            ));
        }
        notices
    }

    fn parse(bytes: &[u8]) -> Self {
        let mut contents = Self {
            torn: bytes.last().is_some_and(|byte| *byte != b'\n'),
            ..Self::default()
        };
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if at == 0 {
                contents.first_line(line);
            } else if !line.trim_ascii().is_empty() {
                contents.line(at + 1, line);
            }
        }
        contents
    }

    /// Reads the first line. It is an item if the header was never written to disk.
    fn first_line(&mut self, line: &[u8]) {
        if let Ok(header) = serde_json::from_slice(line) {
            self.header = header;
            return;
        }
        self.no_header = true;
        if let Ok(item) = serde_json::from_slice(line) {
            self.items.push(item);
        }
    }

    fn line(&mut self, number: usize, line: &[u8]) {
        match serde_json::from_slice::<Item>(line) {
            Ok(Item::Unknown) => self.unknown += 1,
            Ok(item) => self.items.push(item),
            Err(_) => match serde_json::from_slice::<Renamed>(line) {
                Ok(renamed) => self.header.title = renamed.title,
                Err(_) => self.unreadable.push(number),
            },
        }
    }
}

/// Returns the list entry of a transcript file; none if the file is not a transcript.
pub(super) fn entry(path: &Path) -> Option<ChatSummary> {
    if path.extension()? != "jsonl" {
        return None;
    }
    let id = path.file_stem()?.to_str()?.to_owned();
    let modified = fs::metadata(path).ok()?.modified().ok()?;
    let (header, prompt, items) = skim(&fs::read(path).ok()?);
    let title = if header.title.is_empty() {
        &prompt
    } else {
        &header.title
    };
    Some(ChatSummary {
        id,
        title: title_of(title),
        workspace: header.workspace,
        modified,
        items,
    })
}

/// Returns the header with the newest title, the first prompt, and the number of items. Parses only a few lines, because a list
/// may have many long files.
fn skim(bytes: &[u8]) -> (Header, String, usize) {
    let mut header = Header::default();
    let mut prompt = String::new();
    let mut items = 0;
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if at == 0
            && let Ok(first) = serde_json::from_slice(line)
        {
            header = first;
        } else if line.starts_with(b"{\"item\":") {
            items += 1;
            if prompt.is_empty()
                && line.starts_with(b"{\"item\":\"user\"")
                && let Ok(Item::User { text, .. }) = serde_json::from_slice(line)
            {
                prompt = text;
            }
        } else if line.starts_with(b"{\"title\":")
            && let Ok(renamed) = serde_json::from_slice::<Renamed>(line)
        {
            header.title = renamed.title;
        }
    }
    (header, prompt, items)
}

/// Returns a new id. Ids sort by time.
pub(super) fn new_id() -> String {
    let millis = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_millis());
    format!("{millis:011x}-{:08x}", fastrand::u32(..))
}

/// Creates a directory that only its owner can read.
pub(super) fn make_private(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    // It may have been there before.
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))
}

fn title_of(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("(empty)");
    shorten_chars(line, MAX_TITLE_CHARS)
}
