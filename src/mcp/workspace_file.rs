//! Reads the tool servers in a file of the workspace, whose format many clients share.
//!
//! Such a server can do no more than the default confinement allows: the file cannot grant places, hosts or variables of the
//! person. A server over HTTP gets no secret of the person, and each call of it requires approval.

use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use crate::config::{
    HttpServer, McpServerSettings, ServerKind, ServerProgram, ServerVariable, VariableSource,
    is_server_name,
};
use crate::trust::FileText;
use co_exec::names_variables;
use co_text::one_line;

/// The name of the workspace's file that names tool servers. The file is in the root directory of the workspace.
pub const WORKSPACE_FILE: &str = ".mcp.json";

/// The largest number of servers in a file.
const MOST_SERVERS: usize = 20;

/// The words for streamable HTTP that clients use.
const HTTP_TYPES: [&str; 3] = ["http", "streamable-http", "streamableHttp"];

/// The start of a reference to an environment variable of the person.
const REFERENCE: &str = "${";

/// The servers in a file of the workspace.
#[derive(Debug, Default, PartialEq)]
pub struct WorkspaceServers {
    pub servers: Vec<McpServerSettings>,
    /// Sentences about servers that are left out.
    pub problems: Vec<String>,
}

impl WorkspaceServers {
    /// Returns the file of a workspace. Returns `None` if the file does not exist. If the file has addresses of servers, the hash of
    /// its text also covers that co connects to them: a yes of the time when co only started programs does not hold for addresses.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn find(workspace: &Path) -> io::Result<Option<FileText>> {
        let file = match FileText::read(workspace.join(WORKSPACE_FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let servers = servers_of(&file.text).unwrap_or_default();
        let has_address = servers.values().any(|it| it.get("url").is_some());
        Ok(Some(match has_address {
            true => file.covering("connects to addresses"),
            false => file,
        }))
    }

    /// Parses the text of a file at the top of `workspace`, which the person must trust: to look for its programs can have effects,
    /// such as a mount.
    pub fn parse(text: &str, workspace: &Path) -> Self {
        let mut read = Self::default();
        let Some(servers) = servers_of(text) else {
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

/// Returns the table of servers in the text of a file.
fn servers_of(text: &str) -> Option<Map<String, Value>> {
    let mut given: Value = serde_json::from_str(text).ok()?;
    match given.get_mut("mcpServers")?.take() {
        Value::Object(servers) => Some(servers),
        _ => None,
    }
}

/// Parses one server. Returns `None` if the server is turned off.
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
    let env = match fields.get("env") {
        None => Vec::new(),
        Some(given) => variables(given.as_object().ok_or("its env is no table")?)?,
    };
    let kind = match fields.contains_key("url") {
        true => ServerKind::Http(http_server(fields)?),
        false => ServerKind::Program(program_server(fields, workspace)?),
    };
    let given = match &kind {
        ServerKind::Program(program) => program.cmd.iter().collect::<Vec<_>>(),
        ServerKind::Http(server) => {
            let values = server.headers.iter().map(|(_, value)| value);
            std::iter::once(&server.url).chain(values).collect()
        }
        ServerKind::Wrong(_) => Vec::new(),
    };
    let values = env.iter().filter_map(|it| match &it.value {
        VariableSource::Text(text) => Some(text),
        _ => None,
    });
    if given
        .into_iter()
        .chain(values)
        .any(|it| it.contains(REFERENCE))
    {
        return Err(
            "it takes a variable of your environment, which a file of the workspace cannot; name the server in mcp_servers",
        );
    }
    Ok(Some(McpServerSettings {
        name: name.to_owned(),
        kind,
        env,
        of_workspace: true,
    }))
}

/// Parses a server over HTTP. Its headers are texts. The caller refuses headers that refer to variables.
fn http_server(fields: &Map<String, Value>) -> Result<HttpServer, &'static str> {
    let kind = fields.get("type").and_then(Value::as_str);
    if kind.is_some_and(|it| !HTTP_TYPES.contains(&it)) {
        return Err("its type is not http: co speaks streamable HTTP, not the older form with SSE");
    }
    if fields.contains_key("command") {
        return Err("it has a command and a url");
    }
    let url = fields.get("url").and_then(Value::as_str);
    let mut headers = Vec::new();
    if let Some(given) = fields.get("headers") {
        for (name, value) in given.as_object().ok_or("its headers are no table")? {
            let value = value.as_str().ok_or("its headers are no texts")?;
            headers.push((name.clone(), value.to_owned()));
        }
    }
    let server = HttpServer {
        url: url.ok_or("its url is no text")?.to_owned(),
        headers,
        ..HttpServer::default()
    };
    let has_references = server.headers.iter().any(|(_, it)| it.contains(REFERENCE));
    // The caller has another sentence about references.
    match has_references || server.is_usable(&[]) {
        true => Ok(server),
        false => Err("its url is no address of HTTP, or a header is one that co sets itself"),
    }
}

/// Parses a server that is a program.
fn program_server(
    fields: &Map<String, Value>,
    workspace: &Path,
) -> Result<ServerProgram, &'static str> {
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
    Ok(ServerProgram {
        cmd,
        ..ServerProgram::default()
    })
}

/// Returns the program of a command. It must be a name to look up in `PATH`, or a file in the workspace.
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
        WorkspaceServers::parse(&text, Path::new("/nonexistent"))
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
            kind: ServerKind::Program(ServerProgram {
                cmd: ["mcp-server-git", "-r", "."].map(str::to_owned).into(),
                ..ServerProgram::default()
            }),
            env: vec![variable],
            of_workspace: true,
        };
        assert_eq!(read.servers, [git]);
        assert_eq!(read.problems, [""; 0]);
    }

    #[test]
    fn a_server_over_http_has_an_address_and_headers_of_texts() {
        let read = read(json!({
            "hub": { "type": "http", "url": "https://a.example/mcp", "headers": { "X-Kind": "b" } },
            "bare": { "url": "http://localhost:8000/mcp" },
        }));
        assert_eq!(read.problems, [""; 0]);
        let header = ("X-Kind".to_owned(), "b".to_owned());
        let hub = HttpServer {
            url: "https://a.example/mcp".to_owned(),
            headers: vec![header],
            ..HttpServer::default()
        };
        assert_eq!(read.servers[0].kind, ServerKind::Http(hub));
        assert_eq!(read.servers[1].place(), "http://localhost:8000/mcp");
        assert!(read.servers.iter().all(|it| it.of_workspace));
    }

    #[test]
    fn what_would_widen_a_server_leaves_it_out() {
        for (fields, why) in [
            (
                json!({ "type": "sse", "url": "https://example.org" }),
                "the older form",
            ),
            (json!({ "url": "example.org" }), "no address of HTTP"),
            (json!({ "url": 1 }), "its url is no text"),
            (
                json!({ "url": "https://example.org", "command": "x" }),
                "a command and a url",
            ),
            (
                json!({ "url": "https://example.org", "headers": { "A": "${KEY}" } }),
                "a variable of your environment",
            ),
            (
                json!({ "url": "https://example.org/${KEY}" }),
                "a variable of your environment",
            ),
            (
                json!({ "url": "https://example.org", "headers": { "Host": "x" } }),
                "a header is one that co sets",
            ),
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
            let read = WorkspaceServers::parse(text, Path::new("/"));
            assert_eq!((read.servers.len(), read.problems.len()), (0, 1), "{text}");
        }
    }

    #[test]
    fn an_answer_about_programs_covers_no_address() {
        let workspace = tempfile::tempdir().unwrap();
        assert_eq!(WorkspaceServers::find(workspace.path()).unwrap(), None);
        let covers_more = |servers: Value| {
            let text = json!({ "mcpServers": servers }).to_string();
            std::fs::write(workspace.path().join(WORKSPACE_FILE), &text).unwrap();
            let file = WorkspaceServers::find(workspace.path()).unwrap().unwrap();
            let plain = FileText::given(file.path.clone(), text);
            file.sha256 != plain.sha256
        };
        assert!(!covers_more(json!({ "s": { "command": "x" } })));
        assert!(covers_more(
            json!({ "s": { "command": "x" }, "t": { "url": "https://a.example" } })
        ));
    }

    #[test]
    fn a_file_of_many_servers_is_cut() {
        let many = (0..100).map(|at| (format!("s{at}"), json!({ "command": "x" })));
        let read = read(Value::Object(many.collect()));
        assert_eq!(read.servers.len(), MOST_SERVERS);
        assert_eq!(read.problems.len(), 1);
    }
}
