//! The question to the person, and the decision that comes of a verdict and an answer.

use std::ops::Range;

use super::super::render::{self, one_line};
use super::super::{CUT_OFF, opens};
use super::calls::{Judged, ParsedCall, Reviewed};
use super::queue::{Answer, Question, Stage, Waiting};
use super::run::Cleared;
use super::{Allowance, Event, Halt, Reply, Turn};
use crate::protocol::Ask;
use crate::tool::shell::Run;
use co_llm::transcript::{Call, Decision, Item};
use co_policy::{Grant, Pattern, Verdict};

/// What the model is told of a no.
const DENIED: &str = "User denied this action";

/// A verdict, less what the person has allowed already.
pub(super) enum Resolution {
    Run(Decision),
    Refuse(Decision),
    Ask(co_policy::ApprovalQuestion),
}

impl Turn {
    /// Whether a question is answered with a yes already.
    pub(super) fn confirms(&self, question: &co_policy::ApprovalQuestion) -> bool {
        self.standing.confirms(&self.services) && !question.unread
    }

    /// Weighs the verdict on a command against what the person has said.
    pub(super) fn resolve(&self, reviewed: &Reviewed) -> Resolution {
        let question = match &reviewed.judged.verdict {
            Verdict::Deny { why, .. } => {
                return Resolution::Refuse(Decision::Forbidden { why: why.clone() });
            }
            // The person wrote it: that is as good as a yes.
            Verdict::Allow(_) if reviewed.edited => return Resolution::Run(Decision::Approved),
            Verdict::Allow(Grant::Rule { rule }) => {
                return Resolution::Run(Decision::Rule { rule: rule.clone() });
            }
            Verdict::Allow(Grant::InProcess) => {
                co_policy::ApprovalQuestion::because("nothing else allows it")
            }
            Verdict::Allow(Grant::Proof(_)) => match self.why_ask_proved(reviewed) {
                None => return Resolution::Run(Decision::Proved),
                Some(why) => co_policy::ApprovalQuestion::because(why),
            },
            Verdict::Ask(question) => question.clone(),
        };
        match self.confirms(&question) {
            true => Resolution::Run(Decision::AutoConfirm),
            false => Resolution::Ask(question),
        }
    }

    /// Returns a question about a call, if it needs an answer.
    pub(super) fn question_about(&self, known: &ParsedCall) -> Option<Question> {
        let (ask, question, words, always) = match known {
            ParsedCall::Command(reviewed) if reviewed.no_room.is_none() => {
                let Resolution::Ask(question) = self.resolve(reviewed) else {
                    return None;
                };
                let words = reviewed.judged.words.clone();
                let always = Allowance::Rule(Pattern::exact(&reviewed.request.text()));
                (self.question(reviewed, &question), question, words, always)
            }
            ParsedCall::Typing(typing) => {
                let Resolution::Ask(question) = self.resolve_typing(typing) else {
                    return None;
                };
                let always = Allowance::Job(typing.seen.number);
                (self.typing(typing, &question), question, Vec::new(), always)
            }
            ParsedCall::Command(_) | ParsedCall::Look(_) | ParsedCall::Job(_) => return None,
        };
        Some(Question {
            ask,
            words,
            always,
            prefix: question.prefix,
            stage: Stage::New,
        })
    }

    /// Returns the decision on a call: the person's answer, or that of a rule or a proof.
    pub(super) async fn decision(
        &mut self,
        next: &Waiting,
        answer: Option<Answer>,
    ) -> Result<Decision, Halt> {
        let resolution = match &next.known {
            Ok(ParsedCall::Command(reviewed)) => self.resolve(reviewed),
            Ok(ParsedCall::Typing(typing)) => self.resolve_typing(typing),
            // Nobody is asked about these.
            Ok(ParsedCall::Look(_) | ParsedCall::Job(_)) | Err(_) => {
                Resolution::Refuse(Decision::Withdrawn)
            }
        };
        let reply = match (answer, resolution) {
            (Some(Answer::Reply(reply)), _) => reply,
            (None, Resolution::Run(decision) | Resolution::Refuse(decision)) => {
                return Ok(decision);
            }
            (Some(Answer::Gone), _) | (None, Resolution::Ask(_)) => {
                return Ok(Decision::Withdrawn);
            }
        };
        Ok(match reply {
            Reply::Once => Decision::Approved,
            Reply::Always(scope) => {
                if let Some(question) = &next.question {
                    self.allow(question.allowance(scope, &self.workspace))
                        .await?;
                }
                Decision::Approved
            }
            Reply::Deny(reason) => Decision::Denied { reason },
            // The float cannot edit text for a job, so nobody has seen this text.
            Reply::Edited(_) => Decision::Denied { reason: None },
        })
    }

