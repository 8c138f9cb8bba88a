//! The backend as Neovim sees it: reads the settings, answers the handshake, passes each message of Neovim to a chat or
//! a run, and ends with Neovim.
//!
//! [`serve`] is the entry point. This module owns the list of chats; it knows nothing of what happens inside one.

mod settings;

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

use crate::audit::Audit;
use crate::chat::services::{MakeProvider, ServiceParts, ServicePaths, Services};
use crate::chat::{AnswerMessage, ChatHandle, Msg, Prompt, WorkDirs, instructions};
use crate::config::{Config, ModelChoice};
use crate::editor::Editor;
use crate::front_end;
use crate::logging;
use crate::nvim::{self, Connection};
use crate::paths::{self, Paths};
use crate::protocol::{FromEditor, NoticeLevel, PROTOCOL, ToEditor};
use crate::run::{Run, Runs};
use crate::store::Store;
use crate::tool::judge::workspace_of;
use crate::tool::sandbox_probe::SandboxProbe;
use co_exec::sandbox::{Launcher, OWN_PROGRAM};
use co_exec::secrets::redact::Redactor;
use co_exec::{Executor, Streams};
use co_llm::ServerMemory;
use settings::CurrentSettings;

/// The longest time that reading the settings and directories may take.
const START_TIMEOUT: Duration = Duration::from_secs(8);
/// The time without a message after which a refused Neovim has sent all that it wrote before it was refused.
const REFUSED_IDLE_TIME: Duration = Duration::from_secs(1);
/// The time that chats and commands have to end when Neovim is gone. The guard kills the backend after 1.5 s.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1300);

/// Serves one Neovim on standard input and output until it goes.
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
    let settings = greet(hello, editor);
    let (_log, services) = make(settings, editor, Installation::find).await;
    match services {
        Ok((services, settings)) => {
            tokio::spawn(tell_isolation(Arc::clone(&services)));
            App::new(services, settings).run(inbox).await;
            ExitCode::SUCCESS
        }
        Err(why) => {
            refuse(why, inbox, editor).await;
            ExitCode::FAILURE
        }
    }
}

/// The directories and the program file of this process.
struct Installation {
    paths: Paths,
    exe: PathBuf,
}

impl Installation {
    fn find() -> Result<Self, paths::Error> {
        Ok(Self {
            paths: Paths::discover(&env)?,
            exe: OWN_PROGRAM.into(),
        })
    }
}

/// Answers the handshake. Returns the settings that came with it, or the reason why plugin and backend do not fit.
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
        FromEditor::Hello { protocol, .. } => Err(format!(
            "update co and restart Neovim: its plugin speaks protocol {protocol}, co-nvim {PROTOCOL}"
        )),
        _ => Err("update co and restart Neovim: its plugin did not say what it speaks".to_owned()),
    }
}

/// Tells Neovim the reason why the backend serves no chats, and sends prompts back to the chats they were typed in.
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

/// Starts the log and makes the services of all chats on another thread, so that the greeting does not wait for disks.
async fn make(
    settings: Result<serde_json::Value, String>,
    editor: &Editor,
    find: impl FnOnce() -> Result<Installation, paths::Error> + Send + 'static,
) -> (
    Option<logging::LogGuard>,
    Result<(Arc<Services>, CurrentSettings), String>,
) {
    let editor = editor.clone();
    let making = tokio::task::spawn_blocking(move || {
        let here = find().map_err(|error| error.to_string());
        let started = here.as_ref().ok().map(|here| start_log(&here.paths));
        let (log, problem) = started.unwrap_or_default();
        let services = settings.and_then(|settings| services(&editor, here?, &settings));
        match (&services, problem) {
            // Reports the reason. Lua does not show a reason twice that the log already has.
            (Err(why), _) => tracing::error!(why, "not served"),
            (Ok(_), Some(problem)) => warn(&editor, problem),
            (Ok(_), None) => {}
        }
        (
            log,
            services.map(|(services, settings)| (Arc::new(services), settings)),
        )
    });
    match tokio::time::timeout(START_TIMEOUT, making).await {
        Ok(Ok(made)) => made,
        Ok(Err(error)) => {
            tracing::error!(%error, "a panic while starting");
            (
                None,
                Err("co-nvim failed while it started: :Co /log says more".to_owned()),
            )
        }
        Err(_) => (
            None,
            Err(format!(
                "co-nvim waited {} s for its settings, its state or its data: a disk hangs, or one of them is no file",
                START_TIMEOUT.as_secs()
            )),
        ),
    }
}

