//! The handle of a running command.

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

/// A running command. Dropping the handle cancels the command.
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
    /// Returns the id of the command's process, which is also the id of its process group. If the command has its own PID
    /// namespace, it is the id of its launcher.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the screen: the output as lines for an editor.
    pub fn screen(&self) -> Arc<Screen> {
        Arc::clone(&self.screen)
    }

    /// Returns the feed: the raw output for a terminal.
    pub fn feed(&self) -> Arc<Feed> {
        Arc::new(Feed::new(Arc::clone(&self.shared)))
    }

    /// Returns the output for a model, which can read it while the command runs.
    pub fn reading(&self) -> Arc<OutputReading> {
        Arc::clone(&self.reading)
    }

    /// Returns the handle that writes to standard input, or `None` if the input does not stay open.
    pub fn input(&self) -> Option<CommandInput> {
        self.input.clone()
    }

    /// Returns the caller's ends of the pipes of [`Streams::Pipes`](crate::Streams::Pipes). Returns `None` for other streams, and
    /// after the first call.
    pub fn take_pipes(&mut self) -> Option<CommandPipes> {
        self.pipes.take()
    }

    /// Returns the handle that pauses the command's time-out, for example while a person edits a text for the waiting command. It
    /// does not pause the additional time-out inside a container.
    pub fn time_limit(&self) -> TimeLimit {
        self.time_limit.clone()
    }

    /// Ends the command with all its processes.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns a token that ends the command with all its processes. It also ends processes that are kept for a person after the
    /// command.
    pub fn canceller(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Waits until the command has ended, its output is read, and its remaining processes are ended or kept. Returns the outcome.
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

/// Starts a task that supervises the process. Returns the handle of the command.
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
    let secrets = new_command.mechanism.secrets().cloned();
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
