//! The words of a simple command after bash's expansions.

use std::ops::Range;

use crate::reason::Reason;

/// One word after expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arg {
    pub text: String,
    pub span: Range<usize>,
    /// True for a match of a glob that starts with a wildcard: it could start with `-`.
    pub loose_glob: bool,
    /// True if it contains a variable. `text` is then the word as written.
    pub dynamic: bool,
}

impl Arg {
    /// A reason about this word.
    pub(crate) fn reason(&self, text: impl Into<String>) -> Reason {
        Reason::at(text, self.span.clone())
    }

    /// The reason for a word that contains a variable.
    pub(crate) fn unknown(&self) -> Reason {
        self.reason(format!("nobody knows yet what `{}` will be", self.text))
    }
}

/// One command of a pipeline.
pub(crate) struct PipelineStage<'a> {
    pub name: &'a str,
    pub args: &'a [Arg],
}
