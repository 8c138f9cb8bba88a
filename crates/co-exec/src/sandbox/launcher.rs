//! Makes the command lines that start confined commands by the launcher.

mod protected;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::appeared::WatchedPaths;
use super::grants::{FoundPaths, GrantRequest, Grants};
use super::layer::Layer;
use super::placeholder::Placeholders;
use super::plan::{ConfinedPlan, ControlGroup, Grant, PathBytes, PidNamespace, Plan, Right, Task};
use super::removal::Removals;
use super::report::SandboxReport;
use super::start_gate::StartGate;
use super::support::SandboxSupport;
use super::tmp::PrivateTmp;
use super::variables::{clean, harden_git, set_caches};
use super::wrapped::ConfinedCommand;
use super::{LAUNCH, tmp};
use crate::confinement::level::{
    Access, ClosedBy, ClosedSecrets, Level, Network, OverlayPlaces, ShownSecrets, TmpPlace,
};
use crate::confinement::{Confinement, Mechanism};
use crate::environment::Variables;
use crate::error::refusal::{HidingRefusal, SandboxRefusal};
use crate::limits::ProcessLimits;
use crate::places;
use crate::process::cgroup::Group;
use crate::secrets::exposure::SecretWatch;
use crate::secrets::{Survey, Surveys};

pub(crate) use protected::ProtectedPaths;

/// The path through which a process opens its own standard input.
const STANDARD_INPUT: &str = "/proc/self/fd/0";

/// Starts confined commands. Runs a program, the launcher process, that restricts itself and then becomes the command.
#[derive(Debug, Clone)]
pub struct Launcher {
    exe: PathBuf,
    report: SandboxReport,
    grants: Arc<Grants>,
    surveys: Surveys,
    removals: Removals,
    /// The directory over which each read-only command mounts its own file system in memory. The directory itself always stays
    /// empty.
    mount_point: Arc<Mutex<Option<Arc<PrivateTmp>>>>,
}

/// A request to start a command, with its confinement and limits.
pub(crate) struct LaunchRequest<'a> {
    pub(crate) cwd: &'a Path,
    pub(crate) limits: ProcessLimits,
    /// The most bytes in the private temporary directory. `None` means no limit.
    pub(crate) tmp_size: Option<u64>,
    pub(crate) group: Option<&'a Group>,
    /// The watch for the workspace's secrets. If it is `None`, the launcher surveys the workspace itself.
    pub(crate) secrets: Option<SecretWatch>,
    /// True if the caller opens the gate of the command after its secrets are hidden.
    pub(crate) waits: bool,
    /// The addresses of the command's own loopback interface at which the launcher creates listening sockets.
    pub(crate) ports: &'a [SocketAddr],
    /// True if the command's streams are a terminal.
    pub(crate) terminal: bool,
}

impl Launcher {
    /// Creates a launcher that starts the program `exe`: [`OWN_PROGRAM`](super::OWN_PROGRAM), or another program that calls
    /// [`launch_main`](super::launch_main) first in its `main`.
    ///
    /// `home` is the person's home directory. `own` lists the directories with co's configuration, state and data, which confined
    /// commands cannot read.
    pub fn new(exe: PathBuf, home: PathBuf, own: Vec<PathBuf>) -> Self {
        let private = places::home::secrets().map(|name| home.join(name));
        Self {
            report: SandboxReport::new(exe.clone(), home.clone()),
            exe,
            surveys: Surveys::new(private.collect()),
            grants: Arc::new(Grants::new(home, own)),
            removals: Removals::default(),
            mount_point: Arc::default(),
        }
    }

    /// Creates a launcher that does not probe the kernel, but assumes that the kernel supports `support`.
    pub fn with_support(
        exe: PathBuf,
        home: PathBuf,
        own: Vec<PathBuf>,
        support: SandboxSupport,
    ) -> Self {
        let launcher = Self::new(exe, home, own);
        Self {
            report: launcher.report.with_support(support),
            ..launcher
        }
    }

    /// Sets whether commands get a mount namespace if the kernel allows it. The default is true.
    #[must_use]
    pub fn namespaces(mut self, wanted: bool) -> Self {
        self.report.wants_namespaces = wanted;
        self
    }

    /// Sets the paths that commands may read besides system paths and tools. `~/` at the start of a path stands for the home
    /// directory.
    #[must_use]
    pub fn read_roots(mut self, roots: Vec<PathBuf>) -> Self {
        self.grants = Arc::new(self.grants.with_read_roots(roots));
        self
    }

