//! The log: one file, for its owner alone, written off the threads that work.
//!
//! Never standard output, which is the pipe to Neovim; standard error only for what ends the process.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tracing::{Level, Subscriber};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{EnvFilter, FilterExt, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// The variable that chooses what is logged, in `tracing`'s own words: `debug`, `co_exec=trace`.
pub const VARIABLE: &str = "CO_CLI_LOG";

/// Lines that may wait for the disk. Room for all of them is made at the start, which is waited for.
const WAITING: usize = 1024;

/// Bytes after which a new file begins; the last one is kept beside it as `co.log.1`.
const FULL: u64 = 4 << 20;

/// Keeps the log going; what is still in memory is written when it is dropped.
#[must_use]
pub struct LogGuard {
    _worker: WorkerGuard,
    /// What was wrong with the filter, in a sentence; `info` is used then.
    pub problem: Option<String>,
}

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write the log {path}: {source}; check who owns it")]
    Open { path: PathBuf, source: io::Error },
    #[error("logging was started twice")]
    Twice,
}

/// Sends everything logged from now on to `file`, filtered by `filter` (default `info`).
///
/// # Errors
/// Where the file cannot be opened.
pub fn start(file: &Path, filter: Option<&str>) -> Result<LogGuard, Error> {
    let (subscriber, log) = subscriber(file, filter)?;
    subscriber.try_init().map_err(|_| Error::Twice)?;
    Ok(log)
}

fn subscriber(
    file: &Path,
    filter: Option<&str>,
) -> Result<(impl Subscriber + Send + Sync, LogGuard), Error> {
    let rotated = Rotated::open(file, FULL).map_err(|source| Error::Open {
        path: file.to_owned(),
        source,
    })?;
    let (writer, worker) = NonBlockingBuilder::default()
        .buffered_lines_limit(WAITING)
        .finish(rotated);
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

/// The last words of a process that cannot go on.
pub fn fatal(message: &str) {
    tracing::error!("{message}");
    // Where even standard error is gone, nobody is left to tell.
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

/// A misspelt level reads as the name of a module that there is not, and nothing would be logged.
fn is_known(part: &str) -> bool {
    let part = part.trim();
    let level = part.parse::<tracing::level_filters::LevelFilter>().is_ok();
    level || part.contains(['=', '[']) || part == "co" || part.starts_with("co::")
}

/// Returns whether a record may be logged at all: nvim-rs logs whole messages, with all they hold.
fn wanted(target: &str, level: Level) -> bool {
    let noisy = target == "nvim_rs" || target.starts_with("nvim_rs::");
    !noisy || level <= Level::WARN
}

/// A file that gives way to a new one when it is full. Several processes may write to it.
struct Rotated {
    path: PathBuf,
    file: File,
    full: u64,
}

impl Rotated {
    fn open(path: &Path, full: u64) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: append(path)?,
            full,
        })
    }

    fn rotate(&mut self) -> io::Result<()> {
        let mine = self.file.metadata()?.ino();
        // Another process may have moved it already; then only the new one is opened.
        if fs::metadata(&self.path).is_ok_and(|now| now.ino() == mine) {
            let mut kept = self.path.clone().into_os_string();
            kept.push(".1");
            fs::rename(&self.path, kept)?;
        }
        self.file = append(&self.path)?;
        Ok(())
    }
}

impl Write for Rotated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.metadata()?.len() >= self.full {
            self.rotate()?;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        // A link in its place is somebody's trap, not a log.
        .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
        .open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What is in the file after a record of each kind.
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
        fs::read_to_string(path).unwrap()
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

    #[test]
    fn a_full_file_gives_way_to_a_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("co.log");
        let mut one = Rotated::open(&path, 10).unwrap();
        let mut other = Rotated::open(&path, 10).unwrap();
        one.write_all(b"0123456789\n").unwrap();
        one.write_all(b"new\n").unwrap();
        other.write_all(b"other\n").unwrap();
        let text = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(text("co.log"), "new\nother\n");
        assert_eq!(text("co.log.1"), "0123456789\n");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_link_in_its_place_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("co.log");
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert!(Rotated::open(&path, 10).is_err());
    }
}
