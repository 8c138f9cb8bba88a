//! What a person may set, typed, from four layers: the defaults, `config.toml` in the configuration
//! directory, what Lua sent, the environment. A later layer's value takes an earlier one's place.
//!
//! Every setting is one row of `table::TABLE`; parsing, errors and the help come from there. Knows
//! nothing of what the settings do.

mod help;
mod table;
mod value;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::{exec, llm, policy};
pub use help::help;
use table::{Setting, TABLE};

/// Every setting, with a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub llm: llm::Settings,
    /// What models cost, as far as the person says.
    pub prices: llm::Prices,
    pub policy: policy::Settings,
    exec: exec::Settings,
    /// Nobody is asked; deny rules still refuse.
    pub auto_confirm: bool,
    pub sandbox_backend: Backend,
    pub docker_image: String,
    pub sandbox_network: Network,
    /// Bytes of memory of a container.
    pub sandbox_mem_limit: u64,
    /// Processors of a container.
    pub sandbox_cpus: f64,
    /// Proven read-only commands run unasked where the kernel has no sandbox for them.
    pub auto_without_sandbox: bool,
    /// Requests of one turn at most; 0 is no limit.
    pub max_steps: u32,
    /// Keys that a command printed are hidden from the model.
    pub redact: bool,
    pub show_reasoning: bool,
    /// Sessions untouched for this many days are removed; none keeps them all.
    pub session_prune_days: Option<u32>,
    /// How long a model may send nothing before its answer counts as broken off.
    pub stall_timeout: Duration,
}

/// Where approved commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    Subprocess,
    Landlock,
    Docker,
    /// The strongest that works here.
    Auto,
}

impl Backend {
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
            llm: llm::Settings::default(),
            prices: llm::Prices::default(),
            policy: policy::Settings::default(),
            exec: exec::Settings::new(PathBuf::new()),
            auto_confirm: false,
            sandbox_backend: Backend::Subprocess,
            docker_image: "co-cli-sandbox".to_owned(),
            sandbox_network: Network::None,
            sandbox_mem_limit: 1 << 30,
            sandbox_cpus: 1.0,
            auto_without_sandbox: true,
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
    pub fn exec_settings(&self, spill_dir: PathBuf) -> exec::Settings {
        exec::Settings {
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

/// Looks a variable up; tests pass their own.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads all layers. What is wrong is told, one sentence each, and left out; the rest applies.
///
/// `file` need not exist; `lua` is a map, or `[]` or null where nothing was set.
pub fn load(file: Option<&Path>, lua: &Value, env: Env<'_>) -> (Config, Vec<String>) {
    let mut loader = Loader {
        config: Config::default(),
        problems: Vec::new(),
        home: env("HOME").map(PathBuf::from),
    };
    if let Some(file) = file {
        loader.file(file);
    }
    loader.lua(lua);
    loader.environment(env);
    (loader.config, loader.problems)
}

struct Loader {
    config: Config,
    problems: Vec<String>,
    /// For paths that start with `~/`.
    home: Option<PathBuf>,
}

impl Loader {
    fn file(&mut self, file: &Path) {
        let layer = file.display().to_string();
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                self.problems
                    .push(format!("{layer} cannot be read ({error}); it is left out"));
                return;
            }
        };
        match toml::from_str(&text) {
            Ok(values) => self.map(&layer, &values),
            Err(error) => {
                let before = error.span().map_or("", |span| &text[..span.start]);
                let line = before.matches('\n').count() + 1;
                let why = error.message().replace('\n', ", ");
                self.problems.push(format!(
                    "{layer} line {line} is not TOML ({why}); the file is left out"
                ));
            }
        }
    }

    fn lua(&mut self, lua: &Value) {
        let layer = "setup{} or vim.g.co";
        match lua {
            Value::Object(values) => self.map(layer, values),
            Value::Null => {}
            // An empty Lua table is a list on its way here.
            Value::Array(list) if list.is_empty() => {}
            _ => self.problems.push(format!(
                "{layer} must be a table of settings; what it gave is left out"
            )),
        }
    }

    fn map(&mut self, layer: &str, values: &serde_json::Map<String, Value>) {
        for (name, value) in values {
            if value.is_null() {
                continue;
            }
            match TABLE.iter().find(|setting| setting.name == name) {
                Some(setting) => {
                    let took = setting
                        .kind
                        .take(&mut self.config, value, self.home.as_deref());
                    self.tell(setting, layer, took);
                }
                None => self.problems.push(unknown(name, layer)),
            }
        }
    }

    fn environment(&mut self, env: Env<'_>) {
        for setting in TABLE {
            let variable = setting.variable();
            let Some(text) = env(&variable) else { continue };
            let took = setting
                .kind
                .take_text(&mut self.config, &text, self.home.as_deref());
            self.tell(setting, &variable, took);
        }
        if env("CO_CLI_API_KEY").is_some() {
            self.problems.push(unknown("api_key", "CO_CLI_API_KEY"));
        }
    }

    fn tell(&mut self, setting: &Setting, layer: &str, took: Result<(), value::Refused>) {
        if took.is_err() {
            self.problems.push(format!(
                "the setting {} in {layer} must be {}; that value is left out",
                setting.name,
                setting.kind.accepts()
            ));
        }
    }
}

fn unknown(name: &str, layer: &str) -> String {
    if name == "api_key" {
        return format!(
            "the setting api_key in {layer} is refused, a key does not belong in settings; name the \
             variable, file or program that has it with api_key_env, api_key_file or api_key_cmd"
        );
    }
    let shown: String = name
        .chars()
        .take(60)
        .flat_map(char::escape_default)
        .collect();
    let near = TABLE
        .iter()
        .map(|setting| (distance(setting.name, name), setting.name))
        .min()
        .filter(|(distance, near)| *distance <= near.len() / 3);
    match near {
        Some((_, near)) => {
            format!("there is no setting {shown}, which {layer} gives; did you mean {near}?")
        }
        None => format!(
            "there is no setting {shown}, which {layer} gives; :help co-settings lists them all"
        ),
    }
}

/// Returns how many letters must be put in, taken out or changed to make one the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().take(80).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests;
