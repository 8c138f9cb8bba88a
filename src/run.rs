//! The runs: commands that the person starts with `:Co! cmd`. They get no verdict, and run in the confinement of approved
//! commands.

mod questions;
mod trial;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::questions::RunQuestions;
use self::trial::{EndedCommand, TrialRun};
use crate::cancellable;
use crate::chat::person::command::{CommandQuestioner, PersonCommand, StartedCommand};
use crate::chat::person::wants_terminal;
use crate::editor::Target;
use crate::network::OpenAccess;
use crate::protocol::{Asker, NoticeLevel, QuestionAnswer, RunOptions, ToEditor};
use crate::services::Services;
use crate::trial::TrialPlace;
use crate::workspace::judge::workspace_of;
use co_exec::container::Engine;
use co_exec::{
    CommandInput, CommandOutcome, Confinement, InputError, Streams, TRIAL_WORDS, TerminalSize,
};

/// The largest number of inputs that wait until the command has started.
const MAX_WAITING_INPUTS: usize = 256;

/// The Dockerfile of the container image that co provides.
const DOCKERFILE: &[u8] = include_bytes!("../docker/Dockerfile");

/// The runs of one backend.
pub struct Runs {
    services: Arc<Services>,
    cancel: CancellationToken,
    runs: HashMap<u64, RunHandle>,
    questions: RunQuestions,
}

/// The options of a run, as the person typed them.
#[derive(Debug, Clone)]
pub struct Run {
    pub run: u64,
    pub command: Vec<u8>,
    pub cwd: PathBuf,
    pub stdin: Option<Vec<u8>>,
    pub streams: Streams,
    pub options: RunOptions,
}

struct RunHandle {
    cancel: CancellationToken,
    inputs: mpsc::Sender<RunInput>,
}

/// A message of the person about the input of a run.
enum RunInput {
    Write(Vec<u8>),
    Close,
    Resize(TerminalSize),
}

impl Runs {
    /// Returns an empty list. Cancelling `cancel` ends every run.
    pub fn new(services: Arc<Services>, cancel: CancellationToken) -> Self {
        Self {
            questions: RunQuestions::new(services.editor.clone()),
            services,
            cancel,
            runs: HashMap::new(),
        }
    }

    /// Sets the services for runs that start later.
    pub fn take_settings(&mut self, services: Arc<Services>) {
        self.services = services;
    }

    /// Starts a run in a separate task.
    pub fn start(&mut self, run: Run) {
        self.runs
            .retain(|_, running| !running.cancel.is_cancelled());
        let cancel = self.cancel.child_token();
        let (inputs, done) = mpsc::channel(MAX_WAITING_INPUTS);
        let running = RunHandle {
            cancel: cancel.clone(),
            inputs,
        };
        self.runs.insert(run.run, running);
        self.services.editor.tell(ToEditor::RunStarted {
            run: run.run,
            command: String::from_utf8_lossy(&run.command).into_owned(),
            cwd: run.cwd.display().to_string(),
            owner: None,
            detail: detail(&run, self.services.probe.words()),
        });
        let shared = (Arc::clone(&self.services), self.questions.clone());
        tokio::spawn(follow(shared, run, cancel, done));
    }

    /// Handles the person's answer about a trial. Does nothing if the answer belongs to a question of a chat.
    pub fn answer(&self, answered: QuestionAnswer) {
        self.questions.answer(answered);
    }

    /// Sends the next part of a text under review. Does nothing if the review does not belong to a trial of a run.
    pub fn read_review(&self, id: u64, file: usize, from: usize) {
        self.questions.show_part(id, file, from);
    }

    /// Sends the editor the first lines of a file that contains an output.
    pub fn read_output(&self, request: u64, file: PathBuf, most: usize) {
        let editor = self.services.editor.clone();
        tokio::task::spawn_blocking(move || {
            let lines = co_exec::shown_lines(&file, most).unwrap_or_default();
            editor.tell(ToEditor::OutputRead { request, lines });
        });
    }

    /// Ends a run and its processes. If the question about its trial is open, drops the changes of the trial.
    pub fn cancel(&mut self, run: u64) {
        let running = self.runs.remove(&run);
        match running.filter(|it| !it.cancel.is_cancelled()) {
            Some(running) => running.cancel.cancel(),
            None if self.services.jobs.cancel(run) => {}
            None => self
                .services
                .notice(NoticeLevel::Info, "that run has ended already"),
        }
    }

