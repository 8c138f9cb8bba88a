//! `/mcp login` and `/mcp logout`: the login at a tool server over HTTP, by the person's browser.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::chat_context::ChatContext;
use crate::config::HttpServer;
use crate::mcp::{BegunLogin, ServerSecrets, ServerStart, begin_login};
use crate::protocol::{
    Asker, ChoiceKind, ChoiceQuestion, ChosenAnswer, NoticeLevel, OfferedChoice, Question, ToEditor,
};
use crate::services::Services;
use crate::tool::context::Questioner;
use crate::tool::permissions::Reply;
use crate::tool::server::{ChatServers, server_start};
use co_mcp::{KeptLogin, LoginFault};
use co_text::one_line;

/// The longest wait for the person.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);

/// Lets the person log in at the server with this name.
pub(super) fn log_in(
    context: &ChatContext,
    servers: &ChatServers,
    questioner: &Arc<dyn Questioner>,
    name: &str,
) {
    let start = match start_of(context, servers, name) {
        Ok(start) => start,
        Err(why) => return context.complain(why),
    };
    if !start.settings.http().is_some_and(HttpServer::may_log_in) {
        return context.complain(format!(
            "mcp_servers.{name}.headers gives the server a token: remove its Authorization, then log in"
        ));
    }
    context.say(format!("asking the tool server {name} how to log in"));
    let tool_servers = &context.services.tool_servers;
    let login = Login {
        services: Arc::clone(&context.services),
        chat: context.id,
        cwd: context.dirs.cwd.display().to_string(),
        questioner: Arc::clone(questioner),
        cancel: tool_servers.begin_login(name, &context.cancel),
        start,
    };
    tokio::spawn(login.run());
}

/// Forgets the login at the server with this name.
pub(super) async fn log_out(context: &ChatContext, servers: &ChatServers, name: &str) {
    let start = match start_of(context, servers, name) {
        Ok(start) => start,
        Err(why) => return context.complain(why),
    };
    let tool_servers = &context.services.tool_servers;
    tool_servers.end_login(name);
    let Some(file) = start.login_file(&ServerSecrets::default()) else {
        return;
    };
    match file.remove().await {
        Ok(true) => {
            tool_servers.forget_login(&start.settings);
            context.say(format!(
                "logged out of the tool server {name}: co has forgotten its tokens; where you logged in, you can also take them back"
            ));
        }
        Ok(false) => context.say(format!("you are not logged in to the tool server {name}")),
        Err(why) => context.complain(format!("the login at {name} cannot be removed: {why}")),
    }
}

/// Returns the server over HTTP with this name.
fn start_of(
    context: &ChatContext,
    servers: &ChatServers,
    name: &str,
) -> Result<ServerStart, String> {
    let known = servers.wanted(&context.services.config);
    let Some(settings) = known.into_iter().find(|it| it.name == name) else {
        return Err(format!("there is no tool server {name}; /mcp lists them"));
    };
    if settings.http().is_none() {
        return Err(format!(
            "the tool server {name} is a program of this machine: only servers with a url have a login"
        ));
    }
    Ok(server_start(
        &context.services,
        &context.dirs.workspace,
        settings,
    ))
}

/// A login that the person asked for.
struct Login {
    services: Arc<Services>,
    chat: u64,
    cwd: String,
    questioner: Arc<dyn Questioner>,
    start: ServerStart,
    cancel: CancellationToken,
}

/// The end of a login without tokens.
enum LoginEnd {
    /// Another login has begun, or the chat has ended.
    Cancelled,
    Failed(String),
}

impl Login {
    async fn run(self) {
        let name = &self.start.settings.name;
        let (level, told) = match self.log_in().await {
            Ok(place) => (
                NoticeLevel::Info,
                format!(
                    "you are logged in to the tool server {name} at {place}: its tools come with the next prompt"
                ),
            ),
            Err(LoginEnd::Failed(why)) => (
                NoticeLevel::Error,
                format!(
                    "not logged in to the tool server {name}: {}",
                    one_line(&why)
                ),
            ),
            Err(LoginEnd::Cancelled) => return,
        };
        self.services.answer(level, told);
    }

