//! Programs that download a tool server at its first start, such as `npx`. Without a network they fail, so co can download such a
//! server once, if the person asks for it.

use crate::config::{McpServerSettings, ServerConfinement, ServerKind, ServerProgram};
use co_policy::HostPattern;
use std::ffi::OsStr;
use std::path::Path;

/// A program that downloads a tool server before it starts it.
struct Downloader {
    program: &'static str,
    hosts: &'static [&'static str],
    install: &'static str,
}

const NPM: &[&str] = &["registry.npmjs.org"];
const PYPI: &[&str] = &["pypi.org", "files.pythonhosted.org"];

const DOWNLOADERS: [Downloader; 4] = [
    Downloader {
        program: "npx",
        hosts: NPM,
        install: "npm install -g",
    },
    Downloader {
        program: "bunx",
        hosts: NPM,
        install: "bun install -g",
    },
    Downloader {
        program: "uvx",
        hosts: PYPI,
        install: "uv tool install",
    },
    Downloader {
        program: "pipx",
        hosts: PYPI,
        install: "pipx install",
    },
];

/// The environment variables with which these programs use earlier downloads and no network.
pub(super) const OFFLINE: [(&str, &str); 2] = [("npm_config_offline", "true"), ("UV_OFFLINE", "1")];

/// Returns the program of a server and its downloader. Returns `None` if the program is not a downloader or is not confined.
fn downloader(settings: &McpServerSettings) -> Option<(&ServerProgram, &'static Downloader)> {
    let server = settings.program()?;
    let program = server.cmd.first()?;
    let name = match settings.of_workspace {
        // A path may lead to another program of this name.
        true => OsStr::new(program),
        false => Path::new(program).file_name()?,
    };
    let is_meant = |it: &&Downloader| name == it.program;
    let is_confined = server.confinement != ServerConfinement::None;
    let found = DOWNLOADERS.iter().find(is_meant);
    found.filter(|_| is_confined).map(|it| (server, it))
}

/// Returns a hint for a server that did not start, perhaps because it was never downloaded. Returns `None` if the server has no
/// downloader, or may connect to the downloader's hosts.
pub fn advice(settings: &McpServerSettings) -> Option<String> {
    let (
        server,
        Downloader {
            program,
            hosts,
            install,
        },
    ) = downloader(settings)?;
    let is_reached = |host: &str| server.hosts.iter().any(|it| it.to_string() == host);
    if hosts.iter().all(|it| is_reached(it)) {
        return None;
    }
    let name = &settings.name;
    let hosts = hosts.join(" and ");
    Some(format!(
        "{program} downloads it at the first start, which needs {hosts}: `:Co /mcp fetch {name}` does that once, into its own home; or \
         install it (`{install} ...`) and set cmd to its program"
    ))
}

/// Returns the settings with which co downloads a server: the server can only read the workspace, and can connect to the hosts of
/// its downloader. Returns `None` if the server has no downloader.
pub fn fetching(settings: &McpServerSettings) -> Option<McpServerSettings> {
    let (server, downloader) = downloader(settings)?;
    let more = downloader.hosts.iter();
    let more = more.filter_map(|host| host.parse::<HostPattern>().ok());
    Some(McpServerSettings {
        kind: ServerKind::Program(ServerProgram {
            cmd: server.cmd.clone(),
            hosts: server.hosts.iter().cloned().chain(more).collect(),
            confinement: ServerConfinement::ReadOnly,
        }),
        ..settings.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_downloaded_can_be_fetched() {
        let settings = |cmd: &str, confinement| McpServerSettings {
            name: "s".to_owned(),
            kind: ServerKind::Program(ServerProgram {
                cmd: vec![cmd.to_owned(), "server".to_owned()],
                confinement,
                hosts: vec!["a.example".parse().unwrap()],
            }),
            ..McpServerSettings::default()
        };
        let workspace = ServerConfinement::Workspace;
        let fetched = fetching(&settings("/usr/bin/npx", workspace)).unwrap();
        let program = fetched.program().unwrap();
        assert_eq!(program.confinement, ServerConfinement::ReadOnly);
        let hosts: Vec<_> = program.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["a.example", "registry.npmjs.org"]);
        let advice = super::advice(&settings("uvx", workspace)).unwrap();
        assert!(
            advice.contains("pypi.org and files.pythonhosted.org"),
            "{advice}"
        );
        assert!(advice.contains("`:Co /mcp fetch s`"), "{advice}");
        assert_eq!(super::advice(&fetched), None);
        for (cmd, confinement) in [("node", workspace), ("npx", ServerConfinement::None)] {
            assert_eq!(fetching(&settings(cmd, confinement)), None);
        }
    }
}
