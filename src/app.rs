//! The entry point of the backend for Neovim. Reads the settings, answers the handshake, passes each message of Neovim to a chat
//! or a run, and ends when Neovim ends.
//!
//! [`serve`] is the entry point. This module owns the list of chats; it does not know what happens inside a chat.

mod settings;
mod start;

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::buffers::BufferReply;
use crate::chat::person::model::list_models;
use crate::chat::terminal_agents::TerminalAgents;
use crate::chat::{ChatHandle, Msg, Prompt, WorkDirs, trust_questions};
use crate::config::ModelChoice;
use crate::editor::Editor;
use crate::front_end;
use crate::logging;
use crate::nvim::{self, Connection};
use crate::protocol::{FromEditor, NoticeLevel, PROTOCOL, QuestionAnswer, ToEditor};
use crate::run::{Run, Runs};
use crate::services::Services;
use crate::workspace::judge::workspace_of;
use co_exec::Streams;
use settings::CurrentSettings;
use start::Installation;

pub use settings::variables;

/// The assumed longest time that Neovim takes to write a file. Neovim sends one message before it writes the file, and one after
/// it.
const SAVE_TIME: Duration = Duration::from_millis(200);

/// The time without a message after which co assumes that a refused Neovim has sent all its waiting messages.
const REFUSED_IDLE_TIME: Duration = Duration::from_secs(1);
/// The time-out for chats and commands to end after Neovim has ended. The watchdog kills the backend after 1.5 s.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1300);

/// The interval at which the backend drops state that nobody uses any more.
const FORGET_INTERVAL: Duration = Duration::from_secs(600);

/// Serves one Neovim on standard input and output until it ends.
pub async fn serve() -> ExitCode {
    let Connection {
        messages,
        editor,
        mut broken,
    } = match nvim::connect() {
        Ok(connection) => connection,
        Err(error) => {
            return fail(&format!(
                "{error}: Neovim starts co-nvim by itself at the first :Co; see co-nvim --help for what runs without it"
            ));
        }
    };
    let code = serve_neovim(messages, &editor).await;
    // Lua reads this when the process has ended: then there is nothing else to wait for.
    match broken.try_recv() {
        Ok(error) => fail(&error.to_string()),
        Err(_) => code,
    }
}

async fn serve_neovim(mut inbox: mpsc::Receiver<FromEditor>, editor: &Editor) -> ExitCode {
    let Some(hello) = inbox.recv().await else {
        return ExitCode::FAILURE;
    };
    let begins_chat = matches!(
        hello,
        FromEditor::Hello {
            begins_chat: true,
            ..
        }
    );
    let settings = greet(hello, editor);
    let (_log, services) = start::make(settings, editor, Installation::find).await;
    match services {
        Ok((services, settings)) => {
            if begins_chat {
                tokio::spawn(tell_isolation(Arc::clone(&services)));
            }
            App::new(services, settings).run(inbox).await;
            ExitCode::SUCCESS
        }
        Err(why) => {
            refuse(why, inbox, editor).await;
            ExitCode::FAILURE
        }
    }
}

/// Answers the handshake. Returns the settings in it, or the reason why the versions of the plugin and the backend do not match.
fn greet(hello: FromEditor, editor: &Editor) -> Result<serde_json::Value, String> {
    match hello {
        FromEditor::Hello {
            protocol: PROTOCOL,
            settings,
            ..
        } => {
            editor.tell(ToEditor::Ready {
                protocol: PROTOCOL,
                version: env!("CARGO_PKG_VERSION").to_owned(),
            });
            Ok(settings)
        }
        FromEditor::Hello { protocol, .. } if protocol > PROTOCOL => Err(format!(
            "co-nvim is older than the plugin (protocol {PROTOCOL}, the plugin {protocol}): run :Co /install, or update the program that the setting \"bin\" names"
        )),
        FromEditor::Hello { protocol, .. } => Err(format!(
            "update co and restart Neovim: its plugin speaks protocol {protocol}, co-nvim {PROTOCOL}"
        )),
        _ => Err("update co and restart Neovim: its plugin did not say what it speaks".to_owned()),
    }
}

