//! The processes of a command inside a container, which the supervisor cannot see: it sees only the engine's client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::control::{self, Control, Reports};
use super::instance::Container;
use super::script::{END, LEFT, RUN, script};
use super::setuid;
use crate::command::Program;
use crate::environment::Variables;
use crate::error::engine::{EngineFault, FaultKind};
use crate::limits::ExceededLimit;
use crate::outcome::BackgroundProcess;
use crate::regular::ChangeTime;
use crate::sandbox::WatchedPaths;
use crate::secrets::exposure::SecretWatch;

/// The difference between the supervisor's time-out and the earlier time-out inside the container.
pub(crate) const OUTER_TIMEOUT_MARGIN: Duration = Duration::from_secs(5);

/// The longest wait until the processes inside the container have ended. After it, co removes the container.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// An upper bound of the time by which the time stamp of a changed file may be behind the clock.
const CLOCK_RESOLUTION: Duration = Duration::from_millis(20);

/// The pause before the first check whether processes that a person's command left behind still run. Each later pause is twice as
/// long.
const FIRST_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The longest pause between two checks whether processes that a person's command left behind still run.
const MAX_LOOK_INTERVAL: Duration = Duration::from_secs(15);

/// The exit statuses of the program `timeout` after a time-out: of coreutils, of coreutils after SIGKILL, and of busybox.
const TIME_OUT: [i32; 3] = [124, 137, 143];

/// The mark for the next command, which identifies its processes; see [`super::script`].
static NEXT_MARK: AtomicU64 = AtomicU64::new(1_000_000);

/// A command that runs inside a container.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) container: Arc<Container>,
    mark: u64,
    /// The reports of the script that runs the command. `None` if the command has a terminal, because then no stream is left for
    /// reports.
    control: Option<Control>,
    /// The time-out that the script enforces in the container.
    limit: Option<Duration>,
    /// True if the command is read-only.
    pub(crate) read_only: bool,
    /// A time shortly before the command started.
    start: ChangeTime,
    pub(crate) secrets: Option<SecretWatch>,
    /// The state, before the command, of the files that other programs run or read as configuration. co compares these files
    /// after the command.
    pub(crate) watched: Arc<WatchedPaths>,
}

/// A command to start inside a container.
pub(crate) struct InsideRequest<'a> {
    pub(crate) program: &'a Program,
    /// The working directory in the container.
    pub(crate) cwd: &'a str,
    pub(crate) env: &'a Variables,
    /// True if standard input stays open.
    pub(crate) input: bool,
    pub(crate) terminal: bool,
    pub(crate) limit: Option<Duration>,
}

impl Inside {
    pub(crate) fn new(container: Arc<Container>, limit: Option<Duration>, read_only: bool) -> Self {
        Self {
            container,
            mark: NEXT_MARK.fetch_add(1, Ordering::Relaxed),
            control: None,
            limit,
            read_only,
            start: ChangeTime::from(SystemTime::now() - CLOCK_RESOLUTION),
            secrets: None,
            watched: Arc::default(),
        }
    }

    /// Sets the reader of the script's reports.
    pub(crate) fn with_control(self, control: Option<Control>) -> Self {
        Self { control, ..self }
    }

