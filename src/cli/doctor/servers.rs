//! Checks the tool servers in the settings, and that their programs exist.

use std::ffi::OsStr;
use std::path::Path;

use super::check::{Check, CheckLevel};
use crate::config::{Config, Env, HttpServer, McpServerSettings, ServerKind};
use crate::mcp::{
    LoginFile, ServerSecrets, WORKSPACE_FILE, WorkspaceServers, download_advice, level_words,
};
use crate::paths::Paths;
use crate::trust::{FileTrust, Trust};
use co_exec::find_program;
use co_text::one_line;

/// Checks the tool servers in the settings, and those in the workspace's own file.
pub(super) fn checks(
    config: &Config,
    env: Env<'_>,
    workspace: Option<&Path>,
    paths: Option<&Paths>,
) -> Vec<Check> {
    let path = env("PATH").unwrap_or_default();
    let path = OsStr::new(&path);
    let logins = paths.map(Paths::logins);
    let login = |it: &McpServerSettings| {
        let logins = logins.as_deref()?;
        LoginFile::new(
            logins,
            it,
            workspace.unwrap_or(Path::new("/")),
            ServerSecrets::default(),
        )
    };
    let mut found: Vec<_> = config
        .mcp_servers
        .iter()
        .map(|it| server(it, path, login(it)))
        .collect();
    if let Some((workspace, paths)) = workspace.zip(paths) {
        found.extend(file(workspace, paths, path));
    }
    found
}

fn bad(message: String, advice: impl Into<String>) -> Check {
    Check::bad("tool server", CheckLevel::Warn, message, advice)
}

fn server(settings: &McpServerSettings, path: &OsStr, login: Option<LoginFile>) -> Check {
    let name = &settings.name;
    let cmd = match &settings.kind {
        ServerKind::Program(program) => &program.cmd,
        ServerKind::Http(server) => return http_server(name, server, login),
        ServerKind::Wrong(why) => {
            let message = format!("{} is left out: {}", one_line(name), one_line(why));
            return bad(message, "correct its settings in mcp_servers");
        }
    };
    let program = cmd.first().map(String::as_str).unwrap_or_default();
    let found = match Path::new(program).is_absolute() {
        true => Some(Path::new(program).to_owned()).filter(|it| it.is_file()),
        false => find_program(program, path),
    };
    let Some(found) = found else {
        return bad(
            format!("{name}: {} is not installed", one_line(program)),
            "install it, or set its cmd in mcp_servers",
        );
    };
    let level = level_words(settings);
    let download = download_advice(settings).map(|it| format!("; {it}"));
    Check::ok(
        "tool server",
        format!(
            "{name} is {}; {level}; /mcp {name} says whether it runs{}",
            one_line(&found.display().to_string()),
            download.unwrap_or_default()
        ),
    )
}

/// Checks the settings of a server over HTTP and its login without connecting to it.
fn http_server(name: &str, server: &HttpServer, login: Option<LoginFile>) -> Check {
    let url = one_line(server.shown_url());
    let host = server.host().0;
    let is_local = host == "localhost" || {
        let bare = host.trim_matches(['[', ']']);
        bare.parse()
            .is_ok_and(|it: std::net::IpAddr| it.is_loopback())
    };
    let is_open = url.starts_with("http://") && !is_local;
    if is_open && !server.headers.is_empty() {
        return bad(
            format!("{name}: {url} gets its headers without encryption"),
            "use an address that starts with https://, if it has one",
        );
    }
    let login = match login.filter(|_| server.may_log_in()).map(|it| it.read()) {
        Some(Ok(Some(kept))) if kept.has_token() => {
            format!("; you are logged in at {}", one_line(kept.issuer()))
        }
        Some(Ok(_)) => format!("; if it needs a login: /mcp login {name}"),
        Some(Err(error)) => {
            return bad(
                format!("{name}: its login cannot be read: {error}"),
                format!("log in again by /mcp login {name}"),
            );
        }
        None => String::new(),
    };
    Check::ok(
        "tool server",
        format!("{name} is {url}; over HTTP; /mcp {name} says whether it answers{login}"),
    )
}

/// Checks the workspace's own file that names tool servers. Returns nothing if the file does not exist.
fn file(workspace: &Path, paths: &Paths, path: &OsStr) -> Vec<Check> {
    let read = match WorkspaceServers::find(workspace) {
        Ok(Some(found)) => found,
        Ok(None) => return Vec::new(),
        Err(error) => {
            let message = format!("{WORKSPACE_FILE} cannot be read: {error}");
            return vec![bad(message, "mend or remove that file")];
        }
    };
    let answers = match Trust::new(paths.trust()).entries() {
        Ok(answers) => answers,
        Err(error) => return vec![bad(error.to_string(), "mend or remove that file")],
    };
    let answer = answers.iter().find(|it| it.path == read.path);
    let trust = FileTrust::of(&read, answer);
    if trust != FileTrust::Trusted {
        let message = format!("{WORKSPACE_FILE} of this workspace: {}", trust.words());
        return vec![Check::ok("tool server", format!("{message} in /mcp"))];
    }
    let WorkspaceServers { servers, problems } = WorkspaceServers::parse(&read.text, workspace);
    let problems = problems.into_iter();
    let problems =
        problems.map(|it| bad(it, format!("change {WORKSPACE_FILE}, or set mcp_servers")));
    let logins = paths.logins();
    let servers = servers.iter().map(|it| {
        let login = LoginFile::new(&logins, it, workspace, ServerSecrets::default());
        server(it, path, login)
    });
    servers.chain(problems).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerProgram;

    #[test]
    fn headers_go_encrypted_to_other_machines() {
        let level = |url: &str, headers: usize| {
            let header = ("A".to_owned(), "b".to_owned());
            let server = HttpServer {
                url: url.to_owned(),
                headers: vec![header; headers],
                ..HttpServer::default()
            };
            http_server("s", &server, None).level
        };
        assert_eq!(level("http://a.example/mcp", 1), CheckLevel::Warn);
        for (url, headers) in [
            ("https://a.example/mcp", 1),
            ("http://a.example/mcp", 0),
            ("http://localhost:80/mcp", 1),
            ("http://[::1]:80/mcp", 1),
        ] {
            assert_eq!(level(url, headers), CheckLevel::Ok, "{url}");
        }
    }

    #[test]
    fn a_program_must_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let program = |name: &str| {
            use std::os::unix::fs::PermissionsExt;
            let path = dir.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path.display().to_string()
        };
        let set = |name: &str, program: String| McpServerSettings {
            name: name.to_owned(),
            kind: ServerKind::Program(ServerProgram {
                cmd: vec![program],
                ..ServerProgram::default()
            }),
            ..McpServerSettings::default()
        };
        let mut config = Config::default();
        config.mcp_servers.extend([
            set("there", program("server")),
            set("gone", "/nowhere/server".to_owned()),
            set("fetched", program("npx")),
        ]);
        let found = checks(&config, &|_| None, None, None);
        let told: Vec<_> = found
            .iter()
            .map(|it| (it.level, it.message.as_str()))
            .collect();
        assert_eq!(told[0].0, CheckLevel::Ok);
        assert!(told[0].1.contains("there is /") && told[0].1.contains("read-only"));
        assert_eq!(
            told[1],
            (CheckLevel::Warn, "gone: /nowhere/server is not installed")
        );
        assert!(told[2].0 == CheckLevel::Ok && told[2].1.contains("npx downloads it"));
    }
}
