//! Reasons that a person reads.

use std::ops::Range;

/// Why a command is not proved, with the bytes of the command it speaks of.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Reason {
    pub text: String,
    pub span: Option<Range<usize>>,
}

impl Reason {
    /// A reason that speaks of the whole command.
    pub fn whole(text: String) -> Self {
        Self { text, span: None }
    }

    /// A reason that speaks of some bytes of the command.
    pub fn at(text: String, span: Range<usize>) -> Self {
        Self {
            text,
            span: Some(span),
        }
    }
}