    /// Sets the time-out of the probe. The default is ten seconds.
    #[must_use]
    pub fn probe_limit(mut self, limit: Duration) -> Self {
        self.report.probe_limit = limit;
        self
    }

    /// Sets the directory in which the probe tries an overlay. It should be on the same file system as the layers of trials. If
    /// it does not exist, the probe uses the nearest existing parent directory. The default is the directory for temporary files.
    #[must_use]
    pub fn probe_directory(mut self, dir: PathBuf) -> Self {
        self.report.probe_directory = dir;
        self
    }

    /// Returns the report about the sandbox on this system.
    pub fn report(&self) -> &SandboxReport {
        &self.report
    }

    /// Returns the sandbox features of this kernel. The first call probes them.
    pub fn support(&self) -> &SandboxSupport {
        self.report.support()
    }

    /// Returns the removals of temporary directories that are in progress. [`crate::Executor::finish_removals`] waits for them.
    pub fn removals(&self) -> &Removals {
        &self.removals
    }

    /// Waits until the temporary directories of ended commands are removed, but no longer than `limit`.
    pub(crate) async fn finish_removals(&self, limit: Duration) {
        drop(self.mount_point.lock().take());
        self.removals.finished(limit).await;
    }

    /// Returns the command line that runs a command at a level. Adapts the environment `env` of the command.
    ///
    /// # Errors
    /// The kernel cannot confine the command, or the workspace contains directories of secrets.
    pub fn wrap(
        &self,
        level: Level<'_>,
        argv: Vec<OsString>,
        env: &mut Vec<(OsString, OsString)>,
        cwd: &Path,
    ) -> Result<ConfinedCommand, SandboxRefusal> {
        let request = LaunchRequest {
            cwd,
            limits: ProcessLimits::default(),
            tmp_size: None,
            group: None,
            secrets: None,
            waits: false,
            ports: &[],
            terminal: false,
        };
        self.confine(level, &request, argv, env)
    }

    /// Returns the command line that runs a command at a level and with limits. Adapts the environment `env` of the command.
    pub(crate) fn confine(
        &self,
        level: Level<'_>,
        request: &LaunchRequest<'_>,
        argv: Vec<OsString>,
        env: &mut Vec<(OsString, OsString)>,
    ) -> Result<ConfinedCommand, SandboxRefusal> {
        match level.access {
            Access::Read | Access::Write => self.report.confined()?,
            Access::Overlay(_) => self.report.trials(level.secrets.workspace)?,
        }
        // Only agents and tool servers have places of their own, and trials of the programs of agents.
        if level.places.is_some() {
            self.report.agents()?;
        }
        if level.network == Network::Own {
            self.report.own_network()?;
        }
        let namespaces = self.report.namespaces();
        let tmp = match level.tmp {
            TmpPlace::Memory if namespaces => self.shared_tmp()?,
            TmpPlace::Memory | TmpPlace::Disk => Arc::new(private_tmp(&self.removals)?),
        };
        clean(env, tmp.path());
        if level.hardens_git {
            harden_git(env);
        }
        if let Access::Overlay(OverlayPlaces {
            caches: Some(caches),
            ..
        }) = level.access
        {
            set_caches(env, caches);
        }
        let began = Instant::now();
        let secrets = match request.secrets.clone() {
            None => self.watch(self.closed(level))?,
            watched => watched,
        };
        let grant_request = GrantRequest {
            level,
            tmp: tmp.path(),
            tmp_size: tmp::MAX_BYTES.min(request.tmp_size.unwrap_or(u64::MAX)),
            env,
            namespaces,
            survey: secrets.as_ref().map(SecretWatch::before),
        };
        let (wrapped, more) = self.launch_confined(&grant_request, request, argv, began)?;
        env.retain(|(name, _)| !more.iter().any(|(new, _)| new == name));
        env.extend(more);
        Ok(ConfinedCommand {
            secrets,
            tmp: Some(tmp),
            ..wrapped
        })
    }

    /// Returns the directory that all read-only commands mount over. Creates it again if it was removed.
    fn shared_tmp(&self) -> Result<Arc<PrivateTmp>, SandboxRefusal> {
        let mut kept = self.mount_point.lock();
        if let Some(tmp) = kept.as_ref().filter(|tmp| tmp.path().is_dir()) {
            return Ok(Arc::clone(tmp));
        }
        let tmp = Arc::new(private_tmp(&self.removals)?);
        *kept = Some(Arc::clone(&tmp));
        Ok(tmp)
    }

