//! The tools of tool servers (MCP). They can be added and removed while a chat runs.
//!
//! The confinement of a server decides which of its calls run without approval. The server's own statements about its tools never
//! do.

mod approval;
mod completion;
mod hosts;

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{timeout, timeout_at};

pub use self::completion::StartedWord;
use self::hosts::ServerHosts;
use super::call::{CallEffect, CallResult, PlannedCall};
use super::context::{CallContext, CallHalt};
use super::event::ShownCall;
use super::form::{Form, FormReply};
use super::schema::{BadCall, Tool};
use super::{ToolSet, name_and_arguments, server_search};
use crate::config::{Config, McpServerSettings, ServerKind};
use crate::mcp::{
    ReadyServer, ServerStart, ServerState, ShownTool, ToolServer, failure, level_hint, level_name,
    level_words, may_write, server_hash, shown_tools, tool_hash,
};
use crate::network::HostReport;
use crate::protocol::{Asker, NoticeLevel, Question, ServerWord, ToEditor};
use crate::services::Services;
use co_exec::Confinement;
use co_exec::secrets::redact::RedactedText;
use co_llm::ToolSpec;
use co_llm::transcript::{Call, Image, ShownPart};
use co_mcp::{
    AnswerPart, CallError, CallEvents, CallProgress, QuestionReply, ServerPrompt, ServerQuestion,
    ServerTool, ToolAnswer,
};
use co_policy::ToolServerCall;
use co_text::{counted, end_of, one_line, printable, start_of};

/// The largest number of bytes of a server's error message.
const LONGEST_WORDS: usize = 2_000;

/// The image types that models accept.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];
/// The largest number of images in one result.
const MOST_IMAGES: usize = 4;
/// The largest number of base64 characters of an image.
const MOST_IMAGE_BYTES: usize = 4 << 20;

/// The largest number of questions that a server may ask the person in one call. co declines all further questions.
const MOST_QUESTIONS: usize = 5;

/// The longest time that a prompt waits for a server that was not ready in time for the last prompt.
const LATE_WAIT: Duration = Duration::from_millis(500);

/// The shortest time between two updates about the progress of a call.
const PROGRESS_PAUSE: Duration = Duration::from_millis(100);

/// The largest number of bytes of a completion from a server.
const LONGEST_WORD: usize = 500;

const NO_OUTPUT: &str = "(no output)";

/// The text that the model gets in place of a result that may contain a secret.
const WITHHELD: &str = "The call was carried out, but its result is withheld: a secret file that appeared in the workspace meanwhile was readable for the tool server. The server is started again without it.";

/// The text before a result that the server marks as an error.
const FAILED: &str = "The tool failed:\n";

/// The tool servers of a chat. Clones share the same list.
#[derive(Clone, Default)]
pub struct ChatServers {
    list: Arc<Mutex<ServerList>>,
    /// The servers that a trusted file of the workspace names.
    of_workspace: Arc<Mutex<Vec<McpServerSettings>>>,
}

#[derive(Default)]
struct ServerList {
    servers: Vec<ChatServer>,
    /// The names of the tools in the chat's tool set that come from the servers.
    placed: Vec<String>,
    /// The completions of the servers' prompts and resources that Lua got last.
    words: (Vec<ServerWord>, Vec<ServerWord>),
}

struct ChatServer {
    server: Arc<ToolServer>,
    /// The list from which `tools` were made.
    list: Option<Arc<[ServerTool]>>,
    tools: Vec<Arc<dyn Tool>>,
    /// The last notice about the server.
    told: Option<String>,
    /// True if the server was not ready in time while the last prompt waited.
    late: bool,
}

/// A tool server in a list for the person. The texts are printable lines.
pub struct ListedServer {
    pub name: String,
    /// True if a file of the workspace names the server.
    pub of_workspace: bool,
    /// The command or the address of the server.
    pub place: String,
    pub state: String,
    /// A short description of the server's confinement.
    pub level: String,
    /// The names of the server's tools for the model.
    pub tools: Vec<String>,
    /// The end of the server's standard error output; empty if it does not run.
    pub log: String,
}