    /// Returns the name of the level.
    pub(crate) fn level(&self) -> &'static str {
        match self.read_only {
            true => "read-only",
            false => "container",
        }
    }

    /// Returns the command line of the engine's client.
    pub(crate) fn argv(&self, request: &InsideRequest<'_>) -> Vec<String> {
        let program = self.container.engine.program().to_string_lossy();
        let mut argv: Vec<String> = vec![program.into_owned(), "exec".into()];
        if request.input || request.terminal {
            argv.push("--interactive".into());
        }
        if request.terminal {
            argv.push("--tty".into());
        }
        argv.extend(["--workdir".into(), request.cwd.to_owned()]);
        for (name, value) in request.env {
            let entry = format!("{}={}", name.to_string_lossy(), value.to_string_lossy());
            argv.extend(["--env".into(), entry]);
        }
        let seconds = request
            .limit
            .map_or(0, |limit| limit.as_millis().div_ceil(1000));
        let streams = if request.terminal { "tty" } else { "pipe" };
        let (kind, words) = match request.program {
            Program::Shell(text) => ("shell", vec![text.clone()]),
            Program::Argv(words) => ("argv", words.clone()),
        };
        let mark = self.mark.to_string();
        argv.extend([self.container.name.as_str(), "sh", "-c"].map(str::to_owned));
        argv.extend([script(RUN), "co".into(), mark, seconds.to_string()]);
        argv.extend([kind.to_owned(), streams.to_owned()]);
        argv.extend(words);
        argv
    }

    /// Returns the reports that the script has sent so far.
    pub(crate) fn reports(&self) -> Reports {
        self.control
            .as_ref()
            .map(Control::reports)
            .unwrap_or_default()
    }

    /// Waits until the command has started.
    ///
    /// # Errors
    /// The command did not start. The error has the engine's reason.
    pub(crate) async fn started(
        control: &Control,
        container: &Container,
    ) -> Result<(), EngineFault> {
        if control.started().await {
            return Ok(());
        }
        let words = control.reports().words;
        Err(EngineFault::of(
            &container.engine.name(),
            container.image(),
            &words,
        ))
    }

    /// Waits until the script reports the end of the command. Without reports, waits forever.
    pub(crate) async fn ended(&self) {
        let ended = match &self.control {
            Some(control) => control.ended().await,
            None => false,
        };
        if !ended {
            std::future::pending().await
        }
    }

    /// Returns whether the time-out inside the container ended a command that took `wall` and exited with `code`. A command may
    /// exit with the same status by itself, so the time must have reached the limit too.
    pub(crate) fn timed_out(&self, code: Option<i32>, wall: Duration) -> bool {
        let late = self.limit.is_some_and(|limit| wall >= limit);
        late && code.is_some_and(|code| TIME_OUT.contains(&code))
    }

    /// Returns the memory limit of the container if the kernel killed a process for lack of memory and the command failed.
    pub(crate) fn limit(&self) -> Option<ExceededLimit> {
        let reports = self.reports();
        let killed = reports.out_of_memory && reports.code.is_some_and(|code| code != 0);
        killed.then(|| ExceededLimit::Memory(self.container.memory()))
    }

    /// Returns a sentence for a person: about an end that the exit status does not explain, or about a program that the image
    /// lacks. `alone` is true if co did not end the command.
    pub(crate) fn note(&self, alone: bool) -> Option<String> {
        let reports = self.control.as_ref()?.reports();
        if alone && reports.code.is_none() {
            // The next command finds out if the container can run it.
            self.container.suspect();
            let words = reports.words.lines().last();
            return Some(match words {
                Some(words) => format!("the container did not go on: {words}"),
                None => {
                    "its shell in the container was killed, or could start no process".to_owned()
                }
            });
        }
        if reports.out_of_memory && reports.code == Some(0) {
            // Such as in the middle of a pipe.
            let most = ExceededLimit::Memory(self.container.memory());
            return Some(format!("a program was killed: it took {most}"));
        }
        let image = self.container.image();
        match reports
            .missing
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()[..]
        {
            [] => None,
            _ if !self.container.tells_missing() => None,
            ["bash"] => Some(format!(
                "the image {image} has no bash, so commands run in its sh"
            )),
            _ => Some(format!(
                "the image {image} has no timeout, so a time-out comes {} s late",
                OUTER_TIMEOUT_MARGIN.as_secs()
            )),
        }
    }

    /// Removes the setuid bits of files that the command created in the workspace. If there were such files, returns a sentence
    /// about them.
    pub(crate) async fn clear_setuid(&self) -> Option<String> {
        match self.read_only {
            true => None,
            false => setuid::clear(&self.container, self.start).await,
        }
    }

    /// Waits until no process of the command runs.
    pub(crate) async fn gone(&self) {
        let mut pause = FIRST_LOOK_INTERVAL;
        loop {
            tokio::time::sleep(pause).await;
            match self.call(LEFT).await {
                Ok(lines) if !control::processes(&lines).is_empty() => {}
                Err(fault) if fault.kind == FaultKind::Slow => {}
                _ => return,
            }
            pause = (pause * 2).min(MAX_LOOK_INTERVAL);
        }
    }

    /// Returns the processes that the command left running.
    pub(crate) async fn left(&self) -> Vec<BackgroundProcess> {
        let reports = self.reports();
        if reports.code.is_some() {
            return reports.left;
        }
        let listed = self.call(LEFT).await;
        listed.map_or_else(|_| Vec::new(), |lines| control::processes(&lines))
    }

    /// Ends all processes of the command. If that fails, removes the container, which ends all commands in it.
    pub(crate) async fn end(&self) {
        let ended = tokio::time::timeout(END_TIMEOUT, self.call(END)).await;
        match ended {
            Ok(Ok(_)) => {}
            // Nothing runs in it any more.
            Ok(Err(fault)) if fault.kind == FaultKind::Gone => {}
            _ => {
                tracing::warn!(
                    name = self.container.name,
                    "a container is removed to end a command"
                );
                self.container.remove().await;
            }
        }
    }

    async fn call(&self, text: &str) -> Result<String, EngineFault> {
        let (text, mark) = (script(text), self.mark.to_string());
        let name = &self.container.name;
        let args = ["exec", name, "sh", "-c", &text, "co", &mark];
        self.container.call(&args).await
    }
}
