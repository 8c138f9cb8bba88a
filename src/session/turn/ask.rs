//! The question to the person, and what their answer comes to.

use std::ops::Range;

use tokio::sync::oneshot;

use super::super::render;
use super::calls::Reviewed;
use super::run::Cleared;
use super::{Allowance, Event, Halt, Reply, Turn};
use crate::policy::{self, Pattern, Verdict};
use crate::protocol::{Ask, Scope, State};
use crate::tool::shell::Run;
use crate::transcript::{Decision, Item};

/// What the model is told of a no.
const DENIED: &str = "User denied this action";

/// What stands beside the command in the float: printable, and one line whatever a word of it held.
pub(super) fn one_line(text: &str) -> String {
    policy::printable(text).replace('\n', "\\n")
}

impl Turn {
    /// Whether a question is answered with a yes already.
    pub(super) fn confirms(&self, question: &policy::Ask) -> bool {
        self.standing.confirms(&self.kit) && !question.unread
    }

    /// Asks the person, again for what they edited, until there is a yes or a no.
    pub(super) async fn ask(
        &mut self,
        mut reviewed: Reviewed,
        mut question: policy::Ask,
    ) -> Result<(), Halt> {
        loop {
            let ask = self.question(&reviewed, &question);
            match self.put(ask).await? {
                None => return self.withdrawn(reviewed).await,
                Some(Reply::Once) => {
                    return self.run_in_session(reviewed, Decision::Approved).await;
                }
                Some(Reply::Always(scope)) => {
                    self.allow(scope, &reviewed, question.prefix.as_ref())
                        .await?;
                    return self.run_in_session(reviewed, Decision::Approved).await;
                }
                Some(Reply::Deny(reason)) => return self.denied(reviewed, reason).await,
                Some(Reply::Edited(command)) => match self.edited(&mut reviewed, command).await? {
                    Verdict::Ask(again) => question = again,
                    Verdict::Deny { why, .. } => return self.forbid(reviewed, why).await,
                    // The person wrote it: that is as good as a yes.
                    Verdict::Allow(_) => {
                        return self.run_in_session(reviewed, Decision::Approved).await;
                    }
                },
            }
        }
    }

