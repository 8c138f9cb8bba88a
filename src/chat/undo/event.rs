//! The messages of the undo task to its chat.

use tokio::sync::oneshot;

use crate::protocol::{ChangesReview, Question};
use crate::tool::permissions::Reply;

/// A message of the undo task to its chat.
pub(in crate::chat) enum UndoEvent {
    Ask(Box<Question>, oneshot::Sender<Reply>),
    Review(ChangesReview, oneshot::Sender<Reply>),
    /// The undo has ended. The text is a note for the model; none if no file was changed.
    Done(Option<String>),
}
