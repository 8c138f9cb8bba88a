//! Starts commands, and ends all of them at shutdown.

mod bounds;
mod inside;
pub(crate) mod running_command;
mod running_mechanism;
mod start;
pub(crate) mod supervisor;

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::command::{Caller, CommandSpec, UNTIL_IT_ENDS};
use crate::confinement::{Confinement, Mechanism};
use crate::container::{Containers, Control, Inside};
use crate::error::Error;
use crate::error::refusal::{HidingRefusal, SandboxRefusal};
use crate::executor::running_command::RunningCommand;
use crate::executor::running_mechanism::RunningMechanism;
use crate::executor::start::{NotBegun, StartRequest, StartedProcess};
use crate::executor::supervisor::{CommandTasks, NewCommand};
use crate::limits::{CommandLimits, ProcessLimits};
use crate::output::{spill, status};
use crate::process::cgroup::{Group, GroupsDirectory};
use crate::process::env::{self, Sources};
use crate::process::streams::Streams;
use crate::process::time_limit::TimeLimit;
use crate::process::{children, command_processes, login, procfs};
use crate::sandbox::{self, Launcher};
use crate::secrets::exposure::SecretWatch;
use crate::settings::ExecSettings;

/// The most surveys of a workspace for the start of one command. co surveys again if a secret moves before it is hidden.
const MAX_SURVEYS: usize = 3;
/// The most attempts to start an engine's client for one command. Before each attempt but the first, co restores the container.
const MAX_CLIENTS: usize = 2;
/// The pause between the end of an orphan and its reaping. Orphans that end within the pause are reaped together.
const REAP_DELAY: Duration = Duration::from_millis(100);
/// The longest wait for all commands to end at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(800);
/// The longest wait at shutdown for the removal of files that commands left. The next backend removes the remaining files.
const REMOVAL_TIMEOUT: Duration = Duration::from_millis(400);

/// The inputs for a new [`Executor`].
#[derive(Debug)]
pub struct ExecutorSetup {
    pub settings: ExecSettings,
    /// The launcher confines and limits commands. Without a launcher, the executor refuses every [`Confinement`] but `Plain`. It
    /// then checks the limits of a model's commands itself, and the kernel enforces none of them.
    pub launcher: Option<Launcher>,
    /// True if no other part of this process starts processes in sessions of their own. At shutdown, the executor then kills
    /// every process that is outside the session of this process.
    pub sole: bool,
    /// The environment variables from which co selects the variables of commands, by an allowlist.
    pub env: Vec<(OsString, OsString)>,
}

impl ExecutorSetup {
    /// Returns the inputs for an executor that has the environment of this process, no sandbox and no limits.
    pub fn new(settings: ExecSettings) -> Self {
        Self {
            settings,
            launcher: None,
            sole: false,
            env: std::env::vars_os().collect(),
        }
    }
}

/// A process to start for a command, and the limits of the command.
struct Launch<'a> {
    request: StartRequest<'a>,
    limits: CommandLimits,
    /// The command inside its container, if the process is the engine's client.
    inside: Option<Inside>,
}

/// Starts commands. Cloning is cheap: clones share all state. A handle from [`Executor::with`] differs in its settings.
#[derive(Debug, Clone)]
pub struct Executor {
    inner: Arc<Inner>,
    settings: Arc<ExecSettings>,
}

#[derive(Debug)]
struct Inner {
    launcher: Option<Launcher>,
    groups: OnceLock<Option<GroupsDirectory>>,
    env: Vec<(OsString, OsString)>,
    /// A random text that makes the names of output files unique.
    token: String,
    sole: bool,
    next: AtomicU64,
    root: CancellationToken,
    command_tasks: CommandTasks,
    login_path: OnceCell<Option<String>>,
    containers: Arc<Containers>,
}