    /// Writes to the standard input of a run or a job. If `close` is true, then closes the input.
    pub fn input(&self, run: u64, data: Vec<u8>, close: bool) {
        if !self.runs.contains_key(&run)
            && let Some(written) = self.services.jobs.input(run, data.clone(), close)
        {
            return written.unwrap_or_else(|why| unwritten(&self.services, why));
        }
        let write = (!data.is_empty()).then_some(RunInput::Write(data));
        for input in write.into_iter().chain(close.then_some(RunInput::Close)) {
            if self.send(run, input).is_err() {
                return self.services.notice(
                    NoticeLevel::Warn,
                    "nothing was written: the run has ended or does not read its input",
                );
            }
        }
    }

    /// Sets whether a job of the model continues after its chat has ended.
    pub fn keep(&self, run: u64, keep: bool) {
        if !self.services.jobs.keep(run, keep) {
            self.services
                .notice(NoticeLevel::Info, "that job has ended already");
        }
    }

    /// Sets the size of a run's terminal.
    pub fn resize(&self, run: u64, size: TerminalSize) {
        // It may have ended a moment ago.
        let _ = self.send(run, RunInput::Resize(size));
    }

    fn send(&self, run: u64, input: RunInput) -> Result<(), InputError> {
        let running = self.runs.get(&run).ok_or(InputError::Closed)?;
        running.inputs.try_send(input).map_err(|_| InputError::Full)
    }
}

