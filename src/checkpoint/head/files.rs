//! Reads HEAD in the files of a repository, without a process.

use std::io;
use std::path::Path;

use super::Head;
use co_exec::beneath::Dir;
use co_exec::repository::Dirs;

/// The largest size in bytes of a file with one Git reference, such as `HEAD`.
const MOST_BYTES: u64 = 4096;

/// The largest size in bytes of the file `packed-refs`.
const MOST_PACKED_BYTES: u64 = 64 << 20;

/// The error if the files do not tell HEAD. The references are in a table, HEAD refers to something other than a branch, or a
/// file cannot be read. Git itself may know HEAD.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownHead;

/// The content of a file with one reference.
enum Reference {
    /// The id of a commit.
    Commit(String),
    /// The full name of another reference.
    Symbolic(String),
}

impl Head {
    /// Reads HEAD from the files of a repository. Does not check that the commit exists. Blocks on files.
    pub(super) fn of_files(dirs: &Dirs) -> Result<Self, UnknownHead> {
        let own = Dir::open(&dirs.own)?;
        match Reference::read(&own, "HEAD")?.ok_or(UnknownHead)? {
            Reference::Commit(commit) => Ok(Self {
                branch: None,
                commit: Some(commit),
            }),
            Reference::Symbolic(branch) if is_branch(&branch) => Ok(Self {
                commit: commit_of(&Dir::open(&dirs.common)?, &branch)?,
                branch: Some(branch),
            }),
            Reference::Symbolic(_) => Err(UnknownHead),
        }
    }
}

impl Reference {
    /// Reads a file with one reference. Returns `None` if the file does not exist.
    fn read(dir: &Dir, path: &str) -> Result<Option<Self>, UnknownHead> {
        let Some(bytes) = there(dir.read(Path::new(path), MOST_BYTES))? else {
            return Ok(None);
        };
        let text = std::str::from_utf8(bytes.trim_ascii_end()).map_err(|_| UnknownHead)?;
        Ok(Some(match text.strip_prefix("ref: ") {
            Some(name) => Self::Symbolic(name.to_owned()),
            None => Self::Commit(commit_name(text.as_bytes())?),
        }))
    }
}

impl From<io::Error> for UnknownHead {
    fn from(_: io::Error) -> Self {
        Self
    }
}

/// Returns the commit of a branch, or `None` if the branch has no commit yet.
///
/// Git writes the packed references before it removes the files of their branches, so the file of the branch is read first.
fn commit_of(common: &Dir, branch: &str) -> Result<Option<String>, UnknownHead> {
    match Reference::read(common, branch)? {
        Some(Reference::Commit(commit)) => return Ok(Some(commit)),
        Some(Reference::Symbolic(_)) => return Err(UnknownHead),
        None => {}
    }
    let packed = there(common.read("packed-refs", MOST_PACKED_BYTES))?.unwrap_or_default();
    let mut lines = packed.split(|byte| *byte == b'\n');
    let found = lines.find_map(|line| line.strip_suffix(branch.as_bytes())?.strip_suffix(b" "));
    found.map(commit_name).transpose()
}

/// Converts the result of reading a file: returns `None` if the file does not exist.
fn there(read: io::Result<Vec<u8>>) -> io::Result<Option<Vec<u8>>> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Returns the text if it is the full id of a commit.
fn commit_name(text: &[u8]) -> Result<String, UnknownHead> {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_name = matches!(text.len(), 40 | 64) && text.iter().all(is_digit);
    let name = is_name.then(|| String::from_utf8_lossy(text).into_owned());
    name.ok_or(UnknownHead)
}

/// Returns true if this is the full name of a branch, without spaces and hidden characters, and a path below a git directory. If
/// git keeps its references in a table, HEAD has a name that no branch can have: `refs/heads/.invalid`.
fn is_branch(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_plain = !part.contains(' ') && co_text::one_line(part) == part;
        is_plain && !part.is_empty() && !part.starts_with('.')
    };
    let parts = name.strip_prefix("refs/heads/");
    parts.is_some_and(|parts| parts.split('/').all(is_part))
}