/// Tells Neovim the reason why the backend serves no chats, and returns prompts to the chats in which they were typed.
async fn refuse(why: String, mut inbox: mpsc::Receiver<FromEditor>, editor: &Editor) {
    // Lua sends its waiting messages as soon as it has read the greeting.
    let mut typed = Vec::new();
    while let Ok(Some(message)) = tokio::time::timeout(REFUSED_IDLE_TIME, inbox.recv()).await {
        match message {
            FromEditor::Prompt { chat, text, .. } => typed.push((chat, text)),
            FromEditor::Command {
                chat, name, args, ..
            } if name == "!" => typed.push((chat, format!("!{args}"))),
            _ => {}
        }
    }
    // In reverse: Lua puts each text in front of the text of the prompt.
    for (chat, text) in typed.into_iter().rev() {
        editor.tell(ToEditor::Unsent { chat, text });
    }
    editor.tell(ToEditor::Refused { message: why });
    // Neovim closes the channel when it has read that.
    while inbox.recv().await.is_some() {}
}

/// Probes the sandbox, unless a probe has already ended. Then tells Neovim how commands that run without approval are confined,
/// for the winbars.
async fn tell_isolation(services: Arc<Services>) {
    let isolation = services.probe.kernel().await.short().to_owned();
    services.editor.tell(ToEditor::Isolation { isolation });
}

struct App {
    /// The services that a new chat gets.
    services: Arc<Services>,
    settings: CurrentSettings,
    cancel: CancellationToken,
    chats: HashMap<u64, ChatHandle>,
    runs: Runs,
    terminal_agents: TerminalAgents,
    /// True if the person was warned that the environment turns questions off, or if no warning is needed.
    told_of_confirming: bool,
}

impl App {
    fn new(services: Arc<Services>, settings: CurrentSettings) -> Self {
        let cancel = CancellationToken::new();
        Self {
            runs: Runs::new(Arc::clone(&services), cancel.child_token()),
            terminal_agents: TerminalAgents::new(services.editor.clone(), cancel.child_token()),
            services,
            settings,
            cancel,
            chats: HashMap::new(),
            told_of_confirming: false,
        }
    }

