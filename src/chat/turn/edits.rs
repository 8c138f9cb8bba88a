//! The calls that change files. A change is proposed before the question about it. After a yes it is applied to the text
//! that the file has then.

use std::sync::Arc;

use super::super::events::ChatEvent;
use super::super::text::one_line;
use super::Turn;
use super::audit_records::CallOutcome;
use super::call::{CANCELLED, JudgedCall, ParsedCall, ReviewedEdit};
use super::event::Halt;
use super::run::CallResult;
use crate::buffers::OpenBuffers;
use crate::protocol::{Change, ChatState, HunkAnswer, Question, Replacement};
use crate::tool::edits::{
    self, AppliedChange, EditPlace, EditRefused, EditRequest, Proposal, Review, SeenTexts, propose,
};
use crate::tool::judge::Judge;
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Call, Decision, Item, ShownPart};
use co_policy::{Pattern, Verdict};

/// The longest diff that the model gets back and the chat shows, in bytes.
const LONGEST_DIFF: usize = 16 << 10;
/// The longest text that is reviewed by hunks, in bytes.
const LONGEST_REVIEW: usize = 4 << 20;

impl Turn {
    /// Reads the text of the lines that the person asked to change, so that they are found again after other lines move.
    pub(super) async fn read_range(&mut self) {
        let Some(mut range) = self.range.take() else {
            return;
        };
        let open = tokio::select! {
            () = self.cancel.cancelled() => OpenBuffers::new(),
            open = self.services.buffers.read([range.file()]) => open,
        };
        let read = tokio::task::spawn_blocking(move || {
            range.read(&open);
            range
        });
        self.range = read.await.ok();
    }

    /// Proposes and judges a change of files. The error is a text for the model.
    pub(super) async fn review_edit(&self, request: EditRequest) -> Result<ParsedCall, String> {
        let reviewed = tokio::select! {
            () = self.cancel.cancelled() => return Err(CANCELLED.to_owned()),
            reviewed = self.propose_and_judge(request) => reviewed,
        };
        match reviewed {
            Ok(reviewed) => Ok(ParsedCall::Edit(reviewed)),
            // It shows lines of the file.
            Err(why) => Err(match self.redact_for_model(&why).await {
                Ok(redacted) => redacted.text,
                Err(withheld) => format!("[{withheld}]"),
            }),
        }
    }

    async fn propose_and_judge(&self, request: EditRequest) -> Result<ReviewedEdit, String> {
        let failed = |error: tokio::task::JoinError| {
            format!("The change could not be judged ({error}), so it was not made.")
        };
        let (judge, cwd) = (Arc::clone(&self.judge), self.cwd.clone());
        let located = tokio::task::spawn_blocking(move || {
            let places = judge.edit_places(&request, &cwd).map_err(refuse)?;
            Ok::<_, String>((request, places))
        });
        let (request, places) = located.await.map_err(failed)??;
        let files = places.iter().map(|place| place.real.as_path());
        let open = self.services.buffers.read(files).await;
        let (judge, rules) = (Arc::clone(&self.judge), self.permissions.rules.clone());
        let (seen_texts, range) = (self.seen_texts.clone(), self.range.clone());
        let reviewed = tokio::task::spawn_blocking(move || {
            let reviewed = review(&judge, request, &places, &open, &seen_texts, &rules)?;
            if let Some(range) = range {
                range.check(&reviewed.proposal).map_err(refuse)?;
            }
            Ok(reviewed)
        });
        reviewed.await.map_err(failed)?
    }

    pub(super) fn question_about_edit(
        &self,
        edit: &ReviewedEdit,
        question: &co_policy::ApprovalQuestion,
    ) -> Question {
        let ReviewedEdit {
            proposal, judged, ..
        } = edit;
        let reasons = question.reasons.iter().map(|reason| &reason.text);
        let (text, hunks) = review_of(proposal);
        let change = Change {
            path: co_policy::printable(&proposal.path),
            undo: false,
            unsaved: proposal.unsaved,
            added: proposal.added(),
            removed: proposal.removed(),
            diff: co_policy::printable(&proposal.diff),
            text,
            hunks,
            calls: Vec::new(),
        };
        let command = co_policy::printable(&judged.command);
        Question {
            cwd: one_line(&self.cwd.display().to_string()),
            reasons: reasons
                .chain(&proposal.notes)
                .map(|reason| one_line(reason))
                .collect(),
            destructive: matches!(edit.request, EditRequest::Delete { .. }),
            prefix: question.prefix.as_ref().map(|it| one_line(&it.to_string())),
            review: (self.range.as_ref()).map(|range| range.file().display().to_string()),
            ..Question::about_change(self.chat, command, change)
        }
    }

    /// Changes the files, if the decision allows it.
    pub(super) async fn change_files(
        &mut self,
        call: Call,
        edit: ReviewedEdit,
        decision: Decision,
        hunks: Option<Vec<HunkAnswer>>,
    ) -> Result<(), Halt> {
        let ReviewedEdit {
            request,
            proposal,
            judged,
        } = edit;
        if !decision.lets_run() {
            return self.refuse(&call, &judged, decision).await;
        }
        self.state(ChatState::Running, request.line()).await?;
        self.record(Item::Decision {
            call: call.id.clone(),
            decision: decision.clone(),
        })
        .await?;
        if self.cancel.is_cancelled() {
            self.answer(&call, CANCELLED.to_owned()).await?;
            return Err(Halt::Cancelled);
        }
        self.audit_decision(&call, &judged, (&decision, "co itself"))
            .await;
        self.show(ChatEvent::Decision(decision.clone())).await?;
        let applied = match accepted(proposal, hunks) {
            Ok(proposal) => {
                let (what, by) = (judged.command.clone(), decision.clone());
                let checkpoint = self.begin_edit(what, by, &proposal).await;
                let applied = edits::apply(proposal, &self.services.buffers).await;
                self.end_edit(checkpoint, applied.as_ref().ok()).await;
                applied
            }
            Err(why) => Err(why),
        };
        let summary = match &applied {
            Ok(AppliedChange { proposal, .. }) => {
                format!("+{} -{}", proposal.added(), proposal.removed())
            }
            Err(why) => format!("not changed: {why}"),
        };
        self.audit(&call, &judged, &decision, CallOutcome::Look(&summary));
        match applied {
            Ok(applied) => self.tell_change(&call, &applied, summary).await,
            Err(why) => {
                self.not_run(&call, format!("Nothing was changed: {why}."))
                    .await
            }
        }
    }

