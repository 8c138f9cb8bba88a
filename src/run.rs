//! `:Co! cmd`: what the person typed is run, never judged, in the session's backend.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::chat::opens;
use crate::chat::person::{Ceiling, Typed};
use crate::chat::services::Services;
use crate::editor::Target;
use crate::error;
use crate::protocol::{Level, RunOptions, ToEditor};
use crate::tool::judge::workspace_of;
use co_exec::{Input, InputError, Job, Size, Streams};

/// What may be typed before the command has started.
const TYPED: usize = 256;

/// The runs of one backend.
pub struct Shell {
    services: Arc<Services>,
    cancel: CancellationToken,
    runs: HashMap<u64, Running>,
}

/// One run, as it was typed.
#[derive(Debug, Clone)]
pub struct Run {
    pub run: u64,
    pub command: Vec<u8>,
    pub cwd: PathBuf,
    pub stdin: Option<Vec<u8>>,
    pub streams: Streams,
    pub options: RunOptions,
}

struct Running {
    cancel: CancellationToken,
    acts: mpsc::Sender<Act>,
}

/// What a person does to a run, other than ending it.
enum Act {
    Write(Vec<u8>),
    Close,
    Resize(Size),
}

impl Shell {
    /// `cancel` ends every run.
    pub fn new(services: Arc<Services>, cancel: CancellationToken) -> Self {
        Self {
            services,
            cancel,
            runs: HashMap::new(),
        }
    }

    /// Takes the settings for the runs that start from now on.
    pub fn take_settings(&mut self, services: Arc<Services>) {
        self.services = services;
    }

    /// Starts a run; it shows itself and ends by itself.
    pub fn start(&mut self, run: Run) {
        self.runs
            .retain(|_, running| !running.cancel.is_cancelled());
        let cancel = self.cancel.child_token();
        let (acts, done) = mpsc::channel(TYPED);
        let running = Running {
            cancel: cancel.clone(),
            acts,
        };
        self.runs.insert(run.run, running);
        self.services.editor.tell(ToEditor::RunStarted {
            run: run.run,
            command: String::from_utf8_lossy(&run.command).into_owned(),
            cwd: run.cwd.display().to_string(),
            owner: None,
        });
        tokio::spawn(follow(Arc::clone(&self.services), run, cancel, done));
    }

    /// Ends a run and all it started.
    pub fn cancel(&mut self, run: u64) {
        let running = self.runs.remove(&run);
        match running.filter(|it| !it.cancel.is_cancelled()) {
            Some(running) => running.cancel.cancel(),
            None if self.services.jobs.cancel(run) => {}
            None => self
                .services
                .notice(Level::Info, "that run has ended already"),
        }
    }

    /// Writes to a run's standard input, and closes it if that is asked for.
    pub fn input(&self, run: u64, data: Vec<u8>, close: bool) {
        if !self.runs.contains_key(&run)
            && let Some(written) = self.services.jobs.input(run, data.clone(), close)
        {
            return written.unwrap_or_else(|why| unwritten(&self.services, why));
        }
        let write = (!data.is_empty()).then_some(Act::Write(data));
        for act in write.into_iter().chain(close.then_some(Act::Close)) {
            if self.act(run, act).is_err() {
                return self.services.notice(
                    Level::Warn,
                    "nothing was written: the run has ended or does not read its input",
                );
            }
        }
    }

    /// Has a model's job outlive its session, or no longer.
    pub fn keep(&self, run: u64, keep: bool) {
        if !self.services.jobs.keep(run, keep) {
            self.services
                .notice(Level::Info, "that job has ended already");
        }
    }

    /// Makes a run's terminal that large.
    pub fn resize(&self, run: u64, size: Size) {
        // It may have ended a moment ago.
        let _ = self.act(run, Act::Resize(size));
    }

    fn act(&self, run: u64, act: Act) -> Result<(), InputError> {
        let running = self.runs.get(&run).ok_or(InputError::Closed)?;
        running.acts.try_send(act).map_err(|_| InputError::Full)
    }
}

async fn begin(services: &Services, run: Run) -> Result<(Job, Ceiling), String> {
    // Another text would be another command.
    let command = String::from_utf8(run.command)
        .map_err(|_| "the command is not all UTF-8; put it into a script and run that")?;
    let confinement = services
        .probe
        .for_approved(|| workspace_of(&run.cwd))
        .await
        .map_err(|refused| refused.to_string())?;
    let confinement = opens::open_named(services, confinement, &command, &run.cwd).await;
    let typed = Typed {
        command,
        cwd: run.cwd,
        stdin: run.stdin,
        terminal: matches!(run.streams, Streams::Terminal(_)),
        options: run.options,
        confinement,
    };
    let (spec, ceiling) = typed.spec(services);
    let job = services.executor.start_on(spec, run.streams).await;
    job.map(|job| (job, ceiling))
        .map_err(|error| error::text_of(&error).plain())
}

/// Starts a run and shows it until it ends; cancelling its token ends it, and what it left running.
async fn follow(
    services: Arc<Services>,
    run: Run,
    token: CancellationToken,
    mut acts: mpsc::Receiver<Act>,
) {
    let (number, streams) = (run.run, run.streams);
    let (job, ceiling) = match begin(&services, run).await {
        Ok(begun) => begun,
        Err(why) => {
            token.cancel();
            return services.editor.tell(ToEditor::RunEnded {
                run: number,
                status: format!("not run: {why}"),
                exit: None,
                spill: None,
                left: false,
            });
        }
    };
    let showing = match streams {
        Streams::Terminal(_) => services.editor.show_terminal(number, job.feed()),
        Streams::Whole | Streams::Open => services.editor.show(Target::Run(number), job.screen()),
    };
    let canceller = job.canceller();
    let input = job.input();
    let outcome = job.outcome();
    tokio::pin!(outcome);
    let outcome = loop {
        tokio::select! {
            outcome = &mut outcome => break outcome,
            () = token.cancelled() => {
                canceller.cancel();
                break outcome.await;
            }
            // The sender goes when the run is cancelled, and then the arm above is ready.
            Some(act) = acts.recv() => perform(&services, input.as_ref(), act),
        }
    };
    let kept = outcome.kept;
    if !kept {
        token.cancel();
    }
    showing.finish(ToEditor::RunEnded {
        run: number,
        status: ceiling.status(&outcome),
        exit: outcome.exit,
        spill: outcome.spill,
        left: kept,
    });
    drop(acts);
    if kept {
        tokio::select! {
            () = token.cancelled() => {
                canceller.cancel();
                let said = format!("what run {number} left running is ended");
                services.notice(Level::Info, said);
            }
            // It has ended by itself.
            () = canceller.cancelled() => token.cancel(),
        }
        services.editor.tell(ToEditor::LeftEnded { run: number });
    }
}

fn perform(services: &Services, input: Option<&Input>, act: Act) {
    let Some(input) = input else {
        return services.notice(
            Level::Warn,
            "this run's input is not open: `:Co! ++stdin` starts one whose is",
        );
    };
    let done = match act {
        Act::Write(bytes) => input.write(bytes),
        Act::Close => input.close(),
        Act::Resize(size) => {
            input.resize(size);
            Ok(())
        }
    };
    if let Err(why) = done {
        unwritten(services, why);
    }
}

fn unwritten(services: &Services, why: InputError) {
    services.notice(Level::Warn, format!("nothing was written: {why}"));
}