/// Returns the log, if there is one, and the reason why it cannot be written.
fn start_log(paths: &Paths) -> (Option<logging::LogGuard>, Option<String>) {
    let start = || {
        let file = paths.log_file().map_err(|error| error.to_string())?;
        let filter = env(logging::VARIABLE);
        logging::start(&file, filter.as_deref()).map_err(|error| error.to_string())
    };
    match start() {
        Ok(mut log) => {
            let problem = log.problem.take();
            (Some(log), problem)
        }
        Err(why) => (None, Some(why)),
    }
}

fn services(
    editor: &Editor,
    here: Installation,
    lua: &serde_json::Value,
) -> Result<(Services, CurrentSettings), String> {
    let Installation { paths, exe } = here;
    let settings = CurrentSettings::read(paths.config_file(), lua);
    for problem in &settings.problems {
        warn(editor, problem.clone());
    }
    let config = settings.given.config();
    let own = paths.own();
    let home = paths.home.clone();
    let launcher = Launcher::new(exe.clone(), home.clone(), own.clone());
    let launcher = launcher.namespaces(config.namespaces());
    let probe = SandboxProbe::start(&config, launcher.clone());
    let spill_dir = paths.spill_dir().map_err(|error| error.to_string())?;
    let executor = Executor::new(co_exec::ExecutorSetup {
        settings: config.exec_settings(spill_dir),
        launcher: Some(launcher),
        env: std::env::vars_os().collect(),
        sole: true,
    })
    .map_err(|error| error.to_string())?;
    let services = Services::new(ServiceParts {
        redactor: Redactor::new(&settings.secrets),
        store: store(&paths, &config),
        audit: audit(editor, &paths),
        places: ServicePaths {
            home,
            path: std::env::var_os("PATH").unwrap_or_default(),
            own,
            rules: paths.rules_dir().map_err(|error| error.to_string())?,
            trust: paths.trust_dir().map_err(|error| error.to_string())?,
            checkpoints: paths.state.join("checkpoints"),
        },
        make_provider: make_provider(),
        front_ends: front_end::make(editor.clone()),
        editor: editor.clone(),
        config,
        given: settings.given.clone(),
        executor,
        probe,
    });
    Ok((services, settings))
}

/// Tells Neovim how unasked commands are confined, once the sandbox was probed.
async fn tell_isolation(services: Arc<Services>) {
    let isolation = services.probe.kernel().await.short().to_owned();
    services.editor.tell(ToEditor::Isolation { isolation });
}

/// Returns the function that makes a chat's provider from the settings and the environment.
fn make_provider() -> MakeProvider {
    // All chats share what servers show of themselves.
    let memory = ServerMemory::default();
    Arc::new(move |config: &Config, choice: &ModelChoice| {
        let settings = config.provider_settings(choice, &env);
        co_llm::make_provider_with(&settings, &env, config.stall_timeout, memory.clone())
    })
}

fn store(paths: &Paths, config: &Config) -> Store {
    let store = Store::new(paths.data.clone());
    if let Some(days) = config.chat_prune_days {
        let age = std::time::Duration::from_secs(u64::from(days) * 24 * 3600);
        if let Err(error) = store.prune(age) {
            tracing::warn!(%error, "old chats were not removed");
        }
    }
    store
}

fn audit(editor: &Editor, paths: &Paths) -> Option<Audit> {
    Audit::open(&paths.state)
        .inspect_err(|error| warn(editor, error.to_string()))
        .ok()
}

