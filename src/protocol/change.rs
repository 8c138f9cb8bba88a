//! The changes of files that a question shows or that a person reviews.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use co_text::start_of;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The largest number of facts of one kind that are shown.
const MOST_FACTS: usize = 200;
/// The largest number of bytes of a text under review in one message. Neovim can show a part of this size without a noticeable
/// pause.
const PART_BYTES: usize = 256 << 10;
/// The largest number of bytes of all texts that are sent together with the question and so appear at once. Longer texts are sent
/// later.
const FIRST_BYTES: usize = 256 << 10;
/// The largest number of bytes of a single text that are sent with the question.
const FIRST_BYTES_OF_FILE: usize = 64 << 10;
/// The number of bytes after which an excerpt contains only headings. After twice as many bytes, the excerpt ends.
const EXCERPT_BYTES: usize = 256 << 10;
/// The largest number of lines of an excerpt that are sent with the question. Neovim draws these lines at once.
const SHOWN_LINES: usize = 500;
/// The largest number of bytes of an excerpt that are sent with the question.
const SHOWN_BYTES: usize = 64 << 10;
/// The number of unchanged lines that an excerpt shows around the changed lines.
const CONTEXT_LINES: usize = 3;

/// The changes of files that a question shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// True if the person cannot choose single parts of the changes. They read the review, and then answer the question about all
    /// changes.
    pub whole: bool,
    /// True if the question is about `/undo` or `/redo`. These take changes of a turn back, or bring them back.
    pub undo: bool,
    /// True if the buffer of one of the files has unsaved changes.
    pub unsaved: bool,
    pub added: usize,
    pub removed: usize,
    /// A text about the change, if no line of the files differs.
    pub without_lines: Option<String>,
    /// The facts that the person must see first, sorted by kind.
    pub facts: Vec<FactLine>,
    /// The first lines of the [`Excerpt`].
    pub excerpt: String,
    /// The number of the remaining lines of the [`Excerpt`].
    pub more: usize,
    /// The files for a review. If there are too many, one file that contains the excerpt.
    pub files: Vec<FileChange>,
}

/// The changed lines of all files, with a few lines around them. The lines have the marks of [`ReviewText`]; a heading has the
/// mark `#`.
#[derive(Debug, Clone, Default)]
pub struct Excerpt {
    text: String,
    lines: usize,
}

/// The change of a file, for a review.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct FileChange {
    /// The path relative to the workspace, in printable form.
    pub path: String,
    pub added: usize,
    pub removed: usize,
    /// A text about the change, if no line of the file differs.
    pub without_lines: Option<String>,
    /// The number of parts that the person accepts or rejects one by one.
    pub parts: usize,
    /// True if the person cannot accept or reject single lines of the file.
    pub whole: bool,
    #[serde(flatten)]
    pub text: ReviewText,
    /// For each part, the calls that made it and the way in which they were approved. Only a [`ChangesReview`] has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// The answers that the person gave earlier in a `/review`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<PartAnswer>,
}

/// The person's answer about a part of a change, in a review that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PartAnswer {
    /// The number of the part in its file. Parts are numbered from 1.
    pub part: usize,
    /// True if the person accepts the part, and false if they reject it. `None` means that the part is still open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<bool>,
    /// The lines that the person wrote in place of the new lines of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<String>>,
    /// A comment for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// The changes that a chat has made, for a review of `/changes` or `/review`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ChangesReview {
    pub id: u64,
    pub chat: u64,
    /// True if the review shows the changes that the person has neither accepted nor rejected yet (`/review`). Lua then sends
    /// each answer at once.
    pub round: bool,
    pub files: Vec<FileChange>,
}

/// A summary of the changes that the person has neither accepted nor rejected yet.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct OpenSummary {
    pub changes: usize,
    pub files: usize,
    /// The time of the first change that the person has neither accepted nor rejected yet, in seconds since 1970.
    pub since: Option<u64>,
}

/// The changed lines of a file that the person has neither accepted nor rejected yet.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct OpenLines {
    pub file: String,
    pub lines: Vec<NewLines>,
}