    /// Checks that a command with the environment `env` can be confined to reading in a workspace. Uses the last survey of the
    /// workspace, and assumes that the kernel can confine commands.
    ///
    /// May block on files.
    ///
    /// # Errors
    /// The path of the workspace does not allow it, or the secrets of the workspace cannot be hidden.
    pub fn check_reading(
        &self,
        workspace: &Path,
        env: &[(OsString, OsString)],
    ) -> Result<(), SandboxRefusal> {
        self.grants
            .check(workspace, env, &self.surveys.latest(workspace))
    }

    /// Returns whether a read-only command with the environment `env` can read a path outside the workspace. The path must be
    /// canonical.
    ///
    /// Blocks on files.
    ///
    /// # Errors
    /// No command can be confined in this workspace.
    pub fn can_read(
        &self,
        workspace: &Path,
        env: &[(OsString, OsString)],
        path: &Path,
    ) -> Result<bool, SandboxRefusal> {
        self.grants.can_read(workspace, env, path)
    }

    /// Returns the surveys of workspaces, which clones of this launcher share.
    pub fn surveys(&self) -> &Surveys {
        &self.surveys
    }

    /// Returns the secrets that must be hidden from a command. Returns `None` if the confinement hides no secrets.
    ///
    /// Blocks on files.
    pub fn survey(&self, confinement: &Confinement) -> Option<Arc<Survey>> {
        let secrets = self.closed_by(confinement)?;
        Some(self.surveys.current(secrets.workspace))
    }

