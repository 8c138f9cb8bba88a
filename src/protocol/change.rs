//! The changes of files that a person is asked about or reviews.

use std::fmt;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};

/// The most facts of a kind that are named.
const MOST_FACTS: usize = 200;
/// The most bytes of a text under review in one message. Neovim shows them without a noticeable pause.
const PART_BYTES: usize = 256 << 10;
/// The most bytes of all texts that go with the question, so that short ones are there at once.
const FIRST_BYTES: usize = 256 << 10;
/// The most bytes of one of these texts.
const FIRST_BYTES_OF_FILE: usize = 64 << 10;

/// The changes that a question is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// The changes are made or dropped as a whole: the person reads the review, and answers the question.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// They take changes of a turn back, or bring them back. `diff` begins with the number of files.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub undo: bool,
    /// The buffer of one of the files has unsaved changes.
    pub unsaved: bool,
    pub added: usize,
    pub removed: usize,
    /// The facts that the person must see first, in the order of their kinds.
    pub facts: Vec<FactLine>,
    /// The unified diff, printable.
    pub diff: String,
    /// The files for a review; none if there are too many.
    pub files: Vec<FileChange>,
}

/// The change of a file, for a review.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct FileChange {
    /// The path in the workspace, as it is shown.
    pub path: String,
    pub added: usize,
    pub removed: usize,
    /// The number of parts, which the person answers one by one.
    pub parts: usize,
    /// It has no lines that can be accepted without the others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    #[serde(flatten)]
    pub text: ReviewText,
    /// In a [`ChangesReview`]: for each part the calls that made it, and their approvals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
}

/// The changes that a chat has made, for a review of `/changes`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ChangesReview {
    pub id: u64,
    pub chat: u64,
    pub files: Vec<FileChange>,
}

/// A property of a change that its lines do not show, or that is easily overlooked among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub kind: FactKind,
    /// The path in the workspace, as it is shown.
    pub path: String,
    /// A printable clause about it.
    pub text: String,
}

/// A fact as a person reads it before they answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FactLine {
    pub kind: FactKind,
    /// The label of the kind in four letters, a blank, the path, and the clause.
    pub text: String,
}

/// The kinds of facts, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// Something runs or obeys the file later.
    Runs,
    Link,
    Mode,
    /// The file has bytes that are no text.
    Bytes,
    Moved,
    Deleted,
}

/// The text of a file under review: the whole file, with the lines that the change removes and adds.
///
/// The first character of each line is its mark: a blank for a line that stays, `-` and `+`, `!` for a fact, `\` for a missing
/// line break. A line `@` begins each part that the person answers. The text is printable. Lua gets it in parts.
#[derive(Clone, PartialEq, Eq)]
pub struct ReviewText {
    text: Arc<str>,
    /// The number of bytes that go with the question.
    first: usize,
}

impl ReviewText {
    /// Returns the text with facts above it. `marked` is as [`co_edit::marked`] makes it.
    pub fn new(facts: &[Fact], marked: &str) -> Self {
        let facts: String = facts.iter().map(|it| format!("!{}\n", it.text)).collect();
        // A change as a whole has its facts inside.
        let text = match marked.strip_prefix("@\n") {
            Some(rest) => format!("@\n{facts}{}", co_policy::printable(rest)),
            None => facts + &co_policy::printable(marked),
        };
        Self {
            text: text.into(),
            first: 0,
        }
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the part at a number of bytes, and whether more follows.
    pub fn part(&self, from: usize) -> (&str, bool) {
        self.cut(from, PART_BYTES)
    }

    fn cut(&self, from: usize, most: usize) -> (&str, bool) {
        let rest = self.text.get(from..).unwrap_or_default();
        let end = (0..=most.min(rest.len()))
            .rev()
            .find(|it| rest.is_char_boundary(*it));
        let part = &rest[..end.unwrap_or_default()];
        (part, part.len() < rest.len())
    }

    /// Returns the lines that differ, with their marks.
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

/// As the fields `text` and `more`. Of a long text, `text` is the first part.
impl Serialize for ReviewText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (text, more) = self.cut(0, self.first);
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("text", text)?;
        map.serialize_entry("more", &more)?;
        map.end()
    }
}

/// Decides how many bytes of each text go with the question.
pub fn with_first_parts(mut files: Vec<FileChange>) -> Vec<FileChange> {
    let mut room = FIRST_BYTES;
    for file in &mut files {
        file.text.first = file.text.text.len().min(FIRST_BYTES_OF_FILE).min(room);
        room -= file.text.first;
    }
    files
}

/// Returns the lines about facts: each kind together, and the number of those of a kind that are left out. Facts of a kind stay
/// in the order of their files.
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
    /// Returns the lines of the files that differ, whatever their places are, and whether a buffer is unsaved.
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
