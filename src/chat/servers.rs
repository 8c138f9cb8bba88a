//! The tool servers of a chat: `/mcp`, and the servers that a file of the workspace names. These servers start only after the
//! person trusts the text of the file.

use std::path::Path;
use std::sync::Arc;

use super::chat_context::ChatContext;
use super::trust_questions;
use crate::blocking::blocking;
use crate::mcp::{WORKSPACE_FILE, WorkspaceServers, fetching, level_words};
use crate::protocol::{Choice, NoticeLevel};
use crate::services::Services;
use crate::tool::server::{ChatServers, ListedServer, server_start};
use crate::trust::{FileText, FileTrust};
use co_text::{MOST_NAMED, one_line};

/// The note to a question if there is an answer about an earlier text, or about less than a yes means now.
const CHANGED: &str = "since your last answer, its text changed, or co learned to do more with it";

/// Reads the file of a workspace that names tool servers, if there is one. Returns it with the person's answer about it.
///
/// # Errors
/// The file or the answers of the person cannot be read.
async fn server_file(
    services: &Services,
    workspace: &Path,
) -> Result<Option<(FileText, FileTrust)>, String> {
    let workspace = workspace.to_owned();
    let read = move || {
        let found = WorkspaceServers::find(&workspace);
        found.map_err(|error| format!("{WORKSPACE_FILE} is left out: {error}"))
    };
    let Some(file) = blocking(read).await? else {
        return Ok(None);
    };
    let judge = services
        .trust_answers
        .with_saved(|state, saved| FileTrust::of(&file, state.answer(saved, &file.path)));
    let trust = judge.await?;
    Ok(Some((file, trust)))
}

/// Reads the tool servers that a file of the workspace names, for a new turn. If the person has not answered about the file, asks
/// the person and returns a notice.
pub(super) async fn find_of_workspace(
    context: &ChatContext,
    servers: &ChatServers,
) -> Option<String> {
    let (services, workspace) = (&context.services, &context.dirs.workspace);
    let found = server_file(services, workspace).await;
    let found = found.unwrap_or_else(|why| {
        warn(context, &[why]);
        None
    });
    let path = workspace.join(WORKSPACE_FILE);
    trust_questions::withdraw(
        services,
        &mut services.trust_answers.state.lock(),
        |question| {
            let is_same = found
                .as_ref()
                .is_some_and(|(file, ..)| question.is_about(file));
            question.path == path && !is_same
        },
    );
    let mut notice = None;
    let of_workspace = match found {
        Some((file, FileTrust::Trusted)) => {
            let workspace = workspace.clone();
            let parsed = move || Ok::<_, String>(WorkspaceServers::parse(&file.text, &workspace));
            blocking(parsed).await.unwrap_or_default()
        }
        Some((file, trust @ (FileTrust::Unanswered | FileTrust::Changed))) => {
            notice = ask(context, &file, trust).then(|| {
                format!(
                    "the tool servers of {WORKSPACE_FILE} are not started until you trust it: `:Co /approve` shows the question"
                )
            });
            WorkspaceServers::default()
        }
        Some((_, FileTrust::Refused)) | None => WorkspaceServers::default(),
    };
    warn(context, &of_workspace.problems);
    servers.set_of_workspace(of_workspace.servers);
    notice
}

fn warn(context: &ChatContext, problems: &[String]) {
    let mut state = context.services.trust_answers.state.lock();
    for problem in problems {
        trust_questions::warn_once(
            &context.services,
            &mut state,
            &context.dirs.workspace,
            problem,
        );
    }
}

/// Asks the person about the file that names tool servers. Returns false if this question is already open.
fn ask(context: &ChatContext, file: &FileText, trust: FileTrust) -> bool {
    let mut state = context.services.trust_answers.state.lock();
    if state.questions.iter().any(|it| it.is_about(file)) {
        return false;
    }
    let changed = trust == FileTrust::Changed;
    let notes = changed.then(|| CHANGED.to_owned());
    let notes = notes.into_iter().collect();
    let (name, slash) = (WORKSPACE_FILE.to_owned(), Some(trust_questions::SERVERS));
    trust_questions::ask(&context.services, &mut state, file, name, notes, slash);
    true
}

/// Lists the tool servers, or shows details of the server with this name. With the arguments `fetch NAME`, starts the server
/// `NAME` once so that its program is downloaded.
pub(super) async fn list_or_fetch(context: &ChatContext, servers: &ChatServers, arguments: &str) {
    match arguments.split_once(' ') {
        Some(("fetch", name)) => fetch(context, servers, name.trim()),
        _ => list(context, servers, arguments).await,
    }
}

/// Starts a server once with access to the hosts from which its program is downloaded.
fn fetch(context: &ChatContext, servers: &ChatServers, name: &str) {
    let known = servers.wanted(&context.services.config);
    let Some(settings) = known.iter().find(|it| it.name == name) else {
        return context.complain(format!("there is no tool server {name}; /mcp lists them"));
    };
    let command = one_line(&settings.place());
    let Some(settings) = fetching(settings) else {
        return context.complain(format!(
            "co fetches only servers that npx, bunx, uvx or pipx start and that are confined, not `{command}`"
        ));
    };
    context.say(format!(
        "fetching the tool server {name}: `{command}` runs once ({})",
        level_words(&settings)
    ));
    let start = server_start(&context.services, &context.dirs.workspace, settings);
    let (services, name) = (Arc::clone(&context.services), name.to_owned());
    tokio::spawn(async move {
        match start.fetch().await {
            Ok(()) => services.notice(
                NoticeLevel::Info,
                format!("the tool server {name} is fetched, and starts with the next prompt"),
            ),
            Err(why) => services.notice(
                NoticeLevel::Error,
                format!("the tool server {name} was not fetched: {}", one_line(&why)),
            ),
        }
    });
}

/// Lists the tool servers, or shows details of the server with this name. If `name` names a file that the person does not trust,
/// asks about the file.
async fn list(context: &ChatContext, servers: &ChatServers, name: &str) {
    let file = match server_file(&context.services, &context.dirs.workspace).await {
        Ok(file) => file,
        Err(why) => return context.complain(why),
    };
    let file = file.filter(|(.., trust)| *trust != FileTrust::Trusted);
    let servers = servers.listed(&context.services.config);
    if servers.is_empty() && file.is_none() {
        return context
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
        return context.offer("mcp", "Tool servers", choices);
    }
    if let Some((file, trust)) = file.filter(|_| name == WORKSPACE_FILE) {
        if !ask(context, &file, trust) {
            context.say(format!(
                "`:Co /approve` shows the question about {WORKSPACE_FILE}"
            ));
        }
        return;
    }
    let Some(server) = servers.iter().find(|it| it.name == name) else {
        if matches!(name, "fetch" | "login" | "logout") {
            return context.complain(format!("name the server: /mcp {name} NAME"));
        }
        return context.complain(format!("there is no tool server {name}; /mcp lists them"));
    };
    let ListedServer {
        name,
        place,
        state,
        level,
        tools,
        log,
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
    let log = match log.as_str() {
        "" => String::new(),
        log => format!("; its log ends: {log}"),
    };
    context.say(format!(
        "{name}{}: {state}; {level}; {place}{tools}{log}",
        origin(server)
    ));
}

/// Returns the name of the file that names a server, for a list; empty if the server is from the person's settings.
fn origin(server: &ListedServer) -> String {
    match server.of_workspace {
        true => format!(" of {WORKSPACE_FILE}"),
        false => String::new(),
    }
}
