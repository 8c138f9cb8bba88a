//! The person's settings for tool servers (MCP).

use std::path::Path;

use serde_json::Value;

use super::Config;
use super::setting::{Setting, read_fields, setting};
use super::value::{BadValue, Kind, object, words};
use co_exec::names_variables;
use co_policy::HostPattern;
use co_text::one_line;

/// The longest name of a server, in bytes. It is limited because the names of the server's tools begin with it.
const LONGEST_NAME: usize = 24;

/// The headers that co and the protocol set, which the person cannot set. The person cannot set headers that start with `mcp-`
/// either.
const OWN_HEADERS: [&str; 8] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "te",
    "transfer-encoding",
];

/// The person's settings for one tool server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpServerSettings {
    pub name: String,
    pub kind: ServerKind,
    /// For a program, the environment variables besides those that every server gets. For a server over HTTP, the variables that
    /// its headers use.
    pub env: Vec<ServerVariable>,
    /// True if a file of the workspace names the server. False if the person names it. A server of the workspace gets no more
    /// than the default confinement allows.
    pub of_workspace: bool,
}

/// The connection to a tool server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerKind {
    Program(ServerProgram),
    Http(HttpServer),
    /// Its settings are wrong, for this reason, so it never starts. It keeps its name, which then means no other server.
    Wrong(String),
}

/// A tool server that is a program, which co starts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerProgram {
    /// The program and its arguments.
    pub cmd: Vec<String>,
    pub confinement: ServerConfinement,
    /// The hosts that the program may connect to. The list is empty if the program is not confined.
    pub hosts: Vec<HostPattern>,
}

/// A tool server over HTTP. co does not start or confine it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HttpServer {
    pub url: String,
    /// The names and values of HTTP headers. In a value, `${NAME}` stands for a variable in the server's settings.
    pub headers: Vec<(String, String)>,
    pub oauth: OauthSettings,
}

/// The settings for the login at a server. The server gives the values that are not set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OauthSettings {
    /// The id of an OAuth client that the person has registered for co.
    pub client_id: Option<String>,
    /// The secret of that client. In it, `${NAME}` stands for a variable in the server's settings.
    pub client_secret: Option<String>,
    /// The authorization server that gave the id. A login goes to no other one.
    pub issuer: Option<String>,
    /// The OAuth scopes to ask for.
    pub scopes: Vec<String>,
    /// The port of this machine to which the login page sends the browser.
    pub port: Option<u16>,
}

impl Default for ServerKind {
    fn default() -> Self {
        Self::Program(ServerProgram::default())
    }
}

impl McpServerSettings {
    /// Returns the program, or `None` for a server over HTTP.
    pub fn program(&self) -> Option<&ServerProgram> {
        match &self.kind {
            ServerKind::Program(program) => Some(program),
            ServerKind::Http(_) | ServerKind::Wrong(_) => None,
        }
    }

    /// Returns the server over HTTP, or `None` if co starts a program.
    pub fn http(&self) -> Option<&HttpServer> {
        match &self.kind {
            ServerKind::Program(_) | ServerKind::Wrong(_) => None,
            ServerKind::Http(server) => Some(server),
        }
    }

    /// Returns the command line, or the address without secrets, as one line for the person.
    pub fn place(&self) -> String {
        match &self.kind {
            ServerKind::Program(program) => program.cmd.join(" "),
            ServerKind::Http(server) => server.shown_url().to_owned(),
            ServerKind::Wrong(_) => "left out, because its settings are wrong".to_owned(),
        }
    }
}

impl HttpServer {
    /// Returns the address without its query, which may contain a key.
    pub fn shown_url(&self) -> &str {
        self.url.split(['?', '#']).next().unwrap_or_default()
    }

    /// Returns the names and the values in the query of the address, each as it is written and as it is meant. A value without a
    /// name has an empty one.
    pub fn query(&self) -> Vec<(String, String)> {
        let Ok(url) = co_llm::Url::parse(&self.url) else {
            return Vec::new();
        };
        let written = url.query().unwrap_or_default().split('&');
        let written = written.map(|it| it.split_once('=').unwrap_or(("", it)));
        let written: Vec<_> = written
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let meant = url.query_pairs().map(|(name, value)| match &*value {
            "" => (String::new(), name.into_owned()),
            _ => (name.into_owned(), value.into_owned()),
        });
        written.into_iter().chain(meant).collect()
    }

