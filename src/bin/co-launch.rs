//! `co-launch`: restricts itself, then becomes a command.
//!
//! The same as `co-nvim` does with the same arguments, in a program so small that it starts faster.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let name = env!("CARGO_BIN_NAME");
    let args: Vec<OsString> = std::env::args_os().collect();
    co_exec::sandbox::launch_main(name, &args).unwrap_or_else(|| {
        let why = "co-nvim starts confined commands through this: it is not a command for people";
        // Nobody is left to tell where standard error itself is closed.
        let _ = writeln!(std::io::stderr(), "{name}: {why}");
        ExitCode::from(126)
    })
}
