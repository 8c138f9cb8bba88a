//! The probe of the sandbox, beside everything else: nobody waits for it but who needs to know.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::SetOnce;

use super::confinement::{Isolation, Unasked};
use crate::config::{Config, SandboxBackend};
use co_exec::Confinement;
use co_exec::sandbox::{Launcher, Refused};

/// What the person chose and, once it has been tried, what the kernel can do.
#[derive(Debug, Clone)]
pub struct SandboxProbe {
    backend: SandboxBackend,
    found: Arc<SetOnce<Isolation>>,
}

impl SandboxProbe {
    /// Starts the probe on a thread of its own.
    ///
    /// Must be called within a runtime.
    pub fn start(config: &Config, launcher: Launcher) -> Self {
        let probe = Self {
            backend: config.sandbox_backend,
            found: Arc::default(),
        };
        let (config, found) = (config.clone(), Arc::clone(&probe.found));
        tokio::task::spawn_blocking(move || {
            // Nobody else sets it.
            let _ = found.set(Isolation::new(&config, &launcher));
        });
        probe
    }

    /// One that has ended.
    pub fn ended(config: &Config, isolation: Isolation) -> Self {
        Self {
            backend: config.sandbox_backend,
            found: Arc::new(SetOnce::new_with(Some(isolation))),
        }
    }

    /// Returns the same probe for another chosen confinement of approved commands.
    #[must_use]
    pub fn with(&self, backend: SandboxBackend) -> Self {
        Self {
            backend,
            found: Arc::clone(&self.found),
        }
    }

    /// Waits for its end.
    pub async fn isolation(&self) -> Isolation {
        self.found.wait().await.with(self.backend)
    }

    fn known(&self) -> Option<Isolation> {
        Some(self.found.get()?.with(self.backend))
    }

    /// How what nobody was asked about runs; never, as long as nothing is known.
    pub fn unasked(&self) -> Unasked {
        self.found.get().map_or(Unasked::Never, Isolation::unasked)
    }

    /// The confinement of what nobody was asked about.
    pub fn proved(&self, workspace: &Path) -> Confinement {
        match self.found.get() {
            Some(isolation) => isolation.proved(workspace),
            None => Confinement::ReadOnly {
                workspace: workspace.to_owned(),
            },
        }
    }

    /// The confinement of what a person typed, approved or allowed by a rule; waits, and asks for the workspace,
    /// only where it matters.
    ///
    /// # Errors
    /// As [`Isolation::session`].
    pub async fn session<P: AsRef<Path>>(
        &self,
        workspace: impl FnOnce() -> P,
    ) -> Result<Confinement, Refused> {
        match self.backend {
            SandboxBackend::Subprocess => Ok(Confinement::Plain),
            _ => self.isolation().await.session(workspace().as_ref()),
        }
    }

    /// The session's backend in a word; as it is set, where what that comes to is not known yet.
    pub fn name(&self) -> &'static str {
        match self.known() {
            Some(isolation) => isolation.name(),
            None => self.backend.word(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown(backend: SandboxBackend) -> SandboxProbe {
        SandboxProbe {
            backend,
            found: Arc::default(),
        }
    }

    #[tokio::test]
    async fn before_it_ends_nothing_runs_unasked_or_less_confined() {
        let probe = unknown(SandboxBackend::Auto);
        assert_eq!(probe.unasked(), Unasked::Never);
        assert!(matches!(
            probe.proved(Path::new("/w")),
            Confinement::ReadOnly { .. }
        ));
        assert_eq!(probe.name(), "auto");
        let session = probe.session(|| "/w");
        assert_eq!(futures::FutureExt::now_or_never(session), None);
    }

    #[tokio::test]
    async fn another_choice_holds_from_then_on() {
        let (config, _) = crate::config::load(None, &serde_json::json!({}), &|_| None);
        let probe = SandboxProbe::ended(&config, Isolation::held(&config, Ok(())));
        let held = probe.with(SandboxBackend::Landlock);
        assert_eq!((probe.name(), held.name()), ("subprocess", "landlock"));
        assert!(matches!(
            held.session(|| "/w").await,
            Ok(Confinement::Workspace { .. })
        ));
        assert_eq!(probe.session(|| "/w").await, Ok(Confinement::Plain));
        let cannot = Isolation::held(&config, Err(Refused("no Landlock".to_owned())));
        let held = SandboxProbe::ended(&config, cannot).with(SandboxBackend::Landlock);
        assert!(held.session(|| "/w").await.is_err());
    }

    #[tokio::test]
    async fn what_a_person_types_waits_for_no_probe_where_nothing_confines_it() {
        let session = unknown(SandboxBackend::Subprocess);
        assert_eq!(session.session(|| "/w").await, Ok(Confinement::Plain));
        assert_eq!(session.name(), "subprocess");
    }
}
