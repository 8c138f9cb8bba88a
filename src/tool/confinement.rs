//! Which confinement a command gets: the session's backend, or the read-only level for what nobody was asked about.

use std::path::Path;

use crate::config::{Config, Network, SandboxBackend};
use co_exec::sandbox::{Launcher, Refused};
use co_exec::{Confinement, ShownSecrets};

/// What the person chose and what the kernel can do.
#[derive(Debug, Clone)]
pub struct Isolation {
    backend: SandboxBackend,
    network: bool,
    auto_without_sandbox: bool,
    hide_secrets: bool,
    read_only: Result<(), Refused>,
    /// Whether that was found out; a probe that failed by itself says nothing of the kernel.
    known: bool,
}

/// How a command that is proven read-only may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// Confined by the kernel.
    Confined,
    /// Unconfined: the kernel cannot, and the person accepts that.
    Bare,
    /// Not at all: ask.
    Never,
}

impl Isolation {
    /// Puts together the settings and what the launcher found.
    pub fn new(config: &Config, launcher: &Launcher) -> Self {
        Self {
            known: !launcher.probe_failed(),
            ..Self::held(config, launcher.check())
        }
    }

    /// The same where it is known already whether the kernel can hold a command.
    pub fn held(config: &Config, read_only: Result<(), Refused>) -> Self {
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

    /// How what nobody was asked about runs here.
    pub fn unasked(&self) -> Unasked {
        match (&self.read_only, self.auto_without_sandbox) {
            (Ok(()), _) => Unasked::Confined,
            // What fails for want of a descriptor, say, is no kernel without a sandbox.
            (Err(_), true) if self.known => Unasked::Bare,
            (Err(_), _) => Unasked::Never,
        }
    }

    /// The confinement of what nobody was asked about.
    pub fn proved(&self, workspace: &Path) -> Confinement {
        match self.unasked() {
            // Nobody should come here to run what must ask; if so, it does not start, for the launcher refuses.
            Unasked::Confined | Unasked::Never => Confinement::ReadOnly {
                workspace: workspace.to_owned(),
            },
            Unasked::Bare => Confinement::Plain,
        }
    }

    /// The confinement of what a person typed, approved or allowed by a rule.
    ///
    /// # Errors
    /// Where the backend asked for by name cannot run here: it is never replaced by a weaker one.
    pub fn session(&self, workspace: &Path) -> Result<Confinement, Refused> {
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
            SandboxBackend::Docker => Err(Refused(
                "the docker backend is not part of this version; set sandbox_backend to subprocess or landlock"
                    .to_owned(),
            )),
        }
    }

    /// Returns the other backend that the person may choose for approved commands; none if there is no other here.
    pub fn other(&self) -> Option<SandboxBackend> {
        match self.session(Path::new("/")) {
            Ok(Confinement::Plain) if self.read_only.is_err() => None,
            Ok(Confinement::Plain) => Some(SandboxBackend::Landlock),
            _ => Some(SandboxBackend::Subprocess),
        }
    }