impl ChatServers {
    /// Returns the servers of the chat for a list.
    pub fn listed(&self, config: &Config) -> Vec<ListedServer> {
        let list = self.list.lock();
        let one = |settings: &McpServerSettings| {
            let mut known = list.servers.iter();
            let known = known.find(|it| it.server.settings == *settings);
            let state = known.map_or(ServerState::Idle, |it| it.server.state());
            ListedServer {
                name: settings.name.clone(),
                of_workspace: settings.of_workspace,
                place: one_line(&settings.place()),
                state: match &settings.kind {
                    ServerKind::Wrong(why) => one_line(&format!("is left out: {why}")),
                    _ => one_line(&words(&settings.name, &state)),
                },
                level: level_words(settings),
                log: match &state {
                    ServerState::Ready(ready) => one_line(&ready.end_of_log()),
                    _ => String::new(),
                },
                tools: known.map_or_else(Vec::new, ChatServer::names),
            }
        };
        self.wanted(config).iter().map(one).collect()
    }

    /// Sets the servers that a trusted file of the workspace names. They start with the next turn.
    pub fn set_of_workspace(&self, servers: Vec<McpServerSettings>) {
        *self.of_workspace.lock() = servers;
    }

    /// Ends the servers that a file of the workspace names, and removes their tools from `tools`.
    pub fn end_of_workspace(&self, tools: &ToolSet) {
        self.set_of_workspace(Vec::new());
        self.list
            .lock()
            .retain(tools, |it| !it.server.settings.of_workspace);
    }

    /// Returns the servers of the chat: the servers of the settings, and the servers of the workspace's file whose names are not
    /// in the settings.
    pub fn wanted(&self, config: &Config) -> Vec<McpServerSettings> {
        let mut wanted = config.mcp_servers.clone();
        for server in self.of_workspace.lock().iter() {
            if !wanted.iter().any(|it| it.name == server.name) {
                wanted.push(server.clone());
            }
        }
        wanted
    }

    /// Starts the servers that do not run yet, and waits for them for the time in the settings. Then adds the tools of the
    /// running servers to `tools`. Returns notices for the person.
    ///
    /// # Errors
    /// The turn is cancelled.
    pub async fn begin(
        &self,
        context: &CallContext,
        tools: &ToolSet,
    ) -> Result<Vec<String>, CallHalt> {
        let servers = self.take_settings(context, tools);
        let wait = context.services.config.mcp_wait;
        let now = tokio::time::Instant::now();
        let ready = servers.iter().map(async |(server, late)| {
            let start = start_of_server(context, server);
            server.want(&start);
            if let ServerState::Ready(ready) = server.state() {
                server.close_secrets(&start, &ready).await;
            }
            let refresh = async {
                if let ServerState::Ready(ready) = server.settled().await {
                    // If this fails, the server has ended, which its state tells.
                    ready.refresh().await.ok();
                }
            };
            let wait = if *late { wait.min(LATE_WAIT) } else { wait };
            timeout_at(now + wait, refresh).await.is_err()
        });
        let late = context.unless_cancelled(join_all(ready)).await?;
        for ((server, _), late) in servers.iter().zip(late) {
            let mut list = self.list.lock();
            let mut known = list.servers.iter_mut();
            if let Some(known) = known.find(|it| Arc::ptr_eq(&it.server, server)) {
                known.late = late;
            }
        }
        Ok(self.take_tools(tools, Some(wait)))
    }

    /// Reads a prompt or a resource of a server for the person. Starts the server if it does not run.
    ///
    /// # Errors
    /// A sentence with the reason of the failure.
    pub async fn read(
        &self,
        services: &Arc<Services>,
        workspace: &Path,
        name: &str,
        wanted: WantedItem<'_>,
    ) -> Result<ServerText, String> {
        let settings = self.wanted(&services.config);
        let settings = settings.into_iter().find(|it| it.name == name);
        let settings =
            settings.ok_or_else(|| format!("there is no tool server {name}: /mcp lists them"))?;
        let start = server_start(services, workspace, settings);
        let server = self.list.lock().hold(services, start.clone());
        server.want(&start);
        let ready = match timeout(services.config.mcp_wait, server.settled()).await {
            Ok(ServerState::Ready(ready)) => ready,
            Ok(ServerState::Failed { why, .. }) => {
                return Err(format!("the tool server {name} does not run: {why}"));
            }
            _ => {
                return Err(format!(
                    "the tool server {name} is not ready yet: try again in a moment"
                ));
            }
        };
        let failed = |error| failure(&server.settings, &error);
        let read = async {
            match wanted {
                WantedItem::Resource(uri) => ready.resource(uri).await.map_err(failed),
                WantedItem::Prompt(prompt, given) => {
                    let known = ready.offers.prompts.iter().find(|it| it.name == prompt);
                    let known = known.ok_or_else(|| format!("it has no prompt {prompt}"))?;
                    let arguments = arguments(known, given)?;
                    let read = ready.prompt(prompt, arguments).await;
                    read.map_err(failed)
                }
            }
        };
        let read = timeout(services.config.mcp_timeout, read).await;
        let parts = read.map_err(|_| {
            let limit = services.config.mcp_timeout.as_secs();
            format!(
                "the tool server {name} gives no answer within {limit} s (mcp_timeout): try again"
            )
        })?;
        let closing = server.close_secrets(&start, &ready).await;
        if closing {
            return Err(format!(
                "withheld: a secret appeared that the tool server {name} could read; it starts again without it, so try again"
            ));
        }
        let parts = parts.map_err(|why| {
            let why = ready.secrets.hide(&why).text;
            format!(
                "the tool server {name} does not give it: {}",
                one_line(&why)
            )
        })?;
        let answer = ToolAnswer {
            parts,
            is_error: false,
        };
        let (text, images) = contents(answer, true);
        Ok(ServerText {
            text: ready.secrets.hide(&text).text,
            image: images.into_iter().next(),
        })
    }