    /// Warns the person if an environment variable turns questions off. The variable may come from a project and not from the
    /// person.
    fn tell_of_confirming(&self) {
        let given = self.services.given();
        if self.services.config.auto_confirm && given.is_from_environment("auto_confirm") {
            self.services.notice(
                NoticeLevel::Warn,
                "CO_CLI_AUTO_CONFIRM in the environment is on: what the model asks for runs without a question",
            );
        }
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<FromEditor>) {
        let end_requested = end_requested();
        tokio::pin!(end_requested);
        let start = tokio::time::Instant::now() + FORGET_INTERVAL;
        let mut unused = tokio::time::interval_at(start, FORGET_INTERVAL);
        loop {
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.route(message).await,
                    None => break,
                },
                _ = unused.tick() => {
                    let services = Arc::clone(&self.services);
                    tokio::task::spawn_blocking(move || services.forget_unused());
                }
                () = &mut end_requested => break,
            }
        }
        tracing::info!("neovim is gone; ending");
        self.shutdown().await;
    }

    async fn route(&mut self, message: FromEditor) {
        let reply = |request, with| self.services.buffers.reply(request, with);
        match message {
            FromEditor::Hello { .. } => {}
            FromEditor::Settings { settings } => self.change_settings(settings).await,
            FromEditor::Sandbox { confinement } => {
                self.confine(&confinement).await;
            }
            FromEditor::Prompt {
                chat,
                text,
                cwd,
                context,
                range,
                steer,
                file,
            } => {
                let prompt = Prompt {
                    text,
                    context,
                    range,
                    steer,
                    file,
                    plan: None,
                };
                self.tell(chat, &cwd, Msg::Prompt(prompt));
            }
            FromEditor::Command {
                chat,
                name,
                args,
                cwd,
                options,
            } => {
                let message = match name.as_str() {
                    "sandbox" if args.trim() == "clean" => Msg::Command { name, args },
                    "sandbox" if !self.confine(args.trim()).await => return,
                    "sandbox" => Msg::Command {
                        name,
                        args: String::new(),
                    },
                    "!" => Msg::Run {
                        command: args,
                        options,
                    },
                    "commit" => Msg::Commit(options),
                    _ => Msg::Command { name, args },
                };
                self.tell(chat, &cwd, message);
            }
            FromEditor::CheckPromptFile { chat, cwd, check } => {
                self.tell(chat, &cwd, Msg::CheckPromptFile(check));
            }
            FromEditor::ListModels { chat, head } => self.list_models(chat, head),
            FromEditor::WriteCommit { chat, cwd, commit } => {
                self.tell(chat, &cwd, Msg::WriteCommit(commit));
            }
            FromEditor::ReadContext { chat, wanted } => {
                let cwd = wanted.cwd.clone();
                self.tell(chat, &cwd, Msg::ReadContext(wanted));
            }
            FromEditor::Cancel { chat } => {
                if let Some(handle) = self.chats.get(&chat) {
                    handle.send(Msg::Cancel);
                }
            }
            FromEditor::EarlierText { chat, above } => {
                if let Some(handle) = self.chats.get(&chat) {
                    handle.send(Msg::EarlierText { above });
                }
            }
            FromEditor::Draft {
                chat,
                cwd,
                text,
                begins,
            } => match begins || self.chats.contains_key(&chat) {
                true => self.tell(chat, &cwd, Msg::Draft { text, begins }),
                false => self.services.editor.tell(ToEditor::DraftKept { chat }),
            },
            FromEditor::KeepPlan { chat, cwd, text } => {
                self.tell(chat, &cwd, Msg::KeepPlan { text });
            }
            FromEditor::Close { chat } => {
                if let Some(handle) = self.chats.remove(&chat) {
                    tokio::spawn(handle.close());
                }
            }
            FromEditor::Answer(answer) => self.answer(&answer),
            FromEditor::ReadReview { id, file, from } => {
                // As with answers, only the chat that asked knows the id.
                self.runs.read_review(id, file, from);
                self.terminal_agents.show_part(id, file, from);
                for handle in self.chats.values() {
                    handle.send(Msg::ReadReview { id, file, from });
                }
            }
            FromEditor::KeepAnswers { id, file, answers } => {
                for handle in self.chats.values() {
                    let answers = answers.clone();
                    handle.send(Msg::KeepAnswers { id, file, answers });
                }
            }
            FromEditor::Run {
                run,
                command,
                cwd,
                stdin,
                open,
                terminal,
                options,
            } => self.runs.start(Run {
                run,
                command,
                cwd: PathBuf::from(OsString::from_vec(cwd)),
                stdin,
                streams: match terminal {
                    Some(size) => Streams::Terminal(size),
                    None if open => Streams::Open,
                    None => Streams::Whole,
                },
                options,
            }),
            FromEditor::RunInput { run, data, close } => self.runs.input(run, data, close),
            FromEditor::ReadOutput {
                request,
                file,
                lines,
            } => self.runs.read_output(request, file, lines),
            FromEditor::Saved { file } => {
                let file = PathBuf::from(OsString::from_vec(file));
                self.services.checkpoints.saved(&file);
                if self.services.checkpoints.is_busy() {
                    let checkpoints = Arc::clone(&self.services.checkpoints);
                    tokio::spawn(async move {
                        tokio::time::sleep(SAVE_TIME).await;
                        tokio::task::spawn_blocking(move || checkpoints.divide_turns());
                    });
                }
            }
            FromEditor::RunResize { run, size } => self.runs.resize(run, size),
            FromEditor::CancelRun { run } => self.runs.cancel(run),
            FromEditor::KeepRun { run, keep } => self.runs.keep(run, keep),
            FromEditor::Hooks { before_command } => {
                self.services.buffers.set_hooked(before_command);
            }
            FromEditor::Buffers { request, buffers } => reply(request, BufferReply::Read(buffers)),
            FromEditor::Failed { request } => self.services.buffers.fail(request),
            FromEditor::BufferChanged { request, changed } => {
                reply(request, BufferReply::Changed(changed));
            }
            FromEditor::CommandHooked { request, refusal } => {
                reply(request, BufferReply::Hooked(refusal));
            }
            FromEditor::FileEdited { request, problem } => {
                reply(request, BufferReply::Edited(problem));
            }
            FromEditor::EditorAnswer { request, answer } => {
                reply(request, BufferReply::Editor(answer));
            }
            FromEditor::AgentCall(call) => {
                let services = Arc::clone(&self.services);
                self.terminal_agents.call(services, call);
            }
            FromEditor::CancelAgentCall { request } => self.terminal_agents.cancel_call(request),
        }
    }

    fn tell(&mut self, chat: u64, cwd: &str, message: Msg) {
        if self.chats.is_empty() && !std::mem::replace(&mut self.told_of_confirming, true) {
            self.tell_of_confirming();
        }
        let handle = self.chats.entry(chat).or_insert_with(|| {
            let cwd = PathBuf::from(cwd);
            let dirs = WorkDirs {
                workspace: workspace_of(&cwd),
                cwd,
            };
            tokio::spawn(tell_isolation(Arc::clone(&self.services)));
            let services = Arc::clone(&self.services);
            let front_end =
                front_end::make(services.editor.clone(), chat, services.config.full_calls);
            ChatHandle::spawn(chat, front_end, services, dirs, &self.cancel)
        });
        if !handle.send(message) {
            self.chats.remove(&chat);
            self.services.notice(
                NoticeLevel::Error,
                "this chat ended after an internal error; `:Co /resume` brings it back, `:Co /log` says more",
            );
        }
    }

    /// Lists the models of a chat's provider. If the chat has not begun, lists those of the usual provider.
    fn list_models(&self, chat: Option<u64>, head: String) {
        match chat.and_then(|chat| self.chats.get(&chat)) {
            Some(handle) => {
                handle.send(Msg::ListModels { head });
            }
            None => {
                let provider = self.services.provider(&ModelChoice::default()).ok();
                tokio::spawn(list_models(
                    Arc::clone(&self.services),
                    provider,
                    chat,
                    head,
                ));
            }
        }
    }

    /// Passes on an answer to a question. An answer about trust in files belongs to no chat. Any other answer goes to all chats,
    /// runs and agents in terminals. Question ids are unique in the backend, so only the one that asked recognizes the id.
    fn answer(&self, answered: &QuestionAnswer) {
        if trust_questions::answer(&self.services, answered) {
            return;
        }
        self.runs.answer(answered.clone());
        self.terminal_agents.answer(answered.clone());
        for handle in self.chats.values() {
            handle.send(Msg::Answer(answered.clone()));
        }
    }

    /// Ends all chats and commands.
    async fn shutdown(self) {
        self.cancel.cancel();
        let closing = self.chats.into_values().map(ChatHandle::close);
        let chats = futures::future::join_all(closing);
        let all = futures::future::join(chats, self.services.executor.shutdown());
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, all).await.is_err() {
            tracing::error!("something hangs; ending without it");
        }
    }
}

/// Waits for SIGTERM. Neovim sends this signal when it quits, and then waits a while.
async fn end_requested() {
    match signal(SignalKind::terminate()) {
        Ok(mut term) => {
            term.recv().await;
        }
        Err(error) => {
            tracing::warn!(%error, "SIGTERM ends this process at once");
            std::future::pending().await
        }
    }
}

fn fail(message: &str) -> ExitCode {
    logging::fatal(message);
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests;
