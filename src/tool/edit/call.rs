//! Carries out the calls that change files. co proposes a change before the question about it. After a yes, co applies the change
//! to the text that the file has at that time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;

use super::{shown, shown_unread, specs};
use crate::buffers::{Buffers, OpenBuffers};
use crate::protocol::{Change, Excerpt, HunkAnswer, Question, fact_lines};
use crate::tool::call::{
    AskedQuestion, AuditedText, CANCELLED, CO_ITSELF, CallAction, CallEffect, CallKind, CallResult,
    DecidedCall, JudgedCall, NotRun, PlannedCall, ReadyCall, Resolution,
};
use crate::tool::context::{CallContext, CallHalt};
use crate::tool::event::ShownCall;
use crate::tool::permissions::{Allowance, TurnMemory};
use crate::tool::schema::{BuiltIn, named};
use crate::workspace::edits::{
    self, AppliedChange, EditPlace, EditRange, EditRefused, EditRequest, Proposal, SeenTexts,
    propose,
};
use crate::workspace::judge::Judge;
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Decision, ShownPart};
use co_policy::{ApprovalQuestion, Pattern, Verdict};
use co_text::one_line;

/// The largest number of bytes of a diff that the model gets and the chat shows.
const LONGEST_DIFF: usize = 16 << 10;

/// A proposed change of files, with its verdict.
pub(in crate::tool) struct ProposedChange {
    /// The call as one line, for the person.
    pub line: String,
    /// The call in the form in which rules and the audit file name it.
    pub command: String,
    pub verdict: Verdict,
    /// The changes that co makes together, one for each file. There is at least one.
    pub proposals: Vec<Proposal>,
    /// The rules that would allow such calls for these files.
    pub rules: Vec<Pattern>,
}

#[async_trait]
impl PlannedCall for EditRequest {
    fn shown(&self) -> ShownCall {
        shown(self.line())
    }

    async fn judge(
        &self,
        context: &CallContext,
        memory: &TurnMemory,
    ) -> Result<JudgedCall, String> {
        judge_change(
            propose_edit(self.clone(), context, memory),
            (context, memory),
        )
        .await
    }
}

/// Proposes the change that a call wants to make. Changes nothing.
///
/// # Errors
/// The reason why the proposal cannot be made, for the model. It may contain lines of a file.
async fn propose_edit(
    request: EditRequest,
    context: &CallContext,
    memory: &TurnMemory,
) -> Result<ProposedChange, String> {
    let located = with_judge(context, move |judge, cwd| {
        let places = judge.edit_places(&request, cwd)?;
        Ok((request, places))
    });
    let (request, places) = located.await?;
    let files = places.iter().map(|place| place.real.as_path());
    let open = context.read_buffers(files).await;
    let rules = memory.permissions.rules.clone();
    let (seen_texts, range) = (context.seen_texts.clone(), context.range.clone());
    let review = move |judge: &Judge, _: &Path| {
        let reviewed = review(judge, &request, &places, &open, &seen_texts, &rules)?;
        check_range(range.as_ref(), &reviewed)?;
        Ok(reviewed)
    };
    with_judge(context, review).await
}

/// Returns the verdict on a call that proposes a change of files. An error may contain lines of a file.
pub(in crate::tool) async fn judge_change(
    proposed: impl Future<Output = Result<ProposedChange, String>>,
    (context, memory): (&CallContext, &TurnMemory),
) -> Result<JudgedCall, String> {
    let proposed = context.unless_cancelled(proposed).await;
    let change = match proposed.map_err(|_| CANCELLED)? {
        Ok(change) => change,
        Err(why) => {
            return Err(match context.redact_for_model(&why, Instant::now()).await {
                Ok(redacted) => redacted.text,
                Err(withheld) => format!("[{withheld}]"),
            });
        }
    };
    let ask = |asking: &ApprovalQuestion| change.question(context, asking);
    Ok(JudgedCall {
        resolution: Resolution::of(&change.verdict, None, (context, memory), ask),
        audited: Some(AuditedText::plain(change.command.clone(), &change.verdict)),
        kind: CallKind::Acts,
        action: Box::new(change),
    })
}

#[async_trait]
impl CallAction for ProposedChange {
    async fn prepare(
        self: Box<Self>,
        context: &Arc<CallContext>,
        decided: &DecidedCall,
    ) -> Result<ReadyCall, NotRun> {
        let (context, decision) = (Arc::clone(context), decided.decision());
        let (line, hunks) = (self.line.clone(), decided.hunks.clone());
        Ok(ReadyCall::new(Some(CO_ITSELF), Some(line), async move {
            self.make(&context, &decision, hunks).await
        }))
    }
}

