//! The program `co-nvim`: the backend that Neovim starts, and a command line.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // The sandbox launcher restricts this process, so it comes before any thread or runtime.
    if let Some(code) = co_exec::sandbox::launch_main(env!("CARGO_BIN_NAME"), &args) {
        return code;
    }
    co_exec::free_memory::keep_little();
    co::cli::main(args.get(1..).unwrap_or_default())
}
