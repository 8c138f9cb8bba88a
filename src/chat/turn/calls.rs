//! The calls of one step. The read-only calls at the start of a step run in parallel; from the first other call on they
//! run one by one. The results are recorded in the order of the calls.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::events::ChatEvent;
use super::super::jobs::JobRequest;
use super::super::{retell, secret_access};
use super::Turn;
use super::call::{
    AllowedCommand, CANCELLED, FileCall, JudgedCall, ParsedCall, ProposedCall, ReviewedCommand,
};
use super::call_queue::{CallQueue, NextCall, QuestionEnd, QueuedCall};
use super::event::Halt;
use super::file_calls::StartedFileCall;
use super::permissions::Reply;
use super::question::Resolution;
use super::run::{CallResult, StartedCommand};
use super::step::MAX_CALLS;
use super::trial::Trial;
use crate::error;
use crate::protocol::HunkAnswer;
use crate::tool::event::CallEvent;
use crate::tool::shell::{self, ExecContext};
use crate::tool::{ToolCall, edit};
use co_exec::Confinement;
use co_exec::container::WORKSPACE_INSIDE;
use co_exec::secrets::redact::RedactedText;
use co_llm::transcript::{Call, Decision, ShownPart};
use co_policy::{Grant, Verdict};

/// A call that runs in parallel with others.
enum ParallelCall {
    Command(AllowedCommand),
    File(FileCall),
    /// A call that cannot run, and the reason.
    Refused(Call, String),
}

enum StartedCall {
    Command(Box<AllowedCommand>, Result<StartedCommand, String>),
    File(Box<StartedFileCall>),
    Refused(Call, String),
}

/// The arguments of tools that are paths.
const PATH_ARGUMENTS: [&str; 4] = ["path", "from", "to", "cwd"];

impl Turn {
    /// Carries out the calls of a step. If this succeeds, each call has an outcome in the transcript.
    pub(super) async fn calls(&mut self, calls: Vec<ProposedCall>) -> Result<(), Halt> {
        self.renew();
        let calls = calls.into_iter().enumerate();
        let mut calls: VecDeque<_> = calls.map(|(at, call)| QueuedCall::new(at, call)).collect();
        let mut ahead = Vec::new();
        while let Some(next) = calls.front() {
            if self.is_rename(next) {
                break;
            }
            ahead.push(match self.review(next).await {
                Err(why) => ParallelCall::Refused(next.call.clone(), why),
                Ok(ParsedCall::File(file_call)) => ParallelCall::File(file_call),
                Ok(ParsedCall::Command(reviewed)) => match self.runs_unasked(&reviewed) {
                    true => ParallelCall::Command(self.allow_unasked(reviewed)),
                    false => break,
                },
                Ok(_) => break,
            });
            calls.pop_front();
        }
        self.run_side_by_side(ahead).await?;
        self.queue = CallQueue::new(calls);
        self.run_one_by_one().await
    }

    async fn run_one_by_one(&mut self) -> Result<(), Halt> {
        loop {
            if self.cancel.is_cancelled() {
                return Err(Halt::Cancelled);
            }
            self.renew();
            // The last call may have changed files that the verdicts depend on.
            self.judge_queue().await;
            self.show_next().await?;
            // Before a trial, because it withdraws the question about the call.
            self.put_questions().await?;
            if self.try_next().await? {
                continue;
            }
            let answer = match self.answer_to_next().await? {
                NextCall::Changed => continue,
                NextCall::NotAsked => None,
                NextCall::Answered(QuestionEnd::Edited(edit)) => {
                    self.edit_next(edit).await?;
                    continue;
                }
                NextCall::Answered(QuestionEnd::Reply(Reply::Try { later })) => {
                    self.want_trial(later).await?;
                    continue;
                }
                NextCall::Answered(answer) => Some(answer),
            };
            match self.queue.pop() {
                Some(next) => self.carry_out(next, answer).await?,
                None => return Ok(()),
            }
            self.calls_ended += 1;
        }
    }

    /// Shows the next call before the question about it. A file call is shown with its result.
    async fn show_next(&mut self) -> Result<(), Halt> {
        match self.queue.next().and_then(first_shown) {
            Some(event) => self.show(event).await,
            None => Ok(()),
        }
    }

