//! Makes questions to the person, and the decision from the verdict and the answer.

use std::ops::Range;

use super::super::{readiness, secret_access};
use super::Turn;
use super::call::{AllowedCommand, CUT_OFF, JudgedCall, ParsedCall, ReviewedCommand};
use super::call_queue::{CallQuestion, QuestionEnd, QuestionState, QueuedCall};
use super::event::{Halt, TurnEvent};
use super::permissions::{Allowance, Reply};
use crate::protocol::{Asker, Question};
use crate::text::one_line;
use crate::tool::shell::ExecContext;
use crate::workspace::edits;
use co_exec::Confinement;
use co_llm::transcript::{Call, Decision};
use co_policy::{Grant, Pattern, Verdict};

/// The result of a denied call.
const DENIED: &str = "User denied this action";

/// The verdict with the permissions of the person applied.
pub(super) enum Resolution {
    Run(Decision),
    Refuse(Decision),
    Ask(co_policy::ApprovalQuestion),
}

impl Turn {
    /// Applies the permissions of the person to the verdict on a command.
    pub(super) fn resolve(&self, reviewed: &ReviewedCommand) -> Resolution {
        let verdict = &reviewed.judged.verdict;
        // The person wrote the command.
        if reviewed.approved && !matches!(verdict, Verdict::Deny { .. }) {
            return Resolution::Run(Decision::Approved);
        }
        match (verdict, self.why_ask_unasked(reviewed)) {
            (Verdict::Allow(Grant::ReadOnly | Grant::Unconfined), None) => {
                Resolution::Run(Decision::Unasked)
            }
            (verdict, why) => self.resolve_verdict(verdict, why),
        }
    }

    /// Applies the permissions of the person to a verdict. A call that the policy allows, but no rule, needs approval here; `why`
    /// is the reason for the question.
    pub(super) fn resolve_verdict(
        &self,
        verdict: &Verdict,
        why: Option<&'static str>,
    ) -> Resolution {
        let question = match verdict {
            Verdict::Deny { why, .. } => {
                return Resolution::Refuse(Decision::Forbidden { why: why.clone() });
            }
            Verdict::Allow(Grant::Rule { rule }) => {
                return Resolution::Run(Decision::Rule { rule: rule.clone() });
            }
            Verdict::Allow(Grant::ReadOnly | Grant::Unconfined | Grant::InProcess) => {
                let why = why.unwrap_or("nothing else allows it");
                co_policy::ApprovalQuestion::because(why)
            }
            Verdict::Ask(question) => question.clone(),
        };
        match self.permissions.confirms(&self.services) && !question.unread {
            true => Resolution::Run(Decision::AutoConfirm),
            false => Resolution::Ask(question),
        }
    }

    /// Returns the question about a call; none if the call needs no answer.
    pub(super) fn question_about(&self, waiting: &QueuedCall) -> Option<CallQuestion> {
        let (question, asking, computes, always) = match waiting.known.as_ref().ok()? {
            ParsedCall::Command(_) if self.is_tried_first(waiting) => return None,
            ParsedCall::Command(reviewed) if reviewed.cannot_run.is_none() => {
                let Resolution::Ask(asking) = self.resolve(reviewed) else {
                    return None;
                };
                let computes = reviewed.judged.computes;
                let always = Allowance::Rule(Pattern::exact(&reviewed.request.text()));
                let question = self.question(reviewed, waiting, &asking);
                (question, asking, computes, vec![always])
            }
            ParsedCall::JobInput(input) => {
                let Resolution::Ask(asking) = self.resolve_typing(input) else {
                    return None;
                };
                let always = vec![Allowance::Job(input.job.number)];
                (self.input(input, &asking), asking, false, always)
            }
            ParsedCall::Edit(edit) => {
                let Resolution::Ask(asking) = self.resolve_verdict(&edit.judged.verdict, None)
                else {
                    return None;
                };
                let always = edit.rules.iter().cloned().map(Allowance::Rule).collect();
                (
                    self.question_about_edit(edit, &asking),
                    asking,
                    false,
                    always,
                )
            }
            ParsedCall::Command(_) | ParsedCall::File(_) | ParsedCall::Job(_) => return None,
        };
        Some(CallQuestion {
            question,
            computed_at: computes.then_some(self.calls_ended),
            always,
            prefix: asking.prefix,
            stage: QuestionState::New,
        })
    }

