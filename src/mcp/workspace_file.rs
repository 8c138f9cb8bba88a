//! The tool servers that a file of the workspace names, in the form that many clients read.
//!
//! Such a server can do no more than the default confinement allows: the file grants no place, no host and no variable of the
//! person.

use std::path::Path;

use serde_json::{Map, Value};

use crate::config::{McpServerSettings, ServerVariable, VariableSource, is_server_name};
use co_exec::names_variables;
use co_text::one_line;

/// The name of the file at the top of a workspace.
pub const WORKSPACE_FILE: &str = ".mcp.json";

/// The most servers of a file.
const MOST_SERVERS: usize = 20;

/// The start of a reference to a variable of the person.
const REFERENCE: &str = "${";

/// The servers of a file.
#[derive(Debug, Default, PartialEq)]
pub struct WorkspaceServers {
    pub servers: Vec<McpServerSettings>,
    /// Sentences about servers that are left out.
    pub problems: Vec<String>,
}

impl WorkspaceServers {
    /// Reads the text of a file at the top of `workspace`.
    pub fn read(text: &str, workspace: &Path) -> Self {
        let mut read = Self::default();
        let given = serde_json::from_str::<Value>(text).ok();
        let Some(servers) = given.as_ref().and_then(|it| it["mcpServers"].as_object()) else {
            let problem = format!("{WORKSPACE_FILE} is no JSON object with a table `mcpServers`");
            read.problems.push(problem);
            return read;
        };
        for (name, fields) in servers.iter().take(MOST_SERVERS) {
            match server(name, fields, workspace) {
                Ok(server) => read.servers.extend(server),
                Err(why) => {
                    let name = one_line(name);
                    let problem =
                        format!("the tool server {name} of {WORKSPACE_FILE} is left out: {why}");
                    read.problems.push(problem);
                }
            }
        }
        if servers.len() > MOST_SERVERS {
            let problem = format!(
                "only the first {MOST_SERVERS} tool servers of {WORKSPACE_FILE} are started"
            );
            read.problems.push(problem);
        }
        read
    }
}

/// Reads one server; none if it is switched off.
fn server(
    name: &str,
    fields: &Value,
    workspace: &Path,
) -> Result<Option<McpServerSettings>, &'static str> {
    let fields = fields.as_object().ok_or("it is no table")?;
    if fields.get("disabled") == Some(&Value::Bool(true)) {
        return Ok(None);
    }
    if !is_server_name(name) {
        return Err("a name has at most 24 letters, digits, - and _");
    }
    if fields.contains_key("url") {
        return Err("it speaks HTTP, which co does not");
    }
    let command = fields.get("command").and_then(Value::as_str);
    let command = command.filter(|it| !it.is_empty());
    let mut cmd = vec![program(command.ok_or("it has no command")?, workspace)?];
    let none = Vec::new();
    let arguments = match fields.get("args") {
        None => &none,
        Some(given) => given.as_array().ok_or("its args are no list")?,
    };
    for argument in arguments {
        cmd.push(argument.as_str().ok_or("its args are no texts")?.to_owned());
    }
    let env = match fields.get("env") {
        None => Vec::new(),
        Some(given) => variables(given.as_object().ok_or("its env is no table")?)?,
    };
    let texts = cmd.iter().map(String::as_str);
    let values = env.iter().filter_map(|it| match &it.value {
        VariableSource::Text(text) => Some(text.as_str()),
        _ => None,
    });
    if texts.chain(values).any(|it| it.contains(REFERENCE)) {
        return Err(
            "it takes a variable of your environment, which a file of the workspace cannot; name the server in mcp_servers",
        );
    }
    Ok(Some(McpServerSettings {
        name: name.to_owned(),
        cmd,
        env,
        of_workspace: true,
        ..McpServerSettings::default()
    }))
}

