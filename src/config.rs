//! What a person may set, typed, from four layers: the defaults, `config.toml` in the configuration
//! directory, what Lua sent, the environment. A later layer's value takes an earlier one's place.
//!
//! Every setting is one row of `table::TABLE`; parsing, errors and the help come from there. Knows
//! nothing of what the settings do.

mod given;
mod help;
mod layers;
mod names;
mod table;
mod value;

use std::path::PathBuf;
use std::time::Duration;

pub use given::Given;
pub use help::{help, help_environment, help_inherit, help_unasked};
pub use layers::{Env, Layers, LoadedSettings, load};
pub use table::Applies;

/// Every setting, with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub llm: co_llm::ProviderSettings,
    /// What models cost, as far as the person says.
    pub prices: co_llm::Prices,
    pub policy: co_policy::PolicySettings,
    exec: co_exec::ExecSettings,
    /// A person's own commands get their shell and environment.
    pub run_inherits: bool,
    /// Seconds that a person's own command may run, 0 is no limit; none takes the ceiling.
    pub run_timeout: Option<u64>,
    /// Nobody is asked; deny rules still refuse.
    pub auto_confirm: bool,
    pub sandbox_backend: SandboxBackend,
    pub docker_image: String,
    pub sandbox_network: Network,
    /// Bytes of memory of a container.
    pub sandbox_mem_limit: u64,
    /// Processors of a container.
    pub sandbox_cpus: f64,
    /// Proven read-only commands run unasked where the kernel has no sandbox for them.
    pub auto_without_sandbox: bool,
    /// The longest time of a command that runs unasked, unless it is a job.
    pub unasked_timeout: Duration,
    /// Commands that landlock confines cannot open the workspace's secrets.
    pub hide_secrets: bool,
    /// Requests of one turn at most; 0 is no limit.
    pub max_steps: u32,
    /// Removes known secrets from command output, file tools and attachments.
    pub redact: bool,
    pub show_reasoning: bool,
    /// Sessions untouched for this many days are removed; none keeps them all.
    pub session_prune_days: Option<u32>,
    /// How long a model may send nothing before its answer counts as broken off.
    pub stall_timeout: Duration,
}

/// Where approved commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxBackend {
    Subprocess,
    Landlock,
    Docker,
    /// The strongest that works here.
    Auto,
}

impl SandboxBackend {
    pub const ALL: [Self; 4] = [Self::Subprocess, Self::Landlock, Self::Docker, Self::Auto];

    /// Returns the one that the setting's word means.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.word() == word)
    }

    /// The setting's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Subprocess => "subprocess",
            Self::Landlock => "landlock",
            Self::Docker => "docker",
            Self::Auto => "auto",
        }
    }
}

/// What network a sandboxed command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    None,
    Host,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            llm: co_llm::ProviderSettings::default(),
            prices: co_llm::Prices::default(),
            policy: co_policy::PolicySettings::default(),
            exec: co_exec::ExecSettings::new(PathBuf::new()),
            run_inherits: false,
            run_timeout: None,
            auto_confirm: false,
            sandbox_backend: SandboxBackend::Subprocess,
            docker_image: "co-cli-sandbox".to_owned(),
            sandbox_network: Network::None,
            sandbox_mem_limit: 1 << 30,
            sandbox_cpus: 1.0,
            auto_without_sandbox: true,
            unasked_timeout: Duration::from_secs(60),
            hide_secrets: true,
            max_steps: 50,
            redact: true,
            show_reasoning: false,
            session_prune_days: None,
            stall_timeout: Duration::from_secs(120),
        }
    }
}

impl Config {
    /// Returns what the executor needs, spilling into `spill_dir`.
    pub fn exec_settings(&self, spill_dir: PathBuf) -> co_exec::ExecSettings {
        co_exec::ExecSettings {
            spill_dir,
            ..self.exec.clone()
        }
    }

    /// Whether the sandbox may use namespaces.
    pub fn namespaces(&self) -> bool {
        self.exec.namespaces
    }

    /// The longest time a command may be given.
    pub fn max_timeout(&self) -> Duration {
        self.exec.max_timeout
    }
}

#[cfg(test)]
mod tests;
