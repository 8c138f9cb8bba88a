//! The containers of this process: makes one when the first command needs it, keeps it, and removes it at the end.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Mutex;

use super::WORKSPACE_INSIDE;
use super::engine::Engine;
use super::fault::{EngineFault, FaultKind};
use super::owner::{LABEL, Owner};
use super::remote;
use super::settings::ContainerSettings;
use crate::environment::Variables;

/// The most processes of a container.
const MAX_PROCESSES: &str = "256";

/// Keeps the container alive. The engine's own init process reaps orphans.
const IDLE_SCRIPT: &str = "while :; do sleep 86400; done";

/// The user when the caller is root.
const NOT_ROOT: &str = "1000:1000";

/// The repository of the workspace.
const GIT: &str = ".git";

/// Parts of the workspace that git outside runs or obeys. They cannot be written inside.
const OBEYED: [&str; 2] = [".git/hooks", ".git/config"];

/// The prefix of all names.
const NAME_PREFIX: &str = "co-runner-";

/// The containers of this process.
#[derive(Debug)]
pub(crate) struct Containers {
    env: Variables,
    owner: Owner,
    /// A number that tells this process's containers from those of others.
    token: u64,
    /// The number of containers that were made, for their names.
    made: AtomicU64,
    known: Mutex<HashMap<ContainerUse, Arc<Container>>>,
    pruned: AtomicBool,
    /// An empty directory with a file and a directory that nobody may open. Made when a secret is masked.
    masks: std::sync::Mutex<Option<Arc<tempfile::TempDir>>>,
}

/// The use of a container.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ContainerUse {
    pub(crate) workspace: PathBuf,
    /// True for commands that only look.
    pub(crate) read_only: bool,
}

/// A running container. When the last handle is dropped, the container is removed.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) engine: Engine,
    pub(crate) name: String,
    pub(crate) image: String,
    purpose: ContainerUse,
    /// The masked secrets, sorted.
    masked: Vec<PathBuf>,
    settings: ContainerSettings,
    removed: AtomicBool,
    /// True if a command ended in it without a report.
    suspect: AtomicBool,
    /// True once a person was told of programs that the image lacks.
    told: AtomicBool,
    told_unwritable: AtomicBool,
}

impl Containers {
    pub(crate) fn new(env: Variables) -> Self {
        Self {
            env,
            owner: Owner::own(),
            token: fastrand::u64(..),
            made: AtomicU64::new(0),
            known: Mutex::default(),
            pruned: AtomicBool::new(false),
            masks: std::sync::Mutex::default(),
        }
    }

    /// Returns the container for a use, with these secrets masked. Makes it if there is none, or none like this.
    ///
    /// # Errors
    /// There is no engine, or it refuses.
    pub(crate) async fn ready(
        self: &Arc<Self>,
        settings: &ContainerSettings,
        purpose: &ContainerUse,
        mut masked: Vec<PathBuf>,
    ) -> Result<Arc<Container>, EngineFault> {
        masked.sort();
        let mut known = self.known.lock().await;
        let same = |it: &&Arc<Container>| it.masked == masked && it.settings == *settings;
        if let Some(container) = known.get(purpose).filter(same) {
            if container.suspect.swap(false, Ordering::Relaxed) {
                self.restore(container).await?;
            }
            return Ok(Arc::clone(container));
        }
        let engine = Engine::find(&settings.engine, &self.env)?;
        if !self.pruned.swap(true, Ordering::Relaxed) {
            let (this, engine) = (Arc::clone(self), engine.clone());
            tokio::spawn(async move { this.prune(&engine).await });
        }
        let container = Container {
            name: self.name(purpose),
            image: settings.image.clone(),
            engine,
            purpose: purpose.clone(),
            masked,
            settings: settings.clone(),
            removed: AtomicBool::new(false),
            suspect: AtomicBool::new(false),
            told: AtomicBool::new(false),
            told_unwritable: AtomicBool::new(false),
        };
        self.create(&container).await?;
        let container = Arc::new(container);
        // The one before it is removed when its last command has ended.
        known.insert(purpose.clone(), Arc::clone(&container));
        Ok(container)
    }

