//! Supervises one command: enforces its time-out and its limits, ends and reaps its processes, and makes its [`CommandOutcome`].

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::command::Caller;
use crate::container::{Inside, OUTER_TIMEOUT_MARGIN};
use crate::executor::bounds::LimitChecks;
use crate::executor::running_mechanism::RunningMechanism;
use crate::executor::start::StartedProcess;
use crate::limits::{CommandLimits, ExceededLimit};
use crate::outcome::{BackgroundProcess, CommandOutcome};
use crate::output::model;
use crate::output::reader::{OutputReader, SharedOutput};
use crate::output::status;
use crate::process::children;
use crate::process::command_processes::{CommandProcesses, STOP_GRACE_PERIOD};
use crate::process::disk_checks::{DirectoryLimits, Excess};
use crate::process::streams::Streams;
use crate::process::time_limit::TimeLimit;
use crate::sandbox::ConfinedCommand;
use crate::settings::ExecSettings;

/// If a command has ended and nothing is printed for this long, its output counts as complete.
const OUTPUT_IDLE_TIME: Duration = Duration::from_millis(50);
/// The longest time for which co reads the output of processes that remain after the command has ended.
const REMAINING_OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);
/// The longest wait for the end of the output after all processes have ended.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The most remaining processes that the text for a model names.
const MAX_NAMED_PROCESSES: usize = 10;

/// The inputs of a supervisor.
pub(crate) struct NewCommand {
    pub(crate) started: StartedProcess,
    pub(crate) streams: Streams,
    pub(crate) caller: Caller,
    pub(crate) timeout: Duration,
    pub(crate) time_limit: TimeLimit,
    pub(crate) limits: CommandLimits,
    pub(crate) mechanism: RunningMechanism,
    /// True if the command is a search, such as `grep`, whose exit status 1 is no failure.
    pub(crate) is_search: bool,
    /// The name of the spill file, without its suffix.
    pub(crate) name: String,
    pub(crate) settings: Arc<ExecSettings>,
    pub(crate) cancel: CancellationToken,
    pub(crate) command_tasks: CommandTasks,
}

/// The tasks that supervise commands, including commands that have ended but whose processes are kept for a person.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandTasks {
    pub(crate) tasks: TaskTracker,
    /// Notified when orphans have been reaped.
    pub(crate) swept: Arc<Notify>,
}

/// The reason why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Exit,
    Cancelled,
    TimedOut,
    Flooded,
    Limited(ExceededLimit),
}

/// The state of the task that owns a running command.
pub(crate) struct Supervisor {
    pid: Pid,
    ended: AsyncFd<OwnedFd>,
    mechanism: RunningMechanism,
    processes: CommandProcesses,
    caller: Caller,
    timeout: Duration,
    time_limit: TimeLimit,
    limits: CommandLimits,
    checks: LimitChecks,
    is_search: bool,
    settings: Arc<ExecSettings>,
    cancel: CancellationToken,
    command_tasks: CommandTasks,
    shared: Arc<SharedOutput>,
    reader: ReaderTask,
    began: Instant,
}

/// The task that reads the output. After the task has ended, the reader that it returned; `None` if the task failed.
enum ReaderTask {
    Busy(JoinHandle<OutputReader>, CancellationToken),
    Done(Option<Box<OutputReader>>),
}

impl Supervisor {
    pub(crate) fn new(new_command: NewCommand, shared: Arc<SharedOutput>) -> Self {
        let StartedProcess {
            pid,
            mark,
            ended,
            output,
            group,
            confined: _,
            input: _,
            reports: _,
            sockets: _,
            pipes: _,
        } = new_command.started;
        let mechanism = new_command.mechanism;
        let namespaced = mechanism.confined().is_some_and(|it| it.pid_namespace);
        let stop = CancellationToken::new();
        let mut reader = OutputReader {
            output,
            shared: Arc::clone(&shared),
            settings: Arc::clone(&new_command.settings),
            name: new_command.name,
            spill: None,
            stop: stop.clone(),
        };
        let reading = tokio::spawn(async move {
            reader.run().await;
            reader
        });
        Self {
            pid,
            ended,
            processes: CommandProcesses::new(pid, mark, group, namespaced),
            caller: new_command.caller,
            timeout: match mechanism.inside() {
                Some(_) => new_command.timeout.saturating_add(OUTER_TIMEOUT_MARGIN),
                None => new_command.timeout,
            },
            mechanism,
            time_limit: new_command.time_limit,
            limits: new_command.limits,
            checks: LimitChecks::new(new_command.limits),
            is_search: new_command.is_search,
            settings: new_command.settings,
            cancel: new_command.cancel,
            command_tasks: new_command.command_tasks,
            shared,
            reader: ReaderTask::Busy(reading, stop),
            began: Instant::now(),
        }
    }