impl Executor {
    /// Creates an executor. Makes this process a subreaper, which adopts the orphans of commands. Removes old output files, and
    /// the files that killed backends left.
    ///
    /// Call it within a tokio runtime with I/O and time drivers.
    ///
    /// # Errors
    /// A setting is out of range, or the system refuses.
    pub fn new(setup: ExecutorSetup) -> Result<Self, Error> {
        let ExecutorSetup {
            settings,
            launcher,
            sole,
            env,
        } = setup;
        settings.check()?;
        let launcher = launcher.map(|it| {
            it.namespaces(settings.namespaces)
                .read_roots(settings.read_roots.clone())
        });
        let system = |what| move |source| Error::System { what, source };
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(std::io::Error::from)
            .map_err(system("become the one who reaps orphans"))?;
        survive_file_size_signal()
            .and_then(|()| reset_ignored_signals())
            .map_err(system("hear signals"))?;
        let token = token();
        let (dir, age, total) = (
            settings.spill_dir.clone(),
            settings.spill_age,
            settings.spill_total,
        );
        let prune = std::thread::Builder::new().name("prune".to_owned());
        // Without a thread, the next start removes the files.
        let _ = prune.spawn(move || {
            spill::prune(&dir, age, total);
            sandbox::prune();
        });
        let inner = Arc::new(Inner {
            containers: Arc::new(Containers::new(env.clone())),
            launcher,
            groups: OnceLock::new(),
            env,
            token,
            next: AtomicU64::new(1),
            root: CancellationToken::new(),
            sole,
            command_tasks: CommandTasks::default(),
            login_path: OnceCell::new(),
        });
        let child = signal(SignalKind::child()).map_err(system("hear of ended children"))?;
        tokio::spawn(sweep(Arc::downgrade(&inner), child));
        Ok(Self {
            inner,
            settings: Arc::new(settings),
        })
    }

    /// Returns a handle of the same executor that uses other settings for the commands it starts. The settings for namespaces and
    /// for the removal of old output do not change.
    ///
    /// # Errors
    /// A setting is out of range.
    pub fn with(&self, settings: ExecSettings) -> Result<Self, Error> {
        settings.check()?;
        Ok(Self {
            inner: Arc::clone(&self.inner),
            settings: Arc::new(settings),
        })
    }

    /// Returns the launcher, if there is one.
    pub fn launcher(&self) -> Option<&Launcher> {
        self.inner.launcher.as_ref()
    }

    /// Returns the settings.
    pub fn settings(&self) -> &ExecSettings {
        &self.settings
    }

    /// Returns the environment of a command of the model, with the PATH of this process instead of the login shell's PATH.
    pub fn agent_environment(&self) -> Vec<(OsString, OsString)> {
        env::build(Sources {
            host: &self.inner.env,
            inherit: false,
            allow: &self.settings.env_allow,
            caller: Caller::Agent,
            path: None,
            extra: &[],
            terminal: false,
        })
    }

    /// Starts a command, and returns without waiting for its end.
    ///
    /// # Errors
    /// The command did not start, and nothing of it ran.
    pub async fn start(&self, spec: CommandSpec) -> Result<RunningCommand, Error> {
        self.start_on(spec, Streams::Whole).await
    }

    /// Starts a command with the given kind of streams, and returns without waiting for its end.
    ///
    /// If standard input stays open, `spec.stdin` is written to it first.
    ///
    /// # Errors
    /// The command did not start, and nothing of it ran.
    pub async fn start_on(
        &self,
        spec: CommandSpec,
        streams: Streams,
    ) -> Result<RunningCommand, Error> {
        let started = self.start_listening(spec, streams, &[]).await;
        started.map(|(running, _)| running)
    }