/// A range of new lines of a file. If the range is empty, lines were removed above the line `first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct NewLines {
    /// The number of the first line. Lines are numbered from 1.
    pub first: usize,
    pub count: usize,
}

/// A property of a change that its lines do not show, or that a person could easily overlook in its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub kind: FactKind,
    /// The path relative to the workspace, in printable form.
    pub path: String,
    /// A printable clause about the change.
    pub text: String,
}

/// A fact as a line that the person reads before they answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FactLine {
    pub kind: FactKind,
    /// The four-letter label of the kind, a space, the path, and the clause.
    pub text: String,
}

/// The kinds of facts, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// A program later runs the file or loads it.
    Runs,
    Link,
    Mode,
    /// The file contains bytes that are not text.
    Bytes,
    Moved,
    Deleted,
}

/// The text of a file under review. It is the whole file, including the lines that the change removes and adds.
///
/// The first character of each line is its mark. An unchanged line has a space, a removed line `-`, an added line `+`, a fact
/// `!`, and a missing line break `\`. A line `@` begins each part that the person accepts or rejects. The text is printable. Lua
/// gets the text in parts.
#[derive(Clone, PartialEq, Eq)]
pub struct ReviewText {
    text: Arc<str>,
    /// The number of bytes of the text that are sent with the question.
    first: usize,
}

impl ReviewText {
    /// Returns the text, with a line for each fact above the first part. `marked` is a result of [`co_edit::marked`].
    pub fn new(facts: &[Fact], marked: &str) -> Self {
        let facts: String = facts.iter().map(|it| format!("!{}\n", it.text)).collect();
        let marked = co_text::printable(marked);
        let text = match (marked.strip_prefix("@\n"), marked.split_once("\n@\n")) {
            // A change as a whole has its facts inside.
            (Some(rest), _) => format!("@\n{facts}{rest}"),
            (None, Some((above, rest))) => format!("{above}\n{facts}@\n{rest}"),
            (None, None) => facts + &marked,
        };
        Self {
            text: text.into(),
            first: 0,
        }
    }

    /// Returns the whole text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the next part of the text after its first `from` bytes, and true if more text follows.
    pub fn part(&self, from: usize) -> (&str, bool) {
        self.cut(from, PART_BYTES)
    }

    fn cut(&self, from: usize, most: usize) -> (&str, bool) {
        let rest = self.text.get(from..).unwrap_or_default();
        let part = start_of(rest, most);
        (part, part.len() < rest.len())
    }

    /// Returns the lines that are marked as changed, with their marks.
    pub fn changed_lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter(|line| !line.starts_with(' '))
    }
}

impl Default for ReviewText {
    fn default() -> Self {
        Self {
            text: "".into(),
            first: 0,
        }
    }
}

impl fmt::Debug for ReviewText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// Serializes the fields `text` and `more`. For a long text, `text` is only its first part.
impl Serialize for ReviewText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (text, more) = self.cut(0, self.first);
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("text", text)?;
        map.serialize_entry("more", &more)?;
        map.end()
    }
}

impl Excerpt {
    /// Returns an excerpt without lines of a file. If `files` is more than 1, the excerpt contains only the number of files.
    pub fn new(files: usize) -> Self {
        let mut excerpt = Self::default();
        if files > 1 {
            excerpt.add_heading(&format!("{files} files"));
        }
        excerpt
    }

    /// Returns the changed lines of the files. If there are several files, each has a heading.
    pub fn of(files: &[FileChange]) -> Self {
        let mut excerpt = Self::new(files.len());
        for file in files {
            if files.len() > 1 {
                excerpt.add_path(&file.path, &file.counts());
            }
            excerpt.add_lines(&file.text);
        }
        excerpt
    }

    /// Returns true if the excerpt has room for more lines of files.
    pub fn has_room(&self) -> bool {
        self.text.len() < EXCERPT_BYTES
    }

    /// Adds a heading.
    pub fn add_heading(&mut self, heading: &str) {
        let heading = co_text::one_line(heading);
        self.push(&format!("#── {heading}"), 2 * EXCERPT_BYTES);
    }

    /// Adds a heading with the path of a file and the numbers of its changed lines.
    pub fn add_path(&mut self, path: &str, counts: &str) {
        self.add_heading(&format!("{path}  {counts}"));
    }

