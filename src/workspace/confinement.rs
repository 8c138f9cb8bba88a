//! Chooses the confinement of a command: the person's choice for approved commands, and the read-only level for commands that run
//! without approval.
//!
//! The choice depends on the settings and on the abilities of the kernel. `co_exec` confines the command.

use std::path::Path;

use crate::config::{Config, ConfinementSetting, Network};
use co_exec::container::{ContainerSettings, EngineFault, check_engine, missing_limits};
use co_exec::sandbox::{SandboxRefusal, SandboxReport};
use co_exec::{Confinement, ShownSecrets};

/// Returns the name of a chosen confinement, for the person.
pub(super) fn name(setting: ConfinementSetting) -> &'static str {
    match setting {
        ConfinementSetting::Subprocess => "unconfined",
        ConfinementSetting::Docker => "container",
        other => other.word(),
    }
}

/// Returns the network access of a command, for hints about a failure. For a container, the settings determine it.
pub fn network_of(confinement: &Confinement, settings: &Config) -> Network {
    match confinement {
        Confinement::Workspace { network, .. } => match network {
            co_exec::Network::None => Network::None,
            co_exec::Network::Machine => Network::Some,
            co_exec::Network::Own => Network::Ask,
        },
        _ => settings.sandbox_network,
    }
}

/// Returns a sentence about the limits of containers that were tested. `missing` are the limits that do not work.
pub fn limits_words(engine: &str, missing: &[&str]) -> String {
    match missing {
        [] => "tried in one: all its limits hold".to_owned(),
        missing => format!(
            "tried in one: {engine} does not enforce the limits of {}",
            missing.join(", ")
        ),
    }
}

/// The person's settings about confinement, and the abilities of the kernel.
#[derive(Debug, Clone)]
pub struct Isolation {
    setting: ConfinementSetting,
    network: Network,
    hide_secrets: bool,
    container: ContainerSettings,
    read_only: Result<(), SandboxRefusal>,
    /// `Ok` if a command can have its own network. The error is the reason why it cannot.
    own_network: Result<(), SandboxRefusal>,
    /// The answer of the container engine; none if it was not asked.
    engine: Option<Result<(), EngineFault>>,
}

impl Isolation {
    /// Combines the settings with the report about this system.
    pub fn new(config: &Config, report: &SandboxReport) -> Self {
        Self {
            setting: config.sandbox_backend,
            network: config.sandbox_network,
            hide_secrets: config.hide_secrets,
            container: config.container().clone(),
            read_only: report.confined(),
            own_network: report.own_network(),
            engine: None,
        }
    }

    /// Returns a copy with the answer of the container engine.
    #[must_use]
    pub fn with_engine(&self, engine: Result<(), EngineFault>) -> Self {
        Self {
            engine: Some(engine),
            ..self.clone()
        }
    }

    /// Asks the container engine if the choice depends on the answer, and returns a copy with the answer.
    pub async fn ask_engine(&self) -> Self {
        if self.setting != ConfinementSetting::Auto {
            return self.clone();
        }
        let engine = self.check_engine().await;
        self.with_engine(engine)
    }

    /// Checks that the container engine answers and has the image.
    ///
    /// # Errors
    /// The engine does not answer, or does not have the image.
    pub async fn check_engine(&self) -> Result<(), EngineFault> {
        let environment: Vec<_> = std::env::vars_os().collect();
        check_engine(&self.container, &environment).await.map(drop)
    }

    /// Tests the limits of a container, and returns a sentence about them.
    ///
    /// # Errors
    /// No container can run.
    pub async fn try_limits(&self) -> Result<String, EngineFault> {
        let environment: Vec<_> = std::env::vars_os().collect();
        let engine = check_engine(&self.container, &environment).await?;
        let missing = missing_limits(&engine, &self.container).await?;
        Ok(limits_words(&engine.name(), &missing))
    }

    /// Returns true if approved commands run in a container.
    pub fn in_container(&self) -> bool {
        self.chosen() == ConfinementSetting::Docker
    }

    /// Returns the confinement that the person chose. For `auto`, returns the strongest confinement that is possible here.
    fn chosen(&self) -> ConfinementSetting {
        match (self.setting, &self.engine) {
            (ConfinementSetting::Auto, Some(Ok(()))) if self.network != Network::Ask => {
                ConfinementSetting::Docker
            }
            (ConfinementSetting::Auto, _) if self.read_only.is_ok() => ConfinementSetting::Landlock,
            (ConfinementSetting::Auto, _) => ConfinementSetting::Subprocess,
            (named, _) => named,
        }
    }

