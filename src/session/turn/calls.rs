//! The calls of one step: reviewed together, read-only ones run side by side, the rest one by one in order.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::jobs::Act;
use super::super::render;
use super::look::{Looking, Taken};
use super::run::{Begun, Cleared};
use super::step::MAX_CALLS;
use super::{Event, Halt, Turn};
use crate::error;
use crate::policy::{self, Grant, Verdict};
use crate::tool::ToolCall;
use crate::tool::backend;
use crate::tool::jobs;
use crate::tool::shell::{self, Manner, Run};
use crate::transcript::{Call, Decision};

/// Why a call was not judged: a file system that hangs must not hold the person up.
pub(super) const CANCELLED: &str = "Cancelled before it was run.";

/// A call that was judged.
pub(super) struct Reviewed {
    pub call: Call,
    pub request: shell::Request,
    pub cwd: PathBuf,
    pub judged: Judged,
    /// The person put another command in the place of the model's.
    pub edited: bool,
}

/// A call that co understands.
enum Known {
    Command(Reviewed),
    Look(Looking),
    Job(jobs::Request),
}

/// What is done one after the other, in the order of the calls.
enum InTurn {
    Command(Reviewed),
    Job(Call, jobs::Request),
}

/// What nobody is asked about.
enum Unasked {
    Command(Cleared),
    Look(Looking),
}

enum Started {
    Command(Cleared, Result<Begun, String>),
    Look(Taken),
}

/// What policy said of a command.
pub(super) struct Judged {
    pub command: String,
    /// Each simple command of it.
    pub segments: Vec<String>,
    pub verdict: Verdict,
}

impl Turn {
    /// Carries out the calls of a step; each has an outcome in the transcript when this returns.
    pub(super) async fn calls(&mut self, calls: Vec<Call>) -> Result<(), Halt> {
        self.renew();
        let mut unasked = Vec::new();
        let mut rest = Vec::new();
        for (index, call) in calls.into_iter().enumerate() {
            if index >= MAX_CALLS {
                let text = format!(
                    "Not run: at most {MAX_CALLS} calls a step. Ask again for what is still needed."
                );
                self.turn_away(&call, text).await?;
                continue;
            }
            match self.review(&call).await {
                Err(text) => self.turn_away(&call, text).await?,
                Ok(Known::Look(looking)) => unasked.push(Unasked::Look(looking)),
                Ok(Known::Command(reviewed)) if self.runs_unasked(&reviewed) => {
                    unasked.push(Unasked::Command(self.clear_proved(reviewed)));
                }
                Ok(Known::Command(reviewed)) => rest.push(InTurn::Command(reviewed)),
                Ok(Known::Job(request)) => rest.push(InTurn::Job(call, request)),
            }
        }
        self.run_unasked(unasked).await?;
        for one in rest {
            match one {
                InTurn::Command(reviewed) => self.command(reviewed).await?,
                InTurn::Job(call, request) => self.job(call, request).await?,
            }
        }
        Ok(())
    }

    async fn command(&mut self, mut reviewed: Reviewed) -> Result<(), Halt> {
        self.renew();
        // What ran meanwhile may have changed what this one would do, or a rule may cover it now.
        let mut judged = self.judge_again(&mut reviewed).await;
        if judged.is_ok() && reviewed.request.manner.background {
            // Nobody is asked about what could not be started.
            judged = self.jobs(Act::Room).await?;
        }
        if let Err(why) = judged {
            self.show_command(&reviewed).await?;
            return self.not_run(&reviewed.call, why).await;
        }
        self.decide(reviewed).await
    }

    async fn judge_again(&self, reviewed: &mut Reviewed) -> Result<(), String> {
        reviewed.cwd = self.place(&reviewed.request)?;
        reviewed.judged = self.judge(&reviewed.request, &reviewed.cwd).await?;
        Ok(())
    }

    fn place(&self, request: &shell::Request) -> Result<PathBuf, String> {
        request
            .place(&self.workspace, &self.cwd)
            .map_err(|error| error::text_of(&error).plain())
    }

