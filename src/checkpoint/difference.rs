//! Shows a change to a person: the changed lines of the file, and the facts that its lines do not show.

use std::path::{Component, Path};

use super::change::{Change, Entry, shown};
use super::store::Store;
use super::undo::{bytes_of, mode};
use crate::protocol::{Fact, FactKind, counts, without_lines};
use co_edit::{FileText, Hunk, Names, hunks, unified};
use co_policy::obeyed;
use co_text::counted;

/// The usual modes of new files. A diff shows any other mode of a new file.
const USUAL_FILE_MODES: [u32; 2] = [0o644, 0o664];
/// The usual modes of new directories. A diff shows any other mode of a new directory.
const USUAL_DIRECTORY_MODES: [u32; 2] = [0o755, 0o775];

/// The lines of a file before and after a change.
pub(super) struct ChangedLines {
    /// The text of the file before the change.
    pub(super) old: String,
    pub(super) hunks: Vec<Hunk>,
}

/// A short description of a change.
pub struct ChangeSummary {
    /// The numbers of added and removed lines. If no line differs, a text about the change.
    pub counts: String,
    /// A text about the change, if no line differs.
    pub without_lines: Option<String>,
    /// The number of the first changed line in the new text. Lines are numbered from 1.
    pub line: usize,
}

impl Change {
    /// Returns the change as a unified diff.
    pub fn diff(&self, store: &Store) -> String {
        let name = shown(&self.path);
        let names = Names {
            old: self.before.is_some().then_some(&name),
            new: self.after.is_some().then_some(&name),
        };
        let mut diff = match self.changed_lines(store) {
            Some(lines) => unified(&lines.old, &lines.hunks, names),
            None => format!("Binary file {name} differs: {}\n", self.sizes(store)),
        };
        let is_file = |it: &Option<Entry>| matches!(it, Some(Entry::File { .. }));
        match (&self.before, &self.after) {
            (None, after) if is_file(after) && diff.is_empty() => {
                diff = format!("new empty file: {name}\n");
            }
            (before, None) if is_file(before) && diff.is_empty() => {
                diff = format!("removed empty file: {name}\n");
            }
            _ => {}
        }
        if let Some(mode) = self.new_mode() {
            diff.push_str(&format!("mode of {name}: {mode}\n"));
        }
        if let Some(Entry::Link { .. }) = &self.after {
            match &self.before {
                None => diff.insert_str(0, &format!("new link: {name}\n")),
                Some(Entry::Link { .. }) => {}
                Some(_) => diff.insert_str(0, &format!("becomes a link: {name}\n")),
            }
        }
        diff
    }