    /// Runs the next call, or refuses it.
    async fn carry_out(
        &mut self,
        mut next: QueuedCall,
        answer: Option<QuestionEnd>,
    ) -> Result<(), Halt> {
        // A rename may have become a call that can be shown only now.
        if let Some(event) = first_shown(&mut next) {
            self.show(event).await?;
        }
        let answer = match answer {
            Some(QuestionEnd::Reply(Reply::Real)) => {
                let trial = std::mem::take(&mut next.trial);
                // Only a question after a trial offers it.
                let ended = matches!(trial, Trial::Ended(_));
                let reply = if ended {
                    Reply::Once
                } else {
                    Reply::Deny(None)
                };
                Some(QuestionEnd::Reply(reply))
            }
            answer => answer,
        };
        let hunks = match &answer {
            Some(QuestionEnd::Reply(Reply::Reviewed(hunks))) => Some(hunks.clone()),
            _ => None,
        };
        let decision = self.decision(&next, answer).await?;
        let checkpoint = self.checkpoint(&next, &decision).await;
        let done = self.perform(next, decision, hunks).await;
        if let Some(checkpoint) = checkpoint {
            self.keep_changes(checkpoint).await;
        }
        done
    }

    async fn perform(
        &mut self,
        next: QueuedCall,
        decision: Decision,
        hunks: Option<Vec<HunkAnswer>>,
    ) -> Result<(), Halt> {
        match next.known {
            Err(why) if next.shown => self.not_run(&next.call, why).await,
            Err(why) => self.turn_away(&next.call, why).await,
            Ok(ParsedCall::File(file_call)) => {
                let started = self.start_file_call(file_call).await?;
                self.finish_file_call(started).await
            }
            Ok(ParsedCall::Job(request)) => self.job(next.call, request).await,
            Ok(ParsedCall::JobInput(input)) => self.type_to(next.call, input, decision).await,
            Ok(ParsedCall::Edit(edit)) => self.change_files(next.call, edit, decision, hunks).await,
            Ok(ParsedCall::Command(reviewed)) => match (&reviewed.cannot_run, next.trial) {
                (Some(why), _) => self.not_run(&next.call, why.clone()).await,
                (None, Trial::Ended(ended)) => {
                    self.end_trial(reviewed, *ended, decision, hunks).await
                }
                (None, _) => self.command(reviewed, decision).await,
            },
        }
    }

    async fn command(&mut self, reviewed: ReviewedCommand, decision: Decision) -> Result<(), Halt> {
        match decision {
            Decision::Unasked => {
                let allowed = self.allow_unasked(reviewed);
                let started_command = self.start(&allowed).await?;
                self.finish(allowed, started_command).await
            }
            decision if decision.lets_run() => self.run_allowed(reviewed, decision).await,
            decision => {
                self.refuse(&reviewed.call, &reviewed.judged, decision)
                    .await
            }
        }
    }

    fn place(&self, request: &shell::CommandRequest) -> Result<PathBuf, String> {
        request
            .place(&self.workspace, &self.cwd)
            .map_err(|error| error::text_of(&error).plain())
    }

    /// Shows a call that is not valid, and the reason why it does not run.
    async fn turn_away(&mut self, call: &Call, why: String) -> Result<(), Halt> {
        self.show(retell::begun(call)).await?;
        self.not_run(call, why).await
    }

    /// Records and shows the reason why a call did not run.
    pub(super) async fn not_run(&mut self, call: &Call, why: String) -> Result<(), Halt> {
        // The person sees only the first line.
        let shown = why.lines().next().unwrap_or_default().to_owned();
        let result = CallResult {
            shown: ShownPart::line(format!("not run: {shown}")),
            ..RedactedText::from(why).into()
        };
        self.conclude(call, result).await
    }

    /// Parses a call. The error is a text for the model.
    pub(super) fn parse(&self, waiting: &QueuedCall) -> Result<(Call, ToolCall), String> {
        if waiting.place >= MAX_CALLS {
            return Err(format!(
                "Not run: at most {MAX_CALLS} calls a step. Ask again for what is still needed."
            ));
        }
        if let Some(why) = &waiting.unread {
            return Err(why.clone());
        }
        let call = match self.services.probe.in_container() {
            // The model may know only the names inside.
            true => outside_call(&self.workspace, waiting.call.clone()),
            false => waiting.call.clone(),
        };
        let parsed = ToolCall::parse(&call).map_err(|bad| bad.to_string())?;
        Ok((call, parsed))
    }

