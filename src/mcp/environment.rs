//! The environment variables and HTTP headers of a server, and the secret values in them.

use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;

use super::home;
use crate::config::{McpServerSettings, ServerKind, ServerVariable, VariableSource};
use co_exec::secrets::redact::{RedactedText, is_secret_variable};
use co_llm::printed_secret;
use co_mcp::ServerTool;

/// The smallest length of a secret value, in bytes. A shorter value would match ordinary words.
const SHORTEST_SECRET: usize = 8;

/// The text that replaces a secret value.
const REDACTED: &str = "[redacted: secret of a tool server]";

/// The headers whose values are always secret. Other headers are secret if their names look like the names of secret variables.
const SECRET_HEADERS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// The parameters of an address whose values are secrets, beside those with names as variables of secrets have.
const SECRET_PARAMETERS: [&str; 4] = ["code", "sig", "signature", "apikey"];

/// The environment variables and headers in the settings of a server, with their values.
#[derive(Default)]
pub(super) struct ServerEnvironment {
    variables: Vec<(String, String)>,
    /// The HTTP headers for a server over HTTP.
    pub(super) headers: Vec<(String, String)>,
    /// The secret of the OAuth client for the login.
    pub(super) client_secret: Option<String>,
    pub(super) secrets: ServerSecrets,
}

/// The secret values of a server's variables, headers and login, the longest first. They are removed from all texts of the server.
/// Clones share the list.
#[derive(Clone, Default)]
pub struct ServerSecrets(Arc<RwLock<Vec<String>>>);

impl ServerEnvironment {
    /// Reads the variables. A program that prints the value of a variable runs with all rights of the person.
    ///
    /// # Errors
    /// A program printed nothing, or a header uses a variable without a value. The error is a sentence that contains no secret.
    pub(super) async fn read(settings: &McpServerSettings) -> Result<Self, String> {
        let (mut read, mut secrets) = (Vec::new(), Vec::new());
        for ServerVariable { name, value } in &settings.env {
            let value = match value {
                VariableSource::Text(text) => Some(text.clone()),
                VariableSource::OfPerson => std::env::var(name).ok(),
                VariableSource::Printed(argv) => {
                    let printed = printed_secret(argv, "env_cmd").await;
                    let printed = printed.map_err(|cause| {
                        let program = argv.join(" ");
                        format!("its variable {name} cannot be read from `{program}`: {cause}")
                    })?;
                    secrets.push(printed.clone());
                    Some(printed)
                }
            };
            let Some(value) = value else {
                continue;
            };
            if is_secret_variable(name, &value) {
                secrets.push(value.clone());
            }
            read.push((name.clone(), value));
        }
        let (mut headers, mut client_secret) = (Vec::new(), None);
        if let ServerKind::Http(server) = &settings.kind {
            let query = server.query().into_iter();
            let secret = query.filter(|(name, value)| is_secret_parameter(name, value));
            secrets.extend(secret.map(|(_, value)| value));
            let variable = |wanted: &str| {
                let found = read.iter().find(|(name, _): &&(String, _)| name == wanted);
                found.map(|(_, value): &(_, String)| value.clone())
            };
            let unset = |name: String| format!("its variable {name} is not set");
            headers = server.filled(variable).map_err(unset)?;
            client_secret = server.filled_secret(variable).map_err(unset)?;
        }
        let secret = headers
            .iter()
            .filter(|(name, value)| is_secret_header(name, value));
        for (_, value) in secret {
            // A server may repeat the token without the word before it, such as `Bearer`.
            secrets.extend(value.split_once(' ').map(|(_, token)| token.to_owned()));
            secrets.push(value.clone());
        }
        secrets.extend(client_secret.clone());
        let all = ServerSecrets::default();
        all.add(secrets);
        Ok(Self {
            variables: read,
            headers,
            client_secret,
            secrets: all,
        })
    }

    /// Returns the environment variables of the server. `home` is its home directory.
    pub(super) fn of_home(&self, home: &Path) -> Vec<(String, String)> {
        let variable =
            |(name, value): &(String, String)| (name.clone(), home::in_home(home, value));
        self.variables.iter().map(variable).collect()
    }
}

fn is_secret_header(name: &str, value: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    SECRET_HEADERS.contains(&lower.as_str()) || is_secret_name(name, value)
}

/// Returns whether a parameter of an address is a secret. One without a name has no other purpose.
fn is_secret_parameter(name: &str, value: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    name.is_empty() || SECRET_PARAMETERS.contains(&lower.as_str()) || is_secret_name(name, value)
}

fn is_secret_name(name: &str, value: &str) -> bool {
    is_secret_variable(&name.replace('-', "_").to_ascii_uppercase(), value)
}

impl ServerSecrets {
    /// Adds secret values to the list, except values that are too short.
    pub(super) fn add(&self, secrets: impl IntoIterator<Item = String>) {
        let mut all = self.0.write();
        for secret in secrets {
            if secret.len() >= SHORTEST_SECRET && !all.contains(&secret) {
                all.push(secret);
            }
        }
        all.sort_by_key(|it| std::cmp::Reverse(it.len()));
    }

