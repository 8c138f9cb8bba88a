//! Reads the layers of settings: the file, Lua and the environment.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::given::SettingsLayer;
use super::names;
use super::setting::Setting;
use super::table::settings;
use super::value::BadValue;
use super::{Config, GivenSettings};

/// The name of the Lua layer in messages.
const LUA: &str = "setup{} or vim.g.co";

/// The consequence of a wrong value of a strict setting (see `Setting::strict`), for messages.
const NO_PROMPT: &str = "no prompt is sent until it is right";

/// A function that returns the value of an environment variable. Tests pass a function of their own.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The sources of all layers, in the order in which they are read.
#[derive(Clone, Copy)]
pub struct Layers<'a> {
    /// The file `config.toml`, which may not exist.
    pub file: Option<&'a Path>,
    /// The settings from Lua, as a map. It is `[]` or null if there are none.
    pub lua: &'a Value,
    pub env: Env<'a>,
    /// The names of all environment variables. Those with co's prefix that are not settings are reported.
    pub variables: &'a [String],
}

/// The settings in the layers, and the problems with them.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSettings {
    pub given: GivenSettings,
    /// One sentence for each wrong value.
    pub problems: Vec<String>,
}

impl Layers<'_> {
    /// Reads all layers. Leaves out wrong values and reports them. While a strict setting (see `Setting::strict`) has a wrong
    /// value, no prompt is sent.
    pub fn read(&self) -> LoadedSettings {
        let mut loader = Loader {
            given: GivenSettings::new((self.env)("HOME").map(PathBuf::from)),
            problems: Vec::new(),
            wrong: Vec::new(),
        };
        if let Some(file) = self.file {
            loader.file(file);
        }
        loader.given.layer = SettingsLayer::Lua;
        loader.lua(self.lua);
        loader.given.layer = SettingsLayer::Environment;
        loader.environment(self.env, self.variables);
        loader.tell_consequences();
        loader.tell_misdirected();
        LoadedSettings {
            given: loader.given,
            problems: loader.problems,
        }
    }
}

/// Returns the typed settings in the layers, and one sentence for each problem. Does not report unknown variables.
pub fn load(file: Option<&Path>, lua: &Value, env: Env<'_>) -> (Config, Vec<String>) {
    let layers = Layers {
        file,
        lua,
        env,
        variables: &[],
    };
    let LoadedSettings { given, problems } = layers.read();
    (given.config(), problems)
}

/// Reads a settings file. Refuses a FIFO, because reading it would block until another program writes.
fn read(file: &Path) -> std::io::Result<String> {
    match std::fs::metadata(file)?.file_type().is_fifo() {
        true => Err(std::io::Error::other("it is a pipe")),
        false => std::fs::read_to_string(file),
    }
}

/// Returns true if a value from TOML has `inf` or `nan`. They become null, which TOML itself does not have.
fn has_non_finite(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.iter().any(has_non_finite),
        Value::Object(table) => table.values().any(has_non_finite),
        _ => false,
    }
}

struct Loader {
    given: GivenSettings,
    problems: Vec<String>,
    wrong: Vec<WrongValue>,
}

/// A wrong value. The sentence about it lacks the consequence, which depends on the later layers.
struct WrongValue {
    setting: &'static Setting,
    layer: SettingsLayer,
    /// The index of the sentence in `Loader::problems`.
    problem: usize,
}

impl Loader {
    fn file(&mut self, file: &Path) {
        let layer = file.display().to_string();
        let text = match read(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => {
                self.refuse(&layer, &format!("{layer} cannot be read ({error})"));
                return;
            }
        };
        match toml::from_str(&text) {
            Ok(values) => self.map(&layer, &values),
            Err(error) => {
                let before = error.span().map_or("", |span| &text[..span.start]);
                let line = before.matches('\n').count() + 1;
                let why = error.message().replace('\n', ", ");
                self.refuse(&layer, &format!("{layer} line {line} is not TOML ({why})"));
            }
        }
    }