    /// Returns the scheme, the host and the port of the address.
    pub fn origin(&self) -> &str {
        let start = self.url.find("://").map_or(0, |at| at + 3);
        let end = self.url[start..].find(['/', '?', '#']);
        &self.url[..end.map_or(self.url.len(), |at| start + at)]
    }

    /// Returns the host and the port of the address in the notation of host rules.
    pub fn host(&self) -> (String, u16) {
        let origin = self.origin().to_ascii_lowercase();
        let (scheme, place) = origin.split_once("://").unwrap_or(("", &origin));
        let usual = if scheme == "http" { 80 } else { 443 };
        let port = place.rsplit_once(':');
        let port = port.and_then(|(host, port)| Some((host, port.parse().ok()?)));
        // An address of IPv6 is in brackets.
        let (host, port) = port.unwrap_or((place, usual));
        (host.trim_end_matches('.').to_owned(), port)
    }

    /// Returns true if an HTTP client finds the same host and port in the address as [`Self::host`] does. Rules and questions use
    /// the host of [`Self::host`].
    fn names_its_host(&self) -> bool {
        let (host, port) = self.host();
        co_llm::Url::parse(&self.url).is_ok_and(|it| {
            it.host_str().map(|it| it.trim_end_matches('.')) == Some(host.as_str())
                && it.port_or_known_default() == Some(port)
        })
    }

    /// Returns the headers with variables replaced by their values.
    ///
    /// # Errors
    /// The name of a variable that has no value.
    pub fn filled(
        &self,
        value: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<(String, String)>, String> {
        let headers = self.headers.iter();
        let filled = headers.map(|(name, text)| Ok((name.clone(), fill(text, &value)?)));
        filled.collect()
    }

    /// Returns the secret of the client with the values of its variables, or `None` if the client has no secret.
    ///
    /// # Errors
    /// A variable has no value. The error is its name.
    pub fn filled_secret(
        &self,
        value: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<String>, String> {
        let secret = self.oauth.client_secret.as_ref();
        secret.map(|it| fill(it, &value)).transpose()
    }

    /// Returns true if co may log in. It may not if a header has a token of the person.
    pub fn may_log_in(&self) -> bool {
        let is_token = |name: &str| name.eq_ignore_ascii_case("authorization");
        !self.headers.iter().any(|(name, _)| is_token(name))
    }

    /// Returns true if co can use the address and the headers. The address must have a host and no login. The headers must not be
    /// co's own, and they may only refer to the variables in `env`.
    pub fn is_usable(&self, env: &[ServerVariable]) -> bool {
        let place = self.origin().split_once("://");
        let has_host = place.is_some_and(|(scheme, it)| {
            matches!(scheme, "http" | "https") && !it.is_empty() && !it.contains(['@', '$'])
        });
        let is_plain = self.url.chars().all(|it| it.is_ascii_graphic());
        has_host
            && is_plain
            && self.names_its_host()
            && self.headers.iter().all(|(name, text)| {
                is_free_header(name) && !text.contains(char::is_control) && refers_to(text, env)
            })
    }
}

impl OauthSettings {
    /// Returns true if a login can use the settings. The secret of the client may only refer to the variables in `env`.
    fn is_usable(&self, env: &[ServerVariable]) -> bool {
        let is_usable = |it: &String| co_mcp::is_scope(it);
        let is_known = |it: &String| refers_to(it, env);
        let has_client = self.client_id.as_ref().is_some_and(|it| !it.is_empty());
        // Any server could name an authorization server of its own, and get the secret.
        let has_issuer = self.issuer.as_ref().is_some_and(|it| !it.is_empty());
        (has_client || (self.client_id.is_none() && self.client_secret.is_none()))
            && (has_issuer || self.client_secret.is_none())
            && self.client_secret.as_ref().is_none_or(is_known)
            && self.scopes.iter().all(is_usable)
    }
}

/// Returns true if a text refers only to the variables in `env`.
fn refers_to(text: &str, env: &[ServerVariable]) -> bool {
    let mut named = references(text).filter_map(|(_, variable)| variable);
    named.all(|name| env.iter().any(|it| it.name == name))
}

/// Replaces the references in a text by the values of the variables.
///
/// # Errors
/// A variable has no value. The error is its name.
fn fill(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::new();
    for (before, variable) in references(text) {
        filled.push_str(before);
        if let Some(variable) = variable {
            filled.push_str(&value(variable).ok_or_else(|| variable.to_owned())?);
        }
    }
    Ok(filled)
}

/// Splits a text at its references to variables. Each item has the text before a reference, and the name of the variable.
fn references(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let found = text.split_once("${");
        let found = found.and_then(|(before, after)| Some((before, after.split_once('}')?)));
        Some(match found {
            None => (text, None),
            Some((before, (name, after))) => {
                rest = Some(after);
                (before, Some(name))
            }
        })
    })
}