    /// Starts a command in the same way as [`Self::start_on`]. The command must have its own network. The loopback interface of
    /// this network gets a listening socket at each of the given addresses. The command can connect to the sockets; only the
    /// caller can accept connections.
    ///
    /// # Errors
    /// The command did not start, and nothing of it ran. If the level does not have its own network, the command never starts.
    pub async fn start_listening(
        &self,
        spec: CommandSpec,
        streams: Streams,
        addresses: &[SocketAddr],
    ) -> Result<(RunningCommand, Vec<TcpListener>), Error> {
        if !addresses.is_empty() && !spec.confinement.has_own_network() {
            let why = "this command has no network of its own, with ports that co can watch";
            return Err(Error::Sandbox(SandboxRefusal::Unable(why.to_owned())));
        }
        let timeout = self.timeout(&spec)?;
        let ready = match spec.confinement.mechanism() {
            Mechanism::Engine(level) => Some(self.ready(level, &spec).await?),
            Mechanism::None | Mechanism::Kernel(_) => None,
        };
        let path = match self.settings.login_path && ready.is_none() {
            true => {
                let path = self.inner.login_path.get_or_init(|| self.login_path());
                path.await.as_deref()
            }
            false => None,
        };
        let mut tries = 1;
        loop {
            let launch = match &ready {
                Some(ready) => self.client(&spec, streams, timeout, ready)?,
                None => {
                    let secrets = self.watch_secrets(&spec.confinement).await?;
                    self.command(&spec, streams, (path, secrets), addresses)
                }
            };
            if self.inner.root.is_cancelled() {
                return Err(Error::Closed);
            }
            let (mut process, listeners) = match start::start(launch.request)?.begin().await {
                Ok(begun) => begun,
                Err(NotBegun::Moved(_)) if tries < MAX_SURVEYS => {
                    tries += 1;
                    continue;
                }
                Err(NotBegun::Moved(secret)) => {
                    return Err(Error::Sandbox(HidingRefusal::Moving(secret).into()));
                }
                Err(NotBegun::SocketsLost) => {
                    let why = "the command was not started, because co did not get all sockets of its network: close a few files, \
                               or raise the limit of open files (ulimit -n)";
                    return Err(Error::Sandbox(SandboxRefusal::Unable(why.to_owned())));
                }
            };
            let control = process.reports.take().map(Control::read);
            let inside = launch
                .inside
                .map(|inside| inside.with_control(control.clone()));
            let started = (process, launch.limits);
            let running = self.supervise(&spec, streams, timeout, started, inside);
            let (Some(ready), Some(control)) = (&ready, control) else {
                return Ok((running, listeners));
            };
            match Inside::started(&control, &ready.container).await {
                Ok(()) => return Ok((running, listeners)),
                Err(fault) if tries == MAX_CLIENTS => return Err(fault.into()),
                Err(_) => tries += 1,
            }
            self.inner.containers.revive(&ready.container).await?;
        }
    }

    /// Finds the secrets to hide from a command, and starts to watch for further secrets. Runs on a thread that may block.
    ///
    /// # Errors
    /// In the last attempt, secrets still appeared or moved during the survey.
    async fn watch_secrets(&self, confinement: &Confinement) -> Result<Option<SecretWatch>, Error> {
        let launcher = self.inner.launcher.clone();
        let Some(launcher) = launcher.filter(|_| confinement.workspace().is_some()) else {
            return Ok(None);
        };
        let confinement = confinement.clone();
        let look = move || launcher.watch_secrets(&confinement);
        // If the thread fails, the launcher looks for them.
        let watched = tokio::task::spawn_blocking(look).await;
        let watched = watched.unwrap_or(Ok(None));
        watched.map_err(|moving| Error::Sandbox(moving.into()))
    }

