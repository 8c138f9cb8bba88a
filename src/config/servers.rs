//! The tool servers (MCP) that a person sets.

use std::path::Path;

use serde_json::Value;

use super::Config;
use super::setting::{Setting, read_fields, setting};
use super::value::{BadValue, Kind, object, words};
use co_exec::names_variables;
use co_policy::HostPattern;

/// The most bytes of a server's name: the names of its tools begin with it.
const LONGEST_NAME: usize = 24;

/// The person's settings for one tool server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpServerSettings {
    pub name: String,
    /// Its program and arguments.
    pub cmd: Vec<String>,
    /// Variables for its environment, beside those that every server gets.
    pub env: Vec<ServerVariable>,
    pub confinement: ServerConfinement,
    /// The hosts that it reaches. There are none if nothing confines it.
    pub hosts: Vec<HostPattern>,
    /// A file of the workspace names it, not the person. It gets nothing beside the default confinement.
    pub of_workspace: bool,
}

/// The confinement of a tool server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServerConfinement {
    /// The server reads the workspace, and changes only a directory of its own.
    #[default]
    ReadOnly,
    /// The server also changes the workspace.
    Workspace,
    None,
}

/// A variable of a server's environment.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerVariable {
    pub name: String,
    pub value: VariableSource,
}

/// The place from which the value of a variable comes.
#[derive(Debug, Clone, PartialEq)]
pub enum VariableSource {
    Text(String),
    /// The person's own variable of this name, if it is set.
    OfPerson,
    /// The first line that a program prints.
    Printed(Vec<String>),
}

/// The fields of a server. Each is read into the first server of the settings.
static FIELDS: &[Setting] = &[
    setting("cmd", "", Kind::Argv(|c, v| server(c).cmd = v), ""),
    setting("env", "", variables(read_env), ""),
    setting("env_cmd", "", variables(read_env_cmd), ""),
    setting("hosts", "", Kind::Hosts(|c, v| server(c).hosts = v), ""),
    setting(
        "confinement",
        "",
        Kind::Choice(&["read-only", "workspace", "none"], |c, v| {
            server(c).confinement = match v {
                "none" => ServerConfinement::None,
                "workspace" => ServerConfinement::Workspace,
                _ => ServerConfinement::ReadOnly,
            };
        }),
        "",
    ),
];

const fn variables(read: fn(&mut Config, &Value, Option<&Path>) -> Result<(), BadValue>) -> Kind {
    Kind::Tables { accepts: "", read }
}

/// Reads a list of `NAME` and `NAME=value`, or a table from names to values.
fn read_env(config: &mut Config, value: &Value, _: Option<&Path>) -> Result<(), BadValue> {
    let text = |it: &Value| it.as_str().map(str::to_owned).ok_or(BadValue);
    if let Value::Array(words) = value {
        for word in words {
            let word = text(word)?;
            match word.split_once('=') {
                Some((name, value)) => {
                    add(config, name, VariableSource::Text(value.to_owned()))?;
                }
                None => add(config, &word, VariableSource::OfPerson)?,
            }
        }
        return Ok(());
    }
    for (name, value) in object(value)? {
        add(config, &name, VariableSource::Text(text(&value)?))?;
    }
    Ok(())
}

/// Reads a table from names to programs with their arguments.
fn read_env_cmd(config: &mut Config, value: &Value, _: Option<&Path>) -> Result<(), BadValue> {
    for (name, value) in object(value)? {
        let argv = words(&value)?;
        if argv.is_empty() {
            return Err(BadValue);
        }
        add(config, &name, VariableSource::Printed(argv))?;
    }
    Ok(())
}

/// Adds a variable, which is named once and in full.
fn add(config: &mut Config, name: &str, value: VariableSource) -> Result<(), BadValue> {
    let env = &mut server(config).env;
    let is_name = names_variables(name) && !name.ends_with('*');
    if !is_name || env.iter().any(|it| it.name == name) {
        return Err(BadValue);
    }
    env.push(ServerVariable {
        name: name.to_owned(),
        value,
    });
    Ok(())
}

fn server(config: &mut Config) -> &mut McpServerSettings {
    if config.mcp_servers.is_empty() {
        config.mcp_servers.push(McpServerSettings::default());
    }
    &mut config.mcp_servers[0]
}

/// Returns whether a server may have this name: a word without `__`, because it stands before the names of tools and is a part of
/// a path.
pub fn is_server_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    let is_word = (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_plain);
    is_word && !name.contains("__") && !name.ends_with('_')
}

