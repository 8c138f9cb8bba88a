//! A walk through the workspace that skips ignored and secret files and does not follow links.

use std::fs::Metadata;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ignore::{DirEntry, WalkBuilder};

use super::limits::{FileScope, PathFilter, plural};
use co_exec::beneath::Dir;
use co_exec::repository;

/// The most entries of one walk.
const MAX_ENTRIES: usize = 200_000;

/// The files with git's ignore rules, below each directory. An earlier one prevails.
pub(super) const RULES: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];

/// The most bytes of such a file; a larger one is not a file of rules.
pub(super) const LARGEST_RULES: u64 = 4 << 20;

/// The entries below a path, in order.
pub(crate) struct Walk<'a> {
    entries: ignore::Walk,
    scope: &'a FileScope,
    left_out: Arc<LeftOut>,
    /// The number of entries so far.
    pub(super) met: usize,
    /// The reason for an early end.
    pub(crate) cut: Option<String>,
}

/// The numbers of entries that were left out.
#[derive(Default)]
struct LeftOut {
    secret: AtomicUsize,
    /// Directories whose `.gitignore` is not a file of rules.
    unruly: AtomicUsize,
    /// Directories that could not be read.
    unread: AtomicUsize,
}

impl LeftOut {
    /// Returns true if the walk has the entry. Counts an entry that is left out, except those of git.
    fn pass(&self, entry: &DirEntry, allowed: &PathFilter) -> bool {
        let path = entry.path();
        let dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        let count = match entry.depth() == 0 || allowed(path) {
            true if dir && entry.depth() > 0 && unfit_rules(path).is_some() => &self.unruly,
            true => return true,
            false if entry.file_name() == ".git" || repository::is_gits(path) => return false,
            // The filter also refuses directories that cannot be read, because they may contain secrets.
            false if dir && Dir::open(path).and_then(|dir| dir.list()).is_err() => &self.unread,
            false => &self.secret,
        };
        count.fetch_add(1, Ordering::Relaxed);
        false
    }
}

impl<'a> Walk<'a> {
    pub(crate) fn new(scope: &'a FileScope, depth: Option<usize>) -> Self {
        let left_out = Arc::new(LeftOut::default());
        let (allowed, counts) = (Arc::clone(&scope.allowed), Arc::clone(&left_out));
        let entries = WalkBuilder::new(&scope.path)
            // Git also tracks names that begin with a dot.
            .hidden(false)
            .require_git(false)
            .follow_links(false)
            .max_depth(depth)
            .sort_by_file_name(std::cmp::Ord::cmp)
            .filter_entry(move |entry| counts.pass(entry, &allowed))
            .build();
        Self {
            entries,
            scope,
            left_out,
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

    /// Returns the end of a summary, which counts the entries that the walk left out.
    pub(super) fn left_out(&self) -> String {
        let mut words = String::new();
        let secret = self.left_out.secret.load(Ordering::Relaxed);
        if secret > 0 {
            words.push_str("; ");
            words.push_str(&plural(
                secret,
                "name that looks like a secret",
                "names that look like secrets",
            ));
            words.push_str(" left out");
        }
        let unruly = self.left_out.unruly.load(Ordering::Relaxed);
        if unruly > 0 {
            words.push_str("; ");
            words.push_str(&plural(unruly, "directory", "directories"));
            words.push_str(" left out whose .gitignore is not a file of rules");
        }
        let unread = self.left_out.unread.load(Ordering::Relaxed);
        if unread > 0 {
            words.push_str("; ");
            words.push_str(&plural(unread, "directory", "directories"));
            words.push_str(" could not be read");
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
            if self.met >= MAX_ENTRIES {
                self.cut = Some(format!(
                    "ended after {MAX_ENTRIES} entries: look at less at a time"
                ));
                return None;
            }
            match self.entries.next()? {
                Ok(entry) => {
                    self.met += 1;
                    return Some(entry);
                }
                // It must not end the walk.
                Err(_) => {
                    self.left_out.unread.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Returns the first file of ignore rules in a directory that cannot be read as such: a device or FIFO, which may never
/// end, or a very large file.
fn unfit_rules(dir: &Path) -> Option<PathBuf> {
    RULES
        .iter()
        .map(|name| dir.join(name))
        .find(|path| path.metadata().is_ok_and(|meta| unfit(path, &meta)))
}

fn unfit(path: &Path, meta: &Metadata) -> bool {
    let kind = meta.file_type();
    let endless = kind.is_fifo() || kind.is_char_device() || kind.is_block_device();
    // A link to /dev/null is a usual way to have no rules.
    let none = || {
        path.canonicalize()
            .is_ok_and(|real| real == Path::new("/dev/null"))
    };
    endless && !none() || meta.is_file() && meta.len() > LARGEST_RULES
}

/// Returns the path of an entry as the model would write it, from the path that the model gave.
pub(super) fn shown(asked: &str, root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let asked = asked.trim_start_matches("./").trim_end_matches('/');
    let whole = match asked {
        "" | "." => below.to_owned(),
        asked => Path::new(asked).join(below),
    };
    let text = whole.display().to_string();
    // A path that is joined with an empty one ends with a slash.
    co_policy::one_line(text.trim_end_matches('/'))
}
