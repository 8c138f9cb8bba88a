//! Starts commands in containers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Executor, Launch, MAX_SURVEYS};
use crate::command::{CommandSpec, Program, UNTIL_IT_ENDS};
use crate::confinement::{Confinement, ContainerLevel, Mechanism};
use crate::container::{Container, ContainerUse, Inside, InsideRequest};
use crate::environment::Variables;
use crate::error::Error;
use crate::error::refusal::{HidingRefusal, SandboxRefusal};
use crate::executor::start::StartRequest;
use crate::limits::{CommandLimits, ProcessLimits};
use crate::process::env::{self, Sources};
use crate::process::streams::Streams;
use crate::sandbox::{ProtectedPaths, WatchedPaths};
use crate::secrets::exposure::SecretWatch;

/// A running container, ready for a command.
pub(super) struct ReadyContainer {
    pub(super) container: Arc<Container>,
    /// The watch for the workspace's secrets, if the command must not open them.
    secrets: Option<SecretWatch>,
    /// The state, before the command, of the files that other programs run or read as configuration. co compares these files
    /// after the command.
    watched: Arc<WatchedPaths>,
}

impl Executor {
    /// Creates the container of the confinement, if it has one, before the person is asked about a command. Returns sentences for
    /// the person, for example that the container cannot write the workspace.
    ///
    /// # Errors
    /// No command can run in the container.
    pub async fn prepare(&self, confinement: &Confinement) -> Result<Vec<String>, Error> {
        let Mechanism::Engine(level) = confinement.mechanism() else {
            return Ok(Vec::new());
        };
        let container = self.container(level, confinement).await?.container;
        let told = container.tells_unwritable().then(|| container.unwritable());
        Ok(told.flatten().into_iter().collect())
    }

    /// Removes all containers of this executor.
    pub async fn remove_containers(&self) {
        self.inner.containers.remove_all().await;
    }

    /// Returns the container for a command. From this call on, changes in the workspace count as changes by the command.
    pub(super) async fn ready(
        &self,
        level: ContainerLevel<'_>,
        spec: &CommandSpec,
    ) -> Result<ReadyContainer, Error> {
        match &spec.program {
            Program::Shell(text) if text.trim().is_empty() => return Err(Error::Empty),
            Program::Argv(argv) if argv.first().is_none_or(String::is_empty) => {
                return Err(Error::Empty);
            }
            _ => {}
        }
        let ready = self.container(level, &spec.confinement).await?;
        if let Some(secrets) = ready.secrets.clone() {
            // If it fails, what the command makes counts as made by others.
            let _done = tokio::task::spawn_blocking(move || secrets.command_starts()).await;
        }
        Ok(ready)
    }

    /// Returns the container for a confinement.
    async fn container(
        &self,
        level: ContainerLevel<'_>,
        confinement: &Confinement,
    ) -> Result<ReadyContainer, Error> {
        if self.inner.root.is_cancelled() {
            return Err(Error::Closed);
        }
        let purpose = ContainerUse {
            workspace: level.secrets.workspace.to_owned(),
            read_only: level.read_only,
        };
        let mut tries = 1;
        loop {
            let secrets = self.watch_secrets(confinement).await?;
            let is_surveyed = secrets.as_ref().is_some_and(|it| it.before().complete);
            if level.read_only && !is_surveyed {
                let unready = HidingRefusal::NotSurveyed(purpose.workspace);
                return Err(Error::Sandbox(unready.into()));
            }
            let (protected, watched) = self.protected(confinement, secrets.clone()).await?;
            let containers = &self.inner.containers;
            let container = containers.ready(&self.settings.container, &purpose, &protected);
            let container = container.await?;
            // The engine mounts by names.
            match container.unhidden(&protected) {
                None => {
                    return Ok(ReadyContainer {
                        container,
                        secrets,
                        watched: Arc::new(watched),
                    });
                }
                Some(_) if tries < MAX_SURVEYS => tries += 1,
                Some(secret) => return Err(Error::Sandbox(HidingRefusal::Moving(secret).into())),
            }
        }
    }