    /// Returns the completions of the servers' prompts and resources, if they have changed since the last call.
    pub fn new_words(&self, chat: u64) -> Option<ToEditor> {
        let mut list = self.list.lock();
        let (mut prompts, mut resources) = (Vec::new(), Vec::new());
        for known in &list.servers {
            let ServerState::Ready(ready) = known.server.state() else {
                continue;
            };
            let server = &known.server.settings.name;
            let line =
                |text: &str| one_line(start_of(&ready.secrets.hide(text).text, LONGEST_WORD));
            prompts.extend(ready.offers.prompts.iter().map(|it| ServerWord {
                name: line(&format!("{server}:{}", it.name)),
                about: line(&it.about),
                arguments: it.arguments.iter().map(|it| line(it)).collect(),
            }));
            resources.extend(ready.offers.resources.iter().map(|it| ServerWord {
                name: line(&format!("{server}:{}", it.uri)),
                about: line(&it.name),
                arguments: Vec::new(),
            }));
            // A template is the part of its address that it gives, and its whole text as the argument.
            resources.extend(ready.offers.templates.iter().map(|it| {
                let start = it.uri.split('{').next().unwrap_or_default();
                ServerWord {
                    name: line(&format!("{server}:{start}")),
                    about: line(&it.name),
                    arguments: vec![line(&it.uri)],
                }
            }));
        }
        if list.words == (prompts.clone(), resources.clone()) {
            return None;
        }
        list.words = (prompts.clone(), resources.clone());
        Some(ToEditor::ServerWords {
            chat,
            prompts,
            resources,
        })
    }

    /// Adds the tools of servers that have started meanwhile to `tools`. Returns notices for the person.
    pub fn catch_up(&self, tools: &ToolSet) -> Vec<String> {
        let has_all = self.list.lock().servers.iter().all(|it| it.list.is_some());
        match has_all {
            true => Vec::new(),
            false => self.take_tools(tools, None),
        }
    }

    /// Updates the list of servers to the settings. Returns the servers. The bool of a server is true if it was not ready in time
    /// for the last prompt.
    fn take_settings(
        &self,
        context: &CallContext,
        tools: &ToolSet,
    ) -> Vec<(Arc<ToolServer>, bool)> {
        let services = &context.services;
        let wanted = self.wanted(&services.config);
        let mut list = self.list.lock();
        list.retain(tools, |known| {
            let ToolServer {
                settings,
                workspace,
                ..
            } = &*known.server;
            wanted.contains(settings) && *workspace == context.workspace
        });
        for settings in wanted {
            let start = server_start(services, &context.workspace, settings);
            list.hold(services, start);
        }
        let servers = list.servers.iter();
        servers
            .map(|it| (Arc::clone(&it.server), it.late))
            .collect()
    }

    /// Adds the tools of the running servers to `tools`. If `waited` is set, the notices also name the servers that do not run.
    fn take_tools(&self, tools: &ToolSet, waited: Option<Duration>) -> Vec<String> {
        let (mut notices, mut changed) = (Vec::new(), false);
        let mut list = self.list.lock();
        for known in &mut list.servers {
            let notice = match (known.server.state(), waited) {
                (ServerState::Ready(ready), _) if known.has_tools_of(&ready) => known.told.clone(),
                (ServerState::Ready(ready), _) => {
                    changed = true;
                    known.take_tools(&ready)
                }
                (
                    ServerState::Failed {
                        needs_login: true, ..
                    },
                    Some(_),
                ) => Some(format!(
                    "the tool server {name} needs a login, so its tools cannot be used: `:Co /mcp login {name}` logs you in",
                    name = known.server.settings.name
                )),
                (ServerState::Failed { why, .. }, Some(_)) => Some(format!(
                    "the tool server {} does not run, so its tools cannot be used: {}",
                    known.server.settings.name,
                    one_line(&why)
                )),
                (ServerState::Idle | ServerState::Starting, Some(waited)) => Some(format!(
                    "the tool server {} is not ready after {} s: the prompt goes without its tools, which come with the next request",
                    known.server.settings.name,
                    waited.as_secs()
                )),
                (_, None) => continue,
            };
            let is_new = notice != known.told;
            known.told.clone_from(&notice);
            notices.extend(notice.filter(|_| is_new));
        }
        if changed {
            notices.extend(list.place(tools));
        }
        notices
    }
}

