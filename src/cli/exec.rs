//! The command `co-nvim exec`: runs one command through the executor, for people and tests.

mod hosts;
mod printer;
mod request;
mod terminal;
mod trial;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use super::common;
use crate::config::{ConfinementSetting, Network};
use crate::network::{self, HostReport, OpenAccess, OpenCommand};
use crate::workspace::confinement::Isolation;
use crate::workspace::judge::workspace_of;
use co_exec::watchdog::Watchdog;
use co_exec::{
    Caller, CommandOutcome, CommandSpec, Confinement, Environment, Executor, ExecutorSetup,
    Streams, detach_terminal,
};
use printer::Ending;
use request::ExecRequest;
use trial::{FinishedTrial, Trial, say};

pub use request::Machine;

pub(super) use request::{HELP, USAGE};

/// The time after the end of the command in which signals are ignored. The signal that cancelled the command may arrive twice.
const IGNORE_SIGNALS: Duration = Duration::from_secs(1);
/// The time-out for removing the command's files. The next backend removes the rest.
pub(super) const REMOVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// The time-out for reading the changes of a trial after a signal has cancelled it.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// The exit status if a signal arrived after the command had ended.
const INTERRUPTED: u8 = 130;

/// Runs the command in the arguments after `exec`. The arguments or the settings choose its confinement.
pub fn main(args: &[OsString], machine: Machine, watchdog: Watchdog) -> ExitCode {
    detach_terminal();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let code = match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(run(args, machine, watchdog));
            runtime.shutdown_timeout(READ_TIMEOUT);
            code
        }
        Err(error) => fail(&format!("cannot start a runtime: {error}")),
    };
    ExitCode::from(code)
}

async fn run(args: &[OsString], machine: Machine, watchdog: Watchdog) -> u8 {
    let request = std::env::current_dir()
        .map_err(|error| {
            format!("cannot tell the working directory ({error}): go to one that exists")
        })
        .and_then(|cwd| request::parse(args, &cwd, machine.settings.max_timeout));
    let request = request.and_then(|request| {
        let cwd = common::real_directory(&request.cwd)?;
        Ok(ExecRequest { cwd, ..request })
    });
    let request = match request {
        Ok(request) => request,
        Err(message) => return fail(&message),
    };
    let trial = request.trial.then(|| Trial::begin(&machine, &request));
    let (trial, confinement) = match trial.transpose() {
        Ok(Some(trial)) => {
            let confinement = trial.confinement();
            (Some(trial), Ok(confinement))
        }
        Ok(None) => (None, confinement(&request, &machine).await),
        Err(refused) => (None, Err(refused)),
    };
    let confinement = match confinement {
        Ok(confinement) => confinement,
        Err(refused) => return fail(&refused),
    };
    let access = match hosts::access(&request, &machine, &confinement) {
        Ok(access) => access,
        Err(why) => return fail(&why),
    };
    let max_timeout = machine.settings.max_timeout;
    let setup = ExecutorSetup {
        launcher: Some(machine.launcher),
        sole: true,
        ..ExecutorSetup::new(machine.settings)
    };
    let spec = CommandSpec {
        program: request.program,
        cwd: request.cwd,
        caller: request.caller,
        stdin: request.input.map(String::into_bytes),
        timeout: request.timeout.unwrap_or(max_timeout),
        confinement,
        environment: Environment::default(),
        extra_env: Vec::new(),
    };
    let executor = match Executor::new(setup) {
        Ok(executor) => executor,
        Err(error) => return fail(&error.to_string()),
    };
    // Before a command runs, so that no signal leaves one behind.
    let told = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    let (Ok(interrupt), Ok(terminate)) = told else {
        return fail("cannot hear signals");
    };
    let started = network::start(&executor, spec, Streams::Whole, access).await;
    let (code, cancelled) = match started {
        Ok(running) => {
            let signals = (interrupt, terminate);
            let trial = trial.as_ref().map(|trial| (trial, &executor));
            follow(running, request.json, signals, trial).await
        }
        Err(error) => (fail(&error.to_string()), false),
    };
    if request.caller == Caller::Person {
        executor.remove_containers().await;
        watchdog.release();
    } else {
        executor.shutdown().await;
    }
    if !cancelled {
        executor.finish_removals(REMOVAL_TIMEOUT).await;
        if let Some(trial) = trial {
            trial.remove(REMOVAL_TIMEOUT).await;
        }
    }
    code
}

/// Returns the confinement for the command. An option of the command line replaces the setting. Fails if the confinement is
/// unavailable.
async fn confinement(request: &ExecRequest, machine: &Machine) -> Result<Confinement, String> {
    let fault = machine.config.confinement_fault();
    if let Some(fault) = fault.filter(|_| request.confinement.is_none() && !request.read_only) {
        return Err(format!("{fault}, or choose a confinement by --backend"));
    }
    let workspace = workspace_of(&request.cwd);
    let mut config = machine.config.clone();
    config.sandbox_backend = request.confinement.unwrap_or(config.sandbox_backend);
    if !request.allow_hosts.is_empty() {
        config.sandbox_network = Network::Ask;
    }
    if request.read_only {
        // Nobody can be asked, so the command waits for the whole survey.
        machine.launcher.surveys().survey_whole(&workspace);
    } else if config.sandbox_backend == ConfinementSetting::Subprocess {
        return Ok(Confinement::Plain);
    }
    let isolation = Isolation::new(&config, machine.launcher.report());
    let isolation = isolation.ask_engine().await;
    if request.read_only {
        return Ok(isolation.for_unasked(&workspace));
    }
    isolation
        .for_approved(&workspace)
        .map_err(|refused| refused.to_string())
}