    /// Adds the changed lines, with the lines around them. If no line has changed, adds the [`Fact`] lines of the text. These
    /// lines start with `!`.
    pub fn add_lines(&mut self, text: &ReviewText) {
        let (other, lines): (Vec<&str>, Vec<&str>) = text
            .text
            .lines()
            .partition(|line| line.starts_with(['@', '!']));
        let mut near = vec![false; lines.len()];
        for (at, line) in lines.iter().enumerate() {
            if line.starts_with(['+', '-']) {
                let last = (at + CONTEXT_LINES + 1).min(near.len());
                near[at.saturating_sub(CONTEXT_LINES)..last].fill(true);
            }
        }
        if !near.contains(&true) {
            let facts = other.iter().filter(|line| line.starts_with('!'));
            return facts.for_each(|fact| self.push(fact, EXCERPT_BYTES));
        }
        // The number of the line in the new text.
        let mut number = 1;
        for (at, line) in lines.iter().enumerate() {
            if near[at] && at > 0 && !near[at - 1] {
                self.push(&format!("#── line {number}"), EXCERPT_BYTES);
            }
            if near[at] {
                self.push(line, EXCERPT_BYTES);
            }
            number += usize::from(line.starts_with([' ', '+']));
        }
    }

    fn push(&mut self, line: &str, most: usize) {
        self.lines += 1;
        if let Some(room @ 1..) = most.checked_sub(self.text.len()) {
            let start = start_of(line, room);
            self.text.push_str(start);
            self.text.push_str(if start == line { "\n" } else { "…\n" });
        }
    }

    /// Returns the first lines of the excerpt, and the number of the remaining lines.
    fn shown(&self) -> (String, usize) {
        let mut end = 0;
        let mut lines = 0;
        for line in self.text.split_inclusive('\n').take(SHOWN_LINES) {
            if end + line.len() > SHOWN_BYTES {
                break;
            }
            end += line.len();
            lines += 1;
        }
        // A line that is longer than all that is shown.
        let start = if lines == 0 {
            start_of(&self.text, SHOWN_BYTES)
        } else {
            &self.text[..end]
        };
        (start.to_owned(), self.lines - lines)
    }

    /// Returns the excerpt as a file for a review, if there are too many changes to review each file.
    fn for_review(&self) -> FileChange {
        let left = self.lines - self.text.lines().count();
        let rest = match left {
            0 => String::new(),
            left => format!("!and {left} more lines\n"),
        };
        FileChange {
            path: "the changed lines of all files".to_owned(),
            parts: 1,
            whole: true,
            text: ReviewText::new(&[], &format!("@\n{}{rest}", self.text)),
            ..FileChange::default()
        }
    }
}

/// Sets for each text how many of its bytes are sent with the question. Lua asks for the rest later.
pub fn with_first_parts(mut files: Vec<FileChange>) -> Vec<FileChange> {
    let mut room = FIRST_BYTES;
    for file in &mut files {
        file.text.first = file.text.text.len().min(FIRST_BYTES_OF_FILE).min(room);
        room -= file.text.first;
    }
    files
}

/// Returns the lines about facts, grouped by kind. Facts of one kind stay in the order of their files. If a kind has too many
/// facts, its last line has the number of the omitted facts.
pub fn fact_lines(facts: impl IntoIterator<Item = Fact>) -> Vec<FactLine> {
    let mut facts: Vec<Fact> = facts.into_iter().collect();
    facts.sort_by_key(|it| it.kind);
    let kinds = facts.chunk_by(|one, next| one.kind == next.kind);
    let lines = kinds.flat_map(|all| {
        let (kind, label) = (all[0].kind, all[0].kind.label());
        let line = move |text| FactLine { kind, text };
        let shown = all.iter().take(MOST_FACTS);
        let more = all.len().saturating_sub(MOST_FACTS);
        shown
            .map(move |it| line(format!("{label} {}: {}", it.path, it.text)))
            .chain((more > 0).then(|| line(format!("{label} and {more} more"))))
    });
    lines.collect()
}