impl ServerList {
    /// Returns the server with these settings. The chat keeps it from now on.
    fn hold(&mut self, services: &Services, start: ServerStart) -> Arc<ToolServer> {
        let mut known = self.servers.iter();
        if let Some(known) = known.find(|it| it.server.settings == start.settings) {
            return Arc::clone(&known.server);
        }
        let server = services.tool_servers.get(&start);
        self.servers.push(ChatServer {
            server: Arc::clone(&server),
            list: None,
            tools: Vec::new(),
            told: None,
            late: false,
        });
        server
    }

    /// Keeps the servers for which `keep` returns true. Removes the tools of the other servers from `tools`.
    fn retain(&mut self, tools: &ToolSet, keep: impl Fn(&ChatServer) -> bool) {
        let before = self.servers.len();
        self.servers.retain(keep);
        if self.servers.len() < before {
            self.place(tools);
        }
    }

    /// Adds the tools of all servers to `tools`, or the two tools that replace them if there are too many. Returns a notice for
    /// the person.
    fn place(&mut self, tools: &ToolSet) -> Option<String> {
        let all: Vec<_> = self
            .servers
            .iter()
            .flat_map(|it| it.tools.clone())
            .collect();
        let count = all.len();
        let offered = server_search::offered(all);
        let names = offered.iter().map(|it| it.spec().name.clone()).collect();
        let is_search = offered.len() < count;
        let before = std::mem::replace(&mut self.placed, names);
        tools.replace(&before, offered);
        (is_search && before != self.placed).then(|| {
            format!(
                "the tool servers have {count} tools: the model searches them instead of reading all descriptions with each request"
            )
        })
    }
}

/// A prompt or a resource of a server that the person asks for.
#[derive(Debug, Clone, Copy)]
pub enum WantedItem<'a> {
    Resource(&'a str),
    /// A prompt, and its arguments as `NAME=value` or plain values.
    Prompt(&'a str, &'a [String]),
}

/// A text of a server, and perhaps an image.
pub struct ServerText {
    pub text: String,
    pub image: Option<Image>,
}

/// Parses the words `given` as arguments of a prompt. Fails if a required argument is missing.
fn arguments(prompt: &ServerPrompt, given: &[String]) -> Result<Map<String, Value>, String> {
    let found = arguments_of(prompt, given)?;
    let missing = prompt.required.iter().find(|it| !found.contains_key(*it));
    match missing {
        Some(name) => Err(format!("its argument {name} is missing")),
        None => Ok(found),
    }
}

/// Parses the words `given` as arguments of a prompt. Required arguments may be missing.
fn arguments_of(prompt: &ServerPrompt, given: &[String]) -> Result<Map<String, Value>, String> {
    let mut found = Map::new();
    for word in given {
        let takes = || format!("it takes {}", counted(prompt.arguments.len(), "argument"));
        let argument = argument_of(prompt, |it| found.contains_key(it), word);
        let (name, value) = argument.ok_or_else(takes)?;
        found.insert(name.to_owned(), value.into());
    }
    Ok(found)
}

/// Parses one word as an argument of a prompt. Returns the name and the value of the argument. The word is `NAME=value`, or a
/// plain value, which belongs to the first argument for which `is_given` returns false.
fn argument_of<'a>(
    prompt: &'a ServerPrompt,
    is_given: impl Fn(&str) -> bool,
    word: &'a str,
) -> Option<(&'a str, &'a str)> {
    let named = word.split_once('=');
    let named = named.filter(|(name, _)| prompt.arguments.iter().any(|it| it == name));
    named.or_else(|| {
        let mut open = prompt.arguments.iter();
        let open = open.find(|it| !is_given(it))?;
        Some((open.as_str(), word))
    })
}