    /// Returns a text with all secret values of the server replaced.
    pub fn hide(&self, text: &str) -> RedactedText {
        let mut clean = RedactedText::from(text.to_owned());
        for secret in self.0.read().iter().filter(|it| text.contains(it.as_str())) {
            clean.text = clean.text.replace(secret.as_str(), REDACTED);
            clean.hidden += 1;
        }
        clean
    }

    /// Removes the secret values from the description and the schema of a tool.
    pub(super) fn hide_in(&self, tool: &mut ServerTool) {
        tool.description = self.hide(&tool.description).text;
        let schema = serde_json::to_string(&tool.schema).unwrap_or_default();
        let clean = self.hide(&schema);
        if clean.hidden > 0 {
            tool.schema = serde_json::from_str(&clean.text).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HttpServer;

    fn variable(name: &str, value: VariableSource) -> ServerVariable {
        let name = name.to_owned();
        ServerVariable { name, value }
    }

    async fn read(env: Vec<ServerVariable>, kind: ServerKind) -> Result<ServerEnvironment, String> {
        let settings = McpServerSettings {
            env,
            kind,
            ..McpServerSettings::default()
        };
        ServerEnvironment::read(&settings).await
    }

    #[tokio::test]
    async fn headers_take_variables_and_their_secrets_are_hidden() {
        let headers = [
            ("Authorization", "Bearer ${A}"),
            ("X-Api-Key", "word-of-the-key"),
            ("X-Kind", "production"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let http = |headers: &[(String, String)]| {
            ServerKind::Http(HttpServer {
                url: "https://a.example".to_owned(),
                headers: headers.to_vec(),
                ..HttpServer::default()
            })
        };
        let text = VariableSource::Text("word-of-a".to_owned());
        let read_all = read(vec![variable("A", text)], http(&headers))
            .await
            .unwrap();
        assert_eq!(read_all.headers[0].1, "Bearer word-of-a");
        let hidden = read_all
            .secrets
            .hide("word-of-a word-of-the-key production");
        assert_eq!(hidden.text, format!("{REDACTED} {REDACTED} production"));
        let unset = variable("NO_SUCH_VARIABLE_OF_CO", VariableSource::OfPerson);
        let header = ("A".to_owned(), "${NO_SUCH_VARIABLE_OF_CO}".to_owned());
        let told = read(vec![unset], http(&[header])).await.err().unwrap();
        assert_eq!(told, "its variable NO_SUCH_VARIABLE_OF_CO is not set");
    }

    #[tokio::test]
    async fn secrets_in_an_address_are_hidden() {
        let url = "https://a.example/mcp?api_key=word%2Bof-the-key&project=production&sig=word-of-sig&alone-in-query#x";
        let read = read(
            Vec::new(),
            ServerKind::Http(HttpServer {
                url: url.to_owned(),
                ..HttpServer::default()
            }),
        );
        let hidden = read
            .await
            .unwrap()
            .secrets
            .hide("word%2Bof-the-key word+of-the-key word-of-sig alone-in-query production");
        let expected = format!("{REDACTED} {REDACTED} {REDACTED} {REDACTED} production");
        assert_eq!(hidden.text, expected);
    }

    #[tokio::test]
    async fn printed_values_and_those_with_secret_names_are_hidden() {
        let text = |text: &str| VariableSource::Text(text.to_owned());
        let argv = ["printf", "printed-word\nnotes"].map(str::to_owned).into();
        let variables = vec![
            variable("MODE", text("production")),
            variable("API_TOKEN", text("word-of-the-token")),
            variable("LOGIN", VariableSource::Printed(argv)),
            variable("PATH", VariableSource::OfPerson),
            variable("NO_SUCH_VARIABLE_OF_CO", VariableSource::OfPerson),
            variable("FILE", text("~/kept")),
        ];
        let read = read(variables, ServerKind::default()).await.unwrap();
        let hidden = read
            .secrets
            .hide("production word-of-the-token printed-word");
        assert_eq!(hidden.text, format!("production {REDACTED} {REDACTED}"));
        assert_eq!(hidden.hidden, 2);
        let of_home = read.of_home(Path::new("/h"));
        let names: Vec<_> = of_home.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["MODE", "API_TOKEN", "LOGIN", "PATH", "FILE"]);
        assert_eq!(of_home[2].1, "printed-word");
        assert_eq!(of_home[4].1, "/h/kept");
    }

    #[tokio::test]
    async fn a_program_that_prints_nothing_is_named() {
        let printed = VariableSource::Printed(vec!["false".to_owned()]);
        let read = read(vec![variable("TOKEN", printed)], ServerKind::default()).await;
        let told = read.err().unwrap();
        assert!(told.starts_with("its variable TOKEN cannot be read from `false`: it ended with"));
    }
}
