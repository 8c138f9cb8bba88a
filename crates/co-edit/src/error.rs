use crate::nearest::NearestLines;

/// The largest number of places that a refusal lists.
const MAX_LISTED_PLACES: usize = 10;

/// The reason why a file cannot be read or written as text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    #[error("it is binary, not text")]
    Binary,
    #[error("it has NUL bytes, so it is binary or UTF-16 without a byte order mark")]
    Nul,
    #[error("it is not valid UTF-16, although it starts with the mark of UTF-16")]
    Utf16,
    #[error("its buffer has bytes that are no UTF-8")]
    Buffer,
    #[error("it is not valid {0}, which its buffer has as 'fileencoding'")]
    Invalid(String),
    #[error("only Neovim can read and write its encoding, {0}")]
    OnlyNeovim(String),
    #[error("its encoding, {encoding}, has no character `{character}`: leave that character out")]
    Missing { encoding: String, character: char },
    #[error(
        "it is not UTF-8, and co does not know its encoding, so `{0}` cannot be added: add ASCII characters only, or ask the \
         person to open the file in Neovim with the right 'fileencoding', which co then uses"
    )]
    UnknownEncoding(char),
    #[error(
        "it is not UTF-8, and co does not know its encoding, so the change may break a character at `{0}`: keep the text beside \
         `\u{fffd}` as it is, or ask the person to open the file in Neovim with the right 'fileencoding', which co then uses"
    )]
    BrokenCharacter(String),
    #[error(
        "it has bytes that are no UTF-8. `\u{fffd}` stands for one of them and needs the two digits behind it, as in \
         `\u{fffd}E9`: copy them from the file, or leave them out with it"
    )]
    BadEscape,
    #[error(
        "`{0}` stands for a byte that is no UTF-8, which this file cannot have: write the character that is meant, or copy the \
         text by a command"
    )]
    NewEscape(String),
}

/// An edit that cannot be applied. The error message says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{refusal}", prefix(*.number, *.total))]
pub struct EditError {
    /// The position of the edit in the request, from 1.
    pub number: usize,
    /// The number of edits in the request.
    pub total: usize,
    pub refusal: Refusal,
}

/// The reason why an edit cannot be applied. Line numbers in it count from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there are no edits: give at least one")]
    NoEdits,
    #[error("`old` is empty: give the text to replace, or write the whole file with write_file")]
    EmptyOld,
    #[error(
        "`old` and `new` are equal, so nothing would change: correct `new` or leave the edit out"
    )]
    NothingToDo,
    #[error("the file already is as the edit would make it: leave the edit out")]
    Unchanged,
    #[error(
        "`old` stands {} times, {}: add lines around the right one, or set `all` to replace every one",
        .0.len(), places(.0)
    )]
    Several(Vec<usize>),
    #[error(
        "`old` does not stand in the file as given; with other white space it stands {} times, {}: copy the right lines \
         exactly, with lines around them",
        .0.len(), places(.0)
    )]
    SeveralLoose(Vec<usize>),
    #[error(
        "`old` overlaps edit {earlier}, which changed line {line}: join the two edits into one"
    )]
    Overlap { earlier: usize, line: usize },
    #[error(
        "`old` differs from the file in its indentation, and that of `new` cannot be derived from it: copy the lines of the \
         file into `old` and indent `new` as they are\n{0}"
    )]
    Indentation(NearestLines),
    #[error(
        "`old` does not stand in the file: copy it from the file, where these lines are the nearest\n{0}"
    )]
    Absent(NearestLines),
    #[error("neither `old` nor anything like it stands in the file: read the file again")]
    NothingNear,
}

/// Returns the start of an error message, such as `edit 2 of 3: `. Returns an empty text if the request has only one edit.
fn prefix(number: usize, total: usize) -> String {
    match total {
        0 | 1 => String::new(),
        _ => format!("edit {number} of {total}: "),
    }
}

/// Returns a list of line numbers in words, such as `at lines 3, 7 and 9`.
fn places(lines: &[usize]) -> String {
    let mut lines = lines.to_vec();
    lines.dedup();
    let mut words: Vec<_> = lines
        .iter()
        .take(MAX_LISTED_PLACES)
        .map(ToString::to_string)
        .collect();
    if lines.len() > MAX_LISTED_PLACES {
        words.push("more".to_owned());
    }
    let last = words.pop().unwrap_or_default();
    match words.is_empty() {
        true => format!("at line {last}"),
        false => format!("at lines {} and {last}", words.join(", ")),
    }
}