    /// If the change creates or removes a directory, returns a word that says so. Returns `None` if the next change is below this
    /// directory, because the path of that change names the directory.
    pub fn directory_word(&self, next: Option<&Self>) -> Option<&'static str> {
        if next.is_some_and(|next| next.path.starts_with(&self.path)) {
            return None;
        }
        match (&self.before, &self.after) {
            (None, Some(Entry::Dir { .. })) => Some("new"),
            (Some(Entry::Dir { .. }), None) => Some("removed"),
            _ => None,
        }
    }

    /// Returns the number of added lines, the number of removed lines, and the number of the first changed line in the new text.
    pub fn lines(&self, store: &Store) -> (usize, usize, usize) {
        let hunks = self
            .changed_lines(store)
            .map_or_else(Vec::new, |it| it.hunks);
        let added = hunks.iter().map(Hunk::added).sum();
        let removed = hunks.iter().map(Hunk::removed).sum();
        let first = hunks.first().map_or(1, |first| first.at.start + 1);
        (added, removed, first)
    }

    /// Returns a text about a change in which no line differs.
    pub fn in_words(&self, store: &Store) -> String {
        let is_empty = || self.texts(store).iter().all(Option::is_some);
        let is_new = matches!(
            (&self.before, &self.after),
            (None, Some(Entry::File { .. }))
        );
        without_lines(&self.facts(store), is_new && is_empty())
    }

    /// Returns a short description of the change. Compares the texts only once.
    pub fn summary(&self, store: &Store) -> ChangeSummary {
        let (added, removed, line) = self.lines(store);
        let without_lines = (added + removed == 0).then(|| self.in_words(store));
        ChangeSummary {
            counts: counts(added, removed, without_lines.as_deref()),
            without_lines,
            line,
        }
    }

    /// Returns the facts that the lines do not show, or that a person must see first.
    pub fn facts(&self, store: &Store) -> Vec<Fact> {
        let mut facts = Vec::new();
        let mut add = |kind, text: String| {
            facts.push(Fact {
                kind,
                path: shown(&self.path),
                text,
            });
        };
        let runs =
            obeyed::reason(&self.path).filter(|_| self.after.is_some() && !self.is_directory());
        if let Some(why) = runs {
            add(FactKind::Runs, why);
        }
        if let Some(text) = self.link() {
            add(FactKind::Link, text);
        }
        if let Some(mode) = self.new_mode() {
            add(FactKind::Mode, format!("mode {mode}"));
        }
        if self.texts(store).iter().any(Option::is_none) {
            add(FactKind::Bytes, format!("no text: {}", self.sizes(store)));
        } else if self.has_stray_bytes(store) {
            let text = "it has bytes that are not UTF-8, such as \u{fffd}E9";
            add(FactKind::Bytes, text.to_owned());
        }
        match (&self.before, &self.after) {
            (Some(Entry::File { .. }), None) => add(FactKind::Deleted, "deleted".to_owned()),
            (Some(Entry::Dir { .. }), Some(Entry::File { .. })) => {
                add(FactKind::Deleted, "the directory becomes a file".to_owned());
            }
            (Some(_), Some(Entry::Dir { .. })) if !self.is_directory() => {
                add(FactKind::Deleted, "it becomes a directory".to_owned());
            }
            _ => {}
        }
        facts
    }

    /// Returns the lines of the file before and after the change; none if one of the two contents is not text.
    pub(super) fn changed_lines(&self, store: &Store) -> Option<ChangedLines> {
        let with_link = |entry: &Option<Entry>, text| match entry {
            Some(Entry::Link { target }) => Some(format!("link to {}\n", shown(target))),
            _ => text,
        };
        let [old, new] = self.texts(store);
        let (mut old, mut new) = (with_link(&self.before, old)?, with_link(&self.after, new)?);
        if is_crlf(&old) && is_crlf(&new) {
            for text in [&mut old, &mut new] {
                *text = text.replace("\r\n", "\n");
            }
        }
        let hunks = hunks(&old, &new);
        Some(ChangedLines { old, hunks })
    }

    /// Returns the texts before and after the change, for a reader. A text is `None` if it is binary or co has no copy of it. If
    /// there is no file, the text is empty.
    fn texts(&self, store: &Store) -> [Option<String>; 2] {
        let bytes = |entry: &Option<Entry>| match entry {
            Some(entry) => bytes_of(entry, store).ok(),
            None => Some(Vec::new()),
        };
        let both = [&self.before, &self.after].map(bytes);
        let is_utf8 = both.iter().flatten().all(|it| str::from_utf8(it).is_ok());
        both.map(|bytes| match bytes? {
            bytes if bytes.contains(&0) => {
                let utf16 = FileText::decode(&bytes).ok()?;
                Some(utf16.as_str().to_owned())
            }
            bytes if is_utf8 => String::from_utf8(bytes).ok(),
            bytes => Some(co_edit::escape(&bytes)),
        })
    }

    /// Returns a clause about a link before or after the change; none if there is no link.
    fn link(&self) -> Option<String> {
        let to = |target: &Path| {
            let leaves = leaves_workspace(&self.path, target);
            let outside = if leaves {
                ", outside the workspace"
            } else {
                ""
            };
            format!("{}{outside}", shown(target))
        };
        Some(match (&self.before, &self.after) {
            (None, Some(Entry::Link { target })) => format!("a new link to {}", to(target)),
            (Some(Entry::Link { target: old }), Some(Entry::Link { target })) => {
                format!("the link to {} now leads to {}", shown(old), to(target))
            }
            (Some(Entry::File { .. }), Some(Entry::Link { target })) => {
                format!("the file becomes a link to {}", to(target))
            }
            (Some(Entry::Dir { .. }), Some(Entry::Link { target })) => {
                format!("the directory becomes a link to {}", to(target))
            }
            (Some(Entry::Link { target }), None) => {
                format!("the link to {} is deleted", shown(target))
            }
            (Some(Entry::Link { target }), Some(_)) => {
                format!(
                    "the link to {} becomes a file or a directory",
                    shown(target)
                )
            }
            _ => return None,
        })
    }

    /// Returns a text about the new mode, if the mode changes, or if a new file has an unusual mode.
    fn new_mode(&self) -> Option<String> {
        let usual: &[u32] = match &self.after {
            Some(Entry::Dir { .. }) => &USUAL_DIRECTORY_MODES,
            _ => &USUAL_FILE_MODES,
        };
        match (mode(&self.before), mode(&self.after)) {
            (Some(old), Some(new)) if old != new => Some(format!("{old:o} => {new:o}")),
            (None, Some(new)) if self.before.is_none() && !usual.contains(&new) => {
                Some(format!("{new:o}"))
            }
            _ => None,
        }
    }

    /// Returns true if one of the texts contains bytes that are not UTF-8.
    fn has_stray_bytes(&self, store: &Store) -> bool {
        let files = self.before.iter().chain(&self.after);
        let mut bytes = files.filter_map(|it| bytes_of(it, store).ok());
        bytes.any(|it| !it.contains(&0) && str::from_utf8(&it).is_err())
    }

    /// Returns the sizes of the file before and after the change, as a text.
    fn sizes(&self, store: &Store) -> String {
        let size = |entry: &Option<Entry>| match entry {
            Some(entry @ Entry::File { .. }) => match bytes_of(entry, store) {
                Ok(bytes) => counted(bytes.len(), "byte"),
                Err(_) => "a size that co does not know".to_owned(),
            },
            _ => "no file".to_owned(),
        };
        format!("{} => {}", size(&self.before), size(&self.after))
    }
}