    /// Parses and judges a call. The error is a text for the model.
    pub(super) async fn review(&self, waiting: &QueuedCall) -> Result<ParsedCall, String> {
        let (call, parsed) = self.parse(waiting)?;
        self.judge.watch();
        let request = match parsed {
            ToolCall::Shell(request) => request,
            ToolCall::File(query) => {
                return self
                    .review_file_call(&call, query)
                    .await
                    .map(ParsedCall::File);
            }
            ToolCall::Job(request) => return self.review_job(request).await,
            ToolCall::Edit(request) => return self.review_edit(request).await,
            ToolCall::Rename(request) => {
                return self.review_rename(request, &waiting.server_edits).await;
            }
        };
        let request = match &waiting.edited {
            None => request,
            Some(edit) => request.edited(edit.command.clone()),
        };
        let cwd = self.place(&request)?;
        let judged = self.judge(&request, &cwd).await?;
        let no_room = match request.mode.background {
            // A question about it would be useless.
            true => self
                .jobs(JobRequest::CheckRoom)
                .await
                .unwrap_or(Ok(()))
                .err(),
            false => None,
        };
        let (opens, refused) = self.opens(&judged, &cwd).await;
        let edit = waiting.edited.as_ref();
        Ok(ParsedCall::Command(ReviewedCommand {
            call,
            request,
            cwd,
            edited: edit.is_some(),
            approved: edit.is_some_and(|it| it.computed_at.is_none_or(|at| at == self.calls_ended)),
            judged,
            opens,
            cannot_run: no_room.or(refused),
        }))
    }

    /// Returns the hidden secrets that an approval of the command opens, and the reason why its container cannot run; none if
    /// it can. Starts the container, if approved commands run in one.
    async fn opens(&self, judged: &JudgedCall, cwd: &Path) -> (Vec<PathBuf>, Option<String>) {
        if !matches!(
            judged.verdict,
            Verdict::Ask(_) | Verdict::Allow(Grant::Rule { .. })
        ) {
            return (Vec::new(), None);
        }
        let named = async {
            let confinement = self.services.probe.for_approved(|| &self.workspace).await;
            let Ok(confinement) = confinement else {
                return (Vec::new(), None);
            };
            if let Err(error) = self.services.prepare(&confinement).await {
                return (Vec::new(), Some(error));
            }
            let words = judged.words.clone();
            let named = secret_access::named(&self.services, &confinement, cwd, words).await;
            (named, None)
        };
        tokio::select! {
            () = self.cancel.cancelled() => (Vec::new(), None),
            named = named => named,
        }
    }

    /// Judges a command by the rules and by the permissions of this chat.
    pub(super) async fn judge(
        &self,
        request: &shell::CommandRequest,
        cwd: &Path,
    ) -> Result<JudgedCall, String> {
        let judge = Arc::clone(&self.judge);
        let (program, command, cwd) = (request.program.clone(), request.text(), cwd.to_owned());
        let rules = self.permissions.rules.clone();
        let confined = tokio::select! {
            () = self.cancel.cancelled() => return Err(CANCELLED.to_owned()),
            isolation = self.services.probe.isolation() => isolation.confines(),
        };
        let judged = tokio::task::spawn_blocking(move || {
            let assessment = judge.assess(&program, &cwd, confined);
            let mut verdict = judge.verdict(&assessment, &rules);
            if let Verdict::Ask(question) = &mut verdict {
                question.trial = question.trial.filter(|_| judge.check_trial().is_ok());
            }
            let text = |span: &std::ops::Range<usize>| {
                assessment.command.get(span.clone()).map(str::to_owned)
            };
            JudgedCall {
                segments: assessment
                    .commands
                    .iter()
                    .filter_map(|segment| text(&segment.span))
                    .collect(),
                command,
                words: assessment.words(),
                computes: assessment.computes,
                reach: assessment.reach,
                verdict,
            }
        });
        tokio::select! {
            () = self.cancel.cancelled() => Err(CANCELLED.to_owned()),
            judged = judged => judged.map_err(|error| {
                format!("The command could not be judged ({error}), so it was not run.")
            }),
        }
    }

    /// Returns true if the command only looks, so that no approval is needed.
    fn runs_unasked(&self, reviewed: &ReviewedCommand) -> bool {
        matches!(self.resolve(reviewed), Resolution::Run(Decision::Unasked))
    }