/// Calls `work` on a blocking thread, with the judge of a turn. The error is a text for the model.
pub(in crate::tool) async fn with_judge<T: Send + 'static>(
    context: &CallContext,
    work: impl FnOnce(&Judge, &Path) -> Result<T, EditRefused> + Send + 'static,
) -> Result<T, String> {
    work_with_judge(Arc::clone(&context.judge), context.cwd.clone(), work).await
}

impl ProposedChange {
    fn question(&self, context: &CallContext, asking: &ApprovalQuestion) -> AskedQuestion {
        let reasons = asking.reasons.iter().map(|reason| &reason.text);
        let notes = self.proposals.iter().flat_map(|it| &it.notes);
        let reasons: Vec<_> = reasons.chain(notes).map(|it| one_line(it)).collect();
        let change = change_of(&self.proposals, &reasons);
        let command = one_line(&self.command);
        let range = context.range.as_ref();
        let question = Question {
            cwd: one_line(&context.cwd.display().to_string()),
            reasons,
            destructive: asking.destructive,
            prefix: asking.prefix.as_ref().map(|it| one_line(&it.to_string())),
            review: range.map(|range| range.file().display().to_string()),
            ..Question::about_change(context.chat, command, change)
        };
        AskedQuestion {
            question,
            prefix: asking.prefix.clone(),
            server: None,
            computed_at: None,
            always: self.rules.iter().cloned().map(Allowance::Rule).collect(),
        }
    }

    /// Makes the changes of files, or only the parts that the person accepted in a review.
    async fn make(
        self,
        context: &CallContext,
        decision: &Decision,
        hunks: Option<Vec<HunkAnswer>>,
    ) -> Result<CallResult, CallHalt> {
        let Self {
            command, proposals, ..
        } = self;
        let mut review = ReviewWords {
            answer: hunks.as_deref().and_then(edits::answer_in_words),
            comments: hunks.as_deref().and_then(edits::comments),
            notes: Vec::new(),
        };
        let known: Vec<_> = (proposals.iter().flat_map(|it| it.notes.clone())).collect();
        let accepted = accepted(proposals, hunks);
        let notes = accepted.iter().flatten().flat_map(|it| &it.notes);
        let notes = notes.filter(|note| !known.contains(note));
        review.notes.extend(notes.cloned());
        let applied = match accepted {
            Ok(proposals) => {
                let by = (command.as_str(), decision);
                apply_together(context, proposals, by).await
            }
            Err(why) => Err(why),
        };
        let summary = match &applied {
            Ok(applied) => summary_of(applied),
            Err(why) => format!("not changed: {why}"),
        };
        let effect = Some(CallEffect::of_co(&*summary));
        let result = match applied {
            Ok(applied) => {
                fire_edited(context, &applied);
                tell_change(context, &applied, summary, review).await?
            }
            Err(why) => CallResult::not_run(format!("Nothing was changed: {why}.")),
        };
        Ok(CallResult { effect, ..result })
    }
}

/// Applies all changes of a call. If one of them is not possible, applies none.
async fn apply_together(
    context: &CallContext,
    proposals: Vec<Proposal>,
    by: (&str, &Decision),
) -> Result<Vec<AppliedChange>, EditRefused> {
    let buffers = context.buffers();
    let proposals = edits::rebase_all(proposals, &buffers).await?;
    let mut applied: Vec<AppliedChange> = Vec::new();
    for proposal in proposals {
        match apply_one(context, proposal, by, &buffers).await {
            Ok(change) => applied.push(change),
            Err(EditRefused(mut why)) => {
                for change in applied.iter().rev() {
                    let back = match change.inverse() {
                        Ok(back) => {
                            // A part of the call must not stay, so no cancellation ends this.
                            let buffers = &context.services.buffers;
                            apply_one(context, back, by, buffers).await
                        }
                        Err(stays) => Err(stays),
                    };
                    if let Err(stays) = back {
                        let path = &change.proposal.path;
                        why.push_str(&format!("; {path} is changed all the same: {stays}"));
                    }
                }
                return Err(EditRefused(why));
            }
        }
    }
    Ok(applied)
}

async fn apply_one(
    context: &CallContext,
    proposal: Proposal,
    (what, decision): (&str, &Decision),
    buffers: &Buffers,
) -> Result<AppliedChange, EditRefused> {
    let checkpoint = context.begin_edit(what.to_owned(), decision.clone(), &proposal);
    let checkpoint = checkpoint.await;
    let applied = edits::apply(proposal, buffers).await;
    context.end_edit(checkpoint, applied.as_ref().ok()).await;
    applied
}

