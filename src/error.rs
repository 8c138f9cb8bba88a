//! The error texts for the person. Each has a message that names the failed object, and a hint that says what to do next.

use crate::store;

/// The text of an error, as the person sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorText {
    /// The message, which names the failed object. It has no full stop at its end.
    pub message: String,
    /// The error message of a server.
    pub details: Option<String>,
    /// The hint that says what to do next.
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
    /// Returns the message, the details and the hint in one line.
    pub fn plain(&self) -> String {
        joined([
            Some(&self.message),
            self.details.as_ref(),
            self.hint.as_ref(),
        ])
    }

    /// Returns the message and the details in one line.
    pub fn without_hint(&self) -> String {
        joined([Some(&self.message), self.details.as_ref()])
    }

    /// Returns the message, the details and the hint in one line of markdown.
    pub fn markdown(&self) -> String {
        match joined([self.details.as_ref(), self.hint.as_ref()]) {
            rest if rest.is_empty() => format!("**{}**", self.message),
            rest => format!("**{}**: {rest}", self.message),
        }
    }
}

fn joined<'a>(parts: impl IntoIterator<Item = Option<&'a String>>) -> String {
    let parts: Vec<_> = parts.into_iter().flatten().map(String::as_str).collect();
    parts.join("; ")
}

impl From<&co_exec::Error> for ErrorText {
    fn from(error: &co_exec::Error) -> Self {
        Self {
            message: error.to_string(),
            details: None,
            hint: None,
        }
    }
}

impl From<&store::Error> for ErrorText {
    fn from(error: &store::Error) -> Self {
        Self {
            message: error.to_string(),
            details: None,
            hint: None,
        }
    }
}
