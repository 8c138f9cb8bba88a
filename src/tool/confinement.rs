//! Chooses the confinement of a command: the person's choice for approved commands, read-only for unasked ones.
//!
//! The choice depends on the settings and on the abilities of the kernel; `co_exec` does the confining.

use std::path::Path;

use crate::config::{Config, Network, SandboxBackend};
use co_exec::sandbox::{Launcher, Refused};
use co_exec::{Confinement, Outcome, ShownSecrets};

/// Returns a confinement in a few words, or none if it is none.
pub fn words(confinement: &Confinement) -> Option<&'static str> {
    match confinement {
        Confinement::Plain => None,
        Confinement::ReadOnly { .. } => Some("read-only, without network"),
        Confinement::Workspace { .. } => Some(TO_WORKSPACE),
    }
}

/// Returns a sentence about the confinement of a command that failed, if that may be the cause and the person can lift
/// it.
pub fn hint(outcome: &Outcome, network: Network) -> Option<String> {
    let network = match network {
        Network::None => ", no network",
        Network::Host => "",
    };
    (outcome.failed() && outcome.level == "workspace").then(|| {
        format!("{TO_WORKSPACE}: no writes outside{network}; `:Co /sandbox subprocess` lifts it")
    })
}

/// Returns the status of a run in the shell buffer: its outcome, and its confinement if it has one.
pub fn status(outcome: &Outcome, confinement: Option<&str>, network: Network) -> String {
    let line = outcome.status();
    match hint(outcome, network).as_deref().or(confinement) {
        Some(words) => format!("{line}; {words}"),
        None => line,
    }
}

const TO_WORKSPACE: &str = "confined to the workspace (landlock)";

/// The person's settings about confinement and the abilities of the kernel.
#[derive(Debug, Clone)]
pub struct Isolation {
    backend: SandboxBackend,
    network: bool,
    auto_without_sandbox: bool,
    hide_secrets: bool,
    read_only: Result<(), Refused>,
    /// The probe of the sandbox worked. If it failed, `read_only` says nothing about the kernel.
    known: bool,
}

/// The way in which a command may run without a question if it is proven read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// Confined by the kernel.
    Confined,
    /// Unconfined: the kernel cannot confine it, and the person accepts that.
    Unconfined,
    /// Only after a question.
    Never,
}

impl Isolation {
    /// Combines the settings with the launcher's probe of the kernel.
    pub fn new(config: &Config, launcher: &Launcher) -> Self {
        Self {
            known: !launcher.probe_failed(),
            ..Self::with_result(config, launcher.check())
        }
    }

    /// Combines the settings with a known result of the probe.
    pub fn with_result(config: &Config, read_only: Result<(), Refused>) -> Self {
        Self {
            backend: config.sandbox_backend,
            network: config.sandbox_network == Network::Host,
            auto_without_sandbox: config.auto_without_sandbox,
            hide_secrets: config.hide_secrets,
            read_only,
            known: true,
        }
    }

    /// Returns the same for another chosen confinement of approved commands.
    #[must_use]
    pub fn with(&self, backend: SandboxBackend) -> Self {
        Self {
            backend,
            ..self.clone()
        }
    }

    /// Returns the way in which unasked commands run.
    pub fn unasked(&self) -> Unasked {
        match (&self.read_only, self.auto_without_sandbox) {
            (Ok(()), _) => Unasked::Confined,
            // A failed probe, such as one without a free descriptor, does not prove that the kernel has no sandbox.
            (Err(_), true) if self.known => Unasked::Unconfined,
            (Err(_), _) => Unasked::Never,
        }
    }

    /// Returns the confinement of unasked commands.
    pub fn for_unasked(&self, workspace: &Path) -> Confinement {
        match self.unasked() {
            // A command that must ask should not come here. If it does, the launcher refuses to start it.
            Unasked::Confined | Unasked::Never => Confinement::ReadOnly {
                workspace: workspace.to_owned(),
            },
            Unasked::Unconfined => Confinement::Plain,
        }
    }

    /// Returns the confinement of commands that the person typed, approved, or allowed by a rule.
    ///
    /// # Errors
    /// The chosen confinement does not work here. It is never replaced by a weaker one.
    pub fn for_approved(&self, workspace: &Path) -> Result<Confinement, Refused> {
        let confined = || Confinement::Workspace {
            workspace: workspace.to_owned(),
            network: self.network,
            shown: match self.hide_secrets {
                true => ShownSecrets::Nothing,
                false => ShownSecrets::Everything,
            },
        };
        match self.backend {
            SandboxBackend::Subprocess => Ok(Confinement::Plain),
            SandboxBackend::Landlock => self.read_only.clone().map(|()| confined()),
            SandboxBackend::Auto if self.read_only.is_ok() => Ok(confined()),
            SandboxBackend::Auto => Ok(Confinement::Plain),
            SandboxBackend::Docker => Err(Refused::Unable(
                "the docker backend is not part of this version; set sandbox_backend to subprocess or landlock"
                    .to_owned(),
            )),
        }
    }

    /// Returns the other backend that the person may choose for approved commands; none if there is no other here.
    pub fn other(&self) -> Option<SandboxBackend> {
        match self.for_approved(Path::new("/")) {
            Ok(Confinement::Plain) if self.read_only.is_err() => None,
            Ok(Confinement::Plain) => Some(SandboxBackend::Landlock),
            _ => Some(SandboxBackend::Subprocess),
        }
    }