/// Returns a text about the change of a file in which no line differs.
pub fn without_lines(facts: &[Fact], is_new: bool) -> String {
    let clause = |fact: &Fact| match fact.kind {
        FactKind::Mode => fact.text.replace("=>", "->"),
        _ => fact.text.clone(),
    };
    let facts = facts.iter().filter(|it| it.kind != FactKind::Runs);
    let words: Vec<_> = is_new
        .then(|| "new, empty".to_owned())
        .into_iter()
        .chain(facts.map(clause))
        .collect();
    match words.is_empty() {
        true => "no line differs".to_owned(),
        false => words.join(", "),
    }
}

/// Returns the numbers of added and removed lines. If no line differs, returns the text `without_lines`.
pub fn counts(added: usize, removed: usize, without_lines: Option<&str>) -> String {
    without_lines.map_or_else(|| format!("+{added} -{removed}"), str::to_owned)
}

impl FileChange {
    /// Returns the numbers of added and removed lines of the file. If no line differs, returns a text about the change.
    pub fn counts(&self) -> String {
        counts(self.added, self.removed, self.without_lines.as_deref())
    }
}

impl FactKind {
    fn label(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Link => "link",
            Self::Mode => "mode",
            Self::Bytes => "byte",
            Self::Moved => "move",
            Self::Deleted => "gone",
        }
    }
}

impl Change {
    /// Returns the changes of files. `files` is empty if there are too many files for a review.
    pub fn new(facts: Vec<FactLine>, excerpt: &Excerpt, files: Vec<FileChange>) -> Self {
        let (shown, more) = excerpt.shown();
        let too_many = files.is_empty() && excerpt.lines > 0;
        let files = match too_many {
            true => vec![excerpt.for_review()],
            false => files,
        };
        Self {
            whole: too_many,
            facts,
            excerpt: shown,
            more,
            files: with_first_parts(files),
            ..Self::default()
        }
    }

    /// Returns the numbers of added and removed lines of all files. If no line differs, returns a text about the change.
    pub fn counts(&self) -> String {
        counts(self.added, self.removed, self.without_lines.as_deref())
    }

    /// Returns the change with the text for `without_lines`. `words` has one text for each file; a text is `None` if lines of the
    /// file differ.
    pub fn with_words(self, words: impl IntoIterator<Item = Option<String>>) -> Self {
        let words: Option<BTreeSet<String>> = words.into_iter().collect();
        let without_lines = words.and_then(|mut words| match words.len() {
            0 | 1 => words.pop_first(),
            _ => Some("no line differs".to_owned()),
        });
        Self {
            without_lines,
            ..self
        }
    }