    /// Returns the decision on a call. It comes from the person, a rule or the policy.
    pub(super) async fn decision(
        &mut self,
        next: &QueuedCall,
        answer: Option<QuestionEnd>,
    ) -> Result<Decision, Halt> {
        let resolution = match &next.known {
            Ok(ParsedCall::Command(reviewed)) => self.resolve(reviewed),
            Ok(ParsedCall::JobInput(input)) => self.resolve_typing(input),
            Ok(ParsedCall::Edit(edit)) => self.resolve_verdict(&edit.judged.verdict, None),
            // These calls have no question.
            Ok(ParsedCall::File(_) | ParsedCall::Job(_)) | Err(_) => {
                Resolution::Refuse(Decision::Withdrawn)
            }
        };
        let reply = match (answer, resolution) {
            (Some(QuestionEnd::Reply(reply)), _) => reply,
            (None, Resolution::Run(decision) | Resolution::Refuse(decision)) => {
                return Ok(decision);
            }
            (Some(QuestionEnd::Gone | QuestionEnd::Edited(_)), _) | (None, Resolution::Ask(_)) => {
                return Ok(Decision::Withdrawn);
            }
        };
        Ok(match reply {
            Reply::Once => Decision::Approved,
            Reply::Always(scope) => {
                if let Some(question) = &next.question {
                    for allowance in question.allowances(scope, &self.workspace) {
                        self.allow(allowance).await?;
                    }
                }
                Decision::Approved
            }
            Reply::Deny(reason) => Decision::Denied { reason },
            Reply::Reviewed(hunks) if hunks.iter().any(|hunk| hunk.accept) => Decision::Approved,
            Reply::Reviewed(hunks) => Decision::Denied {
                reason: edits::comments(&hunks),
            },
            // The turn takes these answers before. The person can edit and try only commands, and this call is none.
            Reply::Edited(_) | Reply::Try { .. } | Reply::Real => Decision::Denied { reason: None },
        })
    }

    fn question(
        &self,
        reviewed: &ReviewedCommand,
        waiting: &QueuedCall,
        question: &co_policy::ApprovalQuestion,
    ) -> Question {
        let (tried, change) = waiting.trial.for_question();
        let ceiling = self.services.config.max_timeout();
        let command = reviewed.request.text();
        let span = question.reasons.first().and_then(|it| it.span.as_ref());
        Question {
            asker: Asker::Chat(self.chat),
            span: span.and_then(|span| shown_at(&command, span)),
            command: co_policy::printable(&command),
            cwd: one_line(&reviewed.cwd.display().to_string()),
            timeout: reviewed.request.limit(ceiling).map(|it| it.as_secs()),
            terminal: reviewed.request.mode.terminal,
            background: reviewed.request.mode.background,
            confinement: self.services.probe.name().to_owned(),
            reasons: question
                .reasons
                .iter()
                .map(|reason| reason.text.clone())
                .chain(secret_access::reason(&reviewed.opens, &self.workspace))
                .chain(waiting.trial.failure())
                .chain(self.asked_for_real(reviewed))
                .map(|reason| one_line(&reason))
                .collect(),
            may_try: self.may_try(waiting),
            tried,
            destructive: question.destructive,
            prefix: question.prefix.as_ref().map(|it| one_line(&it.to_string())),
            alone: secret_access::reason(&reviewed.opens, &self.workspace)
                .or_else(|| reviewed.judged.reach.clone())
                .map(|reason| one_line(&reason)),
            change,
            ..Question::default()
        }
    }

    /// Adds a permission to the turn and the chat.
    pub(super) async fn allow(&mut self, allowance: Allowance) -> Result<(), Halt> {
        match &allowance {
            Allowance::Job(job) => self.permissions.jobs.push(*job),
            Allowance::Everything => self.permissions.everything = true,
            Allowance::TryFirst(_) => self.permissions.tries_first = true,
            Allowance::Rule(rule) | Allowance::Saved(_, rule) => {
                self.permissions.rules.push(rule.clone())
            }
        }
        self.send(TurnEvent::Allow(allowance)).await
    }