/// Returns true if the target of a link at `path` may be outside the workspace.
fn leaves_workspace(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return true,
        }
    }
    false
}

/// Returns true if each line break of a text is `\r\n`.
fn is_crlf(text: &str) -> bool {
    text.matches('\n').count() == text.matches("\r\n").count()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), 1 << 20).unwrap();
        (dir, store)
    }

    fn file(bytes: &[u8], mode: u32, store: &Store) -> Option<Entry> {
        let blob = Some(store.put(bytes).unwrap());
        Some(Entry::File { mode, blob })
    }

    fn link(target: &str) -> Option<Entry> {
        Some(Entry::Link {
            target: target.into(),
        })
    }

    fn change(path: &str, before: Option<Entry>, after: Option<Entry>) -> Change {
        Change {
            path: PathBuf::from(path),
            before,
            after,
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_shown() {
        let (_dir, store) = store();
        let change = change(
            "a",
            file(b"x\n\xe9\n", 0o644, &store),
            file(b"x\n\xe8\n", 0o644, &store),
        );
        let diff = change.diff(&store);
        assert!(diff.ends_with(" x\n-\u{fffd}E9\n+\u{fffd}E8\n"), "{diff}");
        assert_eq!(change.lines(&store), (1, 1, 2));
        let facts = change.facts(&store);
        assert_eq!(facts[0].kind, FactKind::Bytes);
    }

    #[test]
    fn facts_name_what_the_lines_do_not_show() {
        let (_dir, store) = store();
        let text = || file(b"link to /etc/passwd\n", 0o644, &store);
        for (change, expected) in [
            (
                change(".envrc", None, text()),
                "Runs `.envrc`: a shell runs it when it enters the directory",
            ),
            (
                change("a", text(), link("/etc/passwd")),
                "Link the file becomes a link to /etc/passwd, outside the workspace",
            ),
            (
                change("d/a", None, link("../../b")),
                "Link a new link to ../../b, outside the workspace",
            ),
            (change("d/a", None, link("../b")), "Link a new link to ../b"),
            (
                change("a", link("b"), link("c")),
                "Link the link to b now leads to c",
            ),
            (
                change("a", link("b"), text()),
                "Link the link to b becomes a file or a directory",
            ),
            (
                change("a", text(), file(b"link to /etc/passwd\n", 0o755, &store)),
                "Mode mode 644 => 755",
            ),
            (change("a", None, file(b"", 0o755, &store)), "Mode mode 755"),
            (
                change("a", text(), file(b"\0\n", 0o644, &store)),
                "Bytes no text: 20 bytes => 2 bytes",
            ),
            (change("a", text(), None), "Deleted deleted"),
        ] {
            let facts = change.facts(&store);
            let found: Vec<_> = facts
                .iter()
                .map(|it| format!("{:?} {}", it.kind, it.text))
                .collect();
            assert!(
                found.iter().any(|it| it == expected),
                "{found:?}, not {expected}"
            );
            assert!(
                !change.diff(&store).is_empty() || expected.starts_with("Link the file"),
                "{expected}"
            );
        }
        assert_eq!(
            change("a", text(), file(b"x", 0o644, &store)).facts(&store),
            []
        );
    }

    #[test]
    fn a_file_that_becomes_a_link_is_in_the_diff() {
        let (_dir, store) = store();
        let before = file(b"link to b\n", 0o644, &store);
        let diff = change("a", before, link("b")).diff(&store);
        assert_eq!(diff, "becomes a link: a\n");
    }
}
