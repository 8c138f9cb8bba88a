//! A walk through the workspace: what git ignores and what looks like a secret is passed over, links are
//! not followed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ignore::{DirEntry, WalkBuilder};

use super::{Scope, plural};

/// Entries that one walk meets at most.
const MOST: usize = 200_000;

/// The entries below a path, in order.
pub(super) struct Walk<'a> {
    entries: ignore::Walk,
    scope: &'a Scope,
    secret: Arc<AtomicUsize>,
    met: usize,
    /// Why it ended early.
    pub(super) cut: Option<String>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(scope: &'a Scope, depth: Option<usize>) -> Self {
        let secret = Arc::new(AtomicUsize::new(0));
        let (may, passed) = (Arc::clone(&scope.may), Arc::clone(&secret));
        let entries = WalkBuilder::new(&scope.path)
            // What git tracks may begin with a dot.
            .hidden(false)
            .require_git(false)
            .follow_links(false)
            .max_depth(depth)
            .sort_by_file_name(std::cmp::Ord::cmp)
            .filter_entry(move |entry| {
                let shown = entry.depth() == 0 || may(entry.path());
                if !shown && entry.file_name() != ".git" {
                    passed.fetch_add(1, Ordering::Relaxed);
                }
                shown
            })
            .build();
        Self {
            entries,
            scope,
            secret,
            met: 0,
            cut: None,
        }
    }

    /// What of the walk is not in its result, as the end of a summary.
    pub(super) fn left_out(&self) -> String {
        let mut words = String::new();
        let secret = self.secret.load(Ordering::Relaxed);
        if secret > 0 {
            words.push_str("; ");
            words.push_str(&plural(
                secret,
                "name that looks like a secret",
                "names that look like secrets",
            ));
            words.push_str(" left out");
        }
        if let Some(cut) = &self.cut {
            words.push_str("; ");
            words.push_str(cut);
        }
        words
    }
}

impl Iterator for Walk<'_> {
    type Item = DirEntry;

    fn next(&mut self) -> Option<DirEntry> {
        loop {
            if self.scope.end.reached() {
                self.cut = Some(self.scope.end.words());
                return None;
            }
            if self.met >= MOST {
                self.cut = Some(format!(
                    "ended after {MOST} entries: look at less at a time"
                ));
                return None;
            }
            // What cannot be read is passed over: it is the rest that was asked for.
            if let Ok(entry) = self.entries.next()? {
                self.met += 1;
                return Some(entry);
            }
        }
    }
}

/// Returns how a model names what lies below the path it asked for.
pub(super) fn shown(asked: &str, root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let asked = asked.trim_start_matches("./").trim_end_matches('/');
    let whole = match asked {
        "" | "." => below.to_owned(),
        asked => Path::new(asked).join(below),
    };
    let text = whole.display().to_string();
    // Joined with nothing, a path gets a slash.
    crate::policy::printable(text.trim_end_matches('/'))
}