/// Returns a text about the state of a server.
fn words(name: &str, state: &ServerState) -> String {
    match state {
        ServerState::Idle => "starts with the next prompt".to_owned(),
        ServerState::Starting => "starts".to_owned(),
        ServerState::Failed {
            needs_login: true, ..
        } => format!("needs a login: /mcp login {name}"),
        ServerState::Failed { why, until, .. } => {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let again = match left.as_secs() {
                0 => "the next prompt or call starts it again".to_owned(),
                seconds => format!("co may start it again in {seconds} s"),
            };
            format!("does not run: {why}; {again}")
        }
        ServerState::Ready(ready) => format!("runs, {}", counted(ready.tools().0.len(), "tool")),
    }
}

impl ChatServer {
    /// Returns the names of the server's tools for the model.
    fn names(&self) -> Vec<String> {
        self.tools.iter().map(|it| it.spec().name.clone()).collect()
    }

    /// Returns true if `tools` were made from the current list of the running server.
    fn has_tools_of(&self, ready: &ReadyServer) -> bool {
        let (list, _) = ready.tools();
        self.list.as_ref().is_some_and(|it| Arc::ptr_eq(it, &list))
    }

    /// Makes `tools` from the list of the running server. Returns a notice for the person.
    fn take_tools(&mut self, ready: &ReadyServer) -> Option<String> {
        let (list, has_more) = ready.tools();
        let settings = &self.server.settings;
        let (shown, others) = shown_tools(settings, &list);
        let count = shown.len();
        self.list = Some(list);
        let tool = |tool| -> Arc<dyn Tool> {
            let server = Arc::clone(&self.server);
            Arc::new(OneTool { tool, server })
        };
        self.tools = shown.into_iter().map(tool).collect();
        let more = if has_more { "more than " } else { "" };
        (others > 0 || has_more).then(|| {
            format!(
                "the tool server {} has {more}{} tools; the model may call {count} of them",
                settings.name,
                count + others
            )
        })
    }
}

/// Returns everything that is needed to start a server.
fn start_of_server(context: &CallContext, server: &ToolServer) -> ServerStart {
    let settings = server.settings.clone();
    server_start(&context.services, &context.workspace, settings)
}

/// Returns everything that is needed to start a server with these settings in a workspace.
pub fn server_start(
    services: &Arc<Services>,
    workspace: &Path,
    settings: McpServerSettings,
) -> ServerStart {
    ServerStart {
        workspace: workspace.to_owned(),
        judge: services.judge(workspace),
        executor: services.executor.clone(),
        hosts: Arc::new(ServerHosts {
            services: Arc::clone(services),
            workspace: workspace.to_owned(),
            hosts: settings
                .program()
                .map_or_else(Vec::new, |it| it.hosts.clone()),
        }),
        limits: [
            services.config.agent_memory,
            services.config.agent_processes,
        ],
        person_home: services.places.home.clone(),
        servers: services.places.servers.clone(),
        logins: services.places.logins.clone(),
        editor: services.editor.clone(),
        settings,
    }
}

/// A tool of a server.
struct OneTool {
    tool: ShownTool,
    server: Arc<ToolServer>,
}

impl Tool for OneTool {
    fn spec(&self) -> &ToolSpec {
        &self.tool.spec
    }

    fn rule_names(&self) -> Vec<String> {
        let server = format!("mcp:{}", self.server.settings.name);
        let tool = format!("{server}:{}", self.tool.rule_name);
        vec![server, tool, self.tool.spec.name.clone()]
    }

    fn parse(&self, call: &Call) -> Result<Box<dyn PlannedCall>, BadCall> {
        let arguments = match &call.arguments {
            Value::Object(fields) => fields.clone(),
            Value::Null => Map::new(),
            _ => {
                return Err(BadCall(format!(
                    "The arguments of {} must be an object.",
                    call.name
                )));
            }
        };
        let ShownTool {
            name,
            rule_name,
            hash,
            ..
        } = &self.tool;
        let text = Value::Object(arguments.clone()).to_string();
        let settings = &self.server.settings;
        Ok(Box::new(ServerCall {
            named: ToolServerCall::new(
                (&settings.name, &server_hash(settings)),
                (rule_name, hash),
                &text,
            ),
            server: Arc::clone(&self.server),
            line: name_and_arguments(call),
            tool: name.clone(),
            hash: hash.clone(),
            arguments,
        }))
    }

    fn shown_unread(&self, _line: &str) -> Option<ShownCall> {
        None
    }
}

/// A call of a tool of a server.
#[derive(Clone)]
struct ServerCall {
    server: Arc<ToolServer>,
    /// The call as one line, for the person.
    line: String,
    /// The names by which rules refer to the tool.
    named: ToolServerCall,
    /// The name of the tool at the server.
    tool: String,
    /// The hash of the tool's description.
    hash: String,
    arguments: Map<String, Value>,
}