    /// Makes a container run again that is gone, stopped or broken.
    ///
    /// # Errors
    /// The engine refuses.
    pub(crate) async fn revive(&self, container: &Container) -> Result<(), EngineFault> {
        let _others = self.known.lock().await;
        self.restore(container).await
    }

    async fn restore(&self, container: &Container) -> Result<(), EngineFault> {
        let (engine, name, image) = (&container.engine, &container.name, &container.image);
        let state = ["inspect", "--format", "{{.State.Running}}", name];
        let running = engine.call(&state, image).await;
        let runs = match running.as_deref().map(str::trim) {
            Ok("true") => true,
            Ok("false") => engine.call(&["start", name], image).await.is_ok(),
            _ => false,
        };
        // Others may run in it, so it stays if it starts commands.
        let nothing = ["exec", name, "sh", "-c", ":"];
        if runs && engine.call(&nothing, image).await.is_ok() {
            return Ok(());
        }
        container.remove().await;
        container.removed.store(false, Ordering::Relaxed);
        self.create(container).await
    }

    /// Returns a new name: commands may still run in the container before it.
    fn name(&self, purpose: &ContainerUse) -> String {
        let mut hasher = DefaultHasher::new();
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        (self.token, made).hash(&mut hasher);
        let suffix = if purpose.read_only { "-ro" } else { "" };
        format!("{NAME_PREFIX}{:08x}{suffix}", hasher.finish() >> 32)
    }

    async fn create(&self, container: &Container) -> Result<(), EngineFault> {
        let args = self.create_arguments(container)?;
        let created = match container.engine.call(&args, &container.image).await {
            Ok(_) => {
                let workspace = &container.purpose.workspace;
                remote::check(
                    &container.engine,
                    workspace,
                    &container.name,
                    &container.image,
                )
                .await
            }
            Err(fault) => Err(fault),
        };
        if created.is_err() {
            // A container that could not start may exist.
            container.remove().await;
            container.removed.store(true, Ordering::Relaxed);
        }
        created
    }

    fn create_arguments(&self, container: &Container) -> Result<Vec<OsString>, EngineFault> {
        let Container {
            purpose, settings, ..
        } = container;
        let network = if purpose.read_only {
            "none"
        } else {
            &settings.network
        };
        let user = user(settings);
        let tmp = format!(
            "/tmp:rw,exec,nosuid,nodev,size={},mode=1777",
            settings.tmp_size
        );
        let memory = settings.memory.to_string();
        let label = format!("{LABEL}={}", self.owner.label());
        let cpus = settings.cpus.to_string();
        let mut args: Vec<OsString> = [
            "run",
            "--detach",
            "--pull=never",
            "--init",
            "--name",
            &container.name,
            "--label",
            &label,
            "--network",
            network,
            "--memory",
            &memory,
            "--memory-swap",
            &memory,
            "--cpus",
            &cpus,
            "--pids-limit",
            MAX_PROCESSES,
            "--cap-drop",
            "ALL",
            "--security-opt",
            "no-new-privileges",
            "--user",
            &user,
            "--tmpfs",
            &tmp,
            "--env",
            "HOME=/tmp",
            "--workdir",
            WORKSPACE_INSIDE,
            "--entrypoint",
            "sh",
        ]
        .map(OsString::from)
        .into();
        if settings.read_only || purpose.read_only {
            args.push("--read-only".into());
        }
        if container.engine.name().contains("podman") && !rustix::process::geteuid().is_root() {
            // The caller's files are the caller's inside too.
            args.push("--userns=keep-id".into());
        }
        let mut mount = |source: &Path, target: &OsStr, read_only: bool| {
            args.extend(["--mount".into(), mount_text(source, target, read_only)]);
        };
        mount(
            &purpose.workspace,
            OsStr::new(WORKSPACE_INSIDE),
            purpose.read_only,
        );
        let git = purpose.workspace.join(GIT);
        if git.symlink_metadata().is_ok_and(|facts| facts.is_dir()) {
            // A mount cannot be renamed, so no other repository takes its place.
            let inside = Path::new(WORKSPACE_INSIDE).join(GIT);
            mount(&git, inside.as_os_str(), purpose.read_only);
        }
        for name in OBEYED {
            let path = purpose.workspace.join(name);
            // A link would lead elsewhere.
            if path
                .symlink_metadata()
                .is_ok_and(|facts| !facts.is_symlink())
            {
                mount(
                    &path,
                    Path::new(WORKSPACE_INSIDE).join(name).as_os_str(),
                    true,
                );
            }
        }
        for path in &container.masked {
            let Ok(below) = path.strip_prefix(&purpose.workspace) else {
                continue;
            };
            let mask = self.mask(path.is_dir()).map_err(|error| EngineFault {
                kind: FaultKind::Other,
                engine: container.engine.name(),
                image: container.image.clone(),
                words: format!("a mask for secrets could not be made: {error}"),
            })?;
            mount(
                &mask,
                Path::new(WORKSPACE_INSIDE).join(below).as_os_str(),
                true,
            );
        }
        args.extend([container.image.as_str(), "-c", IDLE_SCRIPT].map(OsString::from));
        Ok(args)
    }

