//! A walk through the workspace that skips ignored and secret files and follows no symbolic links.

use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;

use super::ignore_rules::{self, IgnoreRules, MOST_BYTES, RULES};
use super::limits::FileScope;
use co_exec::beneath::Dir;
use co_exec::repository;
use co_text::plural;

/// The largest number of entries that one walk visits.
pub(crate) const MAX_ENTRIES: usize = 200_000;

/// A file, directory or symbolic link that a walk visits.
#[derive(Debug)]
pub(crate) struct WalkEntry {
    pub(crate) path: PathBuf,
    pub(crate) kind: FileType,
    /// The number of directories between the start of the walk and this entry.
    pub(crate) depth: usize,
}

/// Visits the entries below a path, in order. Reads each directory once, when it visits the directory.
pub(crate) struct Walk<'a> {
    scope: &'a FileScope,
    /// The directory of the walk; none if the path is a file or cannot be opened.
    root: Option<Dir>,
    /// The smallest depth at which directories are visited but not read.
    most_depth: usize,
    /// The entries to visit. The last element is visited next.
    todo: Vec<PendingEntry>,
    left_out: OmittedCounts,
    /// The number of entries visited so far.
    pub(crate) met: usize,
    /// The reason why the walk ended early; none if it did not.
    pub(crate) cut: Option<String>,
}

struct PendingEntry {
    dir: Arc<ReadDirectory>,
    name: OsString,
    kind: FileType,
}

/// A directory that has been read.
struct ReadDirectory {
    path: PathBuf,
    rules: IgnoreRules,
    /// The depth of the directory's entries.
    depth: usize,
}

/// The numbers of entries that the walk left out.
#[derive(Default)]
struct OmittedCounts {
    secret: usize,
    /// The number of directories with a `.gitignore` that cannot be read as an ignore file.
    unruly: usize,
    /// The number of directories that could not be read.
    unread: usize,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(scope: &'a FileScope, most_depth: Option<usize>) -> Self {
        let path = &scope.path;
        // The rules of every directory above are read as well.
        let cut = path.ancestors().find_map(unfit_rules).map(|rules| {
            format!(
                "nothing looked at, since {} is not a file of rules",
                rules.display()
            )
        });
        let above = Arc::new(ReadDirectory {
            path: PathBuf::new(),
            rules: match cut {
                Some(_) => IgnoreRules::default(),
                None => IgnoreRules::above(path),
            },
            depth: 0,
        });
        let root = Dir::open(path).ok();
        let kind = match path.symlink_metadata() {
            Ok(meta) if !meta.is_dir() => FileType::RegularFile,
            _ => FileType::Directory,
        };
        Self {
            scope,
            root,
            most_depth: most_depth.unwrap_or(usize::MAX),
            todo: vec![PendingEntry {
                dir: above,
                name: path.clone().into_os_string(),
                kind,
            }],
            left_out: OmittedCounts::default(),
            met: 0,
            cut,
        }
    }

    /// Returns an entry, unless the walk leaves it out. If the entry is a directory, reads it.
    fn meet(&mut self, entry: PendingEntry) -> Option<WalkEntry> {
        let found = WalkEntry {
            path: entry.dir.path.join(&entry.name),
            kind: entry.kind,
            depth: entry.dir.depth,
        };
        let (path, is_dir) = (&found.path, found.kind.is_dir());
        if found.depth > 0 {
            if entry.dir.rules.ignore(path, is_dir) {
                return None;
            }
            if !self.scope.allowed.allows_name(path) {
                if entry.name == ".git" || repository::is_gits(path) {
                    return None;
                }
                // The filter also refuses directories that cannot be read, because they may contain secrets.
                match is_dir && self.list(path).is_none() {
                    true => self.left_out.unread += 1,
                    false => self.left_out.secret += 1,
                }
                return None;
            }
        }
        if is_dir && found.depth < self.most_depth {
            let Some(mut names) = self.list(path) else {
                self.left_out.unread += 1;
                return Some(found);
            };
            let has = |name: &Path| names.iter().any(|(it, _)| name.starts_with(it));
            let has_rules = RULES.iter().any(|name| has(name.as_ref()));
            if has_rules && found.depth > 0 && unfit_rules(path).is_some() {
                self.left_out.unruly += 1;
                return None;
            }
            let text = |name: &Path| has(name).then(|| ignore_rules::text(&path.join(name)))?;
            let dir = Arc::new(ReadDirectory {
                rules: entry.dir.rules.below(path, text),
                path: path.clone(),
                depth: found.depth + 1,
            });
            names.sort_unstable_by(|one, other| other.0.cmp(&one.0));
            self.todo
                .extend(names.into_iter().map(|(name, kind)| PendingEntry {
                    dir: Arc::clone(&dir),
                    name,
                    kind,
                }));
        }
        Some(found)
    }

    /// Returns the names and kinds of the entries of a directory; none if the directory cannot be read.
    fn list(&self, path: &Path) -> Option<Vec<(OsString, FileType)>> {
        let below = path.strip_prefix(&self.scope.path).ok()?;
        let dir = self.root.as_ref()?.dir(below).ok()?;
        dir.list().ok()?.collect::<std::io::Result<_>>().ok()
    }

    /// Returns the end of a summary, with the number of entries that the walk left out.
    pub(crate) fn left_out(&self) -> String {
        let mut words = String::new();
        let secret = self.left_out.secret;
        if secret > 0 {
            words.push_str("; ");
            words.push_str(&plural(
                secret,
                "name that looks like a secret",
                "names that look like secrets",
            ));
            words.push_str(" left out");
        }
        let unruly = self.left_out.unruly;
        if unruly > 0 {
            words.push_str("; ");
            words.push_str(&plural(unruly, "directory", "directories"));
            words.push_str(" left out whose .gitignore is not a file of rules");
        }
        let unread = self.left_out.unread;
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
    type Item = WalkEntry;

    fn next(&mut self) -> Option<WalkEntry> {
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
            let entry = self.todo.pop()?;
            if let Some(found) = self.meet(entry) {
                self.met += 1;
                return Some(found);
            }
        }
    }
}

/// Returns the first ignore file of a directory that cannot be read as one: a very large file, or a device or FIFO, which may
/// never end.
fn unfit_rules(dir: &Path) -> Option<PathBuf> {
    RULES
        .iter()
        .map(|name| dir.join(name))
        .find(|path| ignore_rules::metadata(path).is_ok_and(|meta| unfit(path, &meta)))
}

fn unfit(path: &Path, meta: &Metadata) -> bool {
    let kind = meta.file_type();
    let endless = kind.is_fifo() || kind.is_char_device() || kind.is_block_device();
    // A link to /dev/null is a usual way to have no rules.
    let none = || {
        path.canonicalize()
            .is_ok_and(|real| real == Path::new("/dev/null"))
    };
    endless && !none() || meta.is_file() && meta.len() > MOST_BYTES
}

/// Returns the path of an entry below `root`, as the model would write it. `asked` is the path of `root` that the model gave.
pub(crate) fn shown(asked: &str, root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let asked = asked.trim_start_matches("./").trim_end_matches('/');
    let whole = match asked {
        "" | "." => below.to_owned(),
        asked => Path::new(asked).join(below),
    };
    let text = whole.display().to_string();
    // A path that is joined with an empty one ends with a slash.
    co_text::one_line(text.trim_end_matches('/'))
}
