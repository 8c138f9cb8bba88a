//! The tool `search`: finds the lines of files in the workspace that match a regular expression.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::{io, thread};

use grep::regex::{RegexMatcher, RegexMatcherBuilder};
use grep::searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::overrides::{Override, OverrideBuilder};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;

use crate::tool::schema::{self, BadCall, arguments, number};
use crate::workspace::files::SEARCH as NAME;
use crate::workspace::files::limits::{
    FileQueryError, FileQueryResult, FileScope, cut_lines, shorten,
};
use crate::workspace::files::walk::{Walk, WalkEntry, shown};
use co_exec::beneath::{Dir, Node, Parents};
use co_llm::ToolSpec;
use co_llm::transcript::Call;
use co_text::counted;

const DEFAULT_MATCHES: usize = 100;
const MOST_MATCHES: usize = 1_000;
const MOST_CONTEXT: usize = 20;
/// The largest number of bytes of a line in the result.
const LONGEST_LINE: usize = 500;
/// The largest size in bytes of a file that is searched. Larger files contain data, not text.
const LARGEST_FILE: u64 = 16 << 20;
/// The largest number of bytes of a compiled pattern.
const LARGEST_PATTERN: usize = 4 << 20;
const MOST_THREADS: usize = 8;
/// The number of entries that a thread takes from the walk at a time.
const BATCH: usize = 16;

/// The arguments of a `search` call, as [`spec`] describes them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    context: Option<i64>,
    limit: Option<i64>,
}

/// A query for the lines that match a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchQuery {
    pub(super) path: String,
    pattern: String,
    glob: Option<String>,
    literal: bool,
    ignore_case: bool,
    context: usize,
    limit: usize,
}

/// Returns the description of `search` for a model.
pub(super) fn spec() -> ToolSpec {
    let description = format!(
        "Returns the lines that match a regular expression in the files of the workspace, with what the person has typed \
        there and not saved, as path:line:text. Lines \
        around a match have - instead of the colons. Files that git ignores, .git, files that look like secrets, \
        binary files and files over {} MiB are left out. Runs at once. Places outside the workspace are refused.",
        LARGEST_FILE >> 20
    );
    let properties = json!({
        "pattern": {
            "type": "string",
            "description": "A regular expression in Rust's syntax, without look-around and back references. It is \
                matched against each line.",
        },
        "path": {
            "type": "string",
            "description": "The directory or file to search. A relative path starts at the working directory. \
                Default: the working directory.",
        },
        "glob": {
            "type": "string",
            "description": "Search only files whose path matches, such as `*.rs` or `src/**/test_*.py`.",
        },
        "literal": {
            "type": "boolean",
            "description": "Take the pattern as plain text. Default: false.",
        },
        "ignore_case": {
            "type": "boolean",
            "description": "Match upper and lower case alike. Default: false.",
        },
        "context": {
            "type": "integer",
            "minimum": 0,
            "maximum": MOST_CONTEXT,
            "description": "The lines to show before and after each match. Default: 0.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_MATCHES,
            "description": format!(
                "The most matching lines to return; the others are counted. Default: {DEFAULT_MATCHES}."
            ),
        },
    });
    schema::spec(NAME, description, properties, &["pattern"])
}

impl SearchQuery {
    pub(super) fn parse(call: &Call) -> Result<Self, BadCall> {
        let given: SearchArguments = arguments(call)?;
        if given.pattern.is_empty() {
            return Err(BadCall("The pattern of search is empty.".to_owned()));
        }
        Ok(Self {
            context: number(call, "context", given.context, 0, 0..=MOST_CONTEXT)?,
            limit: number(
                call,
                "limit",
                given.limit,
                DEFAULT_MATCHES,
                1..=MOST_MATCHES,
            )?,
            path: given.path.unwrap_or_else(|| ".".to_owned()),
            pattern: given.pattern,
            glob: given.glob,
            literal: given.literal,
            ignore_case: given.ignore_case,
        })
    }

    /// Returns a search for a text below the working directory, with the largest possible number of matches.
    pub(super) fn literal(text: String) -> Self {
        Self {
            path: ".".to_owned(),
            pattern: text,
            glob: None,
            literal: true,
            ignore_case: false,
            context: 0,
            limit: MOST_MATCHES,
        }
    }

    pub(super) fn line(&self) -> String {
        let files = self.glob.as_deref().map(|glob| format!(", only {glob}"));
        format!(
            "{NAME} \"{}\" in {}{}",
            self.pattern,
            self.path,
            files.unwrap_or_default()
        )
    }

