//! Probes the sandbox in the background, when its result is first needed. A command that the person types does not need the
//! result if it runs without confinement.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use tokio::sync::OnceCell;

use super::confinement::{self, Isolation};
use crate::config::{Config, ConfinementSetting};
use co_exec::Confinement;
use co_exec::container::EngineFault;
use co_exec::sandbox::{Launcher, SandboxRefusal};

/// The chosen confinement of approved commands, and the abilities of the kernel as soon as the probe has ended.
#[derive(Clone)]
pub struct SandboxProbe {
    setting: ConfinementSetting,
    /// The reason why no approved command can run, if the settings of the confinement are wrong.
    fault: Option<String>,
    kernel: Arc<KernelProbe>,
    /// The answer of the container engine. co asks the engine only if `auto` needs the answer.
    engine: Arc<OnceCell<Result<(), EngineFault>>>,
}

struct KernelProbe {
    found: OnceLock<Isolation>,
    probe: Box<dyn Fn() -> Isolation + Send + Sync>,
}

impl SandboxProbe {
    pub fn new(config: &Config, launcher: Launcher) -> Self {
        let (setting, fault) = (config.sandbox_backend, config.confinement_fault());
        let config = config.clone();
        let kernel = KernelProbe {
            found: OnceLock::new(),
            probe: Box::new(move || Isolation::new(&config, launcher.report())),
        };
        Self::with_kernel(kernel, setting).with_fault(fault)
    }

    /// Returns a copy of the probe with the reason why no approved command can run. `None` means that approved commands can run.
    #[must_use]
    pub fn with_fault(self, fault: Option<String>) -> Self {
        Self { fault, ..self }
    }

    /// Returns a probe that has ended with the result `isolation`.
    #[cfg(test)]
    pub fn ended(config: &Config, isolation: Isolation) -> Self {
        Self::with_kernel(
            KernelProbe {
                found: OnceLock::from(isolation.clone()),
                probe: Box::new(move || isolation.clone()),
            },
            config.sandbox_backend,
        )
    }

    fn with_kernel(kernel: KernelProbe, setting: ConfinementSetting) -> Self {
        Self {
            setting,
            fault: None,
            kernel: Arc::new(kernel),
            engine: Arc::default(),
        }
    }

    /// Returns a copy of the probe in which `setting` determines the confinement of approved commands. It asks the container
    /// engine again.
    #[must_use]
    pub fn with(&self, setting: ConfinementSetting) -> Self {
        Self {
            setting,
            // The person has chosen.
            fault: None,
            kernel: Arc::clone(&self.kernel),
            engine: Arc::default(),
        }
    }

    /// Waits for the end of the probe, and returns its result.
    pub async fn isolation(&self) -> Isolation {
        let isolation = self.kernel().await;
        if self.setting != ConfinementSetting::Auto {
            return isolation;
        }
        let engine = self.engine.get_or_init(|| isolation.check_engine());
        isolation.with_engine(engine.await.clone())
    }

    /// Returns the result about the kernel alone, without asking the container engine. The first call probes the kernel on
    /// another thread.
    pub async fn kernel(&self) -> Isolation {
        let kernel = Arc::clone(&self.kernel);
        // The thread ends the probe, also if nobody waits for it any more.
        let probe = move || kernel.found.get_or_init(|| (kernel.probe)()).clone();
        match self.kernel.found.get() {
            Some(found) => found.with(self.setting),
            None => {
                let probed = tokio::task::spawn_blocking(probe).await;
                let probed =
                    probed.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
                probed.with(self.setting)
            }
        }
    }

    /// Returns the confinement of a command that runs without approval. The judge of the command has already waited for the
    /// probe.
    pub fn for_unasked(&self, workspace: &Path) -> Confinement {
        match self.known() {
            Some(isolation) => isolation.for_unasked(workspace),
            None => Confinement::ReadOnly {
                workspace: workspace.to_owned(),
            },
        }
    }

    fn known(&self) -> Option<Isolation> {
        let isolation = self.kernel.found.get()?.with(self.setting);
        if self.setting != ConfinementSetting::Auto {
            return Some(isolation);
        }
        Some(isolation.with_engine(self.engine.get()?.clone()))
    }