    /// Returns the paths that the container must protect. Also returns the state of the paths that co compares after the command.
    async fn protected(
        &self,
        confinement: &Confinement,
        secrets: Option<SecretWatch>,
    ) -> Result<(ProtectedPaths, WatchedPaths), Error> {
        let (Some(launcher), confinement) = (self.inner.launcher.clone(), confinement.clone())
        else {
            return Ok(Default::default());
        };
        let env = self.agent_environment();
        let find = move || {
            let Mechanism::Engine(level) = confinement.mechanism() else {
                return Ok(Default::default());
            };
            let survey = secrets.as_ref().map(SecretWatch::before);
            let protected = launcher.protected(level, &env, survey)?;
            let mut watched = WatchedPaths::new(protected.watched.clone(), &BTreeSet::new());
            if !level.read_only {
                let (surveys, workspace) = (launcher.surveys(), level.secrets.workspace);
                watched = watched.with_repositories(surveys, workspace, Instant::now());
            }
            Ok((protected, watched))
        };
        let found = tokio::task::spawn_blocking(find).await;
        let stopped = || SandboxRefusal::Unable("the workspace could not be searched".to_owned());
        found
            .unwrap_or_else(|_| Err(stopped()))
            .map_err(Error::Sandbox)
    }

    /// Returns the process to start for a command in a container: the engine's client.
    pub(super) fn client<'a>(
        &self,
        spec: &'a CommandSpec,
        streams: Streams,
        timeout: Duration,
        ready: &ReadyContainer,
    ) -> Result<Launch<'a>, Error> {
        let ReadyContainer {
            container,
            secrets,
            watched,
        } = ready;
        let (workspace, read_only) = container.workspace();
        let cwd = container
            .inside(&spec.cwd)
            .ok_or_else(|| Error::OutsideContainer {
                cwd: spec.cwd.clone(),
                workspace: workspace.to_owned(),
            })?;
        let terminal = matches!(streams, Streams::Terminal(_));
        let mut env = env::build(Sources {
            host: &Vec::new(),
            inherit: false,
            allow: &[],
            caller: spec.caller,
            path: None,
            extra: &spec.extra_env,
            terminal,
        });
        // The image has a PATH of its own.
        env.retain(|(name, _)| name != "PATH");
        env.extend(git_environment(read_only));
        let limit = Some(timeout).filter(|timeout| *timeout != UNTIL_IT_ENDS);
        let mut inside = Inside::new(Arc::clone(container), limit, read_only);
        let argv = inside.argv(&InsideRequest {
            program: &spec.program,
            cwd: &cwd.to_string_lossy(),
            env: &env,
            input: spec.stdin.is_some() || streams == Streams::Open,
            terminal,
            limit,
        });
        let request = StartRequest {
            program: Program::Argv(argv),
            shell: None,
            cwd: Path::new("/"),
            is_real_cwd: true,
            stdin: spec.stdin.as_deref(),
            streams,
            level: None,
            env: container.engine.env.clone(),
            limits: ProcessLimits::default(),
            tmp_size: None,
            group: None,
            launcher: None,
            reports: !terminal,
            secrets: None,
            ports: &[],
        };
        inside.secrets.clone_from(secrets);
        inside.watched = Arc::clone(watched);
        Ok(Launch {
            request,
            limits: CommandLimits::default(),
            inside: Some(inside),
        })
    }
}

/// Returns variables that let git work in a workspace of another user. If `read_only` is true, further variables keep git from
/// starting programs.
fn git_environment(read_only: bool) -> Variables {
    let mut variables: Vec<(String, String)> = Vec::new();
    if read_only {
        let hardened = crate::environment::GIT_ENVIRONMENT;
        variables.extend(hardened.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    let count = if read_only { 2 } else { 0 };
    variables.retain(|(name, _)| name != "GIT_CONFIG_COUNT");
    variables.push(("GIT_CONFIG_COUNT".to_owned(), (count + 1).to_string()));
    variables.push((
        format!("GIT_CONFIG_KEY_{count}"),
        "safe.directory".to_owned(),
    ));
    variables.push((format!("GIT_CONFIG_VALUE_{count}"), "*".to_owned()));
    variables
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}
