//! The command line of `co-nvim`: starts the backend, or one of the commands `exec`, `check`, `edit` and `doctor`.

pub mod check;
mod common;
mod descriptors;
pub mod doctor;
mod edit;
pub mod exec;
mod mcp;
mod setup;

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use self::common::{failed, print};
use self::exec::REMOVAL_TIMEOUT;
use crate::agent::tools;
use crate::app;
use crate::chat::person::run_editor;
use crate::config::{Config, Layers, LoadedSettings};
use crate::network::try_access;
use crate::paths::{self, Paths};
use crate::protocol::PROTOCOL;
use co_exec::privacy;
use co_exec::sandbox::{Launcher, OWN_PROGRAM, SandboxReport, SandboxSupport};
use co_exec::watchdog::{self, EndCondition, Role, Watchdog};
use co_exec::{Executor, ExecutorSetup};

const HELP: &str = "\
co-nvim: the backend of co, an agent and a shell for Neovim

  co-nvim                      speak RPC on standard input and output (Neovim starts it so)
  co-nvim exec [OPTIONS] CMD   run a command through the executor; see co-nvim exec --help
  co-nvim check [OPTIONS] [CMD]  say whether a command may run unasked, and why
  co-nvim edit [OPTIONS]       change a file as a tool of the model would; see co-nvim edit --help
  co-nvim mcp                  offer tools of co to an agent in a terminal of Neovim, or of a chat; the agent starts it
  co-nvim doctor [--json]      say what works here and what to do about the rest
  co-nvim --version
";

const DOCTOR_USAGE: &str = "\
usage: co-nvim doctor [--json]
Says what works here and what to do about the rest; fails where something will not work.
";

/// Runs the command that the arguments name. The backend and `exec` start commands, so they run in a child process of a watchdog.
pub fn main(args: &[OsString]) -> ExitCode {
    match args.split_first() {
        None => {
            let done = with_watchdog(EndCondition::EndOfInput, |watchdog| {
                let code = serve();
                drop(watchdog);
                code
            });
            done.unwrap_or_else(|why| failed(&why))
        }
        Some((command, rest)) if command == "exec" && rest.first().is_some_and(asks_for_help) => {
            print(&format!("{}\n{}", exec::USAGE, exec::HELP))
        }
        Some((command, rest)) if command == "exec" => {
            let done = with_watchdog(EndCondition::Done, |watchdog| exec(rest, watchdog));
            done.unwrap_or_else(|why| ExitCode::from(exec::fail(&why)))
        }
        Some((command, rest)) => without_guard(&command.to_string_lossy(), rest.to_vec()),
    }
}

fn asks_for_help(arg: &OsString) -> bool {
    arg == "--help" || arg == "-h"
}

/// Runs `run` in a child process of a watchdog. Returns the reason if the watchdog cannot be set up.
fn with_watchdog(
    end: EndCondition,
    run: impl FnOnce(Watchdog) -> ExitCode,
) -> Result<ExitCode, String> {
    descriptors::check().map_err(|error| error.to_string())?;
    privacy::protect().map_err(|error| {
        format!("co-nvim cannot hide your keys from commands ({error}): allow it to call prctl")
    })?;
    match watchdog::split_process(end) {
        Ok(Role::Supervised(watchdog)) => Ok(run(watchdog)),
        Ok(Role::Watchdog(code)) => Ok(code),
        Err(error) => Err(error.to_string()),
    }
}

fn without_guard(command: &str, rest: Vec<OsString>) -> ExitCode {
    match (command, descriptors::check()) {
        ("check" | "edit" | "doctor", Err(error)) => failed(&error.to_string()),
        ("check", Ok(())) => with_setup(|setup| check::run(rest, setup)),
        ("edit", Ok(())) => with_setup(|setup| edit::run(rest, setup)),
        ("doctor", Ok(())) => block_on(doctor(rest)),
        (tools::SUBCOMMAND, _) => match mcp::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => failed(&why),
        },
        (run_editor::SUBCOMMAND, _) => match run_editor::edit(&rest) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => failed(&why),
        },
        _ => information(command),
    }
}

fn information(command: &str) -> ExitCode {
    match command {
        "--version" | "-V" => print(&format!(
            "co-nvim {} (protocol {PROTOCOL})\n",
            env!("CARGO_PKG_VERSION")
        )),
        "--help" | "-h" | "help" => print(HELP),
        other => {
            crate::logging::fatal(&format!(
                "there is no command {other}; co-nvim --help lists them"
            ));
            ExitCode::from(2)
        }
    }
}

fn serve() -> ExitCode {
    co_exec::detach_terminal();
    // A spawned task: waking the future that `block_on` polls itself takes two more system calls.
    block_on(async {
        let serving = tokio::spawn(app::serve());
        serving.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the backend ends");
            ExitCode::FAILURE
        })
    })
}