/// Reads the servers in a table.
pub(super) fn set_servers(
    config: &mut Config,
    value: &Value,
    home: Option<&Path>,
) -> Result<(), BadValue> {
    let mut servers = Vec::new();
    for (name, fields) in object(value)? {
        if !is_server_name(&name) {
            return Err(BadValue);
        }
        let mut read = read_fields(&fields, FIELDS.iter(), home)?;
        let server = std::mem::take(server(&mut read));
        // Hosts would not limit a server that nothing confines.
        let is_limitless = server.confinement == ServerConfinement::None;
        if server.cmd.is_empty() || is_limitless && !server.hosts.is_empty() {
            return Err(BadValue);
        }
        servers.push(McpServerSettings { name, ..server });
    }
    config.mcp_servers = servers;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::load;

    fn read(servers: &Value) -> (Vec<McpServerSettings>, usize) {
        let (config, problems) = load(None, &json!({ "mcp_servers": servers }), &|_| None);
        (config.mcp_servers, problems.len())
    }

    #[test]
    fn servers_have_a_program_and_variables() {
        let given = json!({
            "git": { "cmd": ["mcp-server-git", "--x"], "env": { "A": "b" } },
            "the-time": { "cmd": ["mcp-server-time"], "confinement": "none" },
            "db": { "cmd": ["db"], "confinement": "workspace", "hosts": ["localhost:5432"] },
        });
        let (servers, problems) = read(&given);
        assert_eq!(problems, 0);
        let names: Vec<_> = servers.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["git", "the-time", "db"]);
        let levels = servers.iter().map(|it| (it.confinement, it.hosts.len()));
        let expected = [
            (ServerConfinement::ReadOnly, 0),
            (ServerConfinement::None, 0),
            (ServerConfinement::Workspace, 1),
        ];
        assert!(levels.eq(expected));
        assert_eq!(servers[0].cmd.len(), 2);
        let text = VariableSource::Text("b".to_owned());
        assert_eq!(servers[0].env, [variable("A", text)]);
    }

    #[test]
    fn variables_are_named_given_or_printed() {
        let given = json!({ "git": {
            "cmd": ["x"], "env": ["PATH", "A=b=c", "E="], "env_cmd": { "TOKEN": ["pass", "show"] },
        } });
        let (servers, problems) = read(&given);
        assert_eq!(problems, 0);
        let argv = ["pass", "show"].map(str::to_owned).into();
        let expected = [
            variable("PATH", VariableSource::OfPerson),
            variable("A", VariableSource::Text("b=c".to_owned())),
            variable("E", VariableSource::Text(String::new())),
            variable("TOKEN", VariableSource::Printed(argv)),
        ];
        assert_eq!(servers[0].env, expected);
    }

    fn variable(name: &str, value: VariableSource) -> ServerVariable {
        let name = name.to_owned();
        ServerVariable { name, value }
    }

    #[test]
    fn a_wrong_field_makes_the_setting_wrong() {
        let long = "a".repeat(LONGEST_NAME + 1);
        for wrong in [
            json!({ "a/b": { "cmd": ["x"] } }),
            json!({ "a__b": { "cmd": ["x"] } }),
            json!({ "a_": { "cmd": ["x"] } }),
            json!({ "": { "cmd": ["x"] } }),
            json!({ long: { "cmd": ["x"] } }),
            json!({ "a": {} }),
            json!({ "a": { "cmd": [] } }),
            json!({ "a": { "cmd": "x" } }),
            json!({ "a": { "cmd": ["x"], "unheard": 1 } }),
            json!({ "a": { "cmd": ["x"], "confinement": "some" } }),
            json!({ "a": { "cmd": ["x"], "hosts": ["https://x"] } }),
            json!({ "a": { "cmd": ["x"], "hosts": ["x.example"], "confinement": "none" } }),
            json!({ "a": { "cmd": ["x"], "env": ["*"] } }),
            json!({ "a": { "cmd": ["x"], "env": ["API_*"] } }),
            json!({ "a": { "cmd": ["x"], "env": ["A", "A=b"] } }),
            json!({ "a": { "cmd": ["x"], "env": ["A"], "env_cmd": { "A": ["y"] } } }),
            json!({ "a": { "cmd": ["x"], "env": { "A B": "c" } } }),
            json!({ "a": { "cmd": ["x"], "env": { "A": ["c"] } } }),
            json!({ "a": { "cmd": ["x"], "env_cmd": { "A": "c" } } }),
            json!({ "a": { "cmd": ["x"], "env_cmd": { "A": [] } } }),
            json!({ "a": 1 }),
            json!("a"),
        ] {
            assert_eq!(read(&wrong), (Vec::new(), 1), "{wrong}");
        }
    }
}