struct App {
    /// The services of a chat that begins now.
    services: Arc<Services>,
    settings: CurrentSettings,
    cancel: CancellationToken,
    chats: HashMap<u64, ChatHandle>,
    runs: Runs,
}

impl App {
    fn new(services: Arc<Services>, settings: CurrentSettings) -> Self {
        let cancel = CancellationToken::new();
        Self {
            runs: Runs::new(Arc::clone(&services), cancel.child_token()),
            services,
            settings,
            cancel,
            chats: HashMap::new(),
        }
    }

    async fn run(mut self, mut inbox: mpsc::Receiver<FromEditor>) {
        let end_requested = end_requested();
        tokio::pin!(end_requested);
        loop {
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.route(message).await,
                    None => break,
                },
                () = &mut end_requested => break,
            }
        }
        tracing::info!("neovim is gone; ending");
        self.shutdown().await;
    }

    async fn route(&mut self, message: FromEditor) {
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
            } => {
                let prompt = Prompt {
                    text,
                    context,
                    range,
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
                    "sandbox" if !self.confine(args.trim()).await => return,
                    "sandbox" => Msg::Command {
                        name,
                        args: String::new(),
                    },
                    "!" => Msg::Run {
                        command: args,
                        options,
                    },
                    _ => Msg::Command { name, args },
                };
                self.tell(chat, &cwd, message);
            }
            FromEditor::Cancel { chat } => {
                if let Some(handle) = self.chats.get(&chat) {
                    handle.send(Msg::Cancel);
                }
            }
            FromEditor::Close { chat } => {
                if let Some(handle) = self.chats.remove(&chat) {
                    tokio::spawn(handle.close());
                }
            }
            FromEditor::Answer {
                id,
                decision,
                reason,
                scope,
                command,
                hunks,
            } => self.answer(&AnswerMessage {
                id,
                decision,
                reason,
                scope,
                command,
                hunks,
            }),
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
            FromEditor::Saved { file } => {
                let file = PathBuf::from(OsString::from_vec(file));
                self.services.checkpoints.saved(&file);
            }
            FromEditor::RunResize { run, size } => self.runs.resize(run, size),
            FromEditor::CancelRun { run } => self.runs.cancel(run),
            FromEditor::KeepRun { run, keep } => self.runs.keep(run, keep),
            FromEditor::Buffers { request, buffers } => {
                self.services.buffers.read_reply(request, buffers);
            }
            FromEditor::BufferChanged { request, changed } => {
                self.services.buffers.change_reply(request, changed);
            }
            FromEditor::EditorAnswer { request, answer } => {
                self.services.buffers.query_reply(request, answer);
            }
        }
    }

    fn tell(&mut self, chat: u64, cwd: &str, message: Msg) {
        let handle = self.chats.entry(chat).or_insert_with(|| {
            let cwd = PathBuf::from(cwd);
            let dirs = WorkDirs {
                workspace: workspace_of(&cwd),
                cwd,
            };
            ChatHandle::spawn(chat, Arc::clone(&self.services), dirs, &self.cancel)
        });
        if !handle.send(message) {
            self.chats.remove(&chat);
            self.services.notice(
                NoticeLevel::Error,
                "this chat ended after an internal error; `:Co /resume` brings it back, `:Co /log` says more",
            );
        }
    }

    /// Passes an answer on. Questions about trust in files belong to no chat. Any other answer goes to all chats: ids are
    /// unique in the backend, so only the chat that asked knows it.
    fn answer(&self, answered: &AnswerMessage) {
        if instructions::answer(&self.services, answered) {
            return;
        }
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

/// Waits for SIGTERM, which a Neovim that quits sends before it waits a while.
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

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the names of all variables of this process that are text.
pub fn variables() -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name.into_string());
    names.filter_map(Result::ok).collect()
}

fn warn(editor: &Editor, message: String) {
    editor.tell(ToEditor::Notice {
        level: NoticeLevel::Warn,
        message,
        answer: false,
    });
}

fn fail(message: &str) -> ExitCode {
    logging::fatal(message);
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests;