    /// Tells the person and the model what was changed.
    async fn tell_change(
        &mut self,
        call: &Call,
        applied: &AppliedChange,
        mut summary: String,
    ) -> Result<(), Halt> {
        let proposal = &applied.proposal;
        let mut lead = format!("Done: {} {summary}.\n", proposal.path);
        let reformatted = applied.reformatted.as_ref();
        let text = reformatted.map(|it| it.text.as_str());
        if let Some(text) = text.or(proposal.new_text()) {
            let hash = self.seen_texts.add(text.to_owned());
            if let Some(before) = proposal.old_text() {
                self.seen_texts.changed(co_edit::hash(before), hash.clone());
            }
            lead.push_str(&format!("Its hash is {hash}.\n"));
        }
        if let Some(why) = &applied.unsaved {
            lead.push_str(&format!(
                "The change is in the buffer only: {why}. Commands see the file without it until the person saves it.\n"
            ));
            summary.push_str(&format!(", not saved: {why}"));
        }
        for note in &proposal.notes {
            lead.push_str(&format!("Note: {note}.\n"));
            summary.push_str(&format!("; {}", one_line(note)));
        }
        let mut diff = proposal.diff.clone();
        if let Some(reformatted) = reformatted {
            summary.push_str(", then changed by the editor when it was saved");
            diff.push_str("Then the editor changed the text when it was saved:\n");
            diff.push_str(&reformatted.diff);
        }
        if !applied.diagnostics.is_empty() {
            diff.push_str("New diagnostics:\n");
            diff.extend(applied.diagnostics.iter().map(|it| format!("{it}\n")));
        }
        let diff = match diff.len() <= LONGEST_DIFF {
            true => co_policy::printable(&diff),
            false => String::new(),
        };
        let redacted = self.redact_for_model(&diff).await;
        let RedactedText { text, hidden } = redacted.unwrap_or_else(|withheld| {
            lead.push_str(&format!("[{withheld}]\n"));
            RedactedText::default()
        });
        if !text.is_empty() {
            let block = self.services.id();
            self.show(ChatEvent::Output {
                block,
                text: text.clone(),
            })
            .await?;
        }
        let output = [lead.len(), lead.len() + text.len()];
        let result = CallResult {
            ok: true,
            shown: ShownPart {
                output,
                ..ShownPart::line(summary)
            },
            ..RedactedText {
                text: lead + &text,
                hidden,
            }
            .into()
        };
        self.conclude(call, result).await?;
        match self.cancel.is_cancelled() {
            true => Err(Halt::Cancelled),
            false => Ok(()),
        }
    }
}

/// Returns the text and the hunks of a proposal, for the review.
fn review_of(proposal: &Proposal) -> (Option<String>, Vec<Replacement>) {
    let review = Review::of(proposal).filter(|it| it.text.len() <= LONGEST_REVIEW);
    review.map_or((None, Vec::new()), |it| (Some(it.text), it.hunks))
}

/// Returns the proposal, or the hunks of it that the person accepted.
fn accepted(proposal: Proposal, hunks: Option<Vec<HunkAnswer>>) -> Result<Proposal, EditRefused> {
    let Some(hunks) = hunks else {
        return Ok(proposal);
    };
    let accepted = edits::reviewed(proposal, &hunks)?;
    accepted.ok_or_else(|| EditRefused("the person accepted no part of it".to_owned()))
}

fn refuse(why: EditRefused) -> String {
    // The last line may be one of the file, which the model should copy exactly.
    let end = if why.0.contains('\n') { "" } else { "." };
    format!("Refused: {why}{end}")
}

/// Proposes and judges a change. The error is a text for the model.
fn review(
    judge: &Judge,
    request: EditRequest,
    places: &[EditPlace],
    open: &OpenBuffers,
    seen_texts: &SeenTexts,
    rules: &[Pattern],
) -> Result<ReviewedEdit, String> {
    let proposal = propose(&request, places, open, seen_texts).map_err(refuse)?;
    let mut verdict = judge.judge_edit(&request, places, rules);
    if let Verdict::Ask(question) = &mut verdict
        && !question.unread
    {
        question.prefix = directory_rule(&request, &proposal.path);
    }
    Ok(ReviewedEdit {
        judged: JudgedCall {
            command: co_policy::rules::join(&request.words(places)),
            segments: Vec::new(),
            words: Vec::new(),
            computes: false,
            reach: None,
            verdict,
        },
        request,
        proposal,
    })
}

/// Returns the rule that allows the same tool in the directory of a file.
fn directory_rule(request: &EditRequest, path: &str) -> Option<Pattern> {
    let (directory, _) = path.rsplit_once('/')?;
    let plain = !directory.contains(['*', '?', '[', '\\']);
    let single = request.paths().len() == 1;
    (plain && single).then(|| Pattern::prefix([request.name(), &format!("{directory}/**")]))
}
