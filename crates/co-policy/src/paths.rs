//! Checks the paths that a command names.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use crate::bash::{SimpleCommand, Word, path_from};
use crate::facts::{FileKind, LocalFacts};
use crate::programs::OperandData;
use crate::reason::Reason;
use crate::secret_names::secret;
use crate::sort::SortedCommand;

/// The device files that every command may open.
const OWN_STREAMS: [&str; 4] = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// The way in which a tool uses a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// The tool reads a file or lists a directory.
    Read,
    /// The tool reads a file. A directory is not allowed, because the tool would follow the links in the directory.
    ReadFile,
}

/// Returns the reason why reading the path requires approval: the path is outside the workspace, or is a secret. Returns `None`
/// if reading needs no approval.
pub fn check(
    local: &LocalFacts,
    path: &str,
    wanted: PathUse,
    span: &Range<usize>,
) -> Option<Reason> {
    if path == "/dev/null" {
        return None;
    }
    let say = |text: String| Some(Reason::at(text, span.clone()));
    if let Some(name) = secret(Path::new(path)) {
        return say(format!("`{name}` looks like a secret"));
    }
    let fact = local.path(path);
    let Some(inside) = fact.inside else {
        return say(format!("`{path}` is outside the workspace"));
    };
    if let Some(name) = secret(&inside.written).or_else(|| secret(&inside.real)) {
        return say(format!(
            "`{path}` leads to `{name}`, which looks like a secret"
        ));
    }
    match (fact.kind, wanted) {
        _ if fact.secret => say(format!("`{path}` may contain a secret")),
        (FileKind::Special, _) => say(format!("`{path}` is not a regular file")),
        (FileKind::Directory, PathUse::ReadFile) => say(format!("`{path}` is a directory")),
        _ => None,
    }
}

/// Removes `.` and `..` from a path lexically.
pub fn normalize_lexically(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            other => whole.push(other),
        }
    }
    whole
}

/// Returns the reason why a read-only command requires approval: it names a secret, or a place that it cannot read. Without
/// approval, such a command would only fail.
pub(crate) fn unreadable(
    command: &SimpleCommand,
    sorted: &SortedCommand,
    local: &LocalFacts,
) -> Option<Reason> {
    let first = usize::from(sorted.reads == OperandData::Pattern);
    let operands = match sorted.reads {
        OperandData::Text => &[],
        _ => sorted.operands.get(first..).unwrap_or_default(),
    };
    let inputs = command
        .redirects
        .iter()
        .filter(|it| it.operator.contains('<'));
    let inputs = inputs.map(|it| &it.target).filter(|it| it.is_literal());
    let contents = sorted.reads != OperandData::Names;
    operands
        .iter()
        .map(|word| (word, contents))
        .chain(inputs.map(|word| (word, true)))
        .find_map(|(word, contents)| unreadable_word(word, contents, command.dir.as_deref(), local))
}

fn unreadable_word(
    word: &Word,
    contents: bool,
    dir: Option<&str>,
    local: &LocalFacts,
) -> Option<Reason> {
    let text = word.text();
    // In `git show HEAD:path` the path stands behind the colon.
    let path = text.rsplit_once(':').map_or(text, |(_, path)| path);
    let named = contents.then(|| secret(Path::new(path))).flatten();
    // git and other tools read `.git` themselves.
    if let Some(name) = named.filter(|name| *name != ".git") {
        let why = format!("`{name}` looks like a secret");
        return Some(Reason::at(why, word.span.clone()));
    }
    let whole = path_from(dir, text);
    let leaves = whole.starts_with(['/', '~']) || whole.split('/').any(|part| part == "..");
    if !leaves || OWN_STREAMS.contains(&whole.as_str()) {
        return None;
    }
    let fact = local.path(&whole);
    let closed = fact.kind != FileKind::Missing && fact.inside.is_none() && !fact.readable;
    closed.then(|| {
        let why = format!("`{text}` is outside the places that it can read");
        Reason::at(why, word.span.clone())
    })
}

/// Returns the reason why no prefix rule applies to a command with this word: the word may name a secret or a path outside the
/// workspace.
pub(crate) fn check_rule_word(local: &LocalFacts, word: &str) -> Option<Reason> {
    let parts = word.split(['=', ':', ',', '@']);
    let attached = word
        .find(['/', '.'])
        .filter(|_| word.starts_with('-'))
        .map(|at| &word[at..]);
    let url = |part: &str| part.contains("//") && word.contains("://");
    [word]
        .into_iter()
        .chain(parts)
        .chain(attached)
        .filter(|part| !part.is_empty() && !url(part))
        .find_map(|part| path_problem(local, part))
        .map(Reason::whole)
}

/// Returns the reason why no prefix rule applies to a text that may be a path. Returns `None` if there is no reason.
fn path_problem(local: &LocalFacts, path: &str) -> Option<String> {
    let outside = Some(format!("`{path}` is outside the workspace"));
    if path.starts_with('~') {
        return outside;
    }
    if let Some(name) = secret(Path::new(path)) {
        return Some(format!("`{name}` looks like a secret"));
    }
    if path == "/dev/null" {
        return None;
    }
    let fact = local.path(path);
    let exists = fact.kind != FileKind::Missing;
    let leaves = path.starts_with('/') || path.split('/').any(|part| part == "..");
    match fact.inside {
        _ if fact.secret => Some(format!("`{path}` may contain a secret")),
        None if leaves || exists => outside,
        Some(inside) if exists => secret(&inside.real)
            .map(|name| format!("`{path}` leads to `{name}`, which looks like a secret")),
        _ => None,
    }
}
