//! The layers that settings come from: the file, Lua, the environment.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::table::{Setting, TABLE};
use super::value::Refused;
use super::{Config, Given};

/// Looks a variable up; tests pass their own.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The places that settings come from, the weakest first.
#[derive(Clone, Copy)]
pub struct Layers<'a> {
    /// It need not exist.
    pub file: Option<&'a Path>,
    /// A map, or `[]` or null if Lua gave nothing.
    pub lua: &'a Value,
    pub env: Env<'a>,
}

/// The settings that the layers give.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    pub given: Given,
    /// One sentence for each value that is wrong and was left out.
    pub problems: Vec<String>,
}

impl Layers<'_> {
    /// Reads all layers. A wrong value is left out, and the rest applies.
    pub fn read(&self) -> Read {
        let mut loader = Loader {
            given: Given::new((self.env)("HOME").map(PathBuf::from)),
            problems: Vec::new(),
        };
        if let Some(file) = self.file {
            loader.file(file);
        }
        loader.lua(self.lua);
        loader.environment(self.env);
        Read {
            given: loader.given,
            problems: loader.problems,
        }
    }
}

/// Returns the typed settings of the layers, and what is wrong with them, a sentence each.
pub fn load(file: Option<&Path>, lua: &Value, env: Env<'_>) -> (Config, Vec<String>) {
    let Read { given, problems } = Layers { file, lua, env }.read();
    (given.config(), problems)
}

struct Loader {
    given: Given,
    problems: Vec<String>,
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
                    let took = self.given.put(setting, value.clone());
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
            let value = setting.kind.read(&text);
            let took = value.and_then(|value| self.given.put(setting, value));
            self.tell(setting, &variable, took);
        }
        if env("CO_CLI_API_KEY").is_some() {
            self.problems.push(unknown("api_key", "CO_CLI_API_KEY"));
        }
    }

    fn tell(&mut self, setting: &Setting, layer: &str, took: Result<(), Refused>) {
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
pub(super) fn distance(one: &str, other: &str) -> usize {
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
