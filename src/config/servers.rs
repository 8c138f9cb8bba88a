//! The tool servers (MCP) that a person sets.

use std::path::Path;

use serde_json::Value;

use super::Config;
use super::setting::{Setting, read_fields, setting};
use super::value::{BadValue, Kind, object};

/// The most bytes of a server's name: the names of its tools begin with it.
const LONGEST_NAME: usize = 24;

/// The person's settings for one tool server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpServerSettings {
    pub name: String,
    /// Its program and arguments.
    pub cmd: Vec<String>,
    /// Variables for its environment.
    pub env: Vec<(String, String)>,
}

/// The fields of a server. Each is read into the first server of the settings.
static FIELDS: &[Setting] = &[
    setting("cmd", "", Kind::Argv(|c, v| server(c).cmd = v), ""),
    setting("env", "", Kind::Pairs(|c, v| server(c).env = v), ""),
];

fn server(config: &mut Config) -> &mut McpServerSettings {
    if config.mcp_servers.is_empty() {
        config.mcp_servers.push(McpServerSettings::default());
    }
    &mut config.mcp_servers[0]
}

/// Reads the servers in a table. A name is a word without `__`, because it stands before the names of tools and is a part of a path.
pub(super) fn set_servers(
    config: &mut Config,
    value: &Value,
    home: Option<&Path>,
) -> Result<(), BadValue> {
    let mut servers = Vec::new();
    for (name, fields) in object(value)? {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        let is_word = (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_plain);
        if !is_word || name.contains("__") || name.ends_with('_') {
            return Err(BadValue);
        }
        let mut read = read_fields(&fields, FIELDS.iter(), home)?;
        let server = std::mem::take(server(&mut read));
        if server.cmd.is_empty() {
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
            "the-time": { "cmd": ["mcp-server-time"] },
        });
        let (servers, problems) = read(&given);
        assert_eq!(problems, 0);
        let names: Vec<_> = servers.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["git", "the-time"]);
        assert_eq!(servers[0].cmd.len(), 2);
        assert_eq!(servers[0].env, [("A".to_owned(), "b".to_owned())]);
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
            json!({ "a": 1 }),
            json!("a"),
        ] {
            assert_eq!(read(&wrong), (Vec::new(), 1), "{wrong}");
        }
    }
}
