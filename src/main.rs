//! `co-nvim`: what Neovim starts, and its command line.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    // The launcher restricts this very process, so it comes before any thread or runtime.
    if let Some(code) = co::exec::sandbox::launch_main(&args) {
        return code;
    }
    if let Some(code) = co::exec::helper::run(&args) {
        return code;
    }
    let guard = match co::exec::guard::guarded(&mut args) {
        Ok(guard) => guard,
        Err(error) => {
            co::logging::fatal(&format!("the process that keeps watch is gone ({error})"));
            return ExitCode::FAILURE;
        }
    };
    co::cli::main(&args[1..], guard)
}
