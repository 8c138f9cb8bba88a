//! A walk through the workspace: what git ignores and what looks like a secret is passed over, links are
//! not followed.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ignore::{DirEntry, WalkBuilder};

use super::{FileScope, plural};

/// Entries that one walk meets at most.
const MOST: usize = 200_000;

/// Files that say what git ignores, as they lie in a directory.
const RULES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];

/// Bytes of such a file; what is larger holds no rules.
const LARGEST_RULES: u64 = 4 << 20;

/// The entries below a path, in order.
pub(super) struct Walk<'a> {
    entries: ignore::Walk,
    scope: &'a FileScope,
    secret: Arc<AtomicUsize>,
    unruly: Arc<AtomicUsize>,
    met: usize,
    /// Why it ended early.
    pub(super) cut: Option<String>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(scope: &'a FileScope, depth: Option<usize>) -> Self {
        let secret = Arc::new(AtomicUsize::new(0));
        let unruly = Arc::new(AtomicUsize::new(0));
        let (may, passed) = (Arc::clone(&scope.may), Arc::clone(&secret));
        let closed = Arc::clone(&unruly);
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
                let opened = shown && entry.file_type().is_some_and(|kind| kind.is_dir());
                if opened && entry.depth() > 0 && unfit_rules(entry.path()).is_some() {
                    closed.fetch_add(1, Ordering::Relaxed);
                    return false;
                }
                shown
            })
            .build();
        Self {
            entries,
            scope,
            secret,
            unruly,
            met: 0,
            // The rules of every directory above are read as well.
            cut: scope.path.ancestors().find_map(unfit_rules).map(|rules| {
                format!(
                    "nothing looked at, since {} is not a file of rules",
                    rules.display()
                )
            }),
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
        let unruly = self.unruly.load(Ordering::Relaxed);
        if unruly > 0 {
            words.push_str("; ");
            words.push_str(&plural(unruly, "directory", "directories"));
            words.push_str(" left out whose .gitignore is not a file of rules");
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
            if self.cut.is_some() {
                return None;
            }
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

/// Returns what stands in a directory in place of rules for git and cannot be read as such: a device or a FIFO never
/// ends, and no line of it may.
fn unfit_rules(dir: &Path) -> Option<PathBuf> {
    RULES
        .iter()
        .map(|name| dir.join(name))
        .find(|path| fs::metadata(path).is_ok_and(|meta| unfit(path, &meta)))
}

fn unfit(path: &Path, meta: &fs::Metadata) -> bool {
    let kind = meta.file_type();
    let endless = kind.is_fifo() || kind.is_char_device() || kind.is_block_device();
    // A usual way to say that there are none.
    let none = || {
        path.canonicalize()
            .is_ok_and(|real| real == Path::new("/dev/null"))
    };
    endless && !none() || meta.is_file() && meta.len() > LARGEST_RULES
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
    co_policy::printable(text.trim_end_matches('/'))
}
