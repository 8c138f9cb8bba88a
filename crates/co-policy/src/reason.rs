//! The type of a reason, as a text for the person. The modules that check commands make the reasons.

use std::ops::Range;

/// A reason why a command requires approval.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Reason {
    pub text: String,
    /// The byte range of the command that the reason refers to. It is `None` for the whole command.
    pub span: Option<Range<usize>>,
}

impl Reason {
    /// Makes a reason that refers to the whole command.
    pub fn whole(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            span: None,
        }
    }

    /// Makes a reason that refers to a part of the command.
    pub fn at(text: impl Into<String>, span: Range<usize>) -> Self {
        Self {
            text: text.into(),
            span: Some(span),
        }
    }
}
