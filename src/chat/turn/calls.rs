//! The calls of one step. The read-only calls at the start of a step run in parallel; from the first other call on they
//! run one by one. The results are recorded in the order of the calls.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::jobs::Act;
use super::super::{opens, render};
use super::file_calls::{Looking, Taken};
use super::jobs::Typing;
use super::question::Resolution;
use super::queue::{Answer, Queue, Reached, Waiting};
use super::run::{Begun, Cleared};
use super::step::{Asked, MAX_CALLS};
use super::{Halt, Reply, Turn};
use crate::error;
use crate::tool::ToolCall;
use crate::tool::confinement;
use crate::tool::jobs;
use crate::tool::shell::{self, ExecMode, Run};
use co_llm::transcript::{Call, Decision};
use co_policy::{Grant, Proved, Verdict};

/// Why a call was not judged: a file system that hangs must not hold the person up.
pub(super) const CANCELLED: &str = "Cancelled before it was run.";

/// A command that was judged.
pub(super) struct Reviewed {
    pub call: Call,
    pub request: shell::CommandRequest,
    pub cwd: PathBuf,
    pub judged: Judged,
    /// The person put another command in the place of the model's.
    pub edited: bool,
    /// The hidden secrets that a person's yes opens for the command.
    pub opens: Vec<PathBuf>,
    /// Why one more job cannot be started, for a command in the background.
    pub no_room: Option<String>,
}

/// A call whose arguments co understands.
pub(super) enum ParsedCall {
    Command(Reviewed),
    Look(Looking),
    /// Text for a job that runs.
    Typing(Typing),
    /// Anything else about a job, which needs no answer.
    Job(jobs::JobRequest),
}

/// A call that runs beside others.
enum Ahead {
    Command(Cleared),
    Look(Looking),
    /// A call that cannot run, and why.
    Refused(Call, String),
}

enum Started {
    Command(Box<Cleared>, Result<Begun, String>),
    Look(Box<Taken>),
    Refused(Call, String),
}

/// What policy said of a command.
pub(super) struct Judged {
    pub command: String,
    /// Each simple command of it.
    pub segments: Vec<String>,
    /// The words of each, as bash would expand them.
    pub words: Vec<Vec<String>>,
    pub verdict: Verdict,
}

impl Turn {
    /// Carries out the calls of a step; each has an outcome in the transcript when this returns.
    pub(super) async fn calls(&mut self, calls: Vec<Asked>) -> Result<(), Halt> {
        self.renew();
        let calls = calls.into_iter().enumerate();
        let mut calls: VecDeque<_> = calls.map(|(at, call)| Waiting::new(at, call)).collect();
        let mut ahead = Vec::new();
        while let Some(next) = calls.front() {
            ahead.push(match self.review(next).await {
                Err(why) => Ahead::Refused(next.call.clone(), why),
                Ok(ParsedCall::Look(looking)) => Ahead::Look(looking),
                Ok(ParsedCall::Command(reviewed)) => match self.proof(&reviewed) {
                    Some(proof) => Ahead::Command(self.clear_proved(reviewed, proof)),
                    None => break,
                },
                Ok(_) => break,
            });
            calls.pop_front();
        }
        self.run_side_by_side(ahead).await?;
        self.queue = Queue::new(calls);
        self.run_one_by_one().await
    }

    async fn run_one_by_one(&mut self) -> Result<(), Halt> {
        loop {
            if self.cancel.is_cancelled() {
                return Err(Halt::Cancelled);
            }
            self.renew();
            // What ran meanwhile may have changed what the others would do.
            self.judge_queue().await;
            self.show_next().await?;
            self.put_questions().await?;
            let answer = match self.answer_to_next().await? {
                Reached::Changed => continue,
                Reached::NotAsked => None,
                Reached::Answered(Answer::Reply(Reply::Edited(command)))
                    if self.edit_next(&command).await? =>
                {
                    continue;
                }
                Reached::Answered(answer) => Some(answer),
            };
            match self.queue.pop() {
                Some(next) => self.carry_out(next, answer).await?,
                None => return Ok(()),
            }
        }
    }