    /// Shows a call that was not understood or not taken, and why it was not run.
    async fn turn_away(&mut self, call: &Call, why: String) -> Result<(), Halt> {
        let command = policy::printable(&render::command_of(call));
        self.show(&render::call(&command, Manner::default()))
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

    async fn review(&self, call: &Call) -> Result<Known, String> {
        let request = match ToolCall::parse(call).map_err(|bad| bad.to_string())? {
            ToolCall::Shell(request) => request,
            ToolCall::Look(look) => return self.review_look(call, look).await.map(Known::Look),
            ToolCall::Job(request) => return Ok(Known::Job(request)),
        };
        let cwd = self.place(&request)?;
        let judged = self.judge(&request, &cwd).await?;
        Ok(Known::Command(Reviewed {
            call: call.clone(),
            request,
            cwd,
            judged,
            edited: false,
        }))
    }

    /// What policy says, with the rules of this session.
    pub(super) async fn judge(
        &self,
        request: &shell::Request,
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

    fn runs_unasked(&self, reviewed: &Reviewed) -> bool {
        matches!(reviewed.judged.verdict, Verdict::Allow(Grant::Proof { .. }))
            && self.why_ask_proved(reviewed).is_none()
    }

    /// Why a proven command asks all the same.
    fn why_ask_proved(&self, reviewed: &Reviewed) -> Option<&'static str> {
        if self.kit.trial.unasked() == backend::Unasked::Never {
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

    /// Does side by side what nobody is asked about; shows it one after the other, in the order of the calls.
    async fn run_unasked(&mut self, unasked: Vec<Unasked>) -> Result<(), Halt> {
        let mut started = Vec::new();
        let mut done = Ok(());
        for one in unasked {
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

    async fn begin(&mut self, one: Unasked) -> Result<Started, Halt> {
        Ok(match one {
            Unasked::Command(cleared) => {
                let begun = self.start(&cleared).await?;
                Started::Command(cleared, begun)
            }
            Unasked::Look(looking) => Started::Look(self.start_look(looking).await?),
        })
    }

    async fn finish_begun(&mut self, one: Started) -> Result<(), Halt> {
        match one {
            Started::Command(cleared, begun) => {
                self.show_call(&cleared).await?;
                self.finish(cleared, begun).await
            }
            Started::Look(look) => self.finish_look(look).await,
        }
    }

    fn clear_proved(&self, reviewed: Reviewed) -> Cleared {
        let extra_env = match &reviewed.judged.verdict {
            Verdict::Allow(Grant::Proof { env }) => env.clone(),
            _ => Vec::new(),
        };
        Cleared {
            run: Run {
                cwd: reviewed.cwd,
                confinement: self.kit.trial.proved(&self.workspace),
                extra_env,
            },
            call: reviewed.call,
            request: reviewed.request,
            judged: reviewed.judged,
            edited: reviewed.edited,
            decision: Decision::Proved,
        }
    }

    /// What a verdict other than a proof comes to.
    async fn decide(&mut self, reviewed: Reviewed) -> Result<(), Halt> {
        match reviewed.judged.verdict.clone() {
            Verdict::Deny { why, .. } => {
                self.show_command(&reviewed).await?;
                self.forbid(reviewed, why).await
            }
            Verdict::Allow(Grant::Rule { rule }) => {
                self.show_command(&reviewed).await?;
                self.run_in_session(reviewed, Decision::Rule { rule }).await
            }
            Verdict::Allow(Grant::Proof { .. }) => {
                let why = self
                    .why_ask_proved(&reviewed)
                    .unwrap_or("nothing else allows it");
                let question = policy::Ask::because(why);
                self.ask_unless_everything(reviewed, question).await
            }
            Verdict::Ask(question) => self.ask_unless_everything(reviewed, question).await,
        }
    }

    async fn ask_unless_everything(
        &mut self,
        reviewed: Reviewed,
        question: policy::Ask,
    ) -> Result<(), Halt> {
        self.show_command(&reviewed).await?;
        match self.confirms(&question) {
            true => self.run_in_session(reviewed, Decision::AutoConfirm).await,
            false => self.ask(reviewed, question).await,
        }
    }

    /// A call is on the screen before it is asked about or run.
    async fn show_command(&self, reviewed: &Reviewed) -> Result<(), Halt> {
        let command = policy::printable(&reviewed.request.text());
        self.send(Event::Show(render::call(&command, reviewed.request.manner)))
            .await
    }
}