    pub(crate) async fn run(mut self) -> CommandOutcome {
        let cause = self.wait().await;
        let wall = self.began.elapsed();
        let (mut cause, background) = match self.mechanism {
            RunningMechanism::Engine(_) => self.end_inside(cause, wall).await,
            RunningMechanism::None | RunningMechanism::Kernel(_) => (cause, self.end(cause).await),
        };
        let kept = cause == Cause::Exit && self.keeps() && !background.is_empty();
        if !kept {
            self.reader.finish(DRAIN_TIMEOUT).await;
        }
        if self.processes.had_descendants() {
            self.processes.sweep();
        }
        let status = children::reap(self.pid);
        if cause == Cause::Exit
            && let Some(inside) = self.mechanism.inside()
            && inside.timed_out(status.and_then(|status| status.code()), wall)
        {
            cause = Cause::TimedOut;
        }
        self.processes.set_reaped();
        self.reader.stop().await;
        let setuid = match self.mechanism.inside() {
            Some(inside) => inside.clear_setuid().await,
            None => None,
        };
        let ended = Instant::now();
        let mut outcome = self.outcome(cause, status, background);
        (outcome.wall, outcome.kept) = (wall, kept);
        outcome.ended = Some(ended);
        outcome.note = [outcome.note.take(), setuid]
            .into_iter()
            .flatten()
            .reduce(|a, b| a + "; " + &b);
        self.add_output(&mut outcome, ended).await;
        self.shared.end();
        if kept {
            self.keep();
        }
        outcome
    }

    /// Ends the command if it has not ended by itself. Returns the processes that the command left running.
    async fn end(&mut self, cause: Cause) -> Vec<BackgroundProcess> {
        let grace = match cause {
            Cause::Exit => {
                self.processes.set_exited();
                let background = self.settle().await;
                if !self.keeps() && self.processes.any_runs() {
                    self.end_processes(STOP_GRACE_PERIOD).await;
                }
                return background;
            }
            // A command above a limit would take more meanwhile.
            Cause::Limited(_) => Duration::ZERO,
            Cause::Cancelled | Cause::TimedOut | Cause::Flooded => STOP_GRACE_PERIOD,
        };
        self.end_processes(grace).await;
        Vec::new()
    }

    /// Ends a command inside its container if it has not ended by itself. Also ends the engine's client. Returns the final cause,
    /// and the processes that the command left running.
    async fn end_inside(
        &mut self,
        cause: Cause,
        wall: Duration,
    ) -> (Cause, Vec<BackgroundProcess>) {
        let Some(inside) = self.mechanism.inside() else {
            return (cause, Vec::new());
        };
        let mut left = Vec::new();
        let cause = match cause {
            Cause::Exit if inside.timed_out(inside.reports().code, wall) => Cause::TimedOut,
            cause => cause,
        };
        if cause == Cause::Exit {
            left = inside.left().await;
        }
        let keeps = cause == Cause::Exit && self.caller == Caller::Person;
        if cause != Cause::Exit || !left.is_empty() && !keeps {
            inside.end().await;
        }
        // Docker's client goes on for two seconds if a process that was left may still print.
        let pause = if keeps && !left.is_empty() {
            REMAINING_OUTPUT_TIMEOUT
        } else {
            DRAIN_TIMEOUT
        };
        let client = tokio::time::timeout(pause, self.ended.readable())
            .await
            .is_ok();
        if client {
            self.processes.set_exited();
        }
        if !client && left.is_empty() && cause == Cause::Exit {
            // It did not tell of what it left.
            inside.end().await;
        }
        self.reader.finish(DRAIN_TIMEOUT).await;
        if self.processes.any_runs() {
            self.end_processes(STOP_GRACE_PERIOD).await;
        }
        (cause, left)
    }

    async fn wait(&mut self) -> Cause {
        let late = self.time_limit.clone().expired(self.timeout);
        let full = self.full_disk();
        tokio::pin!(late, full);
        loop {
            tokio::select! {
                biased;
                _ = self.ended.readable() => return Cause::Exit,
                () = self.mechanism.ended() => return Cause::Exit,
                () = self.cancel.cancelled() => return Cause::Cancelled,
                () = self.shared.flooded() => return Cause::Flooded,
                () = &mut late => return Cause::TimedOut,
                limit = &mut full => return Cause::Limited(limit),
                () = self.checks.next() => {}
            }
            if let Some(limit) = self.exceeded() {
                return Cause::Limited(limit);
            }
        }
    }

    /// Returns a limit that the command's processes exceed at the moment.
    fn exceeded(&mut self) -> Option<ExceededLimit> {
        if let Some(most) = self.limits.processes
            && self.processes.ran_out_of_processes()
        {
            return Some(ExceededLimit::Processes(most));
        }
        let members = self.processes.members();
        let by_kernel = self.processes.is_limited_by_kernel();
        self.checks
            .exceeded(&members, self.mechanism.confined(), by_kernel)
    }

