//! The settings of a person, typed. They come from four layers: the defaults, the file `config.toml`, Lua, and the
//! environment. A value of a later layer replaces one of an earlier layer.
//!
//! Each setting is one row of `table`, from which parsing, errors and the help derive. To add a setting, add a row and
//! a field of [`Config`]. This module knows nothing of the effect of a setting.

mod agents;
mod given;
mod layers;
mod model_choice;
mod names;
mod servers;
mod setting;
mod table;
mod units;
mod value;

use std::path::PathBuf;
use std::time::Duration;

pub use agents::{AgentConfinement, AgentSettings};
pub use given::GivenSettings;
pub use layers::{Env, Layers, LoadedSettings, load};
pub use model_choice::ModelChoice;
pub use servers::{
    HttpServer, McpServerSettings, ServerConfinement, ServerKind, ServerProgram, ServerVariable,
    VariableSource, is_server_name,
};
pub use setting::{Applies, Setting};
pub use table::settings;

/// The time-out of a command of the model that asks for none. It is part of the tool's description, so it is no setting; the
/// setting `shell_max_timeout` bounds it.
pub const MODEL_TIMEOUT: Duration = Duration::from_secs(120);

/// Every setting, with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// A strict setting with a wrong value, or a layer that could not be read. No prompt is sent until it is right.
    pub wrong: Option<WrongSettings>,
    pub llm: co_llm::ProviderSettings,
    /// The other providers, by the names that the person gave them.
    pub providers: Vec<co_llm::ProviderSettings>,
    /// The agents that the person set.
    pub agents: Vec<AgentSettings>,
    /// The most bytes of memory of an agent with all its processes; none means no limit, here and below.
    pub agent_memory: Option<u64>,
    /// The most processes and threads of an agent.
    pub agent_processes: Option<u64>,
    /// The tool servers that the person set.
    pub mcp_servers: Vec<McpServerSettings>,
    /// The longest time that a prompt waits for tool servers.
    pub mcp_wait: Duration,
    /// The longest time of a call of a tool server.
    pub mcp_timeout: Duration,
    /// The prices of models that the person gave.
    pub prices: co_llm::Prices,
    pub policy: co_policy::PolicySettings,
    exec: co_exec::ExecSettings,
    /// The person's own commands get Neovim's shell and environment.
    pub run_inherits: bool,
    /// Seconds that a person's own command may run. 0 is no limit; none means [`Config::max_timeout`].
    pub run_timeout: Option<u64>,
    /// Commands run without a question. Deny rules still refuse.
    pub auto_confirm: bool,
    pub sandbox_backend: ConfinementSetting,
    pub sandbox_network: Network,
    /// The hosts that a confined command may reach, or not, without a question.
    pub hosts: co_policy::HostRules,
    pub try_first: TryFirst,
    /// The command that starts the service of the container engine.
    pub docker_start_command: Option<Vec<String>>,
    /// The longest time of a command that runs unasked. Jobs do not have this limit.
    pub unasked_timeout: Duration,
    /// Commands that landlock confines cannot open the workspace's secrets.
    pub hide_secrets: bool,
    /// The most requests of one turn; 0 is no limit.
    pub max_steps: u32,
    /// The most scouts of a turn that look at once. With 0 there are none.
    pub max_scouts: usize,
    /// The model of scouts; none is that of the chat.
    pub scout_model: Option<String>,
    /// Removes known secrets from command output, file tools and contexts.
    pub redact: bool,
    /// The model may read skills.
    pub skills: bool,
    pub show_reasoning: bool,
    /// A chat shows all lines of each call, and says also what is usual.
    pub full_calls: bool,
    /// Days after which an unused transcript is removed; none keeps all.
    pub chat_prune_days: Option<u32>,
    /// The time without data after which a model's answer counts as broken off.
    pub stall_timeout: Duration,
}

/// The settings that are wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongSettings {
    /// The settings in words: `the setting model`, or a file of settings.
    pub what: String,
    /// True if the confinement of approved commands may be wrong.
    pub confines: bool,
}

/// The confinement of approved commands, as the person chose it (`sandbox_backend`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfinementSetting {
    Subprocess,
    Landlock,
    Docker,
    /// The strongest one that works on this machine.
    Auto,
}

impl ConfinementSetting {
    pub const ALL: [Self; 4] = [Self::Subprocess, Self::Landlock, Self::Docker, Self::Auto];

    /// Returns the confinement that a value of the setting names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.word() == word)
    }

    /// Returns the setting's value.
    pub fn word(self) -> &'static str {
        match self {
            Self::Subprocess => "subprocess",
            Self::Landlock => "landlock",
            Self::Docker => "docker",
            Self::Auto => "auto",
        }
    }
}

/// The commands that run as a trial before co asks about them, in a workspace whose commands the person lets co try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryFirst {
    Never,
    /// Commands that run code, and unknown commands.
    Code,
    /// Also commands that only change files.
    Changes,
}

/// The network of a sandboxed command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    None,
    /// The network of the machine for landlock; the network of the settings for a container.
    Some,
    /// The hosts that a rule or the person allows, for trials and approved commands.
    Ask,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            wrong: None,
            llm: co_llm::ProviderSettings::default(),
            providers: Vec::new(),
            agents: Vec::new(),
            agent_memory: Some(16 << 30),
            agent_processes: Some(4096),
            mcp_servers: Vec::new(),
            mcp_wait: Duration::from_secs(10),
            mcp_timeout: Duration::from_secs(120),
            prices: co_llm::Prices::default(),
            policy: co_policy::PolicySettings::default(),
            exec: co_exec::ExecSettings::new(PathBuf::new()),
            run_inherits: false,
            run_timeout: None,
            auto_confirm: false,
            sandbox_backend: ConfinementSetting::Subprocess,
            sandbox_network: Network::None,
            hosts: co_policy::HostRules::default(),
            try_first: TryFirst::Changes,
            docker_start_command: None,
            unasked_timeout: Duration::from_secs(60),
            hide_secrets: true,
            max_steps: 50,
            max_scouts: 4,
            scout_model: None,
            redact: true,
            skills: true,
            show_reasoning: true,
            full_calls: false,
            chat_prune_days: None,
            stall_timeout: Duration::from_secs(120),
        }
    }
}

impl Config {
    /// Returns the executor's settings, with `spill_dir` as the directory of spill files.
    pub fn exec_settings(&self, spill_dir: PathBuf) -> co_exec::ExecSettings {
        co_exec::ExecSettings {
            spill_dir,
            ..self.exec.clone()
        }
    }

    /// Returns whether the sandbox may use namespaces.
    pub fn namespaces(&self) -> bool {
        self.exec.namespaces
    }

    /// Returns further places that commands which only read may read.
    pub fn read_roots(&self) -> &[PathBuf] {
        &self.exec.read_roots
    }

    /// Returns the settings of containers.
    pub fn container(&self) -> &co_exec::container::ContainerSettings {
        &self.exec.container
    }

    /// Returns the longest time that a command may run.
    pub fn max_timeout(&self) -> Duration {
        self.exec.max_timeout
    }
}

#[cfg(test)]
mod tests;