    /// Reports a layer that cannot be read.
    fn refuse(&mut self, layer: &str, why: &str) {
        self.problems.push(format!("{why}; {NO_PROMPT}"));
        self.given.unread = Some(layer.to_owned());
    }

    fn lua(&mut self, lua: &Value) {
        let layer = LUA;
        match lua {
            Value::Object(values) => self.map(layer, values),
            Value::Null => {}
            // Lua's encoder makes a list of an empty table.
            Value::Array(list) if list.is_empty() => {}
            _ => self.refuse(layer, &format!("{layer} must be a table of settings")),
        }
    }

    fn map(&mut self, layer: &str, values: &serde_json::Map<String, Value>) {
        let is_file = self.given.layer == SettingsLayer::File;
        for (name, value) in values {
            // `vim.NIL` unsets a setting.
            if value.is_null() && !is_file {
                continue;
            }
            let Some(setting) = names::find(name) else {
                self.problems.push(names::unknown(name, layer));
                continue;
            };
            let value = match is_file && has_non_finite(value) {
                true => &Value::Null,
                false => value,
            };
            let took = self.given.put(setting, value.clone());
            self.tell(setting, layer, value.as_str(), took);
            if let (true, Some(problem)) = (value.is_null(), self.problems.last_mut()) {
                problem.push_str(", not inf or nan");
            }
        }
    }

    fn environment(&mut self, env: Env<'_>, variables: &[String]) {
        for setting in settings() {
            let variable = setting.variable();
            let Some(text) = env(&variable) else { continue };
            let value = setting.kind.read(&text);
            let value = value.unwrap_or_else(|_| Value::String(text.clone()));
            let took = self.given.put(setting, value);
            self.tell(setting, &variable, Some(&text), took);
        }
        if env("CO_CLI_API_KEY").is_some() {
            self.problems
                .push(names::unknown("api_key", "CO_CLI_API_KEY"));
        }
        self.problems.extend(names::unknown_variables(variables));
    }

    /// Reports a credential that would be sent to a server from another layer.
    fn tell_misdirected(&mut self) {
        let Some((address, credential)) = self.given.misdirected() else {
            return;
        };
        let place = match self.given.is_from_environment(address) {
            true => names::find(address).map_or_else(String::new, Setting::variable),
            false => format!("{address} in {LUA}"),
        };
        self.problems.push(format!(
            "{place} changes the server, but {credential} was given before, for another one: give {credential} in the same place, or \
             remove {place}; {NO_PROMPT}"
        ));
    }

    /// Adds the consequence to the sentence about each wrong value. A later layer may have replaced the value.
    fn tell_consequences(&mut self) {
        for wrong in &self.wrong {
            let name = wrong.setting.name;
            let counts = self.given.layer_of(name) == Some(wrong.layer);
            let problem = &mut self.problems[wrong.problem];
            problem.push_str("; ");
            problem.push_str(match wrong.setting.strict && counts {
                true => NO_PROMPT,
                false => "that value is left out",
            });
        }
    }

    /// Reports a wrong value. The suggestion comes first in the sentence, because the screen may cut its end.
    fn tell(
        &mut self,
        setting: &'static Setting,
        layer: &str,
        text: Option<&str>,
        took: Result<(), BadValue>,
    ) {
        if took.is_ok() {
            return;
        }
        let right = setting.kind.choices().iter().map(|&it| it.to_owned());
        let near = text.and_then(|text| names::nearest(right, text));
        let hint = near.map(|near| format!(": did you mean {near}? It"));
        self.wrong.push(WrongValue {
            setting,
            layer: self.given.layer,
            problem: self.problems.len(),
        });
        self.problems.push(format!(
            "the setting {} in {layer}{} must be {}",
            setting.name,
            hint.unwrap_or_default(),
            setting.kind.accepts(),
        ));
    }
}

#[cfg(test)]
mod tests;