    /// Waits until a limit on disk usage is exceeded, and returns the limit. The limits are those of the private temporary
    /// directory, of granted paths, of a trial's layer and of its caches. If there is no such limit, waits forever.
    fn full_disk(&self) -> impl Future<Output = ExceededLimit> + use<> {
        let confined = self.mechanism.confined();
        let limits = |dirs: Vec<&Path>, bytes, files| DirectoryLimits {
            dirs: dirs.into_iter().map(Path::to_owned).collect(),
            bytes,
            files,
        };
        let tmp = confined.and_then(ConfinedCommand::tmp_on_disk);
        let tmp = limits(tmp.into_iter().collect(), self.limits.disk, None);
        let places = confined.map_or(&[][..], ConfinedCommand::limited_places);
        let places = places.iter().map(AsRef::as_ref).collect();
        let places = limits(places, self.limits.places, None);
        let layer = confined.and_then(ConfinedCommand::changes);
        let layer = layer.into_iter().collect();
        let layer = limits(layer, self.limits.changes, self.limits.changed_files);
        let caches = confined.map_or(&[][..], ConfinedCommand::caches);
        let caches = caches.iter().map(AsRef::as_ref).collect();
        let caches = limits(caches, self.limits.caches, self.limits.cached_files);
        async move {
            tokio::select! {
                excess = tmp.exceeded() => match excess {
                    Excess::Bytes(most) | Excess::Files(most) => ExceededLimit::Disk(most),
                },
                excess = places.exceeded() => match excess {
                    Excess::Bytes(most) | Excess::Files(most) => ExceededLimit::Places(most),
                },
                excess = layer.exceeded() => match excess {
                    Excess::Bytes(most) => ExceededLimit::Changes(most),
                    Excess::Files(most) => ExceededLimit::ChangedFiles(most),
                },
                excess = caches.exceeded() => match excess {
                    Excess::Bytes(most) => ExceededLimit::Caches(most),
                    Excess::Files(most) => ExceededLimit::CachedFiles(most),
                },
            }
        }
    }

    /// Reads the remaining output until it ends or pauses. Returns the processes that still run.
    async fn settle(&mut self) -> Vec<BackgroundProcess> {
        let began = Instant::now();
        let mut bytes = self.shared.capture().bytes();
        loop {
            // Usually no process remains, and the output has ended already.
            let done = self.reader.finish(OUTPUT_IDLE_TIME).await;
            let mut left = self.processes.background();
            if done && left.is_empty() {
                return left;
            }
            if done {
                // A process that is about to end is not worth mentioning.
                tokio::time::sleep(OUTPUT_IDLE_TIME).await;
                left = self.processes.background();
            }
            let now = self.shared.capture().bytes();
            if now == bytes || done || began.elapsed() > REMAINING_OUTPUT_TIMEOUT {
                return left;
            }
            bytes = now;
        }
    }

    async fn end_processes(&mut self, grace: Duration) {
        if !self.processes.end(grace).await {
            tracing::warn!("a command's processes could not be ended");
        }
    }

    fn outcome(
        &self,
        cause: Cause,
        status: Option<ExitStatus>,
        background: Vec<BackgroundProcess>,
    ) -> CommandOutcome {
        let inside = self.mechanism.inside();
        let reported = inside.and_then(|inside| inside.reports().code);
        let exit = reported.or_else(|| status.and_then(|status| status.code()));
        let (bytes, lines) = {
            let capture = self.shared.capture();
            (capture.bytes(), capture.lines())
        };
        CommandOutcome {
            exit,
            signal: status.and_then(|status| status.signal()),
            timed_out: cause == Cause::TimedOut,
            cancelled: cause == Cause::Cancelled,
            flooded: cause == Cause::Flooded,
            limit: self.limit(cause, &background),
            background,
            bytes,
            lines,
            level: self.mechanism.level(),
            note: inside.and_then(|inside| inside.note(cause == Cause::Exit)),
            appeared: self.mechanism.appeared(),
            nothing_found: self.is_search && exit == Some(1) && cause == Cause::Exit,
            ..CommandOutcome::default()
        }
    }

    /// Returns the limit for which co or the kernel ended the command.
    fn limit(&self, cause: Cause, left: &[BackgroundProcess]) -> Option<ExceededLimit> {
        match cause {
            Cause::Limited(limit) => Some(limit),
            Cause::Exit if self.mechanism.inside().is_some() => {
                self.mechanism.inside().and_then(Inside::limit)
            }
            _ if self.processes.ran_out_of_memory() => {
                self.limits.memory.map(ExceededLimit::Memory)
            }
            // Its remaining processes continued until they reached the limit.
            Cause::Exit if !left.is_empty() && self.processes.ran_out_of_processes() => {
                self.limits.processes.map(ExceededLimit::Processes)
            }
            _ => None,
        }
    }

