//! The edits of a language server for a rename. They are awaited while other calls of the step run.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio_util::task::AbortOnDropHandle;

use crate::protocol::EditorAnswer;

/// The answer of the editor, or a text for the model.
pub(super) type ServerAnswer = Result<EditorAnswer, String>;

/// The edits of a language server for a rename that waits to run.
pub(super) enum ServerEdits {
    /// They are not asked for, or the rename has been judged with them.
    None,
    Awaited(AbortOnDropHandle<ServerAnswer>),
    Came(ServerAnswer),
}

impl ServerEdits {
    pub(super) fn awaited(&self) -> bool {
        matches!(self, Self::Awaited(_))
    }

    pub(super) fn came(&self) -> bool {
        matches!(self, Self::Came(_))
    }

    /// Is ready once, when the language server has answered.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Self::Awaited(asking) = self else {
            return Poll::Pending;
        };
        Pin::new(asking).poll(context).map(|answer| {
            *self = Self::Came(answer.unwrap_or_else(|error| {
                Err(format!("The language server could not be asked ({error})."))
            }));
        })
    }
}