    /// Shows the next call before it is asked about or run. A look is shown with its result.
    async fn show_next(&mut self) -> Result<(), Halt> {
        let Some(next) = self.queue.next().filter(|next| !next.shown) else {
            return Ok(());
        };
        let text = match &next.known {
            Ok(ParsedCall::Command(reviewed)) => show_command(&reviewed.request),
            Ok(ParsedCall::Typing(typing)) => render::job(&typing.request),
            Ok(ParsedCall::Job(request)) => render::job(request),
            Ok(ParsedCall::Look(_)) | Err(_) => return Ok(()),
        };
        next.shown = true;
        self.show(&text).await
    }

    /// Does what the next call asks for, as far as the person lets it.
    async fn carry_out(&mut self, next: Waiting, answer: Option<Answer>) -> Result<(), Halt> {
        let decision = self.decision(&next, answer).await?;
        match next.known {
            Err(why) if next.shown => self.not_run(&next.call, why).await,
            Err(why) => self.turn_away(&next.call, why).await,
            Ok(ParsedCall::Look(looking)) => {
                let taken = self.start_look(looking).await?;
                self.finish_look(taken).await
            }
            Ok(ParsedCall::Job(request)) => self.job(next.call, request).await,
            Ok(ParsedCall::Typing(typing)) => self.type_to(next.call, typing, decision).await,
            Ok(ParsedCall::Command(reviewed)) => match reviewed.no_room {
                Some(why) => self.not_run(&next.call, why).await,
                None => self.command(reviewed, decision).await,
            },
        }
    }