    /// Adds to the outcome: the text for the model, the output file, and the note if the output is withheld. `ended` is the time
    /// at which the command ended.
    async fn add_output(&mut self, outcome: &mut CommandOutcome, ended: Instant) {
        let ends = self.shared.capture().head_and_tail();
        let max = self.settings.max_output;
        let mut view = model::view(&ends, max, None);
        if let ReaderTask::Done(Some(reader)) = &mut self.reader
            && let Some(kept) = reader.finish(view.left_out.is_some()).await
        {
            let place = kept.note();
            if view.left_out.is_some() {
                view = model::view(&ends, max, Some(&place));
            }
            self.shared.set_file_note(place);
            (outcome.spill, outcome.gap) = (Some(kept.path), kept.gap);
        }
        let withheld = self.withheld(ended).await;
        outcome.withheld = withheld.is_some();
        if let Some(withheld) = withheld.filter(|_| self.caller == Caller::Agent) {
            outcome.spill = None;
            // The command could put a secret into its exit status and into names too.
            outcome.output = format!("[{withheld}]\n");
            return;
        }
        outcome.output = view.text;
        outcome.printed = outcome.output.len();
        let left = status::remaining(outcome, MAX_NAMED_PROCESSES);
        let appeared = status::appeared(outcome);
        let how = status::explain(outcome);
        let lines = [view.left_out, left, appeared, how, outcome.note.clone()];
        for line in lines.into_iter().flatten() {
            if !outcome.output.is_empty() && !outcome.output.ends_with('\n') {
                outcome.output.push('\n');
            }
            outcome.output.push_str(&format!("[{line}]\n"));
        }
    }

    /// Returns true if processes that remain after the command may continue. In a trial, they may not continue, because co
    /// compares the changes after the end of the command.
    fn keeps(&self) -> bool {
        let confined = self.mechanism.confined();
        self.caller == Caller::Person && !confined.is_some_and(ConfinedCommand::is_trial)
    }

    /// If the command could read a secret that appeared before the time `ended`, returns a note that replaces the output. Returns
    /// `None` for a command that the person runs outside a trial, because the person may read the output.
    async fn withheld(&self, ended: Instant) -> Option<String> {
        let secrets = self.mechanism.secrets()?.clone();
        let watch = secrets.clone();
        if self.keeps() {
            tokio::task::spawn_blocking(move || watch.end());
            return None;
        }
        let look = tokio::task::spawn_blocking(move || secrets.withheld(ended));
        let failed = "output withheld: co could not look for secrets again";
        let withheld = look.await.unwrap_or_else(|_| Some(failed.to_owned()));
        tokio::task::spawn_blocking(move || watch.end());
        withheld
    }

    /// Lets the remaining processes of a person's command continue. They can print, and the person can still cancel them.
    fn keep(self) {
        let Self {
            mut processes,
            reader,
            cancel,
            command_tasks,
            mechanism,
            ..
        } = self;
        let ReaderTask::Done(Some(mut reader)) = reader else {
            return;
        };
        let CommandTasks { tasks, swept } = command_tasks;
        tasks.spawn(async move {
            let gone = async {
                reader.discard().await;
                if let Some(inside) = mechanism.inside() {
                    return inside.gone().await;
                }
                loop {
                    let next = swept.notified();
                    processes.sweep();
                    if !processes.any_runs() {
                        return;
                    }
                    next.await;
                }
            };
            let cancelled = tokio::select! {
                () = cancel.cancelled() => true,
                () = gone => false,
            };
            if cancelled {
                if let Some(inside) = mechanism.inside() {
                    inside.end().await;
                }
                processes.end(STOP_GRACE_PERIOD).await;
            }
            if let Some(inside) = mechanism.inside() {
                inside.clear_setuid().await;
            }
            drop(mechanism);
            // The other holders of the token learn that there is nothing left to end.
            cancel.cancel();
        });
    }
}

impl ReaderTask {
    /// Waits for the end of the output, but no longer than `most`. Returns true if the output has ended.
    async fn finish(&mut self, most: Duration) -> bool {
        let Self::Busy(task, _) = self else {
            return true;
        };
        match tokio::time::timeout(most, task).await {
            Ok(Ok(reader)) => *self = Self::Done(Some(Box::new(reader))),
            Ok(Err(_)) => *self = Self::Done(None),
            Err(_) => return false,
        }
        true
    }

    /// Stops reading the output.
    async fn stop(&mut self) {
        if let Self::Busy(_, stop) = self {
            stop.cancel();
            self.finish(Duration::MAX).await;
        }
    }
}