    pub(super) fn run(&self, scope: &FileScope) -> Result<FileQueryResult, FileQueryError> {
        let (dir, base) = (scope.open())
            .map_err(|error| FileQueryError(format!("Cannot look at {}: {error}.", self.path)))?;
        let search = Search {
            query: self,
            scope,
            dir: &dir,
            base,
            matcher: self.matcher()?,
            only: self.only(base)?,
            walk: Mutex::new(Walk::new(scope, None)),
            found: Mutex::default(),
        };
        let threads = thread::available_parallelism().map_or(1, |most| most.get());
        thread::scope(|scope| {
            for _ in 1..threads.min(MOST_THREADS) {
                // If a thread cannot start, the others do its work.
                let _started = thread::Builder::new().spawn_scoped(scope, || search.work());
            }
            search.work();
        });
        Ok(search.finished())
    }

    fn matcher(&self) -> Result<RegexMatcher, FileQueryError> {
        RegexMatcherBuilder::new()
            .case_insensitive(self.ignore_case)
            .fixed_strings(self.literal)
            .line_terminator(Some(b'\n'))
            .size_limit(LARGEST_PATTERN)
            .dfa_size_limit(LARGEST_PATTERN)
            .build(&self.pattern)
            .map_err(|error| FileQueryError(format!("The pattern cannot be used: {error}.")))
    }

    /// Returns the filter for the files below `base` that the query searches; none if it searches all files.
    fn only(&self, base: &Path) -> Result<Option<Override>, FileQueryError> {
        let Some(glob) = &self.glob else {
            return Ok(None);
        };
        let mut only = OverrideBuilder::new(base);
        only.add(glob)
            .and_then(|only| only.build())
            .map(Some)
            .map_err(|error| FileQueryError(format!("The glob cannot be used: {error}.")))
    }
}

/// A search by several threads. The result does not depend on the number of threads.
struct Search<'a> {
    query: &'a SearchQuery,
    scope: &'a FileScope,
    /// The directory below which all files are searched. Its path is `base`.
    dir: &'a Dir,
    base: &'a Path,
    matcher: RegexMatcher,
    only: Option<Override>,
    walk: Mutex<Walk<'a>>,
    /// The matches of each thread that has ended.
    found: Mutex<Vec<Matches<'a>>>,
}

impl<'a> Search<'a> {
    /// Searches files until the walk has no more entries.
    fn work(&self) {
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(self.query.context)
            .after_context(self.query.context)
            .binary_detection(BinaryDetection::quit(0))
            .build();
        let mut matches = Matches::new(self.query, self.scope);
        let mut parents = Parents::new(self.dir);
        loop {
            let batch: Vec<_> = {
                let mut walk = self.walk.lock();
                let batch = walk.by_ref().take(BATCH).collect();
                matches.place = walk.met;
                batch
            };
            if batch.is_empty() {
                break;
            }
            for entry in batch {
                if entry.kind.is_file() && self.wants(&entry.path) && !self.scope.end.reached() {
                    self.search((&mut searcher, &mut parents), &entry, &mut matches);
                }
            }
        }
        self.found.lock().push(matches);
    }

    fn wants(&self, path: &Path) -> bool {
        let only = self.only.as_ref();
        only.is_none_or(|only| !only.matched(path, false).is_ignore())
    }

    fn search(
        &self,
        (searcher, parents): (&mut Searcher, &mut Parents<'_>),
        entry: &WalkEntry,
        matches: &mut Matches<'a>,
    ) {
        let path = &entry.path;
        let mut sink = FileSink {
            path,
            shown: None,
            matched: false,
            matches,
        };
        let searched = match self.scope.buffer(path) {
            Some(buffer) => {
                sink.matches.unsaved += 1;
                let text = buffer.file_text();
                let text = text
                    .as_ref()
                    .map_or(&*buffer.text, |it| it.as_str().as_bytes());
                searcher.search_slice(&self.matcher, text, &mut sink)
            }
            None => self.open(entry, parents).and_then(|(file, node)| {
                if !self.scope.allows_file(path, &node) {
                    sink.matches.unread += 1;
                    return Ok(());
                }
                if node.size() > LARGEST_FILE {
                    sink.matches.large += 1;
                    return Ok(());
                }
                // The end of the file is known, so no further call looks for it. Some file systems give all files the size 0.
                let size = Some(node.size()).filter(|size| *size > 0);
                let file = file.take(size.unwrap_or(LARGEST_FILE));
                searcher.search_reader(&self.matcher, file, &mut sink)
            }),
        };
        matches.unread += usize::from(searched.is_err());
    }

    fn open(&self, entry: &WalkEntry, parents: &mut Parents<'_>) -> io::Result<(File, Node)> {
        let below = entry.path.strip_prefix(self.base);
        let (dir, name) = parents.of(below.map_err(io::Error::other)?)?;
        match entry.depth {
            // No directory was listed for the path of the query.
            0 => dir.file(name),
            _ => dir.listed_file(name),
        }
    }

    fn finished(self) -> FileQueryResult {
        let mut all = Matches::new(self.query, self.scope);
        let mut lines = Vec::new();
        for found in std::mem::take(&mut *self.found.lock()) {
            all.add_counts(&found);
            lines.extend(found.lines);
        }
        // The lines of one place come from one thread, in order.
        lines.sort_by_key(|line| line.place);
        for line in lines {
            all.push(line);
        }
        all.finished(&self.walk.lock().left_out())
    }
}

/// The matches in the files that one thread has searched, in the order of the walk.
struct Matches<'a> {
    query: &'a SearchQuery,
    scope: &'a FileScope,
    /// The number of entries that the walk had returned when this thread took the batch that it searches now.
    place: usize,
    lines: Vec<Line>,
    bytes: usize,
    files: usize,
    shown: usize,
    /// The number of lines in the result that are cut.
    cut: usize,
    more: usize,
    large: usize,
    binary: usize,
    unread: usize,
    /// The number of files whose unsaved buffers were searched instead of the files on disk.
    unsaved: usize,
}

