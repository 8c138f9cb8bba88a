//! The least backend there could be: it greets, runs the one command it knows when it is told anything, and says
//! that it ended. What it takes, every backend does; what co takes beyond that is co's own.

use std::io::{self, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rmpv::Value;
use serde_json::json;

use super::spawn::SHELL;

/// The argument that makes this program that backend.
pub(super) const ARGUMENT: &str = "least-backend";

/// Returns the command by which Neovim starts it.
pub(super) fn argv() -> serde_json::Value {
    let own = std::env::current_exe().expect("a program");
    json!([own, ARGUMENT])
}

/// Serves the Neovim on standard input and output until it goes.
pub(super) fn serve() {
    tell("bench.least_ready()").expect("Neovim reads");
    let mut input = BufReader::new(io::stdin().lock());
    while rmpv::decode::read_value(&mut input).is_ok() {
        run().expect("it runs");
        tell("bench.least_ended()").expect("Neovim reads");
    }
}

/// In a group of its own, its output in one pipe that is read to its end, as whoever shows it must.
fn run() -> io::Result<()> {
    let (mut output, write) = io::pipe()?;
    let mut child = Command::new(SHELL[0])
        .args(&SHELL[1..])
        .arg("true")
        .stdin(Stdio::null())
        .stderr(write.try_clone()?)
        .stdout(write)
        .process_group(0)
        .spawn()?;
    io::copy(&mut output.by_ref(), &mut io::sink())?;
    child.wait().map(drop)
}

fn tell(code: &str) -> io::Result<()> {
    let arguments = Value::Array(vec![code.into(), Value::Array(Vec::new())]);
    let message = Value::Array(vec![2.into(), "nvim_exec_lua".into(), arguments]);
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &message)?;
    let mut output = io::stdout().lock();
    output.write_all(&bytes)?;
    output.flush()
}
