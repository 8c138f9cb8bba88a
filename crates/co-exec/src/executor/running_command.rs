//! The handle of one running command.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::executor::supervisor::{NewCommand, Supervisor};
use crate::outcome::CommandOutcome;
use crate::output::feed::Feed;
use crate::output::reader::SharedOutput;
use crate::output::reading::OutputReading;
use crate::output::screen::Screen;
use crate::output::spill;
use crate::process::input::CommandInput;
use crate::process::streams::CommandPipes;
use crate::process::time_limit::TimeLimit;

/// A running command. Dropping it cancels the command.
#[derive(Debug)]
pub struct RunningCommand {
    pid: i32,
    screen: Arc<Screen>,
    shared: Arc<SharedOutput>,
    reading: Arc<OutputReading>,
    input: Option<CommandInput>,
    pipes: Option<CommandPipes>,
    time_limit: TimeLimit,
    cancel: CancellationToken,
    supervisor: JoinHandle<CommandOutcome>,
    armed: Option<DropGuard>,
}

impl RunningCommand {
    /// Returns the id of the command's process, or of its launcher if the command has its own PID namespace. It is
    /// also the id of its process group.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the screen of the run, for an editor.
    pub fn screen(&self) -> Arc<Screen> {
        Arc::clone(&self.screen)
    }

    /// Returns the raw output of the run, for a terminal.
    pub fn feed(&self) -> Arc<Feed> {
        Arc::new(Feed::new(Arc::clone(&self.shared)))
    }

    /// Returns the output of the run for a model, which can read it while the run goes on.
    pub fn reading(&self) -> Arc<OutputReading> {
        Arc::clone(&self.reading)
    }

    /// Returns the handle for standard input, if the input stays open.
    pub fn input(&self) -> Option<CommandInput> {
        self.input.clone()
    }

    /// Takes the ends of the pipes of [`Streams::Pipes`](crate::Streams::Pipes), once.
    pub fn take_pipes(&mut self) -> Option<CommandPipes> {
        self.pipes.take()
    }

    /// Returns the handle that pauses the command's time-out, for example while a person writes a text for which the command
    /// waits. A container has a time-out of its own, which does not pause.
    pub fn time_limit(&self) -> TimeLimit {
        self.time_limit.clone()
    }

    /// Ends the command with all its processes.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns a token that ends the command with all its processes, also those that are kept for a person.
    pub fn canceller(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Waits until the command has ended, its output is read, and its processes are ended or kept.
    pub async fn outcome(mut self) -> CommandOutcome {
        let outcome = (&mut self.supervisor).await;
        if let Some(armed) = self.armed.take() {
            armed.disarm();
        }
        outcome.unwrap_or_else(|_| CommandOutcome {
            output: "[the command was given up: its supervisor failed]\n".to_owned(),
            cancelled: true,
            ..CommandOutcome::default()
        })
    }
}

/// Starts a task that supervises the process, and returns its handle.
pub(crate) fn supervise(mut new_command: NewCommand) -> RunningCommand {
    let keep = new_command.settings.screen_lines;
    let shared = Arc::new(SharedOutput::new(keep, new_command.settings.max_output));
    let screen = Arc::new(Screen::new(Arc::clone(&shared), keep));
    let reading = OutputReading::new(
        Arc::clone(&shared),
        new_command.settings.max_output,
        spill::path(&new_command.settings.spill_dir, &new_command.name),
        new_command.settings.spill_max,
    );
    let secrets = new_command.held.secrets().cloned();
    let reading = Arc::new(reading.with_secrets(secrets));
    let cancel = new_command.cancel.clone();
    let pid = new_command.started.pid.as_raw_nonzero().get();
    let tasks = new_command.command_tasks.tasks.clone();
    let over = CancellationToken::new();
    let end = over.clone().drop_guard();
    let pipes = new_command.started.pipes.take();
    let fd = new_command.started.input.take();
    let input = fd.map(|fd| CommandInput::start(fd, new_command.streams, over));
    let time_limit = new_command.time_limit.clone();
    let supervisor = Supervisor::new(new_command, Arc::clone(&shared));
    let supervisor = tasks.spawn(async move {
        let _end = end;
        supervisor.run().await
    });
    RunningCommand {
        pid,
        screen,
        shared,
        reading,
        input,
        pipes,
        time_limit,
        armed: Some(cancel.clone().drop_guard()),
        cancel,
        supervisor,
    }
}
