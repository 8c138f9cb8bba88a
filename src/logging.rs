//! The log of the backend: one private file, which a separate thread writes.
//!
//! Nothing is written to standard output, which is the pipe to Neovim. Only the error that ends the process is written to
//! standard error.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tracing::{Level, Subscriber};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{EnvFilter, FilterExt, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::rotation::RotatingFile;

/// The environment variable with the filter of the log, in the syntax of `tracing`, such as `debug` or `co_exec=trace`.
pub const VARIABLE: &str = "CO_CLI_LOG";

/// The crates of co that a filter may name.
const CRATES: [&str; 4] = ["co", "co_exec", "co_llm", "co_policy"];

/// The largest number of lines that wait for the disk. The memory for them is allocated at the start, so the number is small.
const MAX_WAITING_LINES: usize = 1024;

/// The size in bytes at which a new file begins. The full file is kept as `co.log.1`.
const MAX_BYTES: u64 = 4 << 20;

/// Keeps the log's thread alive. Dropping the guard writes the lines that still wait.
#[must_use]
pub struct LogGuard {
    _worker: WorkerGuard,
    /// A sentence about an invalid filter. In this case the filter is `info`.
    pub problem: Option<String>,
}

/// The reason why the log cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write the log {path}: {source}; check who owns it")]
    Open { path: PathBuf, source: io::Error },
    #[error("logging was started twice")]
    Twice,
}

/// Starts to write log records to `file`. `filter` selects the records; its default is `info`.
///
/// # Errors
/// The file cannot be opened.
pub fn start(file: &Path, filter: Option<&str>) -> Result<LogGuard, Error> {
    let (subscriber, log) = subscriber(file, filter)?;
    subscriber.try_init().map_err(|_| Error::Twice)?;
    Ok(log)
}

fn subscriber(
    file: &Path,
    filter: Option<&str>,
) -> Result<(impl Subscriber + Send + Sync, LogGuard), Error> {
    let mut full = file.as_os_str().to_owned();
    full.push(".1");
    let writer = RotatingFile::open(file.to_owned(), vec![full.into()], MAX_BYTES);
    let writer = writer.map_err(|source| Error::Open {
        path: file.to_owned(),
        source,
    })?;
    let (writer, worker) = NonBlockingBuilder::default()
        .buffered_lines_limit(MAX_WAITING_LINES)
        .finish(writer);
    let (filter, problem) = parse(filter);
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(writer)
        .with_filter(filter.and(filter_fn(|meta| wanted(meta.target(), *meta.level()))));
    let log = LogGuard {
        _worker: worker,
        problem,
    };
    Ok((tracing_subscriber::registry().with(layer), log))
}

/// Logs the error that ends the process, and prints it to standard error.
pub fn fatal(message: &str) {
    tracing::error!("{message}");
    // If standard error is closed too, nobody can be told.
    let _ = writeln!(io::stderr(), "co-nvim: {message}");
}

fn parse(filter: Option<&str>) -> (EnvFilter, Option<String>) {
    let info = || EnvFilter::new("info");
    match filter.map(str::trim).filter(|text| !text.is_empty()) {
        None => (info(), None),
        Some(text) => match EnvFilter::try_new(text).map_err(|error| error.to_string()) {
            Ok(filter) if text.split(',').all(is_known) => (filter, None),
            Ok(_) => (info(), Some(refused("a word is no level"))),
            Err(error) => (info(), Some(refused(&error))),
        },
    }
}

fn refused(why: &str) -> String {
    format!("{VARIABLE} is not a log filter ({why}); give a level such as debug")
}

/// Returns false if a part of a filter is a misspelt level. `tracing` would take it for the name of a module and log nothing.
fn is_known(part: &str) -> bool {
    let part = part.trim();
    let level = part.parse::<tracing::level_filters::LevelFilter>().is_ok();
    let name = part.split("::").next().unwrap_or_default();
    level || part.contains(['=', '[']) || CRATES.contains(&name)
}

/// Returns false for records that must not be logged: those in which nvim-rs and rmcp log whole messages with their content. rmcp
/// does so even in warnings.
fn wanted(target: &str, level: Level) -> bool {
    let is_of = |name: &str| {
        let rest = target.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    !is_of("rmcp") && (!is_of("nvim_rs") || level <= Level::WARN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Logs four test events with this filter: info and debug of co, info and warn of nvim_rs. Returns the content of the log
    /// file.
    fn logged(filter: Option<&str>) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("co.log");
        let (subscriber, log) = subscriber(&path, filter).unwrap();
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "co::app", "an event");
            tracing::debug!(target: "co::app", "a detail");
            tracing::info!(target: "nvim_rs::neovim", "a message");
            tracing::warn!(target: "nvim_rs::neovim", "a warning");
        });
        drop(log);
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn the_file_gets_what_the_filter_lets_through_and_no_messages() {
        let check = |filter, expected: &[&str]| {
            let text = logged(filter);
            for part in ["an event", "a detail", "a message", "a warning"] {
                assert_eq!(
                    text.contains(part),
                    expected.contains(&part),
                    "{filter:?}: {text}"
                );
            }
        };
        check(None, &["an event", "a warning"]);
        check(Some("debug"), &["an event", "a detail", "a warning"]);
        check(Some("off,nvim_rs=trace"), &["a warning"]);
        check(Some("nonsense=loud"), &["an event", "a warning"]);
    }

    #[test]
    fn nvim_rs_never_logs_its_messages() {
        assert!(!wanted("nvim_rs", Level::INFO));
        assert!(!wanted("nvim_rs::neovim", Level::TRACE));
        assert!(wanted("nvim_rs::neovim", Level::WARN));
        assert!(wanted("co_exec", Level::TRACE));
        assert!(wanted("nvim_rs_like", Level::TRACE));
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_told_and_info_used() {
        let (filter, problem) = parse(Some("co=loud"));
        assert_eq!(filter.to_string(), "info");
        assert!(problem.is_some_and(|told| told.contains(VARIABLE)));
        for misspelt in ["dbug", "nonsense", "co=debug,trac"] {
            let (filter, problem) = parse(Some(misspelt));
            assert_eq!(filter.to_string(), "info");
            assert!(
                problem.is_some_and(|told| told.contains("no level")),
                "{misspelt}"
            );
        }
        for known in [
            " ",
            "debug",
            "WARN",
            "off",
            "co",
            "co_exec",
            "off,hyper=trace",
        ] {
            assert_eq!(parse(Some(known)).1, None, "{known}");
        }
        assert_eq!(parse(Some("co_exec=trace")).0.to_string(), "co_exec=trace");
    }
}