    /// Returns the secret files that a command at this level cannot read on this system. Returns `None` if the level hides none.
    fn closed<'a>(&self, level: Level<'a>) -> Option<ClosedSecrets<'a>> {
        let secrets = level.secrets;
        let closes = match secrets.closed_by {
            _ if self.report.confined().is_err() => false,
            ClosedBy::Rules | ClosedBy::OverlayMounts => true,
            ClosedBy::Mounts | ClosedBy::WritableMounts => self.report.namespaces(),
        };
        (closes && *secrets.shown != ShownSecrets::Everything).then_some(secrets)
    }

    /// Returns the secrets that a confinement closes on this system. Returns `None` if it closes no secrets.
    fn closed_by<'a>(&self, confinement: &'a Confinement) -> Option<ClosedSecrets<'a>> {
        match confinement.mechanism() {
            Mechanism::None => None,
            Mechanism::Kernel(level) => self.closed(level),
            Mechanism::Engine(level) => {
                Some(level.secrets).filter(|secrets| *secrets.shown != ShownSecrets::Everything)
            }
        }
    }

    /// Finds the secrets that must be hidden from a command, and starts to watch for further secrets. Returns `None` if the
    /// confinement hides no secrets.
    ///
    /// Blocks on files.
    ///
    /// # Errors
    /// In the last attempt, secrets still appeared or moved during the survey.
    pub(crate) fn watch_secrets(
        &self,
        confinement: &Confinement,
    ) -> Result<Option<SecretWatch>, HidingRefusal> {
        self.watch(self.closed_by(confinement))
    }

    fn watch(
        &self,
        secrets: Option<ClosedSecrets<'_>>,
    ) -> Result<Option<SecretWatch>, HidingRefusal> {
        let watched = secrets.map(|secrets| SecretWatch::new(&self.surveys, secrets));
        watched.transpose()
    }

    /// Returns the command line that starts the launcher, with the files that must exist while the command runs. Also returns the
    /// variables to set for the command.
    fn launch_confined(
        &self,
        grant_request: &GrantRequest<'_>,
        request: &LaunchRequest<'_>,
        argv: Vec<OsString>,
        began: Instant,
    ) -> Result<(ConfinedCommand, Variables), SandboxRefusal> {
        let FoundPaths {
            mut grants,
            opened,
            mounts,
            env,
            watched,
            absent,
            missing,
        } = self.grants.find(grant_request)?;
        let layer = mounts.as_ref().filter(|it| !it.overlays.is_empty());
        let layer = layer.map(|it| Layer::prepare(&it.overlays, &it.downloads));
        let layer = layer.transpose()?;
        let memory = mounts.as_ref().and_then(|mounts| mounts.memory.as_ref());
        let memory = memory.map(|dir| dir.path.0.clone());
        let placeholders = Placeholders::place(&missing).map_err(|(path, error)| {
            let path = path.display();
            SandboxRefusal::Unable(format!(
                "co cannot protect {path} from changes ({error}): make its directory writable, or set \
                 sandbox_backend = \"subprocess\""
            ))
        })?;
        // Placeholders are no change.
        let mut watched = WatchedPaths::new(watched, &absent);
        let level = grant_request.level;
        if level.access == Access::Write {
            watched = watched.with_repositories(&self.surveys, level.secrets.workspace, began);
        }
        let mut limits = request.limits;
        if level.tmp == TmpPlace::Memory && !grant_request.namespaces {
            // Its temporary directory is on a disk.
            let most = limits.file_size.unwrap_or(u64::MAX);
            limits.file_size = Some(grant_request.tmp_size.min(most));
        }
        let abi = self.support().abi.and_then(|abi| i32::try_from(abi).ok());
        let hides = mounts.is_some() && level.secrets.closed_by != ClosedBy::Rules;
        let listens = !request.ports.is_empty();
        let waits = hides && grant_request.survey.is_some() || listens;
        let gate = (request.waits && waits).then(StartGate::new);
        let gate = gate.transpose().map_err(|error| {
            SandboxRefusal::Unable(format!(
                "no socket to its launcher could be made ({error}): close a few files, or end a few programs"
            ))
        })?;
        let processes = self.pid_namespace(request.terminal);
        if processes.is_some() && request.terminal {
            // The session in the namespace gets its terminal by opening it.
            grants.push(Grant(Right::Device, PathBytes::from(STANDARD_INPUT)));
        }
        let plan = Plan {
            cwd: PathBytes::from(request.cwd),
            limits,
            group: request.group.map(ControlGroup::from),
            confined: Some(ConfinedPlan {
                abi: abi.unwrap_or(0),
                calls: level.calls,
                network: level.network,
                grants,
                opened,
                mounts,
                gate: gate.as_ref().map(StartGate::number),
                ports: request.ports.to_vec(),
                processes,
            }),
        };
        let wrapped = ConfinedCommand {
            level: level.name,
            may_share_memory: level.calls.work(),
            watched,
            pid_namespace: processes.is_some(),
            limited_places: (level.places.filter(|_| level.limits.places))
                .map_or_else(Vec::new, |places| places.write.clone()),
            layer,
            memory,
            gate,
            _placeholders: placeholders,
            ..self.launch(plan, argv)?
        };
        Ok((wrapped, env))
    }

    /// Returns whether confined commands get a PID namespace.
    pub(crate) fn makes_pid_namespaces(&self) -> bool {
        self.pid_namespace(false).is_some()
    }

    /// Returns the PID namespace of a confined command, or `None` if the kernel does not allow one.
    fn pid_namespace(&self, terminal: bool) -> Option<PidNamespace> {
        let support = self.support();
        let wanted = self.report.namespaces() && support.pid_namespaces;
        wanted.then_some(PidNamespace {
            own_proc: support.own_proc,
            terminal,
            starter: i32::try_from(std::process::id()).unwrap_or(0),
        })
    }

    /// Returns the command line that runs a command with limits but without confinement.
    pub(crate) fn limit(
        &self,
        request: &LaunchRequest<'_>,
        argv: Vec<OsString>,
    ) -> Result<ConfinedCommand, SandboxRefusal> {
        let plan = Plan {
            cwd: PathBytes::from(request.cwd),
            limits: request.limits,
            group: request.group.map(ControlGroup::from),
            confined: None,
        };
        self.launch(plan, argv)
    }

    /// Returns the command line that starts the launcher with a plan.
    fn launch(&self, plan: Plan, argv: Vec<OsString>) -> Result<ConfinedCommand, SandboxRefusal> {
        let plan = Task::Start(Box::new(plan)).write().map_err(|error| {
            SandboxRefusal::Unable(format!(
                "the sandbox's plan could not be passed on ({error}): close a few files, or end a few programs"
            ))
        })?;
        let launch = [
            self.exe.clone().into_os_string(),
            LAUNCH.into(),
            plan.argument(),
        ];
        let argv = launch.into_iter().chain(argv).collect();
        Ok(ConfinedCommand {
            plan: Some(plan),
            ..ConfinedCommand::plain(argv)
        })
    }
}

fn private_tmp(removals: &Removals) -> Result<PrivateTmp, SandboxRefusal> {
    PrivateTmp::new(removals).map_err(|error| {
        SandboxRefusal::Unable(format!(
            "no private temporary directory could be made ({error}): make room in {} or set TMPDIR",
            std::env::temp_dir().display()
        ))
    })
}

#[cfg(test)]
mod tests;