/// Returns true if the person may set a header with this name.
fn is_free_header(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_token = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
    let is_own = OWN_HEADERS.contains(&lower.as_str()) || lower.starts_with("mcp-");
    !name.is_empty() && name.bytes().all(is_token) && !is_own
}

/// The confinement of a tool server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServerConfinement {
    /// The server can read the workspace, and can only change files in its private directory.
    #[default]
    ReadOnly,
    /// The server can also change files in the workspace.
    Workspace,
    None,
}

/// A variable in the settings of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerVariable {
    pub name: String,
    pub value: VariableSource,
}

/// The source of a variable's value.
#[derive(Debug, Clone, PartialEq)]
pub enum VariableSource {
    Text(String),
    /// The person's environment variable with the same name, if it is set.
    OfPerson,
    /// The first line that this program prints. The list is its command line (argv).
    Printed(Vec<String>),
}

/// The settings that the table of a server may have. Each one sets a field of the first server of a [`Config`].
static FIELDS: &[Setting] = &[
    setting(
        "cmd",
        "",
        Kind::Argv(|c, v| program(c, |it| it.cmd = v)),
        "",
    ),
    setting("env", "", variables(ENV, read_env), ""),
    setting("env_cmd", "", variables(ENV_CMD, read_env_cmd), ""),
    setting(
        "hosts",
        "",
        Kind::Hosts(|c, v| program(c, |it| it.hosts = v)),
        "",
    ),
    setting(
        "confinement",
        "",
        Kind::Choice(&["read-only", "workspace", "none"], |c, v| {
            let level = match v {
                "none" => ServerConfinement::None,
                "workspace" => ServerConfinement::Workspace,
                _ => ServerConfinement::ReadOnly,
            };
            program(c, |it| it.confinement = level);
        }),
        "",
    ),
    setting("url", "", Kind::Url(|c, v| http(c, |it| it.url = v)), ""),
    setting(
        "headers",
        "",
        Kind::Pairs(|c, v| http(c, |it| it.headers = v)),
        "",
    ),
    setting(
        "oauth",
        "",
        Kind::Tables {
            accepts: "a table of client_id, client_secret, issuer, scopes and port",
            read: read_oauth,
        },
        "",
    ),
];

/// The fields of a login.
static OAUTH_FIELDS: &[Setting] = &[
    setting(
        "client_id",
        "",
        Kind::Text(|c, v| http(c, |it| it.oauth.client_id = Some(v))),
        "",
    ),
    setting(
        "client_secret",
        "",
        Kind::Text(|c, v| http(c, |it| it.oauth.client_secret = Some(v))),
        "",
    ),
    setting(
        "issuer",
        "",
        Kind::Text(|c, v| http(c, |it| it.oauth.issuer = Some(v))),
        "",
    ),
    setting(
        "scopes",
        "",
        Kind::Words(|c, v| http(c, |it| it.oauth.scopes = v)),
        "",
    ),
    setting(
        "port",
        "",
        Kind::Number(1..=65_535, |c, v| {
            http(c, |it| it.oauth.port = u16::try_from(v).ok());
        }),
        "",
    ),
];

/// The settings that only a server over HTTP may have.
const OF_HTTP: [&str; 3] = ["url", "headers", "oauth"];
const OF_PROGRAMS: [&str; 3] = ["cmd", "hosts", "confinement"];

const ENV: &str =
    "a list of NAME and NAME=value, or a table from names to texts, with each variable once";
const ENV_CMD: &str = "a table from names of variables to lists of a program and its arguments, with each variable once";

const fn variables(
    accepts: &'static str,
    read: fn(&mut Config, &Value, Option<&Path>) -> Result<(), BadValue>,
) -> Kind {
    Kind::Tables { accepts, read }
}