/// Prints the output while the command runs, or prints the outcome as JSON. Returns the exit status. The second value is true if
/// the command was cancelled.
async fn follow(
    (running, access): OpenCommand,
    json: bool,
    (mut interrupt, mut terminate): (Signal, Signal),
    trial: Option<(&Trial, &Executor)>,
) -> (u8, bool) {
    let mut told = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let cancel = running.canceller();
    let (say, last) = oneshot::channel();
    let shown = match printer::print((!json).then(|| running.screen()), last) {
        Ok(shown) => shown,
        Err(error) => {
            let code = fail(&format!(
                "cannot start a thread that shows what it prints ({error}): end a few processes, or raise the limit of them (ulimit -u)"
            ));
            return (code, false);
        }
    };
    let mut outcome = tokio::spawn(running.outcome());
    let mut is_told = false;
    let outcome = loop {
        tokio::select! {
            outcome = &mut outcome => break outcome,
            () = told() => {
                cancel.cancel();
                is_told = true;
            }
        }
    };
    let Ok(mut outcome) = outcome else {
        return (fail("the command's supervisor failed"), false);
    };
    let hosts = access.map(OpenAccess::close);
    // After a cancellation, nobody wants to see or keep anything.
    let trial = trial.filter(|_| !outcome.cancelled);
    let mut tried = None;
    if let Some((trial, executor)) = trial {
        // The command may just have ended by itself when the signal came.
        if !is_told {
            tried = tokio::select! {
                tried = trial.ended(&outcome, json, executor) => Some(tried),
                () = told() => None,
            };
        }
        outcome.cancelled = tried.is_none();
    }
    let interrupted = tried.is_none() && trial.is_some();
    let ending = match (json, &tried) {
        (true, tried) => {
            let mut value = in_json(&outcome);
            if let Some(tried) = tried {
                value["trial"] = tried.json();
            }
            if let Some(hosts) = &hosts {
                value["hosts"] = hosts.json();
            }
            Ending {
                status: None,
                text: format!("{value}\n"),
            }
        }
        (false, tried) => Ending {
            status: Some(format!("[{}]", outcome.status())),
            text: tried.as_ref().map(FinishedTrial::diff).unwrap_or_default(),
        },
    };
    // This fails if the printing thread has failed.
    let _ = say.send(ending);
    let given_up = async {
        let heard = async {
            loop {
                told().await;
            }
        };
        let _ = tokio::time::timeout(IGNORE_SIGNALS, heard).await;
        told().await;
    };
    let unwritten = tokio::select! {
        // The channel closes without a value if that thread failed.
        shown = shown => shown.unwrap_or(Ok(())),
        () = given_up => Ok(()),
    };
    if let Some(hosts) = hosts.filter(|_| !json) {
        tell_hosts(&hosts);
    }
    let status = match &mut tried {
        Some(tried) if json => tried.status(),
        Some(tried) => tried.settle(told).await,
        None => None,
    };
    let code = match interrupted {
        true => INTERRUPTED,
        false => status.unwrap_or(code(&outcome)),
    };
    // A closed pipe is no error: its reader has read enough. But of a trial that is dropped, the difference is all there is.
    let is_lost = tried.is_some_and(|tried| tried.is_lost());
    let matters = |error: &io::Error| is_lost || error.kind() != io::ErrorKind::BrokenPipe;
    let Some(error) = unwritten.err().filter(matters) else {
        return (code, outcome.cancelled);
    };
    fail(&match error.kind() {
        io::ErrorKind::BrokenPipe => {
            "the reader of the difference left before its end, and nothing was kept: read all, or give --keep".to_owned()
        }
        _ => format!("its output could not be written ({error}): write it where there is room"),
    });
    // The caller must notice that the output is incomplete.
    (if code == 0 { 1 } else { code }, outcome.cancelled)
}

/// Prints the hosts that the command connected to, and the reasons why it could not connect to others.
fn tell_hosts(hosts: &HostReport) {
    for why in hosts.refusals() {
        say(&format!("co-nvim: {why}"));
    }
    if let Some(reached) = hosts.reached() {
        say(&format!("[{reached}]"));
    }
}

fn in_json(outcome: &CommandOutcome) -> Value {
    let pids: Vec<i32> = outcome.background.iter().map(|it| it.pid).collect();
    // JSON has UTF-8 only.
    let appeared: Vec<_> = outcome
        .appeared
        .iter()
        .map(|path| path.to_string_lossy())
        .collect();
    json!({
        "output": outcome.output,
        "withheld": outcome.withheld,
        "exit": outcome.exit,
        "signal": outcome.signal,
        "timed_out": outcome.timed_out,
        "cancelled": outcome.cancelled,
        "flooded": outcome.flooded,
        "limit": outcome.limit,
        "background_pids": pids,
        "background": outcome.background,
        "kept": outcome.kept,
        "wall_ms": u64::try_from(outcome.wall.as_millis()).unwrap_or(u64::MAX),
        "bytes": outcome.bytes,
        "lines": outcome.lines,
        "spill": outcome.spill,
        "gap": outcome.gap,
        "level": outcome.level,
        "appeared": appeared,
        "nothing_found": outcome.nothing_found,
        "ok": outcome.ok(),
    })
}

fn code(outcome: &CommandOutcome) -> u8 {
    if outcome.timed_out {
        return 124;
    }
    let signal = outcome.signal.map(|signal| 128 + signal);
    let code = outcome.exit.or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Prints the reason why no command was started. Returns the exit status for this case.
pub(super) fn fail(message: &str) -> u8 {
    let _ = writeln!(io::stderr().lock(), "co-nvim: {message}");
    125
}