    /// Returns the confinement of commands that the person typed or approved, or that a rule allows. Waits for the probe and
    /// calls `workspace` only if the person chose a confinement.
    ///
    /// # Errors
    /// The errors of [`Isolation::for_approved`].
    pub async fn for_approved<P: AsRef<Path>>(
        &self,
        workspace: impl FnOnce() -> P,
    ) -> Result<Confinement, SandboxRefusal> {
        if let Some(fault) = &self.fault {
            return Err(SandboxRefusal::Unable(fault.clone()));
        }
        match self.setting {
            ConfinementSetting::Subprocess => Ok(Confinement::Plain),
            _ => self.isolation().await.for_approved(workspace().as_ref()),
        }
    }

    /// Returns a short description of the confinement of approved commands. Returns `None` if they are not confined, or if the
    /// probe has not ended.
    pub fn words(&self) -> Option<&'static str> {
        let confinement = self.known()?.for_approved(Path::new("/")).ok()?;
        confinement.words()
    }

    /// Returns the level of approved commands. Until the probe has ended, returns the level without confinement.
    pub fn level(&self) -> &'static str {
        let approved = self.known().map(|it| it.for_approved(Path::new("/")));
        match approved {
            Some(Ok(confinement)) => confinement.name(),
            _ => Confinement::Plain.name(),
        }
    }

    /// Returns true if approved commands run in a container, as far as the probe knows.
    pub fn in_container(&self) -> bool {
        match self.known() {
            Some(isolation) => isolation.in_container(),
            None => self.setting == ConfinementSetting::Docker,
        }
    }

    /// Returns the name of the confinement of approved commands. Until the probe has ended, returns the value of the setting.
    pub fn name(&self) -> &'static str {
        match self.known() {
            _ if self.fault.is_some() => "refused",
            Some(isolation) => isolation.name(),
            None => confinement::name(self.setting),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Sender;

    use futures::FutureExt;
    use parking_lot::Mutex;

    use super::*;
    use co_exec::sandbox::{SandboxReport, SandboxSupport};

    /// Returns the result for a kernel that can confine commands, or cannot.
    fn isolation(config: &Config, confines: bool) -> Isolation {
        let support = SandboxSupport {
            abi: Some(7),
            seccomp: confines,
            ..SandboxSupport::default()
        };
        let report = SandboxReport::new("/nonexistent".into(), "/home/x".into());
        Isolation::new(config, &report.with_support(support))
    }

    /// Returns a probe that ends when the sender is dropped.
    fn unended(setting: ConfinementSetting) -> (SandboxProbe, Sender<()>) {
        let (end, ended) = std::sync::mpsc::channel();
        let ended = Mutex::new(ended);
        let kernel = KernelProbe {
            found: OnceLock::new(),
            probe: Box::new(move || {
                let _closed = ended.lock().recv();
                isolation(&Config::default(), true)
            }),
        };
        (SandboxProbe::with_kernel(kernel, setting), end)
    }

    #[tokio::test]
    async fn before_it_ends_nothing_runs_less_confined() {
        let (probe, end) = unended(ConfinementSetting::Auto);
        assert_eq!(probe.name(), "auto");
        assert_eq!(probe.for_approved(|| "/w").now_or_never(), None);
        drop(end);
        // The probe that the first one began goes on without it.
        let held = probe.with(ConfinementSetting::Landlock);
        assert!(matches!(
            held.for_approved(|| "/w").await,
            Ok(Confinement::Workspace { .. })
        ));
    }

    #[tokio::test]
    async fn another_choice_holds_from_then_on() {
        let (config, _) = crate::config::load(None, &serde_json::json!({}), &|_| None);
        let probe = SandboxProbe::ended(&config, isolation(&config, true));
        let held = probe.with(ConfinementSetting::Landlock);
        assert_eq!((probe.name(), held.name()), ("unconfined", "landlock"));
        assert!(matches!(
            held.for_approved(|| "/w").await,
            Ok(Confinement::Workspace { .. })
        ));
        assert_eq!(probe.for_approved(|| "/w").await, Ok(Confinement::Plain));
        let cannot = isolation(&config, false);
        let held = SandboxProbe::ended(&config, cannot).with(ConfinementSetting::Landlock);
        assert!(held.for_approved(|| "/w").await.is_err());
    }

    #[tokio::test]
    async fn what_a_person_types_waits_for_no_probe_where_nothing_confines_it() {
        let (probe, _end) = unended(ConfinementSetting::Subprocess);
        let confinement = probe.for_approved(|| "/w").now_or_never();
        assert_eq!(confinement, Some(Ok(Confinement::Plain)));
        assert_eq!(probe.name(), "unconfined");
    }
}