    /// Returns the reason why a command that only looks needs approval; none if it needs none.
    pub(super) fn why_ask_unasked(&self, reviewed: &ReviewedCommand) -> Option<&'static str> {
        let failed = self
            .permissions
            .failed_confined
            .contains(&reviewed.request.text());
        failed.then_some("it failed in the read-only sandbox; approved, it runs outside of it")
    }

    /// Runs calls that need no answer in parallel, and shows them one by one in call order.
    async fn run_side_by_side(&mut self, ahead: Vec<ParallelCall>) -> Result<(), Halt> {
        let mut started = Vec::new();
        let mut done = Ok(());
        for one in ahead {
            match self.begin(one).await {
                Ok(started_command) => started.push(started_command),
                Err(halt) => {
                    done = Err(halt);
                    break;
                }
            }
        }
        // Each call that has started gets an outcome, even if the turn ends.
        for one in started {
            let finished = self.finish_begun(one).await;
            done = done.and(finished);
        }
        done
    }

    async fn begin(&mut self, one: ParallelCall) -> Result<StartedCall, Halt> {
        Ok(match one {
            ParallelCall::Command(allowed) => {
                let started_command = self.start(&allowed).await?;
                StartedCall::Command(Box::new(allowed), started_command)
            }
            ParallelCall::File(file_call) => {
                StartedCall::File(Box::new(self.start_file_call(file_call).await?))
            }
            ParallelCall::Refused(call, why) => StartedCall::Refused(call, why),
        })
    }

    async fn finish_begun(&mut self, one: StartedCall) -> Result<(), Halt> {
        match one {
            StartedCall::Command(allowed, started_command) => {
                let shown = allowed.request.shown();
                self.show(CallEvent::Begun(shown)).await?;
                self.finish(*allowed, started_command).await
            }
            StartedCall::File(started) => self.finish_file_call(*started).await,
            StartedCall::Refused(call, why) => self.turn_away(&call, why).await,
        }
    }

    fn allow_unasked(&self, reviewed: ReviewedCommand) -> AllowedCommand {
        let confinement = match reviewed.judged.verdict {
            // It was judged where the kernel confines nothing.
            Verdict::Allow(Grant::Unconfined) => Confinement::Plain,
            _ => self.services.probe.for_unasked(&self.workspace),
        };
        AllowedCommand {
            context: ExecContext {
                cwd: reviewed.cwd,
                confinement,
                unasked: true,
            },
            call: reviewed.call,
            request: reviewed.request,
            judged: reviewed.judged,
            edited: reviewed.edited,
            decision: Decision::Unasked,
        }
    }
}

/// Returns the event that shows a call, if the call can be shown and was not. A query is shown with its result.
fn first_shown(next: &mut QueuedCall) -> Option<ChatEvent> {
    if next.shown {
        return None;
    }
    let shown = match &next.known {
        Ok(ParsedCall::Command(reviewed)) => reviewed.request.shown(),
        Ok(ParsedCall::JobInput(input)) => input.request.shown(),
        Ok(ParsedCall::Job(request)) => request.shown(),
        Ok(ParsedCall::Edit(edit)) => edit::shown(&edit.line),
        Ok(ParsedCall::File(_)) | Err(_) => return None,
    };
    next.shown = true;
    Some(ChatEvent::Call(CallEvent::Begun(shown)))
}

/// Returns a call with the paths of this machine instead of those inside a container.
fn outside_call(workspace: &Path, mut call: Call) -> Call {
    for name in PATH_ARGUMENTS {
        if let Some(serde_json::Value::String(path)) = call.arguments.get_mut(name) {
            *path = outside(workspace, std::mem::take(path));
        }
    }
    call
}

/// Translates a path inside of the container into the path on this machine. Other paths stay as they are.
fn outside(workspace: &Path, path: String) -> String {
    match Path::new(&path).strip_prefix(WORKSPACE_INSIDE) {
        Ok(below) if !Path::new(&path).starts_with(workspace) => {
            workspace.join(below).to_string_lossy().into_owned()
        }
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_inside_is_one_of_the_workspace() {
        let check = |workspace: &str, path: &str, expected: &str| {
            let found = outside(Path::new(workspace), path.to_owned());
            assert_eq!(Path::new(&found), Path::new(expected));
        };
        check("/home/ann/work", "/workspace", "/home/ann/work");
        check("/home/ann/work", "/workspace/a/b", "/home/ann/work/a/b");
        check("/home/ann/work", "src", "src");
        check("/home/ann/work", "/workspaces", "/workspaces");
        check("/workspace/x", "/workspace/x/y", "/workspace/x/y");
    }
}