    /// Returns two values: true if a buffer has unsaved changes, and the paths of the files, each followed by its changed lines.
    pub fn changed_lines(&self) -> (bool, Vec<&str>) {
        let lines = self.files.iter().flat_map(|file| {
            let path = std::iter::once(file.path.as_str());
            path.chain(file.text.changed_lines())
        });
        (self.unsaved, lines.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, marked: &str) -> FileChange {
        FileChange {
            path: path.to_owned(),
            text: ReviewText::new(&[], marked),
            ..FileChange::default()
        }
    }

    #[test]
    fn facts_of_a_file_stand_at_its_first_part() {
        let fact = Fact {
            kind: FactKind::Mode,
            path: "a".to_owned(),
            text: "mode".to_owned(),
        };
        for (marked, expected) in [
            (" a\n@\n+b\n@\n+c\n", " a\n!mode\n@\n+b\n@\n+c\n"),
            ("@\n+b\n", "@\n!mode\n+b\n"),
            ("", "!mode\n"),
        ] {
            let text = ReviewText::new(std::slice::from_ref(&fact), marked);
            assert_eq!(text.as_str(), expected);
        }
    }

    #[test]
    fn a_change_without_lines_is_said_in_words() {
        let fact = |kind, text: &str| Fact {
            kind,
            path: "a".to_owned(),
            text: text.to_owned(),
        };
        let mode = || fact(FactKind::Mode, "mode 644 => 755");
        let runs = || fact(FactKind::Runs, "git runs it");
        let moved = fact(FactKind::Moved, "moved from b");
        for (facts, is_new, expected) in [
            (vec![mode(), runs()], false, "mode 644 -> 755"),
            (vec![runs()], true, "new, empty"),
            (vec![moved], false, "moved from b"),
            (vec![], false, "no line differs"),
        ] {
            assert_eq!(without_lines(&facts, is_new), expected);
        }
        let with = |words: &[Option<&str>]| {
            let words = words.iter().map(|it| it.map(str::to_owned));
            Change::default().with_words(words).without_lines
        };
        assert_eq!(with(&[Some("a"), Some("a")]).as_deref(), Some("a"));
        assert_eq!(
            with(&[Some("a"), Some("b")]).as_deref(),
            Some("no line differs")
        );
        assert_eq!(with(&[Some("a"), None]), None);
    }

    #[test]
    fn an_excerpt_has_what_differs_and_the_lines_around() {
        let stays: String = (1..=9).map(|line| format!(" {line}\n")).collect();
        let long = format!("{stays}@\n-old\n+new\n{stays}");
        let around = "#── line 7\n 7\n 8\n 9\n-old\n+new\n 1\n 2\n 3\n";
        for (files, expected) in [
            (vec![file("a", &long)], around.to_owned()),
            (
                vec![file("a", &long), file("b", "@\n!mode 644 => 755\n x\n")],
                format!("#── 2 files\n#── a  +0 -0\n{around}#── b  +0 -0\n!mode 644 => 755\n"),
            ),
            (
                vec![file("a", &format!("@\n+{long}@\n-end\n"))],
                format!("+ 1\n 2\n 3\n 4\n{around}#── line 17\n 7\n 8\n 9\n-end\n"),
            ),
        ] {
            assert_eq!(Excerpt::of(&files).text, expected);
        }
    }

    #[test]
    fn a_long_excerpt_goes_in_part_and_tells_how_much_is_left() {
        let lines = |count: usize, line: &str| format!("@\n{}", format!("+{line}\n").repeat(count));
        let long = "x".repeat(SHOWN_BYTES);
        for (marked, shown, more) in [
            (lines(3, "a"), 3, 0),
            (lines(SHOWN_LINES + 7, "a"), SHOWN_LINES, 7),
            (lines(2, &long), 1, 2),
            (
                lines(100_000, "a line of text"),
                SHOWN_LINES,
                100_000 - SHOWN_LINES,
            ),
        ] {
            let files = vec![file("a", &marked)];
            let change = Change::new(Vec::new(), &Excerpt::of(&files), files);
            assert_eq!((change.excerpt.lines().count(), change.more), (shown, more));
            assert!(change.excerpt.len() <= SHOWN_BYTES);
        }
    }

    #[test]
    fn too_many_changes_are_one_file_with_an_excerpt() {
        let mut excerpt = Excerpt::new(20_000);
        for number in 0..20_000 {
            excerpt.add_path(&format!("file{number}"), "+1 -0");
            excerpt.add_lines(&ReviewText::new(&[], &"@\n+a line of text\n".repeat(3)));
        }
        let change = Change::new(Vec::new(), &excerpt, Vec::new());
        assert!(change.whole);
        let review = change.files[0].text.as_str();
        assert!(review.starts_with("@\n#── 20000 files\n#── file0  +1 -0\n+a line"));
        // After the lines of some files, it has the names of more, then a number.
        assert!(review.matches("+a line").count() > 1_000);
        assert!(review.matches("#── file").count() > review.matches("+a line").count());
        assert!(review.lines().last().unwrap().ends_with(" more lines"));
        assert!(review.len() < 3 * EXCERPT_BYTES);
    }

    #[test]
    fn facts_stand_by_kind_and_those_of_a_kind_are_bounded() {
        let fact = |kind, path: &str| Fact {
            kind,
            path: path.to_owned(),
            text: "so".to_owned(),
        };
        let many = (0..MOST_FACTS + 2).map(|at| fact(FactKind::Deleted, &at.to_string()));
        let lines = fact_lines(many.chain([fact(FactKind::Link, "l"), fact(FactKind::Runs, "r")]));
        let texts: Vec<_> = lines.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(texts[..3], ["runs r: so", "link l: so", "gone 0: so"]);
        assert_eq!(texts[2 + MOST_FACTS..], ["gone and 2 more"]);
    }
}
