//! The error texts that a person reads: a message that names the failed object, and a hint that says what to do next.

use crate::store;

/// The text of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorText {
    /// The message, which names the failed object and has no full stop.
    pub message: String,
    /// The next thing to do.
    pub hint: Option<String>,
}

/// Returns the text of an error.
pub fn text_of<'a, E>(error: &'a E) -> ErrorText
where
    ErrorText: From<&'a E>,
{
    ErrorText::from(error)
}

impl ErrorText {
    /// Returns a text with a hint.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: Some(hint.into()),
        }
    }

    /// Returns message and hint in one line.
    pub fn plain(&self) -> String {
        match &self.hint {
            None => self.message.clone(),
            Some(hint) => format!("{}; {hint}", self.message),
        }
    }

    /// Returns message and hint in one line of markdown.
    pub fn markdown(&self) -> String {
        match &self.hint {
            None => format!("**{}**", self.message),
            Some(hint) => format!("**{}**: {hint}", self.message),
        }
    }
}

impl From<&co_exec::Error> for ErrorText {
    fn from(error: &co_exec::Error) -> Self {
        Self {
            message: error.to_string(),
            hint: None,
        }
    }
}

impl From<&store::Error> for ErrorText {
    fn from(error: &store::Error) -> Self {
        Self {
            message: error.to_string(),
            hint: None,
        }
    }
}