    async fn command(&mut self, reviewed: Reviewed, decision: Decision) -> Result<(), Halt> {
        match decision {
            Decision::Proved => {
                let Some(proof) = self.proof(&reviewed) else {
                    let why = "The command was not run, because files or rules changed since co checked it. \
                               Send it again.";
                    return self.not_run(&reviewed.call, why.to_owned()).await;
                };
                let cleared = self.clear_proved(reviewed, proof);
                let begun = self.start(&cleared).await?;
                self.finish(cleared, begun).await
            }
            decision if decision.lets_run() => self.run_in_session(reviewed, decision).await,
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

    /// Shows a call that was not understood or not taken, and why it was not run.
    async fn turn_away(&mut self, call: &Call, why: String) -> Result<(), Halt> {
        let command = co_policy::printable(&render::command_of(call));
        self.show(&render::call(&command, ExecMode::default()))
            .await?;
        self.not_run(call, why).await
    }

    /// Tells the model, and the person, why a call was not run.
    pub(super) async fn not_run(&mut self, call: &Call, why: String) -> Result<(), Halt> {
        // What follows the first line is for the model.
        let shown = why.lines().next().unwrap_or_default();
        let shown = format!("*not run: {shown}*");
        self.answer(call, why).await?;
        self.show(&shown).await
    }

    /// Reads and judges a call; what is wrong with it comes back as a text for the model.
    pub(super) async fn review(&self, waiting: &Waiting) -> Result<ParsedCall, String> {
        if waiting.place >= MAX_CALLS {
            return Err(format!(
                "Not run: at most {MAX_CALLS} calls a step. Ask again for what is still needed."
            ));
        }
        if let Some(why) = &waiting.unread {
            return Err(why.clone());
        }
        let call = &waiting.call;
        let request = match ToolCall::parse(call).map_err(|bad| bad.to_string())? {
            ToolCall::Shell(request) => request,
            ToolCall::File(look) => {
                return self.review_look(call, look).await.map(ParsedCall::Look);
            }
            ToolCall::Job(request) => return self.review_job(request).await,
        };
        let request = match &waiting.edited {
            None => request,
            Some(command) => request.edited(command.clone()),
        };
        let cwd = self.place(&request)?;
        let judged = self.judge(&request, &cwd).await?;
        let no_room = match request.mode.background {
            // Nobody is asked about what could not be started.
            true => self.jobs(Act::Room).await.unwrap_or(Ok(())).err(),
            false => None,
        };
        let opens = self.opens(&judged, &cwd).await;
        Ok(ParsedCall::Command(Reviewed {
            call: call.clone(),
            request,
            cwd,
            judged,
            edited: waiting.edited.is_some(),
            opens,
            no_room,
        }))
    }

    /// Returns the hidden secrets that a command names, if a person's yes may run it.
    async fn opens(&self, judged: &Judged, cwd: &Path) -> Vec<PathBuf> {
        if !matches!(
            judged.verdict,
            Verdict::Ask(_) | Verdict::Allow(Grant::Rule { .. })
        ) {
            return Vec::new();
        }
        let named = async {
            let confinement = self
                .services
                .probe
                .for_approved(|| &self.workspace)
                .await
                .ok()?;
            Some(opens::named(&self.services, &confinement, cwd, judged.words.clone()).await)
        };
        tokio::select! {
            () = self.cancel.cancelled() => Vec::new(),
            named = named => named.unwrap_or_default(),
        }
    }

    /// What policy says, with the rules of this session.
    pub(super) async fn judge(
        &self,
        request: &shell::CommandRequest,
        cwd: &Path,
    ) -> Result<Judged, String> {
        let judge = Arc::clone(&self.judge);
        let (program, command, cwd) = (request.program.clone(), request.text(), cwd.to_owned());
        let rules = self.standing.rules.clone();
        let judged = tokio::task::spawn_blocking(move || {
            let assessment = judge.assess(&program, &cwd);
            let verdict = judge.verdict(&assessment, &rules);
            let text = |span: &std::ops::Range<usize>| {
                assessment.command.get(span.clone()).map(str::to_owned)
            };
            Judged {
                segments: assessment
                    .segments
                    .iter()
                    .filter_map(|segment| text(&segment.span))
                    .collect(),
                command,
                words: assessment.expanded,
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

    /// Returns the rewritten command, if no approval is needed.
    fn proof(&self, reviewed: &Reviewed) -> Option<Proved> {
        match (&reviewed.judged.verdict, self.resolve(reviewed)) {
            (Verdict::Allow(Grant::Proof(proved)), Resolution::Run(Decision::Proved)) => {
                Some(proved.clone())
            }
            _ => None,
        }
    }

    /// Why a proven command asks all the same.
    pub(super) fn why_ask_proved(&self, reviewed: &Reviewed) -> Option<&'static str> {
        if self.services.probe.unasked() == confinement::Unasked::Never {
            return Some(
                "it only reads, but nothing here can confine it and auto_without_sandbox is off",
            );
        }
        let failed = self
            .standing
            .failed_confined
            .contains(&reviewed.request.text());
        failed.then_some("it failed in the read-only sandbox; approved, it runs outside of it")
    }

    /// Runs calls that need no answer in parallel, and shows them one by one in call order.
    async fn run_side_by_side(&mut self, ahead: Vec<Ahead>) -> Result<(), Halt> {
        let mut started = Vec::new();
        let mut done = Ok(());
        for one in ahead {
            match self.begin(one).await {
                Ok(begun) => started.push(begun),
                Err(halt) => {
                    done = Err(halt);
                    break;
                }
            }
        }
        // Also where the turn goes no further: what has begun is answered with what it came to.
        for one in started {
            let finished = self.finish_begun(one).await;
            done = done.and(finished);
        }
        done
    }

    async fn begin(&mut self, one: Ahead) -> Result<Started, Halt> {
        Ok(match one {
            Ahead::Command(cleared) => {
                let begun = self.start(&cleared).await?;
                Started::Command(Box::new(cleared), begun)
            }
            Ahead::Look(looking) => Started::Look(Box::new(self.start_look(looking).await?)),
            Ahead::Refused(call, why) => Started::Refused(call, why),
        })
    }

    async fn finish_begun(&mut self, one: Started) -> Result<(), Halt> {
        match one {
            Started::Command(cleared, begun) => {
                self.show(&show_command(&cleared.request)).await?;
                self.finish(*cleared, begun).await
            }
            Started::Look(look) => self.finish_look(*look).await,
            Started::Refused(call, why) => self.turn_away(&call, why).await,
        }
    }

    fn clear_proved(&self, reviewed: Reviewed, proof: Proved) -> Cleared {
        Cleared {
            run: Run {
                cwd: reviewed.cwd,
                confinement: self.services.probe.for_unasked(&self.workspace),
                proof: Some(proof),
            },
            call: reviewed.call,
            request: reviewed.request,
            judged: reviewed.judged,
            edited: reviewed.edited,
            decision: Decision::Proved,
        }
    }
}

/// A command as the chat shows it.
fn show_command(request: &shell::CommandRequest) -> String {
    render::call(&co_policy::printable(&request.text()), request.mode)
}