    /// Returns the process to start for a command that no container engine confines.
    fn command<'a>(
        &self,
        spec: &'a CommandSpec,
        streams: Streams,
        (path, secrets): (Option<&str>, Option<SecretWatch>),
        ports: &'a [SocketAddr],
    ) -> Launch<'a> {
        let inner = &self.inner;
        let env = env::build(Sources {
            host: spec.environment.variables().unwrap_or(&inner.env),
            inherit: spec.environment.inherits(),
            allow: &self.settings.env_allow,
            caller: spec.caller,
            path: path.filter(|_| !spec.environment.inherits()),
            extra: &spec.extra_env,
            terminal: matches!(streams, Streams::Terminal(_)),
        });
        let level = spec.confinement.level();
        let limits = CommandLimits::of(&self.settings, spec.caller, spec.confinement.mechanism());
        let group = self.group(&limits, level.is_some());
        let request = StartRequest {
            program: spec.program.clone(),
            shell: spec.environment.shell(),
            cwd: &spec.cwd,
            is_real_cwd: spec.caller == Caller::Agent,
            stdin: spec.stdin.as_deref(),
            streams,
            level,
            env,
            limits: self.per_process(spec, &limits, group.as_ref()),
            tmp_size: limits.disk,
            group,
            launcher: self.inner.launcher.clone(),
            reports: false,
            secrets,
            ports,
        };
        Launch {
            request,
            limits,
            inside: None,
        }
    }

    /// Starts to supervise a process.
    fn supervise(
        &self,
        spec: &CommandSpec,
        streams: Streams,
        timeout: Duration,
        (mut started, limits): (StartedProcess, CommandLimits),
        inside: Option<Inside>,
    ) -> RunningCommand {
        let inner = &self.inner;
        let mechanism = match (inside, started.confined.take()) {
            (Some(inside), _) => RunningMechanism::Engine(Box::new(inside)),
            (None, Some(confined)) => RunningMechanism::Kernel(Box::new(confined)),
            (None, None) => RunningMechanism::None,
        };
        let number = inner.next.fetch_add(1, Ordering::Relaxed);
        let running = running_command::supervise(NewCommand {
            started,
            streams,
            caller: spec.caller,
            timeout,
            time_limit: TimeLimit::default(),
            limits,
            mechanism,
            is_search: status::is_search_text(&spec.program),
            name: format!("{}-{number}", inner.token),
            settings: Arc::clone(&self.settings),
            cancel: inner.root.child_token(),
            command_tasks: inner.command_tasks.clone(),
        });
        if let (Some(input), Some(text)) = (running.input(), &spec.stdin) {
            // The queue is empty, so this cannot fail.
            let _ = input.write(text.clone());
        }
        running
    }

    /// Creates a cgroup for a command that has limits. Returns `None` if the system does not allow it, or if a cgroup would be of
    /// no use.
    fn group(&self, limits: &CommandLimits, is_confined: bool) -> Option<Group> {
        let launcher = self.inner.launcher.as_ref()?;
        if limits.is_empty() {
            return None;
        }
        let place = self.inner.groups.get_or_init(GroupsDirectory::find);
        let place = place.as_ref()?;
        // To enter a group takes several milliseconds. A group without limits only serves to kill all processes in one call.
        // The end of a PID namespace does that too.
        if !place.has_limits() && is_confined && launcher.makes_pid_namespaces() {
            return None;
        }
        place.make(limits)
    }

    /// Returns the limits for each process of a command. Leaves out the limits on threads if a cgroup enforces the command's
    /// limit of processes, or if there is no launcher.
    fn per_process(
        &self,
        spec: &CommandSpec,
        limits: &CommandLimits,
        group: Option<&Group>,
    ) -> ProcessLimits {
        let grouped = group.is_some_and(Group::enforces_limits);
        let settable = self.inner.launcher.is_some() && !grouped;
        let processes = limits.processes.filter(|_| settable);
        ProcessLimits::of(
            &self.settings,
            spec.caller,
            spec.confinement.level(),
            processes,
        )
    }

    fn timeout(&self, spec: &CommandSpec) -> Result<Duration, Error> {
        let (asked, most) = (spec.timeout, self.settings.max_timeout);
        if asked < Duration::from_secs(1) {
            return Err(Error::Timeout {
                asked: format!("{}", asked.as_secs_f64()),
                max: most.as_secs(),
            });
        }
        match spec.caller {
            Caller::Agent if asked != UNTIL_IT_ENDS => Ok(asked.min(most)),
            _ => Ok(asked),
        }
    }

    /// Returns the PATH of the login shell, or `None` if the shell does not print it.
    async fn login_path(&self) -> Option<String> {
        let variable = |name| env::value(&self.inner.env, name);
        let shell = variable("SHELL")?.into_string().ok()?;
        let home = variable("HOME").map_or_else(|| "/".into(), PathBuf::from);
        let home = if home.is_dir() { home } else { "/".into() };
        let token = &self.inner.token;
        let spec = login::spec(&shell, home, token);
        let Launch {
            request, limits, ..
        } = self.command(&spec, Streams::Whole, (None, None), &[]);
        let path = match start::start(request) {
            Ok(started) if !self.inner.root.is_cancelled() => {
                let started = (started, limits);
                let running = self.supervise(&spec, Streams::Whole, spec.timeout, started, None);
                login::path(&running.outcome().await, token)
            }
            _ => None,
        };
        if path.is_none() {
            tracing::warn!(shell, "the login shell gave no PATH");
        }
        path
    }

    /// Ends every command with all its processes, including the jobs that the person keeps. Refuses to start more commands.
    ///
    /// Waits at most 0.8 s for the commands and 0.4 s for the removal of their files; a process that does not end may prolong
    /// this. The watchdog kills a backend that takes longer than 1.5 s.
    pub async fn shutdown(&self) {
        let inner = &self.inner;
        inner.root.cancel();
        inner.command_tasks.tasks.close();
        // Its commands end with a container.
        let removal = tokio::time::timeout(SHUTDOWN_TIMEOUT, inner.containers.remove_all());
        let ended = tokio::time::timeout(SHUTDOWN_TIMEOUT, inner.command_tasks.tasks.wait());
        let _ = tokio::join!(removal, ended);
        if inner.sole {
            // No other work is left, so this may block.
            command_processes::end_children(children::is_outside);
        }
        self.finish_removals(REMOVAL_TIMEOUT).await;
    }

    /// Waits until the temporary directories of ended commands are removed, but no longer than `limit`.
    pub async fn finish_removals(&self, limit: Duration) {
        if let Some(launcher) = &self.inner.launcher {
            launcher.finish_removals(limit).await;
        }
    }
}