/// A line of the result, and its position.
struct Line {
    /// The place of the line's file in the walk; see [`Matches::place`].
    place: usize,
    text: String,
    matched: bool,
    cut: bool,
}

impl<'a> Matches<'a> {
    fn new(query: &'a SearchQuery, scope: &'a FileScope) -> Self {
        Self {
            query,
            scope,
            place: 0,
            lines: Vec::new(),
            bytes: 0,
            files: 0,
            shown: 0,
            cut: 0,
            more: 0,
            large: 0,
            binary: 0,
            unread: 0,
            unsaved: 0,
        }
    }

    fn full(&self) -> bool {
        self.shown >= self.query.limit || self.bytes >= self.scope.bytes
    }

    /// Adds a line. If this thread already has as many lines as the result may contain, only counts the line if it matches. The
    /// line cannot be in the result, because the walk met the other lines earlier.
    fn push(&mut self, line: Line) {
        if self.full() {
            self.more += usize::from(line.matched);
            return;
        }
        self.shown += usize::from(line.matched);
        self.cut += usize::from(line.cut);
        self.bytes += line.text.len();
        self.lines.push(line);
    }

    /// Adds the counts of another thread's matches. Leaves out the counts of stored lines, because [`Self::push`] counts these.
    fn add_counts(&mut self, other: &Self) {
        self.files += other.files;
        self.more += other.more;
        self.large += other.large;
        self.binary += other.binary;
        self.unread += other.unread;
        self.unsaved += other.unsaved;
    }

    fn finished(self, left_out: &str) -> FileQueryResult {
        let mut summary = match self.shown + self.more {
            0 => "no line matches".to_owned(),
            found => format!(
                "{} in {}",
                counted(found, "matching line"),
                counted(self.files, "file")
            ),
        };
        for (count, what) in [
            (self.more, "of them left out: narrow the search"),
            (self.large, "too large to search"),
            (self.binary, "not text"),
            (self.unread, "could not be read"),
            (self.unsaved, "searched with unsaved changes"),
        ] {
            if count > 0 {
                summary.push_str(&format!("; {count} {what}"));
            }
        }
        summary.push_str(&cut_lines(self.cut));
        summary.push_str(left_out);
        FileQueryResult {
            text: self.lines.into_iter().map(|line| line.text).collect(),
            summary,
            short: String::new(),
            whole: None,
        }
    }
}

/// Receives the matching lines of one file.
struct FileSink<'s, 'a> {
    path: &'s Path,
    /// The path of the file in the form in which the result shows it.
    shown: Option<String>,
    matched: bool,
    matches: &'s mut Matches<'a>,
}

impl FileSink<'_, '_> {
    fn put(&mut self, mark: char, line: Option<u64>, bytes: &[u8]) {
        let matches = &mut *self.matches;
        let shown = self
            .shown
            .get_or_insert_with(|| shown(&matches.query.path, &matches.scope.path, self.path));
        let end = bytes
            .iter()
            .rposition(|byte| !matches!(byte, b'\n' | b'\r'));
        let bytes = &bytes[..end.map_or(0, |end| end + 1)];
        let line = line.unwrap_or_default();
        let text = shorten(bytes, LONGEST_LINE, bytes.len() as u64);
        matches.push(Line {
            place: matches.place,
            text: format!("{shown}{mark}{line}{mark}{text}\n"),
            matched: mark == ':',
            cut: bytes.len() > LONGEST_LINE,
        });
    }
}

impl Sink for FileSink<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if !self.matched {
            self.matched = true;
            self.matches.files += 1;
        }
        if self.matches.full() {
            self.matches.more += 1;
        } else {
            self.put(':', hit.line_number(), hit.bytes());
        }
        Ok(!self.matches.scope.end.reached())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        if !self.matches.full() {
            self.put('-', line.line_number(), line.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        let place = self.matches.place;
        self.matches.push(Line {
            place,
            text: "--\n".to_owned(),
            matched: false,
            cut: false,
        });
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.matches.binary += 1;
        Ok(false)
    }
}