    /// Records that a call does not run, and tells the model.
    pub(super) async fn refuse(
        &mut self,
        call: &Call,
        judged: &JudgedCall,
        decision: Decision,
    ) -> Result<(), Halt> {
        self.decided(call, judged, &decision).await?;
        if decision == Decision::Withdrawn && self.cancel.is_cancelled() {
            self.unanswered.push(call.id.clone());
            return Err(Halt::Cancelled);
        }
        let text = refusal(&decision).unwrap_or_else(|| DENIED.to_owned());
        self.answer(call, text).await
    }

    /// Runs a command that the person or their rule allowed. It is on the screen already.
    pub(super) async fn run_allowed(
        &mut self,
        reviewed: ReviewedCommand,
        decision: Decision,
    ) -> Result<(), Halt> {
        let confinement = match self.services.probe.for_approved(|| &self.workspace).await {
            Ok(confinement) if may_open(&decision, &reviewed.request.text()) => {
                secret_access::open(confinement, reviewed.opens)
            }
            Ok(confinement) => confinement,
            Err(refused) => {
                self.decided(&reviewed.call, &reviewed.judged, &decision)
                    .await?;
                return self.not_run(&reviewed.call, refused.to_string()).await;
            }
        };
        if confinement == Confinement::Plain {
            let environment = self.services.executor.agent_environment();
            let commands = &reviewed.judged.words;
            let ready = tokio::select! {
                ready = readiness::wait(&self.services, commands, &environment) => ready,
                () = self.cancel.cancelled() => Ok(()),
            };
            if let Err(why) = ready {
                self.decided(&reviewed.call, &reviewed.judged, &decision)
                    .await?;
                return self.not_run(&reviewed.call, why).await;
            }
        }
        let allowed = AllowedCommand {
            call: reviewed.call,
            request: reviewed.request,
            judged: reviewed.judged,
            edited: reviewed.edited,
            context: ExecContext {
                cwd: reviewed.cwd,
                confinement,
                unasked: false,
            },
            decision,
        };
        let begun = self.start(&allowed).await?;
        self.finish(allowed, begun).await
    }
}

/// Returns true if the person allowed this very command, and so the secrets that it names.
fn may_open(decision: &Decision, command: &str) -> bool {
    match decision {
        Decision::Approved => true,
        Decision::Rule { rule } => *rule == Pattern::exact(command).to_string(),
        _ => false,
    }
}

/// Returns the result of a call for a decision that stops it; none if the call may run.
pub(super) fn refusal(decision: &Decision) -> Option<String> {
    match decision {
        Decision::Forbidden { why } => Some(format!("Refused by a deny rule: {why}")),
        Decision::Denied { reason: None } => Some(DENIED.to_owned()),
        // The person did not deny it.
        Decision::Withdrawn => Some(CUT_OFF.to_owned()),
        Decision::Denied {
            reason: Some(reason),
        } => Some(format!("{DENIED}: {reason}")),
        _ => None,
    }
}

/// Returns the place of `span` in the printable form of a command; none if it is the whole command or not in it.
fn shown_at(command: &str, span: &Range<usize>) -> Option<[usize; 2]> {
    let marked = command.get(span.clone())?;
    let whole = marked.is_empty() || marked.len() == command.len();
    let start = co_policy::printable(&command[..span.start]).len();
    (!whole).then(|| [start, start + co_policy::printable(marked).len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_to_the_command_itself_opens_secrets() {
        let rule = |rule: Pattern| Decision::Rule {
            rule: rule.to_string(),
        };
        let command = "cat .env && ls";
        assert!(may_open(&Decision::Approved, command));
        assert!(may_open(&rule(Pattern::exact(command)), command));
        assert!(!may_open(&rule(Pattern::prefix(["cat"])), "cat .env"));
        for decision in [Decision::AutoConfirm, Decision::Unasked] {
            assert!(!may_open(&decision, command));
        }
    }

    #[test]
    fn a_reason_is_shown_where_it_speaks_of() {
        let command = "ls \u{202e}x && rm y";
        let at = command.find("rm").unwrap();
        let [start, end] = shown_at(command, &(at..command.len())).unwrap();
        assert_eq!(&co_policy::printable(command)[start..end], "rm y");
        assert_eq!(shown_at(command, &(0..command.len())), None);
        assert_eq!(shown_at(command, &(4..5)), None, "half a character");
        assert_eq!(shown_at("ls", &(0..9)), None);
    }
}
