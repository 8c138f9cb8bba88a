//! Starts the log and makes the services for all chats when the backend starts.

use std::path::PathBuf;
use std::sync::Arc;

use co_exec::Executor;

use super::settings::{CurrentSettings, START_TIMEOUT, env};
use crate::audit::Audit;
use crate::config::{Config, ModelChoice};
use crate::editor::Editor;
use crate::logging;
use crate::paths::{self, Paths};
use crate::protocol::{NoticeLevel, ToEditor};
use crate::services::{MakeProvider, ServiceParts, ServicePaths, Services};
use crate::store::Store;
use crate::trial::Layer;
use crate::workspace::sandbox_probe::SandboxProbe;
use co_exec::sandbox::{Launcher, OWN_PROGRAM, prune_in};
use co_exec::secrets::redact::Redactor;
use co_llm::ServerMemory;

/// The directories and the program file of this process.
pub(super) struct Installation {
    pub(super) paths: Paths,
    pub(super) exe: PathBuf,
}

impl Installation {
    pub(super) fn find() -> Result<Self, paths::Error> {
        Ok(Self {
            paths: Paths::discover(&env)?,
            exe: OWN_PROGRAM.into(),
        })
    }
}

/// Starts the log and makes the services for all chats on another thread, so that slow disks do not delay the handshake.
pub(super) async fn make(
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

/// Starts the log. If it cannot be written, returns the reason as the second value.
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
    let launcher = launcher
        .namespaces(config.namespaces())
        .probe_directory(paths.state.clone());
    let probe = SandboxProbe::new(&config, launcher.clone());
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
            config: paths.config.clone(),
            rules: paths.rules_dir().map_err(|error| error.to_string())?,
            trust: paths.trust_dir().map_err(|error| error.to_string())?,
            checkpoints: paths.checkpoints(),
            trials: paths.layers(),
            agents: paths.agents(),
            servers: paths.servers(),
            logins: paths.logins(),
            editors: paths.editors(),
            program: std::env::current_exe().unwrap_or_default(),
        },
        make_provider: make_provider(),
        editor: editor.clone(),
        config,
        given: settings.given.clone(),
        executor,
        probe,
    });
    finish_leftovers(editor, &services);
    Ok((services, settings))
}

/// Cleans up after a backend that was killed, on another thread: finishes keeping the changes of a trial, and removes layers and
/// sockets.
fn finish_leftovers(editor: &Editor, services: &Services) {
    let (checkpoints, places) = (
        Arc::clone(&services.checkpoints),
        Arc::clone(&services.places),
    );
    let editor = editor.clone();
    tokio::task::spawn_blocking(move || {
        for keep in checkpoints.finish() {
            warn(&editor, keep.to_string());
        }
        Layer::prune(&places.trials);
        prune_in(&places.editors);
    });
}

/// Returns the function that makes the provider of a chat from the settings and the environment.
fn make_provider() -> MakeProvider {
    // All chats share what servers show of themselves.
    let memory = ServerMemory::default();
    Arc::new(move |config: &Config, choice: &ModelChoice| {
        config.check()?;
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

pub(super) fn warn(editor: &Editor, message: String) {
    editor.tell(ToEditor::Notice {
        level: NoticeLevel::Warn,
        message,
        answer: false,
    });
}
