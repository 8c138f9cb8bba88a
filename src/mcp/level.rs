//! The level of a server: its confinement, and texts about it. A server over HTTP has no confinement, because it does not run
//! here.

use std::path::Path;

use crate::config::{McpServerSettings, ServerConfinement, ServerKind, ServerProgram};
use crate::workspace::confinement_hint;
use co_exec::{Confinement, GrantedPlaces, Network, SERVER, ServerAccess, WRITING_SERVER};
use co_policy::secret_names::is_secret;

/// The level name of a server that is not confined.
const UNCONFINED: &str = "none";

/// The words about a server that never starts.
const WRONG: &str = "its settings are wrong";

/// The level name of a server over HTTP.
const HTTP: &str = "http";

/// Returns the confinement for the program of a server.
pub(super) fn confinement(
    program: &ServerProgram,
    workspace: &Path,
    places: GrantedPlaces,
) -> Confinement {
    let access = match program.confinement {
        ServerConfinement::None => return Confinement::Plain,
        ServerConfinement::ReadOnly => ServerAccess::Read,
        ServerConfinement::Workspace => ServerAccess::Write,
    };
    Confinement::Server {
        workspace: workspace.to_owned(),
        places,
        access,
        network: match program.hosts.is_empty() {
            true => Network::None,
            false => Network::Own,
        },
    }
}

/// Returns the name of the level, for outcomes and the audit file.
pub fn level_name(settings: &McpServerSettings) -> &'static str {
    match settings.program().map(|it| it.confinement) {
        Some(ServerConfinement::ReadOnly) => SERVER,
        Some(ServerConfinement::Workspace) => WRITING_SERVER,
        Some(ServerConfinement::None) => UNCONFINED,
        None => HTTP,
    }
}

/// Returns a short description of the level for the person.
pub fn level_words(settings: &McpServerSettings) -> String {
    let program = match &settings.kind {
        ServerKind::Program(program) => program,
        ServerKind::Http(server) => return format!("over HTTP; it runs at {}", server.origin()),
        ServerKind::Wrong(_) => return WRONG.to_owned(),
    };
    let files = match program.confinement {
        ServerConfinement::ReadOnly => "read-only but for its own directory",
        ServerConfinement::Workspace => "confined to the workspace and its own directory",
        ServerConfinement::None => return "not confined".to_owned(),
    };
    match hosts(program) {
        None => format!("{files}, without network"),
        Some(hosts) => format!("{files}; it reaches {hosts}"),
    }
}

/// Returns a clause for a question: the actions of a call for which the call needs approval. Returns `None` if the call can do
/// nothing that needs approval.
pub fn acting_words(settings: &McpServerSettings) -> Option<String> {
    let program = match &settings.kind {
        ServerKind::Program(program) => program,
        ServerKind::Http(server) => {
            let origin = server.origin();
            return Some(format!(
                "it reaches out: {origin} gets the arguments, and acts there"
            ));
        }
        ServerKind::Wrong(_) => return Some(WRONG.to_owned()),
    };
    match (program.confinement, hosts(program)) {
        (ServerConfinement::None, _) => {
            Some("its server is not confined: it may do all that you may do".to_owned())
        }
        (ServerConfinement::Workspace, None) => {
            Some("its server may change files of the workspace".to_owned())
        }
        (ServerConfinement::Workspace, Some(hosts)) => Some(format!(
            "its server may change files of the workspace, and send what it reads to {hosts}"
        )),
        (ServerConfinement::ReadOnly, Some(hosts)) => {
            Some(format!("its server may send what it reads to {hosts}"))
        }
        (ServerConfinement::ReadOnly, None) => None,
    }
}

/// Returns true if `/undo` may be unable to undo a call, because the call may affect more than files of the workspace.
pub fn acts_for_good(settings: &McpServerSettings) -> bool {
    let acts =
        |it: &ServerProgram| it.confinement == ServerConfinement::None || !it.hosts.is_empty();
    settings.program().is_none_or(acts)
}

/// Returns true if a call may change files in the workspace.
pub fn may_write(settings: &McpServerSettings) -> bool {
    let writes = |it: &ServerProgram| it.confinement != ServerConfinement::ReadOnly;
    settings.program().is_some_and(writes)
}

/// Returns a hint about a failed call: the setting that would allow more. Returns `None` if the error message does not look like
/// the message of a refused operation.
pub fn level_hint(settings: &McpServerSettings, text: &str) -> Option<String> {
    let setting = format!("mcp_servers.{}", settings.name);
    let program = settings.program()?;
    let lacks_network = program.hosts.is_empty() && confinement_hint::lacks_network(text);
    let hint = match program.confinement {
        ServerConfinement::None => None,
        _ if lacks_network => Some(format!(
            "perhaps because it has no network: {setting}.hosts names the hosts that it may reach"
        )),
        _ if !confinement_hint::is_refused(text) => None,
        _ if names_secret_file(text) => Some(format!(
            "perhaps because secret files are closed to it: only {setting}.confinement = 'none' opens them"
        )),
        ServerConfinement::ReadOnly => Some(format!(
            "perhaps because it only reads the workspace: {setting}.confinement = 'workspace' lets it write there"
        )),
        ServerConfinement::Workspace => Some(format!(
            "perhaps because it is confined to the workspace, without secrets: {setting}.confinement = 'none' lifts that"
        )),
    };
    hint.map(|it| match settings.of_workspace {
        true => format!("{it}, once mcp_servers has the whole server, with its cmd"),
        false => it,
    })
}