    /// Returns a sentence about the choice that `auto` made, with the reasons why stronger confinements are not possible. Returns
    /// `None` if the person did not choose `auto`.
    fn auto_words(&self) -> Option<String> {
        if self.setting != ConfinementSetting::Auto {
            return None;
        }
        let container = match &self.engine {
            Some(Err(fault)) => Some(format!("no container can run: {fault}")),
            Some(Ok(())) if self.network == Network::Ask => {
                Some("a container has no network by host".to_owned())
            }
            _ => None,
        };
        let landlock = match (&self.engine, &self.read_only) {
            (Some(Ok(())), _) | (_, Ok(())) => None,
            (_, Err(why)) => Some(format!("landlock cannot: {why}")),
        };
        let reasons: Vec<String> = container.into_iter().chain(landlock).collect();
        let took = format!("auto takes {}", self.chosen().word());
        Some(match reasons.is_empty() {
            true => took,
            false => format!("{took}, because {}", reasons.join("; ")),
        })
    }

    /// Returns a copy in which `setting` determines the confinement of approved commands.
    #[must_use]
    pub fn with(&self, setting: ConfinementSetting) -> Self {
        Self {
            setting,
            ..self.clone()
        }
    }

    /// Returns the confinement of commands that the person typed or approved, or that a rule allows.
    ///
    /// # Errors
    /// The chosen confinement is not possible here. co never replaces it by a weaker one.
    pub fn for_approved(&self, workspace: &Path) -> Result<Confinement, SandboxRefusal> {
        let shown = match self.hide_secrets {
            true => ShownSecrets::Nothing,
            false => ShownSecrets::Everything,
        };
        let workspace = workspace.to_owned();
        let confined = || Confinement::Workspace {
            workspace: workspace.clone(),
            network: match self.network {
                Network::Some => co_exec::Network::Machine,
                Network::Ask if self.own_network.is_ok() => co_exec::Network::Own,
                Network::Ask | Network::None => co_exec::Network::None,
            },
            shown: shown.clone(),
        };
        match self.chosen() {
            ConfinementSetting::Subprocess | ConfinementSetting::Auto => Ok(Confinement::Plain),
            ConfinementSetting::Landlock => self.read_only.clone().map(|()| confined()),
            ConfinementSetting::Docker if self.network == Network::Ask => {
                let why = "a container has no network by host: set sandbox_network to none, or to a network of the engine";
                Err(SandboxRefusal::Unable(why.to_owned()))
            }
            // Only the engine can tell if it can run: the executor asks it before the first command.
            ConfinementSetting::Docker => Ok(Confinement::Container {
                workspace,
                shown,
                read_only: false,
            }),
        }
    }

    /// Returns the confinement of commands that run without approval.
    pub fn for_unasked(&self, workspace: &Path) -> Confinement {
        let workspace = workspace.to_owned();
        match self.chosen() {
            ConfinementSetting::Docker => Confinement::Container {
                workspace,
                shown: ShownSecrets::Nothing,
                read_only: true,
            },
            ConfinementSetting::Subprocess
            | ConfinementSetting::Landlock
            | ConfinementSetting::Auto => Confinement::ReadOnly { workspace },
        }
    }

    /// Returns another confinement that the person can choose for approved commands; none if no other is possible here.
    pub fn other(&self) -> Option<ConfinementSetting> {
        match self.for_approved(Path::new("/")) {
            Ok(Confinement::Plain) if self.read_only.is_err() => None,
            Ok(Confinement::Plain) => Some(ConfinementSetting::Landlock),
            _ => Some(ConfinementSetting::Subprocess),
        }
    }