    /// Returns the place where the person logged in.
    async fn log_in(&self) -> Result<String, LoginEnd> {
        let wanted = self.services.tool_servers.get(&self.start).wanted_login();
        let begun = begin_login(&self.start, wanted);
        let begun = self.unless_cancelled(begun).await?;
        let begun = begun.map_err(LoginEnd::Failed)?;
        let kept = self.wait(&begun).await?;
        let saved = begun.file.replace(&kept, &self.cancel).await;
        let saved = saved
            .map_err(|error| LoginEnd::Failed(format!("the tokens cannot be kept: {error}")))?;
        if !saved {
            return Err(LoginEnd::Cancelled);
        }
        self.services
            .tool_servers
            .forget_login(&self.start.settings);
        Ok(one_line(kept.issuer()))
    }

    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, LoginEnd> {
        let done = self.cancel.run_until_cancelled(work).await;
        done.ok_or(LoginEnd::Cancelled)
    }

    /// Waits for the browser, or for an address that the person pastes.
    async fn wait(&self, begun: &BegunLogin) -> Result<KeptLogin, LoginEnd> {
        let BegunLogin { open, listener, .. } = begun;
        let late = sleep(LOGIN_TIMEOUT);
        tokio::pin!(late);
        let mut note = None;
        loop {
            let question = self.question(begun, note.take());
            let id = question.id;
            let reply = self.questioner.ask(question).await;
            let reply = reply.map_err(|_| LoginEnd::Cancelled)?;
            let ended = tokio::select! {
                reply = reply => {
                    let chosen = match reply.map_err(|_| LoginEnd::Cancelled)? {
                        Reply::Chosen(chosen) => chosen.into_iter().next().unwrap_or_default(),
                        _ => ChosenAnswer::default(),
                    };
                    match (chosen.text, chosen.choices.first()) {
                        (Some(address), _) => address,
                        (None, Some(1)) => {
                            let address = open.page().to_owned();
                            self.services.editor.tell(ToEditor::OpenAddress { address });
                            note = Some("The browser opens the page, and co waits for it.".to_owned());
                            continue;
                        }
                        _ => return Err(LoginEnd::Failed("you did not want to".to_owned())),
                    }
                }
                ended = listener.next(open.state()) => {
                    self.withdraw(id).await;
                    ended
                }
                () = &mut late => {
                    self.withdraw(id).await;
                    let limit = LOGIN_TIMEOUT.as_secs() / 60;
                    return Err(LoginEnd::Failed(format!("nobody logged in within {limit} minutes")));
                }
                () = self.cancel.cancelled() => {
                    self.withdraw(id).await;
                    return Err(LoginEnd::Cancelled);
                }
            };
            match self.unless_cancelled(open.finish(&ended)).await? {
                Ok(kept) => return Ok(kept),
                // The person may have pasted something else.
                Err(LoginFault::State) => {
                    note = Some("That is not the address at which the browser ended.".to_owned());
                }
                Err(fault) => {
                    return Err(LoginEnd::Failed(
                        begun.secrets.hide(&fault.to_string()).text,
                    ));
                }
            }
        }
    }

    async fn withdraw(&self, question: u64) {
        // It fails if the chat has ended, and the question with it.
        self.questioner.withdraw(question).await.ok();
    }

    fn question(&self, begun: &BegunLogin, note: Option<String>) -> Question {
        let name = &self.start.settings.name;
        let (page, host) = (begun.open.page(), begun.open.host());
        let back = begun.listener.address();
        let note = note.map_or_else(String::new, |it| format!("{it}\n\n"));
        let token_host = begun.open.token_host();
        let tokens = match token_host == host {
            true => String::new(),
            false => format!("\n\n{token_host} will get your answer, and gives co the tokens."),
        };
        let rights = match begun.open.scopes() {
            [] => "The server decides which rights co gets.".to_owned(),
            scopes => format!("co asks for these rights: {}", scopes.join(", ")),
        };
        // The address comes last: it may be long, and a small window shows the start of the text.
        let text = format!(
            "{note}Log in to the tool server {name}? Its login page is at {host}.{tokens}\n\n{rights}\n\nThe browser comes back to {back}. If it runs on another machine, press e and paste the address at which it ended.\n\n{page}"
        );
        Question {
            id: self.services.id(),
            asker: Asker::Chat(self.chat),
            command: format!("log in to {name} at {host}"),
            cwd: one_line(&self.cwd),
            choices: vec![ChoiceQuestion {
                question: text,
                choices: vec![
                    OfferedChoice {
                        label: "open the page in the browser".to_owned(),
                        is_yes: true,
                        ..OfferedChoice::default()
                    },
                    OfferedChoice {
                        label: "do not log in".to_owned(),
                        ..OfferedChoice::default()
                    },
                ],
                several: false,
                kind: ChoiceKind::Form,
            }],
            ..Question::default()
        }
    }
}