/// Raises the event for a change of files. For a moved file, the event has the old and the new path.
fn fire_edited(context: &CallContext, applied: &[AppliedChange]) {
    let files = applied.iter().flat_map(|change| change.proposal.files());
    let files: Vec<_> = files.map(|file| file.display().to_string()).collect();
    let changes: Vec<_> = applied.iter().flat_map(changed_lines).collect();
    let data = serde_json::json!({ "chat": context.chat, "files": files, "changes": changes });
    context.services.editor.fire("CoEdited", data);
}

/// Tells the person and the model about the changes.
async fn tell_change(
    context: &CallContext,
    applied: &[AppliedChange],
    mut summary: String,
    review: ReviewWords,
) -> Result<CallResult, CallHalt> {
    let (mut lead, mut diff) = (String::new(), String::new());
    for change in applied {
        let mut said = String::new();
        describe(context, change, &mut lead, &mut diff, &mut said);
        let notes = change.proposal.notes.iter();
        for note in notes.filter(|note| !review.notes.contains(note)) {
            said.push_str(&format!("; {}", one_line(note)));
        }
        if applied.len() > 1 && !said.is_empty() {
            summary.push_str(&format!("; {}", change.proposal.path));
        }
        summary.push_str(&said);
    }
    let diff = match diff.len() <= LONGEST_DIFF {
        true => co_text::printable(&diff),
        false => String::new(),
    };
    let redacted = context.redact_for_model(&diff, Instant::now()).await;
    let RedactedText { text, hidden } = redacted.unwrap_or_else(|withheld| {
        lead.push_str(&format!("[{withheld}]\n"));
        RedactedText::default()
    });
    if let Some(answer) = &review.answer {
        summary.push_str(&format!(" · {answer}"));
    }
    let output = [lead.len(), lead.len() + text.len()];
    let result = CallResult {
        ok: true,
        shown: ShownPart {
            output,
            notice: (review.comments).map(|it| format!("✎ {}", one_line(&it))),
            ..ShownPart::line(summary)
        },
        ..RedactedText {
            text: lead + &text,
            hidden,
        }
        .into()
    };
    Ok(result)
}

/// Adds the change of a file to the text for the model, to the diff, and to the summary for the person.
fn describe(
    context: &CallContext,
    applied: &AppliedChange,
    lead: &mut String,
    diff: &mut String,
    summary: &mut String,
) {
    let proposal = &applied.proposal;
    let counts = counts([proposal]);
    lead.push_str(&format!("Done: {} {counts}.\n", proposal.path));
    let reformatted = applied.reformatted.as_ref();
    let text = reformatted.map(|it| it.text.as_str());
    if let Some(text) = text.or(proposal.new_text()) {
        let hash = context.seen_texts.add(text.to_owned());
        if let Some(before) = proposal.old_text() {
            context
                .seen_texts
                .changed(co_edit::hash(before), hash.clone());
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
    }
    diff.push_str(&proposal.diff);
    if let Some(reformatted) = reformatted {
        summary.push_str(", then changed by the editor when it was saved");
        diff.push_str("Then the editor changed the text when it was saved:\n");
        diff.push_str(&reformatted.diff);
    }
    if !applied.diagnostics.is_empty() {
        diff.push_str("New diagnostics:\n");
        diff.extend(applied.diagnostics.iter().map(|it| format!("{it}\n")));
    }
}

/// The person's answer in a review, as text.
#[derive(Debug)]
struct ReviewWords {
    /// The answer for the person; none if they accepted everything unchanged.
    answer: Option<String>,
    comments: Option<String>,
    /// The same answer as notes for the model.
    notes: Vec<String>,
}

/// Returns the lines that a change replaced, for the event about it.
fn changed_lines(applied: &AppliedChange) -> Vec<serde_json::Value> {
    let file = applied.proposal.file().display().to_string();
    let all = applied.proposal.changed_lines().into_iter();
    let change = |[first, removed, added]: [usize; 3]| serde_json::json!({ "file": file, "first": first, "removed": removed, "added": added });
    all.map(change).collect()
}

/// Returns the numbers of lines that these changes add and remove, as text.
fn counts<'a>(proposals: impl IntoIterator<Item = &'a Proposal>) -> String {
    let (mut change, mut words) = (Change::default(), Vec::new());
    for proposal in proposals {
        change.added += proposal.added();
        change.removed += proposal.removed();
        words.push(proposal.without_lines());
    }
    change.with_words(words).counts()
}

/// Returns a line about the changes, for the person.
fn summary_of(applied: &[AppliedChange]) -> String {
    let counts = counts(applied.iter().map(|it| &it.proposal));
    match applied.len() {
        1 => counts,
        files => format!("{counts} in {files} files"),
    }
}