    /// Returns the name of the confinement of approved commands, for the winbar and the float.
    pub fn name(&self) -> &'static str {
        name(self.chosen())
    }

    /// Checks that the kernel can confine commands at the read-only level.
    ///
    /// # Errors
    /// The reason why the kernel cannot confine them.
    pub fn reading(&self) -> Result<(), SandboxRefusal> {
        self.read_only.clone()
    }

    /// Returns true if the kernel or a container can confine commands at the read-only level.
    pub fn confines(&self) -> bool {
        self.read_only.is_ok() || self.in_container()
    }

    /// Returns a short description of the confinement of commands that run without approval, for the winbar.
    pub fn short(&self) -> &'static str {
        match self.confines() {
            true => "unasked: read-only",
            false => "no sandbox",
        }
    }

    /// Returns a sentence about the confinement of commands that run without approval.
    pub fn unasked_words(&self) -> String {
        match &self.read_only {
            _ if self.in_container() => {
                "unasked commands run in a container that can only read the workspace".to_owned()
            }
            Ok(()) => "unasked commands run in the read-only sandbox".to_owned(),
            Err(why) => format!("nearly every command asks, because nothing can confine it: {why}"),
        }
    }

    /// Returns a sentence about the permissions of approved commands.
    ///
    /// # Errors
    /// The errors of [`Isolation::for_approved`].
    pub fn approved_words(&self) -> Result<String, SandboxRefusal> {
        let words = match self.for_approved(Path::new("/"))? {
            Confinement::Workspace { network, .. } => format!(
                "approved commands write in the workspace and a private temporary directory only, {}",
                self.network_words(network)
            ),
            Confinement::Container { .. } => {
                let ContainerSettings {
                    image,
                    network,
                    read_only,
                    ..
                } = &self.container;
                let writes = if *read_only {
                    "in the workspace and /tmp only"
                } else {
                    "in the workspace and in the container"
                };
                let network = match network.as_str() {
                    "none" => "without network".to_owned(),
                    named => format!("with the network {named}"),
                };
                format!(
                    "approved commands run in a container of the image {image} and write {writes}, {network}"
                )
            }
            Confinement::Plain => {
                "approved commands run unconfined, with all your permissions".to_owned()
            }
            other @ (Confinement::ReadOnly { .. }
            | Confinement::Trial { .. }
            | Confinement::Agent { .. }
            | Confinement::Server { .. }) => {
                format!("approved commands run at the level {}", other.name())
            }
        };
        Ok(match self.auto_words() {
            Some(auto) => format!("{words} ({auto})"),
            None => words,
        })
    }

    /// Returns a clause about the network of approved commands at the workspace level.
    fn network_words(&self, network: co_exec::Network) -> String {
        match (network, &self.own_network) {
            (co_exec::Network::Machine, _) => "with network".to_owned(),
            (co_exec::Network::Own, _) => {
                "and reach only the hosts that you allow (:help co-hosts)".to_owned()
            }
            (co_exec::Network::None, Err(why)) if self.network == Network::Ask => {
                format!("without network, although sandbox_network is ask: {why}")
            }
            (co_exec::Network::None, _) => "without network".to_owned(),
        }
    }

    /// Returns a sentence for the model about approved commands.
    pub fn approved_for_model(&self) -> &'static str {
        match self.chosen() {
            ConfinementSetting::Landlock => {
                "Approved commands can write in the workspace and a private temporary directory only."
            }
            ConfinementSetting::Docker => {
                "Approved commands run in a container. The workspace is /workspace there, the programs are those of its image, \
                 and nothing else of this machine is there."
            }
            ConfinementSetting::Subprocess | ConfinementSetting::Auto => {
                "Approved commands run as the person, on this machine."
            }
        }
    }

    /// Returns a sentence for the model about commands that run without approval.
    pub fn unasked_for_model(&self) -> &'static str {
        match self.confines() {
            true => {
                "Commands that only look at files of the workspace (ls, cat, grep, rg, find, sed -n, git status, git diff, \
                 git log, also in pipes and loops) run at once; everything else waits for the person's approval."
            }
            false => {
                "Nearly every command waits for the person's approval; only a plain ls, cat, head or wc of files of the \
                 workspace runs at once."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use co_exec::sandbox::SandboxSupport;

    fn isolation(setting: &str, kernel: &SandboxSupport) -> Isolation {
        isolation_with(serde_json::json!({ "sandbox_backend": setting }), kernel)
    }

    fn isolation_with(lua: serde_json::Value, kernel: &SandboxSupport) -> Isolation {
        let (config, problems) = crate::config::load(None, &lua, &|_| None);
        assert_eq!(problems, [""; 0]);
        let report = SandboxReport::new("/nonexistent".into(), "/home/x".into());
        Isolation::new(&config, &report.with_support(kernel.clone()))
    }

    fn able() -> SandboxSupport {
        SandboxSupport {
            abi: Some(7),
            seccomp: true,
            namespaces: true,
            pid_namespaces: true,
            own_proc: true,
            trials: true,
            own_network: true,
            why_no_trials: None,
            why_no_own_network: None,
            why: None,
        }
    }

    #[test]
    fn the_words_about_unasked_commands_say_what_the_kernel_does() {
        let confined = isolation("subprocess", &able());
        assert!(confined.confines());
        let words = confined.unasked_words();
        assert!(words.contains("read-only sandbox"), "{words}");
        let bare = isolation("subprocess", &SandboxSupport::none("no Landlock"));
        assert!(!bare.confines());
        let words = bare.unasked_words();
        assert!(
            words.contains("asks") && words.contains("no Landlock"),
            "{words}"
        );
    }

    #[test]
    fn a_confinement_asked_for_by_name_is_never_replaced_by_a_weaker_one() {
        let workspace = Path::new("/w");
        let none = SandboxSupport::none("no Landlock");
        let refused = isolation("landlock", &none)
            .for_approved(workspace)
            .unwrap_err();
        assert!(refused.to_string().contains("no Landlock"), "{refused}");
        assert_eq!(refused.to_string().lines().count(), 1);
        let docker = isolation("docker", &none);
        assert!(matches!(
            docker.for_approved(workspace),
            Ok(Confinement::Container {
                read_only: false,
                ..
            })
        ));
        assert!(docker.for_unasked(workspace).only_looks());
        assert_eq!(
            docker.approved_words().unwrap(),
            "approved commands run in a container of the image co-cli-sandbox and write in the workspace and /tmp only, \
             without network"
        );
        let held = isolation("landlock", &able());
        assert!(held.approved_words().unwrap().ends_with("without network"));
        assert!(matches!(
            held.for_approved(workspace),
            Ok(Confinement::Workspace {
                network: co_exec::Network::None,
                ..
            })
        ));
        let strongest = isolation("auto", &none);
        assert_eq!(strongest.for_approved(workspace), Ok(Confinement::Plain));
        assert_eq!(strongest.name(), "unconfined");
        let fault = co_exec::container::Engine::find("/nonexistent", &[]).unwrap_err();
        let words = strongest.with_engine(Err(fault.clone())).approved_words();
        let words = words.unwrap();
        assert!(words.contains("(auto takes subprocess, because no container can run: there is no program /nonexistent"), "{words}");
        assert!(words.contains("; landlock cannot: "), "{words}");
        let held = isolation("auto", &able()).with_engine(Err(fault));
        assert_eq!(held.name(), "landlock");
        let inside = isolation("auto", &able()).with_engine(Ok(()));
        assert_eq!(inside.name(), "container");
        assert!(
            inside
                .approved_words()
                .unwrap()
                .ends_with("(auto takes docker)")
        );
        assert!(inside.for_unasked(workspace).only_looks());
    }

    #[test]
    fn hosts_need_a_network_of_its_own() {
        let asking = |setting: &str, kernel: &SandboxSupport| {
            let lua = serde_json::json!({ "sandbox_backend": setting, "sandbox_network": "ask" });
            isolation_with(lua, kernel)
        };
        let has_way = |isolation: &Isolation| {
            let approved = isolation.for_approved(Path::new("/w")).unwrap();
            approved.has_own_network()
        };
        let able_to = asking("landlock", &able());
        assert!(has_way(&able_to));
        let words = able_to.approved_words().unwrap();
        assert!(words.contains("only the hosts that you allow"), "{words}");
        let without = SandboxSupport {
            own_network: false,
            why_no_own_network: Some("user.max_net_namespaces is 0".to_owned()),
            ..able()
        };
        let unable = asking("landlock", &without);
        assert!(!has_way(&unable));
        let words = unable.approved_words().unwrap();
        assert!(words.contains("without network, although"), "{words}");
        assert!(words.ends_with("user.max_net_namespaces is 0"), "{words}");
        assert!(
            asking("docker", &able())
                .for_approved(Path::new("/w"))
                .is_err()
        );
        // A container has no network by host, so `auto` does without one.
        let auto = asking("auto", &able()).with_engine(Ok(()));
        assert!(has_way(&auto));
        let words = auto.approved_words().unwrap();
        assert!(
            words.ends_with("(auto takes landlock, because a container has no network by host)"),
            "{words}"
        );
    }

    #[test]
    fn a_probe_that_fails_by_itself_confines_nothing() {
        let (config, _) = crate::config::load(None, &serde_json::json!({}), &|_| None);
        let report = SandboxReport::new("/nonexistent".into(), "/home/x".into());
        let isolation = Isolation::new(&config, &report);
        assert!(!isolation.confines());
        let words = isolation.unasked_words();
        assert!(words.contains("the sandbox could not be tried"), "{words}");
    }
}