/// Reaps orphans when they end, as long as the executor exists.
async fn sweep(inner: Weak<Inner>, mut child: tokio::signal::unix::Signal) {
    while child.recv().await.is_some() {
        // Processes that end together are reaped together.
        tokio::time::sleep(REAP_DELAY).await;
        let Some(inner) = inner.upgrade() else {
            return;
        };
        if inner.sole {
            children::sweep(children::is_outside);
        }
        inner.command_tasks.swept.notify_waiters();
    }
}

/// Keeps this process alive if it exceeds the limit on the size of a file (`ulimit -f`), which sends SIGXFSZ. The write fails
/// with an error instead.
fn survive_file_size_signal() -> std::io::Result<()> {
    // The handler stays until this process ends.
    signal(SignalKind::from_raw(nix::libc::SIGXFSZ)).map(drop)
}

/// Installs handlers, which do nothing, for the signals that this process inherited as ignored, for example from `nohup` or from
/// `&` in a script. A command would inherit an ignored signal, so ^C would not reach it. But the kernel resets a handled signal
/// to the default action at exec.
fn reset_ignored_signals() -> std::io::Result<()> {
    let ignored = procfs::ignored();
    for kind in [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::terminate(),
    ] {
        if ignored & (1 << (kind.as_raw_value() - 1)) != 0 {
            // The handler stays until this process ends.
            drop(signal(kind)?);
        }
    }
    Ok(())
}

/// Returns a text that no other executor uses, for the names of files.
fn token() -> String {
    format!("{:016x}{:08x}", fastrand::u64(..), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_time_is_at_least_a_second_and_a_models_is_cut_to_the_ceiling() {
        let mut settings = ExecSettings::new("/nonexistent".into());
        settings.max_timeout = Duration::from_secs(20);
        let executor = Executor::new(ExecutorSetup::new(settings)).unwrap();
        let given = |caller, timeout| {
            let spec = CommandSpec {
                caller,
                timeout,
                ..login::spec("sh", "/".into(), "t")
            };
            executor.timeout(&spec).ok()
        };
        for caller in [Caller::Agent, Caller::Person] {
            assert_eq!(given(caller, Duration::from_millis(999)), None);
            for asked in [Duration::from_secs(20), UNTIL_IT_ENDS] {
                assert_eq!(given(caller, asked), Some(asked));
            }
        }
        let more = Duration::from_secs(21);
        assert_eq!(given(Caller::Agent, more), Some(Duration::from_secs(20)));
        assert_eq!(given(Caller::Person, more), Some(more));
    }
}
