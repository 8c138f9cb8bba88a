//! The typed settings of a person. They come from four layers: the defaults, the file `config.toml`, Lua, and the environment. A
//! value in a later layer replaces a value in an earlier one.
//!
//! Each setting is one row of `table`, which defines its parsing, its errors and its help. To add a setting, add a row and a
//! field of [`Config`]. This module does not know the effects of settings.

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

pub use agents::{AgentConfinement, AgentSettings, ToolSource};
pub use given::GivenSettings;
pub use layers::{Env, Layers, LoadedSettings, load};
pub use model_choice::ModelChoice;
pub use servers::{
    HttpServer, McpServerSettings, OauthSettings, ServerConfinement, ServerKind, ServerProgram,
    ServerVariable, VariableSource, is_server_name,
};
pub use setting::{Applies, Setting};
pub use table::settings;

/// The time-out of a model's command that sets no time-out. It is not a setting, because it is part of the tool's description.
/// The setting `shell_max_timeout` limits it.
pub const MODEL_TIMEOUT: Duration = Duration::from_secs(120);

/// The typed values of all settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// A wrong value that blocks all prompts, or a layer that could not be read. co sends no prompt until this is corrected.
    pub wrong: Option<WrongSettings>,
    pub llm: co_llm::ProviderSettings,
    /// The profiles: further providers, with the names that the person gave them.
    pub providers: Vec<co_llm::ProviderSettings>,
    /// The person's settings for agents.
    pub agents: Vec<AgentSettings>,
    /// The memory limit in bytes of an agent with all its processes. `None` means no limit.
    pub agent_memory: Option<u64>,
    /// The limit on the number of processes and threads of an agent. `None` means no limit.
    pub agent_processes: Option<u64>,
    /// The person's settings for tool servers.
    pub mcp_servers: Vec<McpServerSettings>,
    /// The longest time that a prompt waits for tool servers to start.
    pub mcp_wait: Duration,
    /// The time-out of a call of a tool server.
    pub mcp_timeout: Duration,
    /// The prices of models that the person set.
    pub prices: co_llm::Prices,
    pub policy: co_policy::PolicySettings,
    exec: co_exec::ExecSettings,
    /// True if the person's own commands get Neovim's shell and environment.
    pub run_inherits: bool,
    /// The time-out in seconds of the person's own commands. 0 means no time-out. `None` means [`Config::max_timeout`].
    pub run_timeout: Option<u64>,
    /// True if commands run without a question. Deny rules still apply.
    pub auto_confirm: bool,
    pub sandbox_backend: ConfinementSetting,
    pub sandbox_network: Network,
    /// The rules about the hosts that a confined command may connect to without a question, or must not connect to.
    pub hosts: co_policy::HostRules,
    pub try_first: TryFirst,
    /// The command that starts the service of the container engine.
    pub docker_start_command: Option<Vec<String>>,
    /// The time-out of commands that run without approval. It does not apply to jobs.
    pub unasked_timeout: Duration,
    /// True if commands that landlock confines cannot open the secret files of the workspace.
    pub hide_secrets: bool,
    /// The largest number of requests in one turn. 0 means no limit.
    pub max_steps: u32,
    /// The largest number of scouts of a turn that may run at a time. 0 turns scouts off.
    pub max_scouts: usize,
    /// The model of scouts. `None` means the model of the chat.
    pub scout_model: Option<String>,
    /// True if known secrets are removed from command output, results of file tools, and contexts.
    pub redact: bool,
    /// True if the model may read skills.
    pub skills: bool,
    pub show_reasoning: bool,
    /// True if a chat shows all lines of each call, including facts that are not unusual.
    pub full_calls: bool,
    /// The number of days after which an unused transcript is removed. `None` keeps all transcripts.
    pub chat_prune_days: Option<u32>,
    /// The time-out of a model's answer while the server sends no data.
    pub stall_timeout: Duration,
}

/// A wrong setting, or a layer of settings that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongSettings {
    /// The name of the setting or of the layer for messages: `the setting model`, or the path of a settings file.
    pub what: String,
    /// True if the confinement of approved commands may be wrong because of the wrong setting or the unread layer.
    pub confines: bool,
}

/// The person's choice of the confinement for approved commands (`sandbox_backend`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfinementSetting {
    Subprocess,
    Landlock,
    Docker,
    /// The strongest confinement that works on this machine.
    Auto,
}

impl ConfinementSetting {
    pub const ALL: [Self; 4] = [Self::Subprocess, Self::Landlock, Self::Docker, Self::Auto];

    /// Returns the confinement with this word as the value of the setting.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.word() == word)
    }

    /// Returns the value of the setting for this confinement.
    pub fn word(self) -> &'static str {
        match self {
            Self::Subprocess => "subprocess",
            Self::Landlock => "landlock",
            Self::Docker => "docker",
            Self::Auto => "auto",
        }
    }
}

/// The commands that run as a trial before co asks about them. This applies only in workspaces where the person allowed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryFirst {
    Never,
    /// Commands that run code, and unknown commands.
    Code,
    /// The commands of `Code`, and commands that only change files.
    Changes,
}

/// The network access of a sandboxed command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    None,
    /// For landlock, the network of the machine. For containers, the network in the settings.
    Some,
    /// Only the hosts that a rule or the person allows. This applies to trials and approved commands.
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
    /// Returns the executor's settings. `spill_dir` is the directory for spill files.
    pub fn exec_settings(&self, spill_dir: PathBuf) -> co_exec::ExecSettings {
        co_exec::ExecSettings {
            spill_dir,
            ..self.exec.clone()
        }
    }

    /// Returns true if the sandbox may use namespaces.
    pub fn namespaces(&self) -> bool {
        self.exec.namespaces
    }

    /// Returns the further places that read-only commands may read.
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