/// Runs a future on one thread. One thread is enough to wait for pipes, and answers Neovim three times as fast as several
/// threads.
fn block_on(work: impl Future<Output = ExitCode>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            return failed(&format!(
                "the runtime did not start ({error}): raise the limit of open files (ulimit -n)"
            ));
        }
    };
    let code = runtime.block_on(work);
    runtime.shutdown_timeout(Duration::from_millis(100));
    code
}

/// The directories and settings of a `co-nvim` command that runs without an editor.
struct CommandContext {
    paths: Paths,
    config: Config,
}

impl CommandContext {
    /// Reads the directories and settings, and prints the faults in them to standard error.
    fn find() -> Result<Self, paths::Error> {
        let (here, problems) = Self::read()?;
        for problem in problems {
            crate::logging::fatal(&problem);
        }
        Ok(here)
    }

    /// Reads the directories and settings. The second value has one sentence for each fault in the settings.
    fn read() -> Result<(Self, Vec<String>), paths::Error> {
        let env = |name: &str| std::env::var(name).ok();
        let paths = Paths::discover(&env)?;
        let file = paths.config_file();
        let layers = Layers {
            file: Some(&file),
            lua: &serde_json::Value::Null,
            env: &env,
            variables: &app::variables(),
        };
        let LoadedSettings { given, problems } = layers.read();
        let config = given.config();
        Ok((Self { paths, config }, problems))
    }

    fn launcher(&self) -> Launcher {
        Launcher::new(
            OWN_PROGRAM.into(),
            self.paths.home.clone(),
            self.paths.own(),
        )
        .namespaces(self.config.namespaces())
        .probe_directory(self.paths.state.clone())
        .read_roots(self.config.read_roots().to_vec())
    }
}

fn exec(args: &[OsString], watchdog: Watchdog) -> ExitCode {
    let machine = CommandContext::find().and_then(|here| {
        Ok(exec::Machine {
            settings: here.config.exec_settings(here.paths.spill_dir()?),
            launcher: here.launcher(),
            config: here.config,
            paths: here.paths,
        })
    });
    match machine {
        Ok(machine) => exec::main(args, machine, watchdog),
        Err(error) => ExitCode::from(exec::fail(&error.to_string())),
    }
}

/// Runs one of the commands that need a judge, `check` or `edit`.
fn with_setup(run: impl FnOnce(setup::Setup) -> ExitCode) -> ExitCode {
    let setup = CommandContext::find().and_then(|here| {
        Ok(setup::Setup {
            launcher: here.launcher(),
            path: std::env::var_os("PATH").unwrap_or_default(),
            rules: Some(here.paths.rules_dir()?),
            own: here.paths.own(),
            settings: here.config.policy.clone(),
            auto_confirm: here.config.auto_confirm,
            home: here.paths.home,
        })
    });
    match setup {
        Ok(setup) => run(setup),
        Err(error) => failed(&error.to_string()),
    }
}

async fn doctor(args: Vec<OsString>) -> ExitCode {
    match doctor::DoctorArguments::parse(args) {
        Ok(Some(mut arguments)) => {
            arguments.variables = app::variables();
            arguments.environment = std::env::vars_os().collect();
            let env = |name: &str| std::env::var(name).ok();
            doctor::run(arguments, probe().await, &env).await
        }
        Ok(None) => print(DOCTOR_USAGE),
        Err(wrong) => {
            crate::logging::fatal(&format!("doctor knows --json, not {wrong}"));
            ExitCode::from(2)
        }
    }
}

async fn probe() -> doctor::Findings {
    // The doctor reports the faults of the settings itself.
    match CommandContext::read() {
        Ok((here, _problems)) => doctor::Findings {
            hosts: try_hosts(&here).await,
            sandbox: here.launcher().report().clone(),
        },
        Err(error) => {
            let none = SandboxSupport::none(error.to_string());
            doctor::Findings {
                hosts: Err(error.to_string()),
                sandbox: SandboxReport::new(PathBuf::new(), PathBuf::new()).with_support(none),
            }
        }
    }
}

/// Tests if a command can connect to hosts through the proxy. Returns the result as a clause for the person.
async fn try_hosts(here: &CommandContext) -> Result<&'static str, String> {
    let spill_dir = here.paths.spill_dir().map_err(|error| error.to_string())?;
    let setup = ExecutorSetup {
        launcher: Some(here.launcher()),
        sole: true,
        ..ExecutorSetup::new(here.config.exec_settings(spill_dir))
    };
    let executor = Executor::new(setup).map_err(|error| error.to_string())?;
    let tried = try_access(&executor).await;
    executor.shutdown().await;
    executor.finish_removals(REMOVAL_TIMEOUT).await;
    tried
}