impl ServerCall {
    /// Returns the call with all its arguments, in the form in which the audit file stores it.
    fn whole_line(&self) -> String {
        let (server, tool) = (&self.server.settings.name, &self.tool);
        let arguments = Value::Object(self.arguments.clone());
        one_line(&format!("mcp:{server}:{tool} {arguments}"))
    }

    /// Carries out the call.
    async fn run(self, context: &CallContext) -> Result<CallResult, CallHalt> {
        let config = &context.services.config;
        let start = start_of_server(context, &self.server);
        self.server.want(&start);
        let settled = timeout(config.mcp_wait, self.server.settled());
        let name = &self.server.settings.name;
        let ready = match context.unless_cancelled(settled).await? {
            Ok(ServerState::Ready(ready)) => ready,
            Ok(ServerState::Failed { .. }) => {
                return Ok(CallResult::not_run(format!(
                    "Not run: the tool server {name} does not run. The person can read the reason in /mcp."
                )));
            }
            Ok(ServerState::Idle | ServerState::Starting) | Err(_) => {
                return Ok(CallResult::not_run(format!(
                    "Not run: the tool server {name} is not ready yet. Go on without it, or call it again later."
                )));
            }
        };
        // A permission is for the tool as it was described.
        let settings = &self.server.settings;
        let is_same =
            |it: &ServerTool| it.name == self.tool && tool_hash(settings, it) == self.hash;
        if !ready.tools().0.iter().any(is_same) {
            return Ok(CallResult::not_run(format!(
                "Not run: the tool server {name} no longer has this tool, or describes it in other words."
            )));
        }
        if may_write(&self.server.settings) {
            context.load_secret_values(&Confinement::Plain).await;
        }
        let limit = config.mcp_timeout;
        let (listener, events) = co_mcp::call_events();
        let call = ready.call(&self.tool, self.arguments.clone(), listener);
        let answer = self.follow(context, &ready, call, events).await?;
        let answered = Instant::now();
        let closing = self.server.close_secrets(&start, &ready);
        if context.unless_cancelled(closing).await? {
            let words = "the result is withheld".to_owned();
            let result = self.end(false, words, WITHHELD.to_owned().into(), [0, 0]);
            return Ok(self.with_hosts(result, ready.new_hosts()));
        }
        let result = match answer {
            Some(Ok(answer)) => self.result(context, &ready, answer, answered).await,
            Some(Err(error)) => self.failed(context, &ready, &error, answered).await,
            None => {
                let limit = limit.as_secs();
                let words = format!("no answer within {limit} s (mcp_timeout)");
                let told = format!(
                    "The call was cancelled: the tool server gave no answer within {limit} s."
                );
                self.end(false, words, told.into(), [0, 0])
            }
        };
        Ok(self.with_hosts(result, ready.new_hosts()))
    }

    /// Waits for the answer to the call. Meanwhile, shows its progress and the server's questions. Returns `None` after the
    /// time-out. The time of the questions does not count.
    async fn follow(
        &self,
        context: &CallContext,
        ready: &ReadyServer,
        call: impl Future<Output = Result<ToolAnswer, CallError>>,
        mut events: CallEvents,
    ) -> Result<Option<Result<ToolAnswer, CallError>>, CallHalt> {
        let call = context.unless_cancelled(call);
        tokio::pin!(call);
        let (mut left, mut asked) = (context.services.config.mcp_timeout, 0);
        loop {
            let since = Instant::now();
            let question = tokio::select! {
                answer = &mut call => return answer.map(Some),
                never = self.show_progress(context, ready, &mut events.progress) => match never {},
                Some(question) = events.questions.recv() => question,
                () = tokio::time::sleep(left) => return Ok(None),
            };
            left = left.saturating_sub(since.elapsed());
            asked += 1;
            let mut person = ServerAsks {
                server: &self.server.settings.name,
                context,
                ready,
                open: None,
            };
            let put = async {
                match asked > MOST_QUESTIONS {
                    true => Ok(QuestionReply::Decline),
                    false => person.put(&question).await,
                }
            };
            tokio::select! {
                answer = &mut call => {
                    person.withdraw().await?;
                    return answer.map(Some);
                }
                reply = put => question.answer(reply?),
            }
        }
    }

