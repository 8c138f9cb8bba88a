//! Runs one shell command and prints its outcome.
//!
//! `cargo run -p co-exec --example run -- --read-only 'ls; touch x'`
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use co_exec::sandbox::{Launcher, OWN_PROGRAM, launch_main};
use co_exec::{
    Caller, CommandOutcome, CommandSpec, Confinement, Environment, ExecSettings, Executor,
    ExecutorSetup, Program,
};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<OsString> = std::env::args_os().collect();
    // The executor starts this program again to confine a command. Such a start must not get any further.
    if let Some(code) = launch_main("run", &args) {
        return Ok(code);
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (read_only, text) = match words.as_slice() {
        [text] => (false, text),
        [flag, text] if flag == "--read-only" => (true, text),
        _ => return Err("usage: run [--read-only] COMMAND".into()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(run(text, read_only))?;
    print!("{}", outcome.output);
    println!("-- {} ({})", outcome.status(), outcome.level);
    Ok(ExitCode::from(u8::from(!outcome.ok())))
}

async fn run(text: &str, read_only: bool) -> Result<CommandOutcome, Box<dyn Error>> {
    let home = std::env::home_dir().ok_or("set HOME")?;
    let files = std::env::temp_dir().join("co-exec-example");
    let executor = Executor::new(ExecutorSetup {
        launcher: Some(Launcher::new(OWN_PROGRAM.into(), home, Vec::new())),
        sole: true,
        ..ExecutorSetup::new(ExecSettings::new(files))
    })?;
    let cwd = std::env::current_dir()?;
    let running = executor.start(CommandSpec {
        program: Program::Shell(text.to_owned()),
        confinement: match read_only {
            true => Confinement::ReadOnly {
                workspace: cwd.clone(),
            },
            false => Confinement::Plain,
        },
        cwd,
        caller: Caller::Agent,
        stdin: None,
        timeout: Duration::from_secs(60),
        environment: Environment::default(),
        extra_env: Vec::new(),
    });
    let outcome = running.await?.outcome().await;
    executor.shutdown().await;
    Ok(outcome)
}