/// Returns the confinement of a new run, and a hint if the command may need a terminal. Returns `None` if there is nothing to
/// show.
fn detail(run: &Run, confinement: Option<&'static str>) -> Option<String> {
    let alone = run.streams == Streams::Whole && run.stdin.is_none();
    let hint = std::str::from_utf8(&run.command)
        .ok()
        .filter(|_| alone)
        .and_then(wants_terminal::hint_at_start);
    let confinement = match run.options.trial {
        true => Some(TRIAL_WORDS),
        false => confinement,
    };
    let words: Vec<_> = confinement
        .map(str::to_owned)
        .into_iter()
        .chain(hint)
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

/// Returns the command that builds the container image of the settings. It runs without confinement, because the person asked for
/// exactly this command.
async fn image_build(services: &Services, run: Run) -> Result<PersonCommand, String> {
    let settings = services.config.container();
    let environment: Vec<_> = std::env::vars_os().collect();
    let engine = Engine::choose(&settings.engine, &environment).await;
    let engine = engine.map_err(|fault| fault.to_string())?;
    let words = [
        engine.program().to_string_lossy().into_owned(),
        "build".to_owned(),
        "--tag".to_owned(),
        settings.image.clone(),
        "-".to_owned(),
    ];
    Ok(PersonCommand {
        command: co_policy::rules::shell_join(&words),
        cwd: run.cwd,
        stdin: Some(DOCKERFILE.to_vec()),
        streams: run.streams,
        options: run.options,
        confinement: Confinement::Plain,
        grants: None,
    })
}

/// Starts the command of a run. If it is a trial, also returns the place of the trial.
async fn begin(
    services: &Arc<Services>,
    questions: &RunQuestions,
    run: Run,
) -> Result<(StartedCommand, Option<TrialPlace>), String> {
    let number = run.run;
    if run.options.builds_image {
        let build = image_build(services, run).await?;
        return Ok((build.start(services, None).await?, None));
    }
    // A lossy conversion would run another command.
    let command = String::from_utf8(run.command)
        .map_err(|_| "the command is not all UTF-8; put it into a script and run that")?;
    let cwd = run.cwd.clone();
    let trial = match run.options.trial {
        true => Some(trial::begin(services, cwd.clone()).await?),
        false => None,
    };
    let (mut confinement, mut grants) = (Confinement::Plain, None);
    if let Some(place) = &trial {
        confinement = place.confinement();
        grants = trial::grants(services, &command, &cwd).await?;
        if let (Confinement::Trial { places, .. }, Some(grants)) = (&mut confinement, &grants) {
            places.clone_from(&grants.places);
            services.editor.tell(ToEditor::RunStarted {
                run: number,
                command: command.clone(),
                cwd: cwd.display().to_string(),
                owner: None,
                detail: Some(format!("{TRIAL_WORDS}; {}", grants.words)),
            });
        }
    }
    let typed = PersonCommand {
        command,
        cwd: run.cwd,
        stdin: run.stdin,
        streams: run.streams,
        options: run.options,
        confinement,
        grants,
    };
    let workspace = || workspace_of(&cwd);
    let asks = CommandQuestioner {
        asker: Asker::Run(number),
        questioner: Arc::new(questions.clone()),
    };
    let begun = match &trial {
        Some(_) => typed.start(services, Some(asks)).await,
        None => typed.start_confined(services, workspace, asks).await,
    };
    Ok((begun?, trial))
}

/// Runs a command and shows its output. Cancelling `token` ends the command and the processes that it left running.
async fn follow(
    (services, questions): (Arc<Services>, RunQuestions),
    run: Run,
    token: CancellationToken,
    mut inputs: mpsc::Receiver<RunInput>,
) {
    let (number, streams) = (run.run, run.streams);
    let _person_run = match run.options.trial {
        // It changes no file before the answer.
        true => None,
        false => Some(services.person_runs().await),
    };
    let tried = TrialRun {
        services: &services,
        questions: &questions,
        token: &token,
        run: number,
        command: String::from_utf8_lossy(&run.command).into_owned(),
        cwd: run.cwd.clone(),
    };
    let begun = tokio::select! {
        begun = begin(&services, &questions, run) => begun.map_err(|why| format!("not run: {why}")),
        // An engine may not answer for a long time.
        () = token.cancelled() => Err("cancelled".to_owned()),
    };
    let (started, trial) = match begun {
        Ok(begun) => begun,
        Err(status) => {
            token.cancel();
            return services.editor.tell(ToEditor::RunEnded {
                run: number,
                status,
                exit: None,
                spill: None,
                left: false,
            });
        }
    };
    let StartedCommand {
        running,
        access,
        conditions,
        editor: _editor,
    } = started;
    let showing = match streams {
        Streams::Terminal(_) => services.editor.show_terminal(number, running.feed()),
        Streams::Whole | Streams::Open | Streams::Pipes => {
            services.editor.show(Target::Run(number), running.screen())
        }
    };
    let canceller = running.canceller();
    let input = running.input();
    let cancelled = async {
        loop {
            tokio::select! {
                () = token.cancelled() => return,
                Some(sent) = inputs.recv() => perform(&services, input.as_ref(), sent),
            }
        }
    };
    let mut outcome = cancellable::outcome(running, cancelled).await;
    if let Some(place) = trial {
        drop(inputs);
        let hosts = access.map(OpenAccess::close).unwrap_or_default();
        let ended = EndedCommand {
            outcome: &outcome,
            conditions: &conditions,
            hosts: &hosts,
        };
        tried.end(place, showing, ended).await;
        return token.cancel();
    }
    let kept = outcome.kept;
    let status = |outcome: &CommandOutcome, access: Option<&OpenAccess>| {
        let hosts = access.map(OpenAccess::report).unwrap_or_default();
        conditions.status(outcome, &hosts)
    };
    if !kept {
        token.cancel();
    }
    showing.finish(ToEditor::RunEnded {
        run: number,
        status: status(&outcome, access.as_ref()),
        exit: outcome.exit,
        spill: outcome.spill.clone(),
        left: kept,
    });
    drop(inputs);
    if kept {
        tokio::select! {
            () = token.cancelled() => {
                canceller.cancel();
                outcome.kept = false;
                let said = format!("co ended what run {number} left running");
                services.notice(NoticeLevel::Info, said);
            }
            // It has ended by itself.
            () = canceller.cancelled() => {
                token.cancel();
                outcome.background.clear();
            }
        }
        services.editor.tell(ToEditor::LeftEnded {
            run: number,
            status: status(&outcome, access.as_ref()),
            again: false,
        });
    }
}

fn perform(services: &Services, input: Option<&CommandInput>, sent: RunInput) {
    let Some(input) = input else {
        return services.notice(
            NoticeLevel::Warn,
            "this run's input is not open: `:Co! ++stdin` starts one whose is",
        );
    };
    let done = match sent {
        RunInput::Write(bytes) => input.write(bytes),
        RunInput::Close => input.close(),
        RunInput::Resize(size) => {
            input.resize(size);
            Ok(())
        }
    };
    if let Err(why) = done {
        unwritten(services, why);
    }
}

fn unwritten(services: &Services, why: InputError) {
    services.notice(NoticeLevel::Warn, format!("nothing was written: {why}"));
}
