//! Functions that several commands of `co-nvim` share.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Returns the canonical path of a working directory. The workspace is found from this path.
pub(super) fn real_directory(cwd: &Path) -> Result<PathBuf, String> {
    let real = cwd.canonicalize().ok().filter(|real| real.is_dir());
    real.ok_or_else(|| {
        let cwd = cwd.display();
        format!("{cwd} is not a directory; name one that exists")
    })
}

pub(super) fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

pub(super) fn failed(why: &str) -> ExitCode {
    crate::logging::fatal(why);
    ExitCode::FAILURE
}