    /// Puts one question and waits; none where nobody will answer any more.
    pub(super) async fn put(&self, ask: Ask) -> Result<Option<Reply>, Halt> {
        self.state(State::Asking, "").await?;
        let (reply, answer) = oneshot::channel();
        self.send(Event::Ask(Box::new(ask), reply)).await?;
        Ok(tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            answer = answer => answer.ok(),
        })
    }

    fn question(&self, reviewed: &Reviewed, question: &policy::Ask) -> Ask {
        let ceiling = self.kit.config.max_timeout();
        let command = reviewed.request.text();
        let span = question.reasons.first().and_then(|it| it.span.as_ref());
        Ask {
            id: self.kit.id(),
            session: self.session,
            span: span.and_then(|span| shown_at(&command, span)),
            command: policy::printable(&command),
            cwd: one_line(&reviewed.cwd.display().to_string()),
            timeout: reviewed.request.limit(ceiling).map(|it| it.as_secs()),
            terminal: reviewed.request.manner.terminal,
            background: reviewed.request.manner.background,
            job: None,
            backend: self.kit.trial.name().to_owned(),
            reasons: question
                .reasons
                .iter()
                .map(|reason| one_line(&reason.text))
                .collect(),
            destructive: question.destructive,
            prefix: question.prefix.as_ref().map(|it| one_line(&it.to_string())),
        }
    }

    async fn edited(&mut self, reviewed: &mut Reviewed, command: String) -> Result<Verdict, Halt> {
        let printable = policy::printable(&command);
        let text = format!("the command was changed to: {printable}");
        self.record(Item::Notice { text }).await?;
        let shown = render::call(&printable, reviewed.request.manner);
        self.send(Event::Show(format!("*edited:* {shown}"))).await?;
        reviewed.request = reviewed.request.edited(command);
        reviewed.edited = true;
        let judged = self.judge(&reviewed.request, &reviewed.cwd).await;
        if let Ok(judged) = judged {
            reviewed.judged = judged;
        } else {
            reviewed.judged.verdict = Verdict::Ask(policy::Ask::because("it could not be judged"));
        }
        Ok(reviewed.judged.verdict.clone())
    }

    async fn allow(
        &mut self,
        scope: Scope,
        reviewed: &Reviewed,
        prefix: Option<&Pattern>,
    ) -> Result<(), Halt> {
        let allowance = match (scope, prefix) {
            (Scope::Everything, _) => Allowance::Everything,
            (Scope::Prefix, Some(prefix)) => Allowance::Rule(prefix.clone()),
            (Scope::PrefixSaved, Some(prefix)) => {
                Allowance::Saved(self.workspace.clone(), prefix.clone())
            }
            _ => Allowance::Rule(Pattern::exact(&reviewed.request.text())),
        };
        match &allowance {
            Allowance::Job(job) => self.standing.jobs.push(*job),
            Allowance::Everything => self.standing.everything = true,
            Allowance::Rule(rule) | Allowance::Saved(_, rule) => {
                self.standing.rules.push(rule.clone())
            }
        }
        self.send(Event::Allow(allowance)).await
    }

    async fn withdrawn(&mut self, reviewed: Reviewed) -> Result<(), Halt> {
        self.refuse(reviewed, Decision::Withdrawn).await?;
        match self.cancel.is_cancelled() {
            true => Err(Halt::Cancelled),
            false => Ok(()),
        }
    }

    async fn denied(&mut self, reviewed: Reviewed, reason: Option<String>) -> Result<(), Halt> {
        self.refuse(reviewed, Decision::Denied { reason }).await
    }

    /// Refuses a call for a deny rule.
    pub(super) async fn forbid(&mut self, reviewed: Reviewed, why: String) -> Result<(), Halt> {
        self.refuse(reviewed, Decision::Forbidden { why }).await
    }

    async fn refuse(&mut self, reviewed: Reviewed, decision: Decision) -> Result<(), Halt> {
        self.decided(&reviewed.call, &reviewed.judged, &decision)
            .await?;
        let text = refusal(&decision).unwrap_or_else(|| DENIED.to_owned());
        self.answer(&reviewed.call, text).await
    }

    /// Runs what a person or their rule allowed, in the session's backend. Its command is on the screen.
    pub(super) async fn run_in_session(
        &mut self,
        reviewed: Reviewed,
        decision: Decision,
    ) -> Result<(), Halt> {
        let confinement = match self.kit.trial.session(|| &self.workspace).await {
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
                extra_env: Vec::new(),
            },
            decision,
        };
        let begun = self.start(&cleared).await?;
        self.finish(cleared, begun).await
    }
}

/// What the model is told of a decision that lets nothing be done; none of one that does.
pub(super) fn refusal(decision: &Decision) -> Option<String> {
    match decision {
        Decision::Forbidden { why } => Some(format!("Refused by a deny rule: {why}")),
        Decision::Denied { reason: None } | Decision::Withdrawn => Some(DENIED.to_owned()),
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
    let start = policy::printable(&command[..span.start]).len();
    (!whole).then(|| [start, start + policy::printable(marked).len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_shown_where_it_speaks_of() {
        let command = "ls \u{202e}x && rm y";
        let at = command.find("rm").unwrap();
        let [start, end] = shown_at(command, &(at..command.len())).unwrap();
        assert_eq!(&policy::printable(command)[start..end], "rm y");
        assert_eq!(shown_at(command, &(0..command.len())), None);
        assert_eq!(shown_at(command, &(4..5)), None, "half a character");
        assert_eq!(shown_at("ls", &(0..9)), None);
    }
}