/// Reads the settings of a login.
fn read_oauth(config: &mut Config, value: &Value, home: Option<&Path>) -> Result<(), BadValue> {
    let mut read = read_fields(value, OAUTH_FIELDS.iter(), home)?;
    if let ServerKind::Http(read) = &mut server(&mut read).kind {
        let oauth = std::mem::take(&mut read.oauth);
        http(config, |it| it.oauth = oauth);
    }
    Ok(())
}

/// Reads a list of `NAME` and `NAME=value`, or a table of names and values.
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

/// Reads a table of names and command lines. Each command line prints the value.
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

/// Adds a variable. Fails if its name is not valid or is already used.
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

/// Changes the program settings of the first server.
fn program(config: &mut Config, change: impl FnOnce(&mut ServerProgram)) {
    let kind = &mut server(config).kind;
    let mut program = match std::mem::take(kind) {
        ServerKind::Program(program) => program,
        _ => ServerProgram::default(),
    };
    change(&mut program);
    *kind = ServerKind::Program(program);
}

/// Changes the HTTP settings of the first server.
fn http(config: &mut Config, change: impl FnOnce(&mut HttpServer)) {
    let kind = &mut server(config).kind;
    let mut http = match std::mem::take(kind) {
        ServerKind::Http(http) => http,
        _ => HttpServer::default(),
    };
    change(&mut http);
    *kind = ServerKind::Http(http);
}

/// Returns true if a server may have this name. It must be a word without `__`, because the names of tools begin with it and it
/// is part of a path.
pub fn is_server_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    let is_word = (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_plain);
    is_word && !name.contains("__") && !name.ends_with('_')
}

/// Reads the servers in a table. One with wrong settings is left out, and the others count: a prompt without its tools sends nothing
/// elsewhere and protects no less. A value that is no table makes the whole setting wrong, because a weaker layer may have other
/// servers, with other confinements.
pub(super) fn set_servers(
    config: &mut Config,
    value: &Value,
    home: Option<&Path>,
) -> Result<(), BadValue> {
    let server = |(name, fields): (String, Value)| match read_server(&name, &fields, home) {
        Ok(server) => McpServerSettings { name, ..server },
        Err(why) => McpServerSettings {
            name: one_line(&name),
            kind: ServerKind::Wrong(why),
            ..McpServerSettings::default()
        },
    };
    config.mcp_servers = object(value)?.into_iter().map(server).collect();
    Ok(())
}