/// Returns the program of a command: one of the variable PATH, or a file of the workspace.
fn program(command: &str, workspace: &Path) -> Result<String, &'static str> {
    if !command.contains('/') {
        return Ok(command.to_owned());
    }
    let path = workspace.join(command);
    let real = path.canonicalize().map_err(|_| "its program is missing")?;
    let root = workspace.canonicalize();
    let is_inside = real.starts_with(root.as_deref().unwrap_or(workspace));
    if !is_inside {
        return Err("its program is outside of the workspace; name the server in mcp_servers");
    }
    Ok(path.display().to_string())
}

fn variables(given: &Map<String, Value>) -> Result<Vec<ServerVariable>, &'static str> {
    let variable = |(name, value): (&String, &Value)| {
        let is_name = names_variables(name) && !name.ends_with('*');
        let value = value.as_str().filter(|_| is_name);
        Ok(ServerVariable {
            name: name.clone(),
            value: VariableSource::Text(
                value.ok_or("its env has wrong names or values")?.to_owned(),
            ),
        })
    };
    given.iter().map(variable).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(servers: Value) -> WorkspaceServers {
        let text = json!({ "mcpServers": servers }).to_string();
        WorkspaceServers::read(&text, Path::new("/nonexistent"))
    }

    #[test]
    fn servers_have_a_program_arguments_and_given_variables() {
        let read = read(json!({
            "git": { "type": "stdio", "command": "mcp-server-git", "args": ["-r", "."], "env": { "A": "b" }, "note": 1 },
            "off": { "command": "x", "disabled": true },
        }));
        let variable = ServerVariable {
            name: "A".to_owned(),
            value: VariableSource::Text("b".to_owned()),
        };
        let git = McpServerSettings {
            name: "git".to_owned(),
            cmd: ["mcp-server-git", "-r", "."].map(str::to_owned).into(),
            env: vec![variable],
            of_workspace: true,
            ..McpServerSettings::default()
        };
        assert_eq!(read.servers, [git]);
        assert_eq!(read.problems, [""; 0]);
    }

    #[test]
    fn what_would_widen_a_server_leaves_it_out() {
        for (fields, why) in [
            (json!({ "url": "https://example.org" }), "it speaks HTTP"),
            (json!({}), "it has no command"),
            (json!({ "command": "" }), "it has no command"),
            (json!({ "command": "/bin/sh" }), "outside of the workspace"),
            (json!({ "command": "./none" }), "its program is missing"),
            (
                json!({ "command": "${HOME}" }),
                "a variable of your environment",
            ),
            (
                json!({ "command": "x", "args": ["${KEY}"] }),
                "a variable of your environment",
            ),
            (
                json!({ "command": "x", "env": { "A": "${KEY:-x}" } }),
                "a variable of your environment",
            ),
            (
                json!({ "command": "x", "env": { "A*": "b" } }),
                "wrong names or values",
            ),
            (
                json!({ "command": "x", "env": ["KEY"] }),
                "its env is no table",
            ),
            (
                json!({ "command": "x", "args": [1] }),
                "its args are no texts",
            ),
            (json!(1), "it is no table"),
        ] {
            let read = read(json!({ "s": fields.clone() }));
            assert_eq!(read.servers, [], "{fields}");
            let told = &read.problems[0];
            assert!(told.starts_with("the tool server s of .mcp.json is left out: "));
            assert!(told.contains(why), "{told}");
        }
        assert_eq!(read(json!({ "a/b": { "command": "x" } })).servers, []);
        for text in ["", "[]", "{}", "{\"mcpServers\": []}"] {
            let read = WorkspaceServers::read(text, Path::new("/"));
            assert_eq!((read.servers.len(), read.problems.len()), (0, 1), "{text}");
        }
    }

    #[test]
    fn a_file_of_many_servers_is_cut() {
        let many = (0..100).map(|at| (format!("s{at}"), json!({ "command": "x" })));
        let read = read(Value::Object(many.collect()));
        assert_eq!(read.servers.len(), MOST_SERVERS);
        assert_eq!(read.problems.len(), 1);
    }
}