    fn question(&self, reviewed: &Reviewed, question: &co_policy::ApprovalQuestion) -> Ask {
        let ceiling = self.services.config.max_timeout();
        let command = reviewed.request.text();
        let span = question.reasons.first().and_then(|it| it.span.as_ref());
        Ask {
            id: 0,
            session: self.session,
            span: span.and_then(|span| shown_at(&command, span)),
            command: co_policy::printable(&command),
            cwd: one_line(&reviewed.cwd.display().to_string()),
            timeout: reviewed.request.limit(ceiling).map(|it| it.as_secs()),
            terminal: reviewed.request.mode.terminal,
            background: reviewed.request.mode.background,
            job: None,
            backend: self.services.probe.name().to_owned(),
            reasons: question
                .reasons
                .iter()
                .map(|reason| reason.text.clone())
                .chain(opens::reason(&reviewed.opens, &self.workspace))
                .map(|reason| one_line(&reason))
                .collect(),
            destructive: question.destructive,
            prefix: question.prefix.as_ref().map(|it| one_line(&it.to_string())),
        }
    }

    /// Replaces the next call's command with the person's; returns false if it has none.
    pub(super) async fn edit_next(&mut self, command: &str) -> Result<bool, Halt> {
        let mode = match self.queue.next().map(|next| &next.known) {
            Some(Ok(ParsedCall::Command(reviewed))) => reviewed.request.mode,
            _ => return Ok(false),
        };
        let printable = co_policy::printable(command);
        let text = format!("the command was changed to: {printable}");
        self.record(Item::Notice { text }).await?;
        let shown = render::call(&printable, mode);
        self.show(&format!("*edited:* {shown}")).await?;
        if let Some(next) = self.queue.next() {
            next.edited = Some(command.to_owned());
            next.question = None;
        }
        Ok(true)
    }

    /// Allows something from now on.
    pub(super) async fn allow(&mut self, allowance: Allowance) -> Result<(), Halt> {
        match &allowance {
            Allowance::Job(job) => self.standing.jobs.push(*job),
            Allowance::Everything => self.standing.everything = true,
            Allowance::Rule(rule) | Allowance::Saved(_, rule) => {
                self.standing.rules.push(rule.clone())
            }
        }
        self.send(Event::Allow(allowance)).await
    }

    /// Records that a call does not run, and tells the model.
    pub(super) async fn refuse(
        &mut self,
        call: &Call,
        judged: &Judged,
        decision: Decision,
    ) -> Result<(), Halt> {
        self.decided(call, judged, &decision).await?;
        let text = refusal(&decision).unwrap_or_else(|| DENIED.to_owned());
        self.answer(call, text).await?;
        match decision {
            Decision::Withdrawn if self.cancel.is_cancelled() => Err(Halt::Cancelled),
            _ => Ok(()),
        }
    }

    /// Runs what a person or their rule allowed, in the session's backend. Its command is on the screen.
    pub(super) async fn run_in_session(
        &mut self,
        reviewed: Reviewed,
        decision: Decision,
    ) -> Result<(), Halt> {
        let confinement = match self.services.probe.for_approved(|| &self.workspace).await {
            Ok(confinement) if may_open(&decision, &reviewed.request.text()) => {
                opens::open(confinement, reviewed.opens)
            }
            Ok(confinement) => confinement,
            Err(refused) => {
                self.decided(&reviewed.call, &reviewed.judged, &decision)
                    .await?;
                return self.not_run(&reviewed.call, refused.to_string()).await;
            }
        };
        let cleared = Cleared {
            call: reviewed.call,
            request: reviewed.request,
            judged: reviewed.judged,
            edited: reviewed.edited,
            run: Run {
                cwd: reviewed.cwd,
                confinement,
                proof: None,
            },
            decision,
        };
        let begun = self.start(&cleared).await?;
        self.finish(cleared, begun).await
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

/// What the model is told of a decision that lets nothing be done; none of one that does.
fn refusal(decision: &Decision) -> Option<String> {
    match decision {
        Decision::Forbidden { why } => Some(format!("Refused by a deny rule: {why}")),
        Decision::Denied { reason: None } => Some(DENIED.to_owned()),
        // Nobody said no.
        Decision::Withdrawn => Some(CUT_OFF.to_owned()),
        Decision::Denied {
            reason: Some(reason),
        } => Some(format!("{DENIED}: {reason}")),
        _ => None,
    }
}

/// Where a stretch of a command is in what is shown of it; none for all of it, and for what is not in it.
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
        for decision in [Decision::AutoConfirm, Decision::Proved] {
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