/// Returns the change that a question shows. Leaves out the facts that are already among the reasons of the question.
fn change_of(proposals: &[Proposal], reasons: &[String]) -> Change {
    let facts = proposals.iter().flat_map(Proposal::facts);
    let facts = facts.filter(|fact| !reasons.contains(&fact.text));
    let files: Vec<_> = proposals.iter().map(Proposal::for_review).collect();
    Change {
        unsaved: proposals.iter().any(|it| it.unsaved),
        added: proposals.iter().map(Proposal::added).sum(),
        removed: proposals.iter().map(Proposal::removed).sum(),
        ..Change::new(fact_lines(facts), &Excerpt::of(&files), files)
            .with_words(proposals.iter().map(Proposal::without_lines))
    }
}

/// Returns the proposals, or only the parts that the person accepted if `hunks` is set. `hunks` contains the answers about the
/// hunks of all proposals, in order.
fn accepted(
    proposals: Vec<Proposal>,
    hunks: Option<Vec<HunkAnswer>>,
) -> Result<Vec<Proposal>, EditRefused> {
    let Some(hunks) = hunks else {
        return Ok(proposals);
    };
    let (mut accepted, mut refused) = (Vec::<Proposal>::new(), Vec::new());
    let mut rest = hunks.as_slice();
    let last = proposals.len() - 1;
    for (index, proposal) in proposals.into_iter().enumerate() {
        // The last one gets all that is left, and checks the number.
        let own = if index == last {
            rest.len()
        } else {
            proposal.parts().min(rest.len())
        };
        let (own, others) = rest.split_at(own);
        rest = others;
        let path = proposal.path.clone();
        match edits::reviewed(proposal, own)? {
            Some(proposal) => accepted.push(proposal),
            None => refused.push(match edits::comments(own) {
                Some(said) => format!("{path} was not changed; the person says: {said}"),
                None => format!("{path} was not changed"),
            }),
        }
    }
    let Some(first) = accepted.first_mut() else {
        let why = "the person accepted no part of it";
        return Err(EditRefused(why.to_owned()));
    };
    first.notes.extend(refused);
    Ok(accepted)
}

/// Checks that a change stays inside the lines that the person selected. If the person selected no lines, accepts every change.
pub(in crate::tool) fn check_range(
    range: Option<&EditRange>,
    reviewed: &ProposedChange,
) -> Result<(), EditRefused> {
    let mut proposals = reviewed.proposals.iter();
    range.map_or(Ok(()), |range| proposals.try_for_each(|it| range.check(it)))
}

fn refuse(why: EditRefused) -> String {
    // The last line may be one of the file, which the model should copy exactly.
    let end = if why.0.contains('\n') { "" } else { "." };
    format!("Refused: {why}{end}")
}

/// Calls `work` on a blocking thread, with the judge and the working directory of a turn. The error is a text for the model.
pub(in crate::tool) async fn work_with_judge<T: Send + 'static>(
    judge: Arc<Judge>,
    cwd: PathBuf,
    work: impl FnOnce(&Judge, &Path) -> Result<T, EditRefused> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(move || work(&judge, &cwd).map_err(refuse));
    done.await.unwrap_or_else(|error| {
        Err(format!(
            "The change could not be judged ({error}), so it was not made."
        ))
    })
}

/// Proposes a change and judges it.
fn review(
    judge: &Judge,
    request: &EditRequest,
    places: &[EditPlace],
    open: &OpenBuffers,
    seen_texts: &SeenTexts,
    rules: &[Pattern],
) -> Result<ProposedChange, EditRefused> {
    let proposal = propose(request, places, open, seen_texts)?;
    let mut verdict = judge.judge_edit(request, places, rules);
    if let Verdict::Ask(question) = &mut verdict {
        question.destructive = matches!(request, EditRequest::Delete { .. });
        if !question.unread {
            question.prefix = directory_rule(request, &proposal.path);
        }
    }
    let command = co_policy::rules::join(&request.words(places));
    Ok(ProposedChange {
        line: request.line(),
        rules: vec![Pattern::exact(&command)],
        command,
        verdict,
        proposals: vec![proposal],
    })
}

/// Returns the rule that allows the same tool for all files in the directory of a file.
fn directory_rule(request: &EditRequest, path: &str) -> Option<Pattern> {
    let (directory, _) = path.rsplit_once('/')?;
    let plain = !directory.contains(['*', '?', '[', '\\']);
    let single = request.paths().len() == 1;
    (plain && single).then(|| Pattern::prefix([request.name(), &format!("{directory}/**")]))
}

/// Returns the tools that change a single file.
pub(in crate::tool) fn tools() -> [BuiltIn; 4] {
    specs().map(|spec| BuiltIn {
        spec,
        parse: |call| Ok(Box::new(named::<EditRequest>(call)?)),
        shown_unread,
    })
}