    /// Returns the confinement of approved commands in a word, for the winbar and the float.
    pub fn name(&self) -> &'static str {
        match self.backend {
            SandboxBackend::Auto if self.read_only.is_ok() => SandboxBackend::Landlock.word(),
            SandboxBackend::Auto => SandboxBackend::Subprocess.word(),
            named => named.word(),
        }
    }

    /// Returns the confinement of unasked commands in a few words, for the winbar.
    pub fn short(&self) -> &'static str {
        match self.unasked() {
            Unasked::Confined => "read-only sandbox",
            Unasked::Unconfined => "no sandbox",
            Unasked::Never => "asks always",
        }
    }

    /// Returns the confinement of unasked commands in a sentence.
    pub fn unasked_words(&self) -> String {
        match (&self.read_only, self.auto_without_sandbox) {
            (Ok(()), _) => "unasked commands run in the read-only sandbox".to_owned(),
            (Err(why), true) if self.known => format!("unasked commands run unconfined: {why}"),
            (Err(why), _) => format!("every command asks: {why}"),
        }
    }

    /// Returns the permissions of approved commands in a sentence, or the reason why they cannot run.
    ///
    /// # Errors
    /// As [`Isolation::for_approved`].
    pub fn approved_words(&self) -> Result<String, Refused> {
        Ok(match self.for_approved(Path::new("/"))? {
            Confinement::Workspace { network, .. } => format!(
                "approved commands write in the workspace and a private temporary directory only, {} network",
                if network { "with" } else { "without" }
            ),
            _ => "approved commands run unconfined, with all your permissions".to_owned(),
        })
    }

    /// Returns a sentence for the model about approved commands.
    pub fn approved_for_model(&self) -> &'static str {
        match self.name() {
            "landlock" => {
                "Approved commands can write in the workspace and a private temporary directory only."
            }
            _ => "Approved commands run as the person, on this machine.",
        }
    }

    /// Returns a sentence for the model about unasked commands.
    pub fn unasked_for_model(&self) -> &'static str {
        match self.unasked() {
            Unasked::Never => "Every command waits for the person's approval.",
            Unasked::Confined | Unasked::Unconfined => {
                "What provably only reads files of the workspace (ls, cat, grep, rg, find, sed -n, git status, \
                 git diff, git log, pipes of them) runs at once; everything else waits for the person's approval."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use co_exec::sandbox::Support;

    fn isolation(backend: &str, auto_without_sandbox: bool, kernel: &Support) -> Isolation {
        let lua = serde_json::json!({
            "sandbox_backend": backend, "auto_without_sandbox": auto_without_sandbox,
        });
        let (config, problems) = crate::config::load(None, &lua, &|_| None);
        assert_eq!(problems, [""; 0]);
        let (exe, home) = ("/nonexistent".into(), "/home/x".into());
        let launcher = Launcher::with_support(exe, home, Vec::new(), kernel.clone());
        Isolation::new(&config, &launcher)
    }

    fn able() -> Support {
        Support {
            abi: Some(7),
            seccomp: true,
            namespaces: true,
            pid_namespaces: true,
            own_proc: true,
            why: None,
        }
    }

    #[test]
    fn what_is_proved_is_confined_where_the_kernel_can() {
        let workspace = Path::new("/w");
        let confined = isolation("subprocess", false, &able());
        assert_eq!(confined.unasked(), Unasked::Confined);
        let words = confined.unasked_words();
        assert!(words.contains("read-only sandbox"), "{words}");
        assert!(matches!(
            confined.for_unasked(workspace),
            Confinement::ReadOnly { .. }
        ));
        let none = Support::none("no Landlock");
        let bare = isolation("subprocess", true, &none);
        assert_eq!(
            (bare.unasked(), bare.short()),
            (Unasked::Unconfined, "no sandbox")
        );
        assert!(
            bare.unasked_words().contains("unconfined")
                && bare.unasked_words().contains("no Landlock")
        );
        let never = isolation("subprocess", false, &none);
        assert_eq!(
            (never.unasked(), never.short()),
            (Unasked::Never, "asks always")
        );
        assert!(never.unasked_words().contains("every command asks"));
        // If it is run all the same, it gets a confinement that cannot start.
        assert!(matches!(
            never.for_unasked(workspace),
            Confinement::ReadOnly { .. }
        ));
    }

    #[test]
    fn a_backend_asked_for_by_name_is_never_replaced_by_a_weaker_one() {
        let workspace = Path::new("/w");
        let none = Support::none("no Landlock");
        let refused = isolation("landlock", true, &none)
            .for_approved(workspace)
            .unwrap_err();
        assert!(refused.to_string().contains("no Landlock"), "{refused}");
        assert_eq!(refused.to_string().lines().count(), 1);
        let docker = isolation("docker", true, &able());
        assert!(
            docker
                .for_approved(workspace)
                .unwrap_err()
                .to_string()
                .contains("docker")
        );
        assert!(docker.approved_words().is_err());
        let held = isolation("landlock", true, &able());
        assert!(held.approved_words().unwrap().ends_with("without network"));
        assert!(matches!(
            held.for_approved(workspace),
            Ok(Confinement::Workspace { network: false, .. })
        ));
        let strongest = isolation("auto", true, &none);
        assert_eq!(strongest.for_approved(workspace), Ok(Confinement::Plain));
        assert_eq!(strongest.name(), "subprocess");
    }

    #[test]
    fn a_probe_that_fails_by_itself_is_no_kernel_without_a_sandbox() {
        let lua = serde_json::json!({ "auto_without_sandbox": true });
        let (config, _) = crate::config::load(None, &lua, &|_| None);
        let launcher = Launcher::new("/nonexistent".into(), "/home/x".into(), Vec::new());
        let isolation = Isolation::new(&config, &launcher);
        assert_eq!(isolation.unasked(), Unasked::Never);
        let words = isolation.unasked_words();
        assert!(
            words.starts_with("every command asks: the sandbox could not be tried"),
            "{words}"
        );
    }
}