    /// Shows the progress of the call. Never returns.
    async fn show_progress(
        &self,
        context: &CallContext,
        ready: &ReadyServer,
        progress: &mut watch::Receiver<CallProgress>,
    ) -> Infallible {
        let name = &self.server.settings.name;
        while progress.changed().await.is_ok() {
            let CallProgress { done, words } = progress.borrow_and_update().clone();
            let percent = done.map(|it| format!("{:.0} %", it * 100.0));
            let words =
                Some(one_line(&ready.secrets.hide(&words).text)).filter(|it| !it.is_empty());
            let told: Vec<_> = percent.into_iter().chain(words).collect();
            let line = format!("{name}: {} {}", self.tool, told.join(" · "));
            if context.to_chat.runs(one_line(&line)).await.is_err() {
                break;
            }
            tokio::time::sleep(PROGRESS_PAUSE).await;
        }
        std::future::pending().await
    }

    /// Returns the result of a call that the server answered.
    async fn result(
        &self,
        context: &CallContext,
        ready: &ReadyServer,
        answer: ToolAnswer,
        answered: Instant,
    ) -> CallResult {
        let is_error = answer.is_error;
        let has_image = |it: &AnswerPart| matches!(it, AnswerPart::Image { .. });
        let takes_images =
            answer.parts.iter().any(has_image) && context.provider.takes_images().await;
        let (text, images) = contents(answer, takes_images);
        let lead = if is_error { FAILED } else { "" };
        let words = match is_error {
            true => "failed".to_owned(),
            false => counted(text.lines().count(), "line"),
        };
        if text.is_empty() {
            return self.end(
                !is_error,
                words,
                format!("{lead}{NO_OUTPUT}").into(),
                [0, 0],
            );
        }
        let hint = level_hint(&self.server.settings, &text).filter(|_| is_error);
        let (told, end) = match redact(context, ready, &text, answered).await {
            Ok(RedactedText { text, hidden }) => {
                let text = middle_cut(&text, context.services.executor.settings().max_output);
                let (end, text) = (lead.len() + text.len(), format!("{lead}{text}"));
                (RedactedText { text, hidden }, end)
            }
            Err(withheld) => (format!("{lead}[{withheld}]").into(), lead.len()),
        };
        let result = self.end(!is_error, words, told, [lead.len(), end]);
        CallResult {
            images,
            ..result.noted_if(hint)
        }
    }

    /// Returns the result of a call that the server did not carry out.
    async fn failed(
        &self,
        context: &CallContext,
        ready: &ReadyServer,
        error: &CallError,
        answered: Instant,
    ) -> CallResult {
        let CallError::Refused(words) = error else {
            let told = format!("The call failed: {error}.");
            let words = failure(&self.server.settings, error);
            return self.end(false, words, told.into(), [0, 0]);
        };
        let lead = "The tool server refused the call:\n";
        let words = printable(start_of(words, LONGEST_WORDS));
        let hint = level_hint(&self.server.settings, &words);
        let told = redact(context, ready, &words, answered);
        let (text, hidden) = match told.await {
            Ok(RedactedText { text, hidden }) => (text, hidden),
            Err(withheld) => (format!("[{withheld}]"), 0),
        };
        let end = lead.len() + text.len();
        let text = format!("{lead}{text}");
        let told = RedactedText { text, hidden };
        let status = "refused by the server".to_owned();
        self.end(false, status, told, [lead.len(), end])
            .noted_if(hint)
    }

    fn end(&self, ok: bool, words: String, told: RedactedText, output: [usize; 2]) -> CallResult {
        CallResult {
            ok,
            shown: ShownPart {
                output,
                exceptions: (!ok).then(|| words.clone()),
                ..ShownPart::line(words.clone())
            },
            effect: Some(CallEffect {
                level: level_name(&self.server.settings),
                words,
                hosts: HostReport::default(),
                spill: None,
            }),
            ..told.into()
        }
    }
}

/// Asks the person the questions of a server during a call.
struct ServerAsks<'a> {
    server: &'a str,
    context: &'a CallContext,
    ready: &'a ReadyServer,
    /// The id of the open question.
    open: Option<u64>,
}