    /// Returns a file or a directory that nobody may open.
    fn mask(&self, directory: bool) -> std::io::Result<PathBuf> {
        let mut masks = self
            .masks
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let dir = match &*masks {
            Some(dir) if dir.path().is_dir() => Arc::clone(dir),
            _ => {
                let dir = tempfile::Builder::new()
                    .prefix(crate::repository::OUR_TMP)
                    .tempdir()?;
                std::fs::write(dir.path().join("file"), "")?;
                std::fs::create_dir(dir.path().join("directory"))?;
                for name in ["file", "directory"] {
                    let closed = std::fs::Permissions::from_mode(0o0);
                    std::fs::set_permissions(dir.path().join(name), closed)?;
                }
                let dir = Arc::new(dir);
                *masks = Some(Arc::clone(&dir));
                dir
            }
        };
        Ok(dir
            .path()
            .join(if directory { "directory" } else { "file" }))
    }

    /// Removes the containers whose backends have ended. Ignores errors.
    async fn prune(&self, engine: &Engine) {
        let filter = format!("label={LABEL}");
        let list = ["ps", "--all", "--quiet", "--filter", &filter];
        let ids = engine.call(&list, "").await.unwrap_or_default();
        let format = format!("{{{{.Id}}}} {{{{index .Config.Labels \"{LABEL}\"}}}}");
        let mut inspect = vec!["inspect", "--format", &format];
        inspect.extend(ids.split_whitespace());
        if inspect.len() == 3 {
            return;
        }
        // One of them may have been removed meanwhile. Then the next start looks again.
        let Ok(owners) = engine.call(&inspect, "").await else {
            return;
        };
        let dead = owners.lines().filter_map(|line| {
            let (id, label) = line.split_once(' ')?;
            self.owner.has_ended(label).then_some(id)
        });
        let mut remove = vec!["rm", "--force"];
        remove.extend(dead);
        if remove.len() > 2 {
            let _ = engine.call(&remove, "").await;
        }
    }

    /// Removes all containers. Ignores errors.
    pub(crate) async fn remove_all(&self) {
        let known: Vec<_> = self.known.lock().await.drain().map(|(_, it)| it).collect();
        let removals = known
            .into_iter()
            .map(|container| tokio::spawn(async move { container.remove().await }));
        for removal in removals.collect::<Vec<_>>() {
            let _ = removal.await;
        }
    }
}

