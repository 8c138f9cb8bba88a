//! The containers of this process. Creates a container when the first command needs it, keeps the container for later commands,
//! and removes it at shutdown.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::create;
use super::engine::Engine;
use super::instance::{Container, ContainerUse};
use super::mounts::{self, Masks};
use super::owner::{LABEL, Owner};
use super::remote;
use crate::environment::Variables;
use crate::error::engine::{EngineFault, FaultKind};
use crate::sandbox::{Placeholders, ProtectedPaths};
use crate::settings::container::ContainerSettings;

/// The prefix of the names of all containers.
const NAME_PREFIX: &str = "co-runner-";

/// The containers of this process.
#[derive(Debug)]
pub(crate) struct Containers {
    env: Variables,
    owner: Owner,
    /// A random number that distinguishes this process's containers from those of other processes.
    token: u64,
    /// The number of containers created so far, which makes their names unique.
    made: AtomicU64,
    slots: Mutex<HashMap<ContainerUse, ContainerSlot>>,
    /// All containers, including replaced ones in which commands still run.
    all: Mutex<Vec<Weak<Container>>>,
    pruned: AtomicBool,
    masks: Masks,
}

/// The container for the next command of a certain use. The lock is held while the engine creates the container.
type ContainerSlot = Arc<tokio::sync::Mutex<Option<Arc<Container>>>>;

impl Containers {
    pub(crate) fn new(env: Variables) -> Self {
        Self {
            env,
            owner: Owner::own(),
            token: fastrand::u64(..),
            made: AtomicU64::new(0),
            slots: Mutex::default(),
            all: Mutex::default(),
            pruned: AtomicBool::new(false),
            masks: Masks::default(),
        }
    }

    /// Returns a container for this use that protects these paths. Creates the container if necessary.
    ///
    /// # Errors
    /// There is no engine, or the engine refuses.
    pub(crate) async fn ready(
        self: &Arc<Self>,
        settings: &ContainerSettings,
        purpose: &ContainerUse,
        protected: &ProtectedPaths,
    ) -> Result<Arc<Container>, EngineFault> {
        let slot = self.slot(purpose);
        let mut current = slot.lock().await;
        let mounted = mounts::mounted_paths(protected);
        let same = |it: &&Arc<Container>| it.mounted == mounted && it.settings == *settings;
        if let Some(container) = current.as_ref().filter(same) {
            if container.was_suspected() {
                self.restore(container).await?;
            }
            return Ok(Arc::clone(container));
        }
        let engine = Engine::choose(&settings.engine, &self.env).await?;
        if !self.pruned.swap(true, Ordering::Relaxed) {
            let (this, engine) = (Arc::clone(self), engine.clone());
            tokio::spawn(async move { this.prune(&engine).await });
        }
        let placed = Placeholders::place(&protected.obeyed);
        let placeholders = placed.map_err(|(path, error)| EngineFault {
            kind: FaultKind::Other,
            engine: engine.name(),
            image: settings.image.clone(),
            words: format!("{} cannot be protected: {error}", path.display()),
        })?;
        let container = Arc::new(Container::new(
            engine,
            self.name(purpose),
            purpose.clone(),
            settings.clone(),
            (mounts::mounted_paths(protected), placeholders),
        ));
        self.note(&container);
        self.create(&container).await?;
        // The one before it is removed when its last command has ended.
        *current = Some(Arc::clone(&container));
        Ok(container)
    }

    /// Adds a container to the list of all containers.
    fn note(&self, container: &Arc<Container>) {
        let mut all = self.all.lock();
        all.retain(|it| it.strong_count() > 0);
        all.push(Arc::downgrade(container));
    }

    fn slot(&self, purpose: &ContainerUse) -> ContainerSlot {
        let mut slots = self.slots.lock();
        Arc::clone(slots.entry(purpose.clone()).or_default())
    }

    /// Starts a container that has stopped. Creates it again if it is gone or broken.
    ///
    /// # Errors
    /// The engine refuses.
    pub(crate) async fn revive(&self, container: &Container) -> Result<(), EngineFault> {
        let slot = self.slot(&container.purpose);
        let _others = slot.lock().await;
        self.restore(container).await
    }

    async fn restore(&self, container: &Container) -> Result<(), EngineFault> {
        let name = &container.name;
        let state = ["inspect", "--format", "{{.State.Running}}", name];
        let running = container.call(&state).await;
        let runs = match running.as_deref().map(str::trim) {
            Ok("true") => true,
            Ok("false") => container.call(&["start", name]).await.is_ok(),
            _ => false,
        };
        // Others may run in it, so it stays if it starts commands.
        let nothing = ["exec", name, "sh", "-c", ":"];
        if runs && container.call(&nothing).await.is_ok() {
            return Ok(());
        }
        container.remove().await;
        container.set_removed(false);
        self.create(container).await
    }

    /// Returns a new name for a container. The name differs from that of an earlier container, in which commands may still run.
    fn name(&self, purpose: &ContainerUse) -> String {
        let mut hasher = DefaultHasher::new();
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        (self.token, made).hash(&mut hasher);
        let suffix = if purpose.read_only { "-ro" } else { "" };
        format!("{NAME_PREFIX}{:08x}{suffix}", hasher.finish() >> 32)
    }

    async fn create(&self, container: &Container) -> Result<(), EngineFault> {
        let args = create::arguments(container, &self.owner, &self.masks);
        let args = args.map_err(|error| {
            let words = format!("a mask for secrets could not be made: {error}");
            container.fault(FaultKind::Other, words)
        })?;
        let created = match container.call(&args).await {
            Ok(_) => remote::check(container).await,
            Err(fault) => Err(fault),
        };
        if created.is_err() {
            // A container that could not start may exist.
            container.remove().await;
            container.set_removed(true);
        }
        created
    }

    /// Removes the containers of backends that have ended. Ignores errors.
    async fn prune(&self, engine: &Engine) {
        let filter = format!("label={LABEL}");
        let list = ["ps", "--all", "--quiet", "--filter", &filter];
        let format = format!("{{{{index .Config.Labels \"{LABEL}\"}}}}");
        let ids = engine.call(&list, "").await.unwrap_or_default();
        // One by one: another backend may remove any of them meanwhile.
        for id in ids.split_whitespace() {
            let owner = engine.call(&["inspect", "--format", &format, id], "").await;
            if owner.is_ok_and(|label| self.owner.has_ended(label.trim())) {
                let _ = engine.call(&["rm", "--force", id], "").await;
            }
        }
    }

    /// Removes all containers of this process. Ignores errors.
    pub(crate) async fn remove_all(&self) {
        let all = std::mem::take(&mut *self.all.lock());
        let removals = all
            .iter()
            .filter_map(Weak::upgrade)
            .map(|container| tokio::spawn(async move { container.remove().await }));
        for removal in removals.collect::<Vec<_>>() {
            let _ = removal.await;
        }
    }
}
