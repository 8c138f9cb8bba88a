//! The type of a reason, in words for the person. The modules that look at a command make the reasons.

use std::ops::Range;

/// A reason why a command requires approval.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Reason {
    pub text: String,
    /// The bytes of the command that the reason is about; `None` for the whole command.
    pub span: Option<Range<usize>>,
}

impl Reason {
    /// A reason about the whole command.
    pub fn whole(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            span: None,
        }
    }

    /// A reason about a part of the command.
    pub fn at(text: impl Into<String>, span: Range<usize>) -> Self {
        Self {
            text: text.into(),
            span: Some(span),
        }
    }
}
