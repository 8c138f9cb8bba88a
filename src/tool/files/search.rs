//! The tool `search`: lines of files in the workspace that match a regular expression.

use std::io;

use grep::regex::{RegexMatcher, RegexMatcherBuilder};
use grep::searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use ignore::overrides::{Override, OverrideBuilder};
use serde::Deserialize;
use serde_json::json;

use super::limits::{
    FileFacts, FileQueryError, FileScope, cut_lines, number, open, plural, shorten,
};
use super::walk::{Walk, shown};
use crate::tool::schema::{self, BadCall, arguments};
use co_llm::ToolSpec;
use co_llm::transcript::Call;

pub(super) const NAME: &str = "search";

const DEFAULT_MATCHES: usize = 100;
const MOST_MATCHES: usize = 1_000;
const MOST_CONTEXT: usize = 20;
/// Bytes of one line.
const LONGEST_LINE: usize = 500;
/// The most bytes of a file; larger files hold data, not text.
const LARGEST_FILE: u64 = 16 << 20;
/// The most bytes of a compiled pattern.
const LARGEST_PATTERN: usize = 4 << 20;

/// The arguments of a call, which [`spec`] describes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    context: Option<i64>,
    #[serde(default)]
    limit: Option<i64>,
}

/// A query for matching lines.
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

/// Returns the tool's description for a model.
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

    pub(super) fn line(&self) -> String {
        let files = self.glob.as_deref().map(|glob| format!(", only {glob}"));
        format!(
            "{NAME} \"{}\" in {}{}",
            self.pattern,
            self.path,
            files.unwrap_or_default()
        )
    }

    pub(super) fn run(&self, scope: &FileScope) -> Result<FileFacts, FileQueryError> {
        let matcher = self.matcher()?;
        let only = self.only(scope)?;
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .before_context(self.context)
            .after_context(self.context)
            .binary_detection(BinaryDetection::quit(0))
            .build();
        let mut hits = Hits::new(self, scope);
        let mut walk = Walk::new(scope, None);
        for entry in walk.by_ref() {
            let file = entry.file_type().is_some_and(|kind| kind.is_file());
            let wanted = only
                .as_ref()
                .is_none_or(|only| !only.matched(entry.path(), false).is_ignore());
            if !file || !wanted {
                continue;
            }
            hits.path = shown(&self.path, &scope.path, entry.path());
            if let Some(buffer) = scope.buffer(entry.path()) {
                hits.unsaved += 1;
                let searched = searcher.search_slice(&matcher, &buffer.text, &mut hits);
                hits.unread += usize::from(searched.is_err());
                continue;
            }
            let searched = open(entry.path()).and_then(|file| {
                if file.metadata()?.len() > LARGEST_FILE {
                    hits.large += 1;
                    return Ok(());
                }
                searcher.search_file(&matcher, &file, &mut hits)
            });
            hits.unread += usize::from(searched.is_err());
        }
        let left_out = walk.left_out();
        Ok(hits.finished(&left_out))
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

    fn only(&self, scope: &FileScope) -> Result<Option<Override>, FileQueryError> {
        let Some(glob) = &self.glob else {
            return Ok(None);
        };
        let root = match scope.path.is_dir() {
            true => &scope.path,
            false => scope.path.parent().unwrap_or(&scope.path),
        };
        let mut only = OverrideBuilder::new(root);
        only.add(glob)
            .and_then(|only| only.build())
            .map(Some)
            .map_err(|error| FileQueryError(format!("The glob cannot be used: {error}.")))
    }
}

/// The matches so far.
struct Hits<'a> {
    request: &'a SearchQuery,
    scope: &'a FileScope,
    /// The file that is searched, as it is shown.
    path: String,
    text: String,
    files: usize,
    in_file: bool,
    shown: usize,
    /// The shown lines that are cut.
    cut: usize,
    more: usize,
    large: usize,
    binary: usize,
    unread: usize,
    /// The files whose buffers were searched instead.
    unsaved: usize,
}

impl<'a> Hits<'a> {
    fn new(request: &'a SearchQuery, scope: &'a FileScope) -> Self {
        Self {
            request,
            scope,
            path: String::new(),
            text: String::new(),
            files: 0,
            in_file: false,
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
        self.shown >= self.request.limit || self.text.len() >= self.scope.bytes
    }

    fn put(&mut self, mark: char, line: Option<u64>, bytes: &[u8]) {
        let end = bytes
            .iter()
            .rposition(|byte| !matches!(byte, b'\n' | b'\r'));
        let bytes = &bytes[..end.map_or(0, |end| end + 1)];
        let line = line.unwrap_or_default();
        self.cut += usize::from(bytes.len() > LONGEST_LINE);
        let text = shorten(bytes, LONGEST_LINE, bytes.len() as u64);
        self.text
            .push_str(&format!("{}{mark}{line}{mark}{text}\n", self.path));
    }

    fn finished(self, left_out: &str) -> FileFacts {
        let mut summary = match self.shown + self.more {
            0 => "no line matches".to_owned(),
            found => format!(
                "{} in {}",
                plural(found, "matching line", "matching lines"),
                plural(self.files, "file", "files")
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
        FileFacts {
            text: self.text,
            summary,
            whole: None,
        }
    }
}

impl Sink for Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, hit: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if !self.in_file {
            self.in_file = true;
            self.files += 1;
        }
        if self.full() {
            self.more += 1;
        } else {
            self.shown += 1;
            self.put(':', hit.line_number(), hit.bytes());
        }
        Ok(!self.scope.end.reached())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        if !self.full() {
            self.put('-', line.line_number(), line.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        if !self.full() {
            self.text.push_str("--\n");
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.binary += 1;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, _: &SinkFinish) -> Result<(), io::Error> {
        self.in_file = false;
        Ok(())
    }
}
