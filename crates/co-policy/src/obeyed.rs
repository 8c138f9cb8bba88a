//! The names of files that other programs execute, or that co and other agents load. Each edit of such a file requires approval.
//! This module reads no file.

use std::collections::HashMap;
use std::path::{Component, Path};
use std::sync::LazyLock;

use serde::Deserialize;

use co_text::one_line;

/// A row of the table: names of files and directories whose edits require approval for the same reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The reason, as a sentence in which "it" means the file, such as "git obeys it".
    reason: String,
    #[serde(default)]
    names: String,
    /// More names with this reason, besides `names`. Commands confined to the workspace cannot change these files.
    #[serde(default)]
    held: String,
}

impl Row {
    fn all(&self) -> impl Iterator<Item = &str> {
        let texts = [&self.names, &self.held].into_iter();
        texts.flat_map(|names| names.split_whitespace())
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    /// The reason for names that begin with a dot and have no row.
    hidden: String,
    /// Names that begin with a dot but whose edits do not require approval.
    harmless: String,
    row: Vec<Row>,
}

static FILE: LazyLock<TableFile> = LazyLock::new(|| {
    toml::from_str(include_str!("obeyed.toml")).expect("the built-in table is tested to parse")
});
static OBEYED: LazyLock<Names> = LazyLock::new(|| {
    let rows = FILE.row.iter();
    rows.flat_map(|row| row.all().map(|name| (name, row.reason.as_str())))
        .collect()
});
static HARMLESS: LazyLock<Names> = LazyLock::new(|| {
    let names = FILE.harmless.split_whitespace();
    names.map(|name| (name, "")).collect()
});

/// Returns the reason why each edit of a file requires approval: other programs execute the file, or co loads it.
///
/// The path must be relative to the workspace, because the name of each directory in it counts.
pub fn reason(path: &Path) -> Option<String> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    let shown: Vec<_> = names.collect();
    let folded: Vec<String> = shown.iter().map(|name| folded(name)).collect();
    let names: Vec<&str> = folded.iter().map(String::as_str).collect();
    let last = names.len().checked_sub(1)?;
    let found = OBEYED.find(&names).or_else(|| {
        let hidden = |at: usize| match at == last {
            true => HARMLESS.file(&names).is_none(),
            false => HARMLESS.directory(names[at]).is_none(),
        };
        let at = (0..=last).find(|at| names[*at].starts_with('.') && hidden(*at))?;
        Some((at, FILE.hidden.as_str()))
    });
    found.map(|(at, reason)| format!("`{}`: {reason}", one_line(&shown[at])))
}

/// Returns the paths in a workspace that commands confined to the workspace cannot change. Programs load these files by
/// themselves.
pub fn held() -> impl Iterator<Item = &'static str> {
    let rows = FILE.row.iter();
    let names = rows.flat_map(|row| row.held.split_whitespace());
    names.map(|name| name.trim_end_matches('/'))
}

/// Returns each reason with its names, for the list in the help.
pub fn rows() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let rows = FILE.row.iter();
    rows.map(|row| (row.reason.as_str(), row.all().collect()))
}

/// Returns the names that begin with a dot but whose edits do not require approval.
pub fn harmless() -> impl Iterator<Item = &'static str> {
    FILE.harmless.split_whitespace()
}

/// Folds the case of a name. Two names of one file on a file system that ignores case give the same result.
fn folded(name: &str) -> String {
    match name.is_ascii() {
        true => name.to_ascii_lowercase(),
        // Some capitals have the same small letter as an ASCII one, and some small letters the same capital.
        false => name.to_uppercase().to_lowercase(),
    }
}

/// The names in the table, split for fast look-ups, with their reasons.
#[derive(Default)]
struct Names {
    files: HashMap<String, &'static str>,
    directories: HashMap<String, &'static str>,
    patterns: Vec<Pattern>,
}

/// A name in the table that contains a directory or a `*`.
struct Pattern {
    /// The names of the directories that must contain the file, the outermost first.
    above: Vec<String>,
    start: String,
    /// The text after `*`. It is `None` if the name has no `*`; then `start` is the whole name.
    end: Option<String>,
    reason: &'static str,
}

impl Names {
    /// Returns the index of the first name in a path that has a row, and the reason of this row.
    fn find(&self, names: &[&str]) -> Option<(usize, &'static str)> {
        let (_, above) = names.split_last()?;
        let mut directories = above.iter().enumerate();
        directories
            .find_map(|(at, name)| Some((at, self.directory(name)?)))
            .or_else(|| Some((above.len(), self.file(names)?)))
    }

    fn directory(&self, name: &str) -> Option<&'static str> {
        self.directories.get(name).copied()
    }

    fn file(&self, names: &[&str]) -> Option<&'static str> {
        let (name, above) = names.split_last()?;
        let pattern = || self.patterns.iter().find(|it| it.is_match(above, name));
        let exact = self.files.get(*name).copied();
        exact.or_else(|| pattern().map(|it| it.reason))
    }
}

impl Pattern {
    fn is_match(&self, above: &[&str], name: &str) -> bool {
        let is_named = match &self.end {
            Some(end) => {
                let rest = name.strip_prefix(self.start.as_str());
                rest.is_some_and(|rest| rest.ends_with(end.as_str()))
            }
            None => name == self.start,
        };
        let mut below = above.iter().rev();
        is_named
            && self
                .above
                .iter()
                .rev()
                .all(|dir| below.next() == Some(&dir.as_str()))
    }
}

impl FromIterator<(&'static str, &'static str)> for Names {
    fn from_iter<T: IntoIterator<Item = (&'static str, &'static str)>>(rows: T) -> Self {
        let mut all = Self::default();
        for (name, reason) in rows {
            let name = folded(name);
            if let Some(directory) = name.strip_suffix('/') {
                all.directories.insert(directory.to_owned(), reason);
                continue;
            }
            let (above, last) = name.rsplit_once('/').unwrap_or(("", &name));
            let (start, end) = match last.split_once('*') {
                Some((start, end)) => (start, Some(end.to_owned())),
                None => (last, None),
            };
            if above.is_empty() && end.is_none() {
                all.files.insert(name, reason);
                continue;
            }
            all.patterns.push(Pattern {
                above: above.split_terminator('/').map(str::to_owned).collect(),
                start: start.to_owned(),
                end,
                reason,
            });
        }
        all
    }
}

#[cfg(test)]
mod tests;