impl Container {
    /// Returns the path inside of a path of the workspace.
    pub(crate) fn inside(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.purpose.workspace).ok()?;
        Some(match below.as_os_str().is_empty() {
            true => PathBuf::from(WORKSPACE_INSIDE),
            false => Path::new(WORKSPACE_INSIDE).join(below),
        })
    }

    /// Returns the bytes of memory that it may have.
    pub(crate) fn memory(&self) -> u64 {
        self.settings.memory
    }

    /// Returns the workspace, and whether commands in the container only look.
    pub(crate) fn workspace(&self) -> (&Path, bool) {
        (&self.purpose.workspace, self.purpose.read_only)
    }

    /// Returns true once.
    pub(crate) fn tells_unwritable(&self) -> bool {
        !self.told_unwritable.swap(true, Ordering::Relaxed)
    }

    /// Has the next command make the container anew, or start it if it has stopped.
    pub(crate) fn suspect(&self) {
        self.suspect.store(true, Ordering::Relaxed);
    }

    /// Returns true once.
    pub(crate) fn tells_missing(&self) -> bool {
        !self.told.swap(true, Ordering::Relaxed)
    }

    /// Removes the container with all its processes. Ignores errors.
    pub(crate) async fn remove(&self) {
        if !self.removed.swap(true, Ordering::Relaxed) {
            let args = ["rm", "--force", &self.name];
            let _ = self.engine.call(&args, &self.image).await;
        }
    }

    /// Returns a sentence if the user inside may not write the workspace, as far as its mode tells.
    pub(crate) fn unwritable(&self) -> Option<String> {
        let user = user(&self.settings);
        let (uid, gid) = user.split_once(':').unwrap_or((&user, "0"));
        let (uid, gid): (u32, u32) = (uid.parse().ok()?, gid.parse().ok()?);
        let facts = self.purpose.workspace.metadata().ok()?;
        let mode = facts.mode();
        let may = match (facts.uid() == uid, facts.gid() == gid) {
            (true, _) => mode & 0o200,
            (false, true) => mode & 0o020,
            (false, false) => mode & 0o002,
        };
        (may == 0 && !self.purpose.read_only).then(|| {
            format!(
                "the user {user} of the container cannot write in {}; give that directory to this user, or set container_user",
                self.purpose.workspace.display()
            )
        })
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if *self.removed.get_mut() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (engine, name) = (self.engine.clone(), self.name.clone());
        runtime.spawn(async move { engine.call(&["rm", "--force", &name], "").await });
    }
}

/// Returns the user inside.
fn user(settings: &ContainerSettings) -> String {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    match settings.user.as_str() {
        "auto" if uid.is_root() => NOT_ROOT.to_owned(),
        "auto" => format!("{}:{}", uid.as_raw(), gid.as_raw()),
        user => user.to_owned(),
    }
}

/// Returns the engine's text for a mount: fields of CSV.
fn mount_text(source: &Path, target: &OsStr, read_only: bool) -> OsString {
    let mut text = OsString::from("type=bind");
    for (name, path) in [("source", source.as_os_str()), ("target", target)] {
        text.push(",\"");
        text.push(name);
        text.push("=");
        text.push(quoted(path));
        text.push("\"");
    }
    if read_only {
        text.push(",readonly");
    }
    text
}

/// Doubles the quotes of a text.
fn quoted(text: &OsStr) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let doubled = text.as_bytes().iter().flat_map(|byte| {
        let count = if *byte == b'"' { 2 } else { 1 };
        std::iter::repeat_n(*byte, count)
    });
    OsString::from_vec(doubled.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_takes_any_path() {
        let text = mount_text(Path::new("/a,b:\"c\" d"), OsStr::new("/workspace"), true);
        assert_eq!(
            text,
            "type=bind,\"source=/a,b:\"\"c\"\" d\",\"target=/workspace\",readonly"
        );
    }
}
