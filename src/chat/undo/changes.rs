//! `/changes`: fills the quickfix list with the files that the chat changed, and opens a review of all its changes. The review
//! can take back parts of the changes.

use std::io;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::super::chat_context::ChatContext;
use super::event::UndoEvent;
use super::review::{FoundChanges, OpenSince, Review, find_open};
use super::task::UndoTask;
use super::texts::{NO_CHANGES, entries};
use crate::blocking::blocking;
use crate::checkpoint::MOST_REVIEW_BYTES;
use crate::protocol::{
    ChangesReview, FileChange, HunkAnswer, NoticeLevel, ToEditor, with_first_parts,
};
use crate::tool::permissions::Reply;

/// Fills the quickfix list with the files that the chat changed. Returns false, after a notice, if the chat changed no files.
pub(in crate::chat) async fn fill_list(context: &ChatContext, transcript: Option<String>) -> bool {
    let Some(chat) = transcript else {
        context.say(NO_CHANGES);
        return false;
    };
    let services = Arc::clone(&context.services);
    let found = blocking(move || {
        let checkpoints = &services.checkpoints;
        checkpoints.record_open(&chat)?;
        let store = checkpoints.store()?;
        let done = checkpoints.history(&chat).done;
        let records = checkpoints.records(&chat).into_iter();
        let entries = records.flat_map(|it| {
            let taken_back = !done.iter().any(|done| done.has_turn(it.turn));
            entries(&it, taken_back, &store)
        });
        Ok::<_, io::Error>(entries.collect::<Vec<_>>())
    });
    match found.await {
        Ok(entries) if entries.is_empty() => context.say(NO_CHANGES),
        Ok(entries) => {
            context.services.editor.tell(ToEditor::Quickfix {
                title: "Co /changes".to_owned(),
                entries,
                update: false,
            });
            return true;
        }
        Err(why) => context.complain(format!("the changes cannot be read: {why}")),
    }
    false
}

impl UndoTask {
    /// Lets the person review all changes of the chat, and takes the rejected parts back.
    pub(in crate::chat) async fn review_all(self) {
        let found = self.cancel.run_until_cancelled(self.find_all());
        let (mut review, changes) = match found.await {
            None => return,
            Some(Ok(found)) => found,
            Some(Err(why)) => return self.services.answer(NoticeLevel::Error, why),
        };
        let Some(answers) = self.ask_all(changes).await else {
            return;
        };
        review.take_all(answers);
        let prompt = review.comment_list();
        self.carry_out(&mut review, String::new(), false).await;
        if let Some(text) = prompt {
            self.services.editor.tell(ToEditor::Unsent {
                chat: self.chat,
                text,
            });
        }
    }

    async fn find_all(&self) -> Result<(Review, Vec<FileChange>), String> {
        let found = FoundChanges {
            works: find_open(&self.services, &self.transcript, OpenSince::Start).await?,
            base: None,
            left_out: Vec::new(),
        };
        let checkpoints = Arc::clone(&self.services.checkpoints);
        let make = move || {
            let store = checkpoints.store()?;
            let review = Review::of(found, Vec::new(), MOST_REVIEW_BYTES, &store);
            Ok::<_, io::Error>(review)
        };
        blocking(make).await
    }

    /// Shows the review and waits for the answers about all parts. Returns `None` if the person gave no answers.
    async fn ask_all(&self, changes: Vec<FileChange>) -> Option<Vec<HunkAnswer>> {
        let parts: usize = changes.iter().map(|it| it.parts).sum();
        if parts == 0 {
            return None;
        }
        let review = ChangesReview {
            id: self.services.id(),
            chat: self.chat,
            round: false,
            files: with_first_parts(changes),
        };
        let (reply, answer) = oneshot::channel();
        let asked = UndoEvent::Review(review, reply);
        self.events.send(asked).await.ok()?;
        match self.cancel.run_until_cancelled(answer).await? {
            Ok(Reply::Reviewed(answers)) if answers.len() == parts => Some(answers),
            _ => None,
        }
    }
}
