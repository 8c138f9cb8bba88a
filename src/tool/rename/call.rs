//! Carries out the calls that rename a symbol with the person's language server. A rename changes several files. The change of
//! each file is judged as an edit. The questions about the other calls of the step do not wait for the language server.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use tokio_util::task::AbortOnDropHandle;

use super::{RenameRequest, spec};
use crate::buffers::OpenBuffers;
use crate::protocol::EditorAnswer;
use crate::tool::call::{CANCELLED, JudgedCall, PlannedCall};
use crate::tool::context::CallContext;
use crate::tool::edit;
use crate::tool::edit::call::{
    ProposedChange, check_range, judge_change, with_judge, work_with_judge,
};
use crate::tool::event::ShownCall;
use crate::tool::permissions::TurnMemory;
use crate::tool::schema::{BuiltIn, arguments};
use crate::workspace::edits::{EditPlace, EditRefused, EditRequest, propose_placed};
use crate::workspace::judge::Judge;
use co_edit::CharacterUnit;
use co_policy::{Pattern, Reason, Verdict};

/// The answer of the editor. The error is a text for the model.
type ServerAnswer = Result<EditorAnswer, String>;

/// The change that a rename makes.
pub(super) struct Rename {
    request: RenameRequest,
    edits: ServerEdits,
}

/// The edits of the language server. The call waits for them while other calls of the step run.
enum ServerEdits {
    /// co has not asked for the edits.
    None,
    Awaited(AbortOnDropHandle<ServerAnswer>),
    Came(ServerAnswer),
}

impl Rename {
    pub(super) fn new(request: RenameRequest) -> Self {
        Self {
            request,
            edits: ServerEdits::None,
        }
    }
}

#[async_trait]
impl PlannedCall for Rename {
    fn shown(&self) -> ShownCall {
        edit::shown(self.request.line())
    }

    fn collect_facts(&mut self, context: &CallContext) -> bool {
        let (judge, cwd) = (Arc::clone(&context.judge), context.cwd.clone());
        let (request, buffers) = (self.request.clone(), context.services.buffers.clone());
        let asking = tokio::spawn(async move {
            let message = work_with_judge(judge, cwd, move |judge, cwd| {
                let place = judge.edit_place(request.path(), cwd)?;
                Ok(request.message(&place.real))
            });
            Ok(buffers.query(message.await?).await)
        });
        self.edits = ServerEdits::Awaited(AbortOnDropHandle::new(asking));
        true
    }

    fn poll_facts(&mut self, task: &mut Context<'_>) -> Poll<()> {
        let ServerEdits::Awaited(asking) = &mut self.edits else {
            return Poll::Pending;
        };
        Pin::new(asking).poll(task).map(|answer| {
            self.edits = ServerEdits::Came(answer.unwrap_or_else(|error| {
                Err(format!("The language server could not be asked ({error})."))
            }));
        })
    }

    async fn judge(
        &self,
        context: &CallContext,
        memory: &TurnMemory,
    ) -> Result<JudgedCall, String> {
        judge_change(self.propose(context, memory), (context, memory)).await
    }
}

impl Rename {
    /// Proposes the change. Changes nothing.
    ///
    /// # Errors
    /// The reason why the proposal cannot be made, for the model. It may contain lines of a file.
    async fn propose(
        &self,
        context: &CallContext,
        memory: &TurnMemory,
    ) -> Result<ProposedChange, String> {
        let ServerEdits::Came(answer) = &self.edits else {
            return Err(CANCELLED.to_owned());
        };
        let (answer, request) = (answer.clone()?, self.request.clone());
        let located = with_judge(context, move |judge, cwd| {
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
        let open = context.read_buffers(files).await;
        let (rules, range) = (memory.permissions.rules.clone(), context.range.clone());
        let review = move |judge: &Judge, _: &Path| {
            let reviewed = review(judge, &request, &answer, &places, &open, &rules);
            let reviewed = reviewed.map_err(|why| request.refuse(why))?;
            check_range(range.as_ref(), &reviewed)?;
            Ok(reviewed)
        };
        with_judge(context, review).await
    }
}

fn review(
    judge: &Judge,
    request: &RenameRequest,
    answer: &EditorAnswer,
    places: &[EditPlace],
    open: &OpenBuffers,
    chat_rules: &[Pattern],
) -> Result<ProposedChange, EditRefused> {
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
    Ok(ProposedChange {
        line: request.line(),
        proposals,
        command: request.line(),
        verdict,
        rules,
    })
}

/// Returns the strictest verdict; none if `verdicts` is empty. If the strictest verdict is a question, it has the reasons of all
/// verdicts.
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

/// Returns the tool `rename_symbol`.
pub(in crate::tool) fn tool() -> BuiltIn {
    BuiltIn {
        spec: spec(),
        parse: |call| Ok(Box::new(Rename::new(arguments(call)?))),
        shown_unread: edit::shown_unread,
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