/// Reads the settings of one server.
///
/// # Errors
/// They are wrong: a clause about them.
fn read_server(
    name: &str,
    fields: &Value,
    home: Option<&Path>,
) -> Result<McpServerSettings, String> {
    if !is_server_name(name) {
        return Err(format!(
            "its name must have at most {LONGEST_NAME} letters, digits, - and _, no __, and no _ at its end"
        ));
    }
    let given = object(fields).map_err(|_| "its settings must be a table".to_owned())?;
    let (mut of_http, mut of_programs) = (false, false);
    let mut read = Config::default();
    for (field, value) in given {
        let known = FIELDS.iter().find(|it| it.name == field);
        let known = known.ok_or_else(|| {
            let all: Vec<_> = FIELDS.iter().map(|it| it.name).collect();
            format!("it has no setting {field}, but {}", all.join(", "))
        })?;
        let took = known.kind.take(&mut read, &value, home);
        took.map_err(|_| format!("its {field} must be {}", known.accepts()))?;
        of_http |= OF_HTTP.contains(&known.name);
        of_programs |= OF_PROGRAMS.contains(&known.name);
    }
    if of_http && of_programs {
        let why = "a server with a url has no cmd, no confinement and no hosts, because nothing of it runs here";
        return Err(why.to_owned());
    }
    let read = std::mem::take(server(&mut read));
    let fault = match &read.kind {
        ServerKind::Program(it) if it.cmd.is_empty() => Some("it needs a cmd or a url"),
        // Hosts would not limit a server that nothing confines.
        ServerKind::Program(it) => (!it.hosts.is_empty()
            && it.confinement == ServerConfinement::None)
            .then_some("hosts limit no server with confinement = 'none': remove one of them"),
        ServerKind::Http(it) if !it.is_usable(&read.env) => Some(
            "its url is no address of HTTP, or a header is one that co sets itself or names a variable that env and env_cmd do not name",
        ),
        ServerKind::Http(it) if !it.oauth.is_usable(&read.env) => Some(
            "its oauth has an empty client_id, a client_secret without a client_id, without the issuer that gave it or with a variable that env and env_cmd do not name, or a scope that is empty or has a blank, a quote or a backslash",
        ),
        ServerKind::Http(_) => None,
        ServerKind::Wrong(why) => Some(why.as_str()),
    };
    match fault {
        Some(why) => Err(why.to_owned()),
        None => Ok(read),
    }
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
        let programs: Vec<_> = servers.iter().filter_map(|it| it.program()).collect();
        let levels = programs.iter().map(|it| (it.confinement, it.hosts.len()));
        let expected = [
            (ServerConfinement::ReadOnly, 0),
            (ServerConfinement::None, 0),
            (ServerConfinement::Workspace, 1),
        ];
        assert!(levels.eq(expected));
        assert_eq!(programs[0].cmd.len(), 2);
        let text = VariableSource::Text("b".to_owned());
        assert_eq!(servers[0].env, [variable("A", text)]);
    }

    #[test]
    fn a_server_over_http_has_an_address_and_headers() {
        let given = json!({
            "plain": { "url": "http://localhost:8000/mcp/" },
            "hub": {
                "env_cmd": { "TOKEN": ["pass", "show", "hub"] },
                "env": ["KIND"],
                "headers": { "Authorization": "Bearer ${TOKEN}", "X-Kind": "a ${KIND}-${KIND} $b ${" },
                "url": "https://Mcp.Example.org/v1?key=word#x",
            },
        });
        let (servers, problems) = read(&given);
        assert_eq!(problems, 0);
        let places: Vec<_> = servers.iter().map(McpServerSettings::place).collect();
        assert_eq!(
            places,
            ["http://localhost:8000/mcp/", "https://Mcp.Example.org/v1"]
        );
        let http: Vec<_> = servers
            .iter()
            .filter_map(|it| match &it.kind {
                ServerKind::Http(http) => Some(http),
                _ => None,
            })
            .collect();
        assert_eq!(http[1].origin(), "https://Mcp.Example.org");
        assert_eq!(http[0].host(), ("localhost".to_owned(), 8000));
        assert_eq!(http[1].host(), ("mcp.example.org".to_owned(), 443));
        let value = |name: &str| (name == "TOKEN").then(|| "t".to_owned());
        assert_eq!(http[1].filled(value), Err("KIND".to_owned()));
        let filled = http[1].filled(|name| Some(name.to_lowercase())).unwrap();
        let values: Vec<_> = filled.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["Bearer token", "a kind-kind $b ${"]);
    }

    #[test]
    fn a_login_may_have_a_client_of_the_person() {
        let given = json!({
            "bare": { "url": "https://a.example/" },
            "hub": {
                "oauth": { "client_id": "c", "client_secret": "${S}", "issuer": "https://i.example", "scopes": ["a:b", "c"], "port": 8123 },
                "url": "https://b.example/",
                "env_cmd": { "S": ["pass", "show", "hub"] },
            },
            "given": { "url": "https://c.example/", "headers": { "AUTHORIZATION": "Bearer t" } },
        });
        let (servers, problems) = read(&given);
        assert_eq!(problems, 0);
        let http = |at: usize| match &servers[at].kind {
            ServerKind::Http(it) => it,
            other => panic!("{other:?}"),
        };
        assert_eq!(http(0).oauth, OauthSettings::default());
        let expected = OauthSettings {
            client_id: Some("c".to_owned()),
            client_secret: Some("${S}".to_owned()),
            issuer: Some("https://i.example".to_owned()),
            scopes: vec!["a:b".to_owned(), "c".to_owned()],
            port: Some(8123),
        };
        assert_eq!(http(1).oauth, expected);
        let secret = http(1).filled_secret(|_| Some("t".to_owned()));
        assert_eq!(secret, Ok(Some("t".to_owned())));
        assert_eq!(http(1).filled_secret(|_| None), Err("S".to_owned()));
        assert_eq!(
            [0, 1, 2].map(|it| http(it).may_log_in()),
            [true, true, false]
        );
    }

    #[test]
    fn hosts_of_addresses_are_those_of_rules() {
        for (url, host, port) in [
            ("http://[::1]:8080/x", "[::1]", 8080),
            ("https://[2001:db8::1]", "[2001:db8::1]", 443),
            ("http://A.example.?x=1", "a.example", 80),
            ("https://10.0.0.1:8443/", "10.0.0.1", 8443),
        ] {
            let server = HttpServer {
                url: url.to_owned(),
                ..HttpServer::default()
            };
            assert_eq!(server.host(), (host.to_owned(), port), "{url}");
        }
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
    fn a_server_with_a_wrong_field_is_left_out() {
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
            json!({ "a": { "url": "ftp://x" } }),
            json!({ "a": { "url": "https:///x" } }),
            json!({ "a": { "url": "https://me:word@x" } }),
            // Requests read another host in these than rules do.
            json!({ "a": { "url": r"https://evil.example\.good.example/" } }),
            json!({ "a": { "url": "https://%65vil.example/" } }),
            json!({ "a": { "url": "https://evil.example:/" } }),
            json!({ "a": { "url": "http://2130706433:8080/" } }),
            json!({ "a": { "url": "http://127.1/" } }),
            json!({ "a": { "url": "https://x/\u{202e}" } }),
            json!({ "a": { "url": "https://x", "cmd": ["y"] } }),
            json!({ "a": { "url": "https://x", "confinement": "none" } }),
            json!({ "a": { "url": "https://x", "hosts": ["x"] } }),
            json!({ "a": { "headers": { "A": "b" } } }),
            json!({ "a": { "cmd": ["x"], "headers": { "A": "b" } } }),
            json!({ "a": { "url": "https://x", "headers": { "A b": "c" } } }),
            json!({ "a": { "url": "https://x", "headers": { "Mcp-Session-Id": "c" } } }),
            json!({ "a": { "url": "https://x", "headers": { "Host": "c" } } }),
            json!({ "a": { "url": "https://x", "headers": { "A": "b\r\nC: d" } } }),
            json!({ "a": { "url": "https://x", "headers": { "A": "${TOKEN}" } } }),
            json!({ "a": { "cmd": ["x"], "oauth": { "client_id": "b" } } }),
            json!({ "a": { "url": "https://x", "oauth": "b" } }),
            json!({ "a": { "url": "https://x", "oauth": { "unheard": 1 } } }),
            json!({ "a": { "url": "https://x", "oauth": { "client_id": "" } } }),
            json!({ "a": { "url": "https://x", "oauth": { "client_secret": "b" } } }),
            json!({ "a": { "url": "https://x", "oauth": { "client_id": "b", "client_secret": "c" } } }),
            json!({ "a": { "url": "https://x", "oauth": { "client_id": "b", "client_secret": "${C}", "issuer": "https://i" } } }),
            json!({ "a": { "url": "https://x", "oauth": { "scopes": ["a b"] } } }),
            json!({ "a": { "url": "https://x", "oauth": { "port": 70000 } } }),
            json!({ "a": 1 }),
        ] {
            let mut given = wrong.clone();
            given["right"] = json!({ "cmd": ["x"] });
            let (servers, problems) = read(&given);
            assert_eq!((servers.len(), problems), (2, 0), "{wrong}");
            let is_wrong = |it: &McpServerSettings| matches!(it.kind, ServerKind::Wrong(_));
            assert!(is_wrong(&servers[0]) && !is_wrong(&servers[1]), "{wrong}");
        }
        assert_eq!(read(&json!("a")), (Vec::new(), 1));
        for (wrong, told) in [
            (
                json!({ "confinement": "some" }),
                "its confinement must be one of read-only, workspace, none",
            ),
            (
                json!({ "unheard": 1 }),
                "it has no setting unheard, but cmd, env,",
            ),
            (
                json!({ "env": { "A B": "c" }, "cmd": ["x"] }),
                "its env must be a list of NAME",
            ),
            (
                json!({ "url": "https://x", "oauth": { "unheard": 1 } }),
                "its oauth must be a table of client_id,",
            ),
            (
                json!({ "url": "https://x", "oauth": { "scopes": ["a b"] } }),
                "its oauth has an empty client_id,",
            ),
            (
                json!({ "url": "https://me:word@x", "oauth": { "scopes": ["a b"] } }),
                "its url is no address of HTTP,",
            ),
        ] {
            let (servers, _) = read(&json!({ "a": wrong }));
            let ServerKind::Wrong(why) = &servers[0].kind else {
                panic!("{wrong}");
            };
            assert!(why.starts_with(told), "{why}");
        }
    }
}