impl ServerAsks<'_> {
    /// Asks the person a question until the answers are valid for the form, and returns their reply. Refuses a form that asks for
    /// a secret.
    async fn put(&mut self, asked: &ServerQuestion) -> Result<QuestionReply, CallHalt> {
        let (server, context) = (self.server, self.context);
        let form = match Form::read(&asked.message, &asked.schema) {
            Ok(form) => form,
            Err(why) => {
                self.tell(&format!("asks you something that co cannot ask: {why}"));
                return Ok(QuestionReply::Decline);
            }
        };
        if let Some(field) = form.secret() {
            self.tell(&format!(
                "asks for a secret ({field}), which co passes to no server; give it by `env_cmd`, see :help co-tool-server-env"
            ));
            return Ok(QuestionReply::Decline);
        }
        // The person must know whose words these are.
        let asker = format!("The tool server {server} asks:");
        let mut choices = form.questions(&asker);
        for part in &mut choices {
            let told = redact(context, self.ready, &part.question, Instant::now()).await;
            let withheld = |why: String| format!("{asker}\n[{why}]");
            part.question = told.map_or_else(withheld, |it| it.text);
        }
        loop {
            let id = context.services.id();
            let question = Question {
                id,
                asker: Asker::Chat(context.chat),
                command: format!("the tool server {server} asks you"),
                choices: choices.clone(),
                ..Question::default()
            };
            let reply = context.to_chat.ask(question).await?;
            self.open = Some(id);
            let reply = context.unless_cancelled(reply).await?;
            self.open = None;
            let content = match form.reply(reply.ok()) {
                Ok(FormReply::Accept(content)) => content,
                Ok(FormReply::Decline) => return Ok(QuestionReply::Decline),
                Ok(FormReply::Cancel) => return Ok(QuestionReply::Cancel),
                Err(why) => {
                    self.tell(&format!("asks again: {why}"));
                    continue;
                }
            };
            let text = Value::Object(content.clone()).to_string();
            match redact(context, self.ready, &text, Instant::now()).await {
                Ok(told) if told.hidden == 0 => return Ok(QuestionReply::Accept(content)),
                Ok(_) => {
                    self.tell("asks again: your answer has a secret, which co passes to no server")
                }
                Err(withheld) => {
                    self.tell(&format!("gets no answer: {withheld}"));
                    return Ok(QuestionReply::Decline);
                }
            }
        }
    }

    /// Withdraws the open question.
    async fn withdraw(&self) -> Result<(), CallHalt> {
        match self.open {
            Some(id) => self.context.to_chat.withdraw(id).await,
            None => Ok(()),
        }
    }

    fn tell(&self, words: &str) {
        let message = format!("the tool server {} {words}", self.server);
        let message = self.ready.secrets.hide(&one_line(&message)).text;
        self.context.services.notice(NoticeLevel::Warn, message);
    }
}

/// Returns a text of a server for the model, without secret values and without the secret values of the server's variables.
async fn redact(
    context: &CallContext,
    ready: &ReadyServer,
    text: &str,
    complete_at: Instant,
) -> Result<RedactedText, String> {
    let own = match context.services.config.redact {
        true => ready.secrets.hide(text),
        false => text.to_owned().into(),
    };
    let told = context.redact_for_model(&own.text, complete_at).await?;
    Ok(RedactedText {
        text: told.text,
        hidden: own.hidden + told.hidden,
    })
}

/// Returns the parts of an answer as one text, and its images. Hidden characters are escaped.
fn contents(answer: ToolAnswer, takes_images: bool) -> (String, Vec<Image>) {
    let (mut images, mut room) = (Vec::new(), MOST_IMAGE_BYTES);
    let mut part = |part| match part {
        AnswerPart::Text(text) | AnswerPart::Structured(text) => text,
        AnswerPart::Link { uri, name } => format!("[link to {name}: {uri}]"),
        AnswerPart::Bytes { mime, size } => left_out(&mime, size, "co does not send it"),
        AnswerPart::Image { mime, data } => {
            let size = data.len() / 4 * 3;
            if !IMAGES.contains(&mime.as_str()) {
                return left_out(&mime, size, "co does not send it");
            }
            if !takes_images {
                return left_out(&mime, size, "the model takes no images");
            }
            if images.len() == MOST_IMAGES || data.len() > room {
                return left_out(&mime, size, "co sends no more images of one result");
            }
            room -= data.len();
            let words = format!("[{mime}, {}]", co_text::size_text(size as u64));
            images.push(Image {
                media_type: mime,
                data,
            });
            words
        }
    };
    let parts: Vec<_> = answer.parts.into_iter().map(&mut part).collect();
    let text = printable(&parts.join("\n").replace("\r\n", "\n"));
    (text, images)
}

fn left_out(mime: &str, size: usize, why: &str) -> String {
    format!("[{mime}, {}: {why}]", co_text::size_text(size as u64))
}

/// Returns a text. If it is longer than about `most` bytes, returns only its start and its end.
fn middle_cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let start = start_of(text, most / 2);
    let end = end_of(text, most / 2);
    let gap = text.len() - start.len() - end.len();
    format!("{start}\n[... {gap} bytes are left out here ...]\n{end}")
}
