//! Commands that the person writes in place of the model's.

use super::Turn;
use super::call::{EditedCommand, ParsedCall};
use super::call_queue::{QuestionEnd, QuestionState};
use super::event::Halt;
use super::permissions::Reply;
use super::trial::Trial;
use crate::protocol::{Question, RefusedEdit};
use crate::tool::event::CallEvent;
use co_llm::transcript::Item;
use co_policy::Verdict;

/// The reason why a command of the person is asked about again.
const NOT_UTF8: &str =
    "it is not all UTF-8: each byte that was not is now \u{fffd} and its two digits";

impl Turn {
    /// Judges an edited command as soon as it comes. If a deny rule forbids it, the person gets the question again, with
    /// the reason.
    pub(super) async fn check_edit(&mut self, index: usize) -> Result<(), Halt> {
        let Some(waiting) = self.queue.get(index) else {
            return Ok(());
        };
        let (Ok(ParsedCall::Command(reviewed)), Some(question)) =
            (&waiting.known, &waiting.question)
        else {
            return Ok(());
        };
        let QuestionState::Answered(QuestionEnd::Reply(Reply::Edited(command))) = &question.stage
        else {
            return Ok(());
        };
        let (command, question) = (command.clone(), question.question.id);
        let command = match String::from_utf8(command) {
            Ok(command) => command,
            Err(odd) => {
                let refused = RefusedEdit {
                    question,
                    command: co_edit::escape(odd.as_bytes()),
                    why: NOT_UTF8.to_owned(),
                };
                return self.refuse_edit(index, refused).await;
            }
        };
        let (request, cwd) = (
            reviewed.request.edited(command.clone()),
            reviewed.cwd.clone(),
        );
        let Ok(judged) = self.judge(&request, &cwd).await else {
            return Ok(());
        };
        if let Verdict::Deny { why, .. } = judged.verdict {
            let refused = RefusedEdit {
                question,
                command,
                why,
            };
            return self.refuse_edit(index, refused).await;
        }
        let computed_at = judged.computes.then_some(self.calls_ended);
        let waiting = self.queue.get(index);
        if let Some(question) = waiting.and_then(|waiting| waiting.question.as_mut()) {
            let edit = EditedCommand {
                command,
                computed_at,
            };
            question.stage = QuestionState::Answered(QuestionEnd::Edited(edit));
        }
        Ok(())
    }

    /// Asks a question again after a deny rule forbade the command that the person wrote.
    async fn refuse_edit(&mut self, index: usize, refused: RefusedEdit) -> Result<(), Halt> {
        let waiting = self.queue.get(index);
        let Some(mut question) = waiting.and_then(|waiting| waiting.question.take()) else {
            return Ok(());
        };
        let shown = Question {
            refused_edit: Some(refused),
            ..question.question.clone()
        };
        self.send_question(&mut question, shown).await?;
        if let Some(waiting) = self.queue.get(index) {
            waiting.question = Some(question);
        }
        Ok(())
    }

    /// Replaces the command of the next call with the person's.
    pub(super) async fn edit_next(&mut self, edit: EditedCommand) -> Result<(), Halt> {
        let (call, mode) = match self.queue.next().map(|next| &next.known) {
            Some(Ok(ParsedCall::Command(reviewed))) => {
                (reviewed.call.id.clone(), reviewed.request.mode)
            }
            _ => return Ok(()),
        };
        let command = co_policy::printable(&edit.command);
        self.record(Item::CommandEdited {
            call,
            command: command.clone(),
        })
        .await?;
        self.show(CallEvent::Edited { command, mode }).await?;
        if let Some(next) = self.queue.next() {
            next.edited = Some(edit);
            (next.question, next.trial) = (None, Trial::None);
        }
        Ok(())
    }
}