    /// The session's backend in a word, for the winbar and the float.
    pub fn name(&self) -> &'static str {
        match self.backend {
            SandboxBackend::Auto if self.read_only.is_ok() => SandboxBackend::Landlock.word(),
            SandboxBackend::Auto => SandboxBackend::Subprocess.word(),
            named => named.word(),
        }
    }

    /// What holds unasked commands, in a word or two for the winbar.
    pub fn short(&self) -> &'static str {
        match self.unasked() {
            Unasked::Confined => "read-only sandbox",
            Unasked::Bare => "no sandbox",
            Unasked::Never => "asks always",
        }
    }

    /// What holds unasked commands, in a sentence.
    pub fn words(&self) -> String {
        match (&self.read_only, self.auto_without_sandbox) {
            (Ok(()), _) => "unasked commands run in the read-only sandbox".to_owned(),
            (Err(why), true) if self.known => format!("unasked commands run unconfined: {why}"),
            (Err(why), _) => format!("every command asks: {why}"),
        }
    }

    /// Returns the permissions of approved commands in a sentence, or the reason why they cannot run.
    ///
    /// # Errors
    /// As [`Isolation::session`].
    pub fn session_words(&self) -> Result<String, Refused> {
        Ok(match self.session(Path::new("/"))? {
            Confinement::Workspace { network, .. } => format!(
                "approved commands write in the workspace and a private temporary directory only, {} network",
                if network { "with" } else { "without" }
            ),
            _ => "approved commands run unconfined, with all your permissions".to_owned(),
        })
    }

    /// How approved commands run, for the model.
    pub fn approved_words(&self) -> &'static str {
        match self.name() {
            "landlock" => {
                "Approved commands can write in the workspace and a private temporary directory only."
            }
            _ => "Approved commands run as the person, on this machine.",
        }
    }

    /// What runs unasked, for the model.
    pub fn for_model(&self) -> &'static str {
        match self.unasked() {
            Unasked::Never => "Every command waits for the person's approval.",
            Unasked::Confined | Unasked::Bare => {
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
            why: None,
        }
    }

    #[test]
    fn what_is_proved_is_confined_where_the_kernel_can() {
        let workspace = Path::new("/w");
        let confined = isolation("subprocess", false, &able());
        assert_eq!(confined.unasked(), Unasked::Confined);
        let words = confined.words();
        assert!(words.contains("read-only sandbox"), "{words}");
        assert!(matches!(
            confined.proved(workspace),
            Confinement::ReadOnly { .. }
        ));
        let none = Support::none("no Landlock");
        let bare = isolation("subprocess", true, &none);
        assert_eq!(
            (bare.unasked(), bare.short()),
            (Unasked::Bare, "no sandbox")
        );
        assert!(bare.words().contains("unconfined") && bare.words().contains("no Landlock"));
        let never = isolation("subprocess", false, &none);
        assert_eq!(
            (never.unasked(), never.short()),
            (Unasked::Never, "asks always")
        );
        assert!(never.words().contains("every command asks"));
        // Whoever runs it all the same gets what cannot start, not what is unheld.
        assert!(matches!(
            never.proved(workspace),
            Confinement::ReadOnly { .. }
        ));
    }

    #[test]
    fn a_backend_asked_for_by_name_is_never_replaced_by_a_weaker_one() {
        let workspace = Path::new("/w");
        let none = Support::none("no Landlock");
        let refused = isolation("landlock", true, &none)
            .session(workspace)
            .unwrap_err();
        assert!(refused.0.contains("no Landlock"), "{refused}");
        assert_eq!(refused.0.lines().count(), 1);
        let docker = isolation("docker", true, &able());
        assert!(docker.session(workspace).unwrap_err().0.contains("docker"));
        assert!(docker.session_words().is_err());
        let held = isolation("landlock", true, &able());
        assert!(held.session_words().unwrap().ends_with("without network"));
        assert!(matches!(
            held.session(workspace),
            Ok(Confinement::Workspace { network: false, .. })
        ));
        let strongest = isolation("auto", true, &none);
        assert_eq!(strongest.session(workspace), Ok(Confinement::Plain));
        assert_eq!(strongest.name(), "subprocess");
    }

    #[test]
    fn a_probe_that_fails_by_itself_is_no_kernel_without_a_sandbox() {
        let lua = serde_json::json!({ "auto_without_sandbox": true });
        let (config, _) = crate::config::load(None, &lua, &|_| None);
        let launcher = Launcher::new("/nonexistent".into(), "/home/x".into(), Vec::new());
        let isolation = Isolation::new(&config, &launcher);
        assert_eq!(isolation.unasked(), Unasked::Never);
        let words = isolation.words();
        assert!(
            words.starts_with("every command asks: the sandbox could not be tried"),
            "{words}"
        );
    }
}
