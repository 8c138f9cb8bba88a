//! The support of the tests and of the editor's benchmark: a real Neovim, model servers, a reader of processes,
//! throwaway workspaces.

pub(crate) mod http;
pub(crate) mod model;
pub(crate) mod mounted;
pub(crate) mod nvim;
pub(crate) mod pids;
pub(crate) mod proc;
pub(crate) mod rpc;
pub(crate) mod runner;
pub(crate) mod scene;
mod screen;
#[path = "../../../src/test_tree.rs"]
pub(crate) mod test_tree;
pub(crate) mod wire;
pub(crate) mod workspace;

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The variable that makes tests with generated input try more of it; `make fuzz` sets it.
const CASES: &str = "CO_TEST_CASES";

/// The longest time that a test waits for anything. It is long, because the machine may be busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The backend under test.
pub(crate) const BACKEND: &str = env!("CARGO_BIN_EXE_co-nvim");

/// The repository: what Neovim gets as a plugin.
pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Returns how many generated cases a test tries: `usual`, or more if the environment says so.
///
/// # Panics
/// If the variable holds no number.
pub(crate) fn cases(usual: usize) -> usize {
    match std::env::var(CASES) {
        Ok(text) => match text.parse::<usize>() {
            Ok(number) => number.max(usual),
            Err(_) => panic!("{CASES} is `{text}`: set it to a number"),
        },
        Err(_) => usual,
    }
}

/// Returns a generator with the seed in `CO_TEST_SEED`, else with this one. The output of a test that fails shows it.
pub(crate) fn random(seed: u64) -> fastrand::Rng {
    let given = std::env::var("CO_TEST_SEED").ok();
    let seed = given.map_or(seed, |given| given.parse().unwrap());
    eprintln!("the seed is {seed}");
    fastrand::Rng::with_seed(seed)
}

/// Returns what `make test` puts into the variable `name`.
///
/// # Panics
/// If it is missing: a test that cannot run has not passed.
#[track_caller]
pub(crate) fn tool(name: &str) -> String {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => value,
        _ => panic!("{name} is not set: run the tests with `make test`, which gets what they need"),
    }
}

/// Runs a program to its end with that input.
pub(crate) fn output_of(command: &mut Command, input: &[u8]) -> Output {
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = streams.stderr(Stdio::piped()).spawn().unwrap();
    // It may end before it has read that.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}
