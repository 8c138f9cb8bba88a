//! Checks the system: Neovim's version, the directories and the shell.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::check::{Check, CheckLevel};
use crate::config::Env;
use crate::paths::{self, Paths};
use co_exec::watcher::{UnwatchedReason, Watcher};

/// Checks the version of Neovim.
pub(super) fn nvim(version: &str) -> Check {
    let mut numbers = version
        .trim_start_matches('v')
        .split(['.', '-'])
        .map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (0, 10) => {
            Check::ok("neovim", format!("Neovim {version}"))
        }
        (Some(Ok(_)), Some(Ok(_))) => Check::bad(
            "neovim",
            CheckLevel::Error,
            format!("Neovim {version} is too old"),
            "install Neovim 0.10 or later",
        ),
        _ => Check::bad(
            "neovim",
            CheckLevel::Warn,
            format!("{version:?} is not a version of Neovim"),
            "give it as 0.11.2",
        ),
    }
}

/// Checks that changes in the workspace `root` can be watched.
pub(super) fn watcher(root: &Path) -> Check {
    match Watcher::new(root) {
        Ok(watcher) => Check::ok(
            "watcher",
            format!(
                "co can watch the {} directories of {}, so that a call reads only those that have changed",
                watcher.directories(),
                root.display()
            ),
        ),
        Err(why) => Check::bad(
            "watcher",
            CheckLevel::Warn,
            format!("co cannot watch {} for changes: {why}", root.display()),
            match why {
                UnwatchedReason::UserLimit(_) => {
                    "each call looks at all directories: raise fs.inotify.max_user_watches with sysctl"
                }
                _ => "each call looks at all directories, which takes a moment if there are many",
            },
        ),
    }
}

/// Checks that the directories are writable.
pub(super) fn directories(paths: &Result<Paths, paths::Error>) -> Vec<Check> {
    let paths = match paths {
        Ok(paths) => paths,
        Err(error) => {
            let advice = "chats, rules and the log have no place until then";
            return vec![Check::bad(
                "directories",
                CheckLevel::Error,
                error.to_string(),
                advice,
            )];
        }
    };
    let config = paths.config_file();
    let settings = if config.exists() { "" } else { " (none there)" };
    vec![
        Check::ok(
            "config",
            format!("settings are read from {}{settings}", config.display()),
        ),
        writable("state", paths.spill_dir().map(|_| &*paths.state)),
        writable("data", paths.chats_dir().map(|_| &*paths.data)),
    ]
}

fn writable(name: &'static str, dir: Result<&Path, paths::Error>) -> Check {
    let tried = dir.map_err(|error| error.to_string()).and_then(|dir| {
        tempfile::tempfile_in(dir)
            .map(|_| dir)
            .map_err(|error| format!("{} cannot be written: {error}", dir.display()))
    });
    match tried {
        Ok(dir) => Check::ok(name, format!("{} can be written", dir.display())),
        Err(message) => Check::bad(
            name,
            CheckLevel::Error,
            message,
            "check who owns it and whether the disk is full",
        ),
    }
}

/// Checks the shell that runs commands.
pub(super) async fn shell(env: Env<'_>) -> Check {
    let Some(bash) = env("PATH").and_then(|path| co_exec::find_program("bash", path.as_ref()))
    else {
        return Check::bad(
            "shell",
            CheckLevel::Warn,
            "there is no bash on PATH; commands run in sh, and more of them are asked about",
            "install bash",
        );
    };
    match version(&bash).await {
        Some(version) => Check::ok("shell", format!("{}, version {version}", bash.display())),
        None => Check::bad(
            "shell",
            CheckLevel::Error,
            format!("{} does not run", bash.display()),
            "mend or remove it; commands run in the first bash on PATH",
        ),
    }
}

async fn version(bash: &Path) -> Option<String> {
    let output = tokio::process::Command::new(bash)
        .args(["--noprofile", "--norc", "-c", "echo \"$BASH_VERSION\""])
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(10), output)
        .await
        .ok()?
        .ok()?;
    let version = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !version.is_empty()).then_some(version)
}
