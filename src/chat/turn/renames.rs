//! The calls that rename a symbol by the person's language server. A rename is a change of several files, each of which
//! is judged as an edit. The other calls of its step do not wait for the language server.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::Turn;
use super::call::{CANCELLED, JudgedCall, ParsedCall, ReviewedEdit};
use super::call_queue::QueuedCall;
use super::edits::{check_range, work_with_judge};
use super::server_edits::{ServerAnswer, ServerEdits};
use crate::buffers::OpenBuffers;
use crate::protocol::EditorAnswer;
use crate::tool::ToolCall;
use crate::tool::rename::RenameRequest;
use crate::workspace::edits::{EditPlace, EditRefused, EditRequest, propose_placed};
use crate::workspace::judge::Judge;
use co_edit::CharacterUnit;
use co_policy::{Pattern, Reason, Verdict};

impl Turn {
    pub(super) fn is_rename(&self, waiting: &QueuedCall) -> bool {
        matches!(self.parse(waiting), Ok((_, ToolCall::Rename(_))))
    }

    /// Asks the language server for the edits of a rename; none if it is another call.
    pub(super) fn ask_language_server(&self, waiting: &QueuedCall) -> Option<ServerEdits> {
        let Ok((_, ToolCall::Rename(request))) = self.parse(waiting) else {
            return None;
        };
        let (judge, cwd) = (Arc::clone(&self.judge), self.cwd.clone());
        let buffers = self.services.buffers.clone();
        let asking = tokio::spawn(async move {
            let message = work_with_judge(judge, cwd, move |judge, cwd| {
                let place = judge.edit_place(request.path(), cwd)?;
                Ok(request.message(&place.real))
            });
            Ok(buffers.query(message.await?).await)
        });
        Some(ServerEdits::Awaited(AbortOnDropHandle::new(asking)))
    }

    /// Proposes and judges a rename. The error is a text for the model.
    pub(super) async fn review_rename(
        &self,
        request: RenameRequest,
        edits: &ServerEdits,
    ) -> Result<ParsedCall, String> {
        let answer = match edits {
            ServerEdits::Came(answer) => answer.clone(),
            ServerEdits::None | ServerEdits::Awaited(_) => return Err(CANCELLED.to_owned()),
        };
        self.review_change(self.propose_rename(request, answer))
            .await
    }

    async fn propose_rename(
        &self,
        request: RenameRequest,
        answer: ServerAnswer,
    ) -> Result<ReviewedEdit, String> {
        let answer = answer?;
        let located = self.with_judge(move |judge, cwd| {
            if let Some(problem) = &answer.problem {
                return Err(request.refuse(problem));
            }
            let files = answer.files.iter();
            let places = files.map(|it| judge.edit_place(&it.file, cwd));
            let places = places.collect::<Result<Vec<_>, _>>();
            let places = places.map_err(|why| request.refuse(why))?;
            Ok((request, answer, places))
        });
        let (request, answer, places) = located.await?;
        let files = places.iter().map(|place| place.real.as_path());
        let open = self.read_buffers(files).await;
        let (rules, range) = (self.permissions.rules.clone(), self.range.clone());
        self.with_judge(move |judge, _| {
            let reviewed = review(judge, &request, &answer, &places, &open, &rules);
            let reviewed = reviewed.map_err(|why| request.refuse(why))?;
            check_range(range.as_ref(), &reviewed)?;
            Ok(reviewed)
        })
        .await
    }
}

fn review(
    judge: &Judge,
    request: &RenameRequest,
    answer: &EditorAnswer,
    places: &[EditPlace],
    open: &OpenBuffers,
    chat_rules: &[Pattern],
) -> Result<ReviewedEdit, EditRefused> {
    let unit = answer.unit.unwrap_or(CharacterUnit::Utf16);
    let (mut proposals, mut rules, mut verdicts) = (Vec::new(), Vec::new(), Vec::new());
    for (edits, place) in answer.files.iter().zip(places) {
        proposals.push(propose_placed(edits, unit, place, open)?);
        let edit = EditRequest::any_of(&place.shown);
        let places = std::slice::from_ref(place);
        verdicts.push(judge.judge_edit(&edit, places, chat_rules));
        let command = co_policy::rules::join(&edit.words(places));
        rules.push(Pattern::exact(&command));
    }
    let verdict =
        strictest(verdicts).ok_or_else(|| EditRefused("nothing would change".to_owned()))?;
    Ok(ReviewedEdit {
        line: request.line(),
        proposals,
        judged: JudgedCall::of_files(request.line(), verdict),
        rules,
    })
}

/// Returns the strictest verdict; none if there are none. A question has the reasons of all files.
fn strictest(verdicts: Vec<Verdict>) -> Option<Verdict> {
    let mut reasons: Vec<Reason> = Vec::new();
    let questions = verdicts.iter().filter_map(|verdict| match verdict {
        Verdict::Ask(question) => Some(question),
        Verdict::Allow(_) | Verdict::Deny { .. } => None,
    });
    for reason in questions.flat_map(|question| &question.reasons) {
        if reasons.iter().all(|known| known.text != reason.text) {
            reasons.push(reason.clone());
        }
    }
    let mut strictest = verdicts.into_iter().max_by_key(strictness);
    if let Some(Verdict::Ask(question)) = &mut strictest {
        question.reasons = reasons;
    }
    strictest
}

fn strictness(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow(_) => 0,
        Verdict::Ask(question) => 1 + u8::from(question.unread),
        Verdict::Deny { .. } => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use co_policy::ApprovalQuestion;

    #[test]
    fn a_question_has_the_reasons_of_all_files() {
        let ask = |why: &str, unread: bool| {
            Verdict::Ask(ApprovalQuestion {
                unread,
                ..ApprovalQuestion::because(why)
            })
        };
        let verdicts = [
            ("build.rs", true),
            ("Makefile", true),
            ("a", false),
            ("a", false),
        ];
        let verdicts = verdicts.map(|(why, unread)| ask(why, unread)).into();
        let Some(Verdict::Ask(question)) = strictest(verdicts) else {
            panic!("no question");
        };
        let reasons: Vec<_> = question.reasons.iter().map(|it| &it.text).collect();
        assert_eq!(reasons, ["build.rs", "Makefile", "a"]);
        assert!(question.unread);
    }
}