/// Returns true if a text contains the name of a secret file, or a path to one.
fn names_secret_file(text: &str) -> bool {
    let words = text.split(|c: char| c.is_whitespace() || "'\"`,:;()[]".contains(c));
    let mut names = words.filter_map(|word| word.rsplit('/').next());
    names.any(|it| !it.is_empty() && is_secret(it))
}

fn hosts(program: &ServerProgram) -> Option<String> {
    let hosts: Vec<_> = program.hosts.iter().map(ToString::to_string).collect();
    (!hosts.is_empty()).then(|| hosts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HttpServer;

    fn settings(confinement: ServerConfinement, hosts: &[&str]) -> McpServerSettings {
        McpServerSettings {
            name: "s".to_owned(),
            kind: ServerKind::Program(ServerProgram {
                confinement,
                hosts: hosts.iter().map(|it| it.parse().unwrap()).collect(),
                cmd: Vec::new(),
            }),
            ..McpServerSettings::default()
        }
    }

    fn check(confinement: ServerConfinement, hosts: &[&str], words: &str, acts: Option<&str>) {
        let settings = settings(confinement, hosts);
        assert_eq!(level_words(&settings), words);
        let acting = acting_words(&settings);
        match acts {
            None => assert_eq!(acting, None),
            Some(part) => assert!(acting.unwrap().contains(part), "{part}"),
        }
    }

    #[test]
    fn a_failure_names_the_level_that_would_allow_it() {
        let hint = |confinement, hosts: &[&str], text| {
            level_hint(&settings(confinement, hosts), text).unwrap_or_default()
        };
        use ServerConfinement::{None as Unconfined, ReadOnly, Workspace};
        let (write, network) = (
            "EACCES: permission denied",
            "getaddrinfo EAI_AGAIN a.example",
        );
        assert!(hint(ReadOnly, &[], write).contains("mcp_servers.s.confinement = 'workspace'"));
        assert!(hint(ReadOnly, &[], network).contains("mcp_servers.s.hosts"));
        assert!(hint(Workspace, &[], write).contains("mcp_servers.s.confinement = 'none'"));
        let secret = "EACCES: permission denied, open '/w/.env'";
        let told = hint(ReadOnly, &[], secret);
        assert!(
            told.contains("secret files are closed to it: only mcp_servers.s.confinement = 'none'")
        );
        assert!(hint(Workspace, &[], network).contains("mcp_servers.s.hosts"));
        for (confinement, hosts, text) in [
            (ReadOnly, &[][..], "no such sum"),
            (ReadOnly, &["a.example"][..], network),
            (Unconfined, &[][..], write),
        ] {
            assert_eq!(hint(confinement, hosts, text), "", "{text}");
        }
    }

    #[test]
    fn the_words_say_what_a_server_may_do() {
        use ServerConfinement::{None as Unconfined, ReadOnly, Workspace};
        let hosts = &["a.example", "localhost:5432"];
        check(
            ReadOnly,
            &[],
            "read-only but for its own directory, without network",
            None,
        );
        check(
            ReadOnly,
            hosts,
            "read-only but for its own directory; it reaches a.example, localhost:5432",
            Some("send what it reads to a.example, localhost:5432"),
        );
        check(
            Workspace,
            &[],
            "confined to the workspace and its own directory, without network",
            Some("may change files of the workspace"),
        );
        check(
            Workspace,
            &["a.example"],
            "confined to the workspace and its own directory; it reaches a.example",
            Some("and send what it reads to a.example"),
        );
        check(Unconfined, &[], "not confined", Some("all that you may do"));
    }

    #[test]
    fn a_server_over_http_reaches_out_and_has_no_level() {
        let http = HttpServer {
            url: "https://mcp.example.org/v1?key=word".to_owned(),
            ..HttpServer::default()
        };
        let settings = McpServerSettings {
            kind: ServerKind::Http(http),
            ..McpServerSettings::default()
        };
        assert_eq!(
            level_words(&settings),
            "over HTTP; it runs at https://mcp.example.org"
        );
        let acting = acting_words(&settings).unwrap();
        assert!(acting.contains("https://mcp.example.org gets"), "{acting}");
        assert!(acts_for_good(&settings) && !may_write(&settings));
        assert_eq!(level_hint(&settings, "EACCES: permission denied"), None);
    }
}
