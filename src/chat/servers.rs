//! The tool servers of a chat: `/mcp`, and those that a file of the workspace names, which start after the person trusts its text.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::{Chat, instructions};
use crate::blocking::blocking;
use crate::mcp::{WORKSPACE_FILE, WorkspaceServers};
use crate::protocol::Choice;
use crate::services::Services;
use crate::tool::server::ListedServer;
use crate::trust::{FileText, FileTrust};
use co_text::MOST_NAMED;

/// Reads the file of a workspace that names tool servers, if there is one, and the person's word about it.
async fn server_file(
    services: &Services,
    workspace: &Path,
) -> Result<Option<(FileText, FileTrust)>, String> {
    let path = workspace.join(WORKSPACE_FILE);
    let read = move || match FileText::read(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{WORKSPACE_FILE} is left out: {error}")),
    };
    let Some(file) = blocking(read).await? else {
        return Ok(None);
    };
    let judge = services
        .instructions
        .with_saved(|state, saved| FileTrust::of(&file, state.answer(saved, &file.path)));
    let trust = judge.await?;
    Ok(Some((file, trust)))
}

impl Chat {
    /// Reads the tool servers that a file of the workspace names, for a new turn. Asks the person about a text without an answer.
    pub(super) async fn find_workspace_servers(&mut self) {
        let found = match server_file(&self.services, &self.dirs.workspace).await {
            Ok(found) => found,
            Err(why) => {
                self.warn_of_servers(&[why]);
                None
            }
        };
        let path = self.dirs.workspace.join(WORKSPACE_FILE);
        let services = Arc::clone(&self.services);
        instructions::withdraw(&services, &mut services.instructions.state(), |question| {
            let is_same = found
                .as_ref()
                .is_some_and(|(file, _)| question.is_about(file));
            question.path == path && !is_same
        });
        let servers = match found {
            Some((file, FileTrust::Trusted)) => {
                let workspace = self.dirs.workspace.clone();
                let read = move || Ok::<_, String>(WorkspaceServers::read(&file.text, &workspace));
                blocking(read).await.unwrap_or_default()
            }
            Some((file, trust @ (FileTrust::Unanswered | FileTrust::Changed))) => {
                if self.ask_about_servers(&file, trust) {
                    self.show_notice(format!(
                        "the tool servers of {WORKSPACE_FILE} are not started until you trust it: `:Co /approve` shows the question"
                    ))
                    .await;
                }
                WorkspaceServers::default()
            }
            Some((_, FileTrust::Refused)) | None => WorkspaceServers::default(),
        };
        self.warn_of_servers(&servers.problems);
        self.servers.set_of_workspace(servers.servers);
    }

    fn warn_of_servers(&self, problems: &[String]) {
        let mut state = self.services.instructions.state();
        for problem in problems {
            instructions::warn_once(&self.services, &mut state, &self.dirs.workspace, problem);
        }
    }

    /// Asks about the file that names tool servers. Returns false if the question is open already.
    fn ask_about_servers(&self, file: &FileText, trust: FileTrust) -> bool {
        let mut state = self.services.instructions.state();
        if state.questions.iter().any(|it| it.is_about(file)) {
            return false;
        }
        let changed = trust == FileTrust::Changed;
        let notes = changed.then(|| instructions::TEXT_CHANGED.to_owned());
        let notes = notes.into_iter().collect();
        let (name, slash) = (WORKSPACE_FILE.to_owned(), Some(instructions::SERVERS));
        instructions::ask(&self.services, &mut state, file, name, notes, slash);
        true
    }

    /// Lists the tool servers, or says more about the one with a name. If the name is that of a file without trust, asks about it.
    pub(super) async fn list_servers(&self, name: &str) {
        let file = match server_file(&self.services, &self.dirs.workspace).await {
            Ok(file) => file,
            Err(why) => return self.complain(why),
        };
        let file = file.filter(|(_, trust)| *trust != FileTrust::Trusted);
        let servers = self.servers.listed(&self.services.config);
        if servers.is_empty() && file.is_none() {
            return self
                .say("the setting `mcp_servers` names no tool server, see :help co-tool-servers");
        }
        if name.is_empty() {
            let choice = |it: &ListedServer| Choice {
                label: format!("{}{} ({}; {})", it.name, origin(it), it.state, it.level),
                value: it.name.clone(),
                confirm: None,
            };
            let file = file.map(|(_, trust)| Choice {
                label: format!("{WORKSPACE_FILE} ({})", trust.words()),
                value: WORKSPACE_FILE.to_owned(),
                confirm: None,
            });
            let choices = servers.iter().map(choice).chain(file).collect();
            return self.offer("mcp", "Tool servers", choices);
        }
        if let Some((file, trust)) = file.filter(|_| name == WORKSPACE_FILE) {
            if !self.ask_about_servers(&file, trust) {
                self.say(format!(
                    "`:Co /approve` shows the question about {WORKSPACE_FILE}"
                ));
            }
            return;
        }
        let Some(server) = servers.iter().find(|it| it.name == name) else {
            return self.complain(format!("there is no tool server {name}; /mcp lists them"));
        };
        let ListedServer {
            name,
            command,
            state,
            level,
            tools,
            ..
        } = server;
        let tools = match tools.as_slice() {
            [] => String::new(),
            tools => {
                let named = tools.len().min(MOST_NAMED);
                let others = match tools.len() - named {
                    0 => String::new(),
                    count => format!(" and {count} more"),
                };
                let names = tools[..named].join(", ");
                format!("; the model may call {names}{others}")
            }
        };
        self.say(format!(
            "{name}{}: {state}; {level}; command: {command}{tools}",
            origin(server)
        ));
    }
}

/// Returns a word for a server that the person did not set.
fn origin(server: &ListedServer) -> String {
    match server.of_workspace {
        true => format!(" of {WORKSPACE_FILE}"),
        false => String::new(),
    }
}
