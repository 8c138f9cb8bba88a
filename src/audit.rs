//! The audit file: two lines of JSON for each call that the policy judged, one for the decision and one for the outcome.
//!
//! The file is private and of bounded size. This module knows neither the policy nor the executor; the caller fills in a
//! [`Record`].

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::rotation::RotatingFile;

/// The size in bytes at which a new file begins.
const MAX_BYTES: u64 = 4 << 20;
/// The number of files that are kept, including the current file.
const MAX_FILES: usize = 5;

/// The record of one call: its verdict, its decision and its outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The time in seconds since 1970 (UTC), with three decimals.
    pub time: String,
    pub chat: String,
    pub call: String,
    pub command: String,
    /// The text of each simple command in the call.
    pub segments: Vec<String>,
    /// The verdict: `auto`, `ask` or `deny`.
    pub verdict: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The decider: `policy`, `rule`, `person`, `auto_confirm` or `nobody`.
    pub decided: String,
    /// The name of the level of confinement, such as `workspace`.
    pub confinement: String,
    /// The outcome. It is `None` in the line of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The hosts and ports that the command asked for. Each entry tells if the command reached the host, and the numbers of
    /// bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<serde_json::Value>,
    /// The hash of the spill file with the whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<String>,
}

impl Record {
    /// Returns the current time in the format of [`Record::time`].
    pub fn now() -> String {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        format!("{}.{:03}", since.as_secs(), since.subsec_millis())
    }
}

/// The error if a record cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the audit log {path} cannot be written: {source}")]
pub struct Error {
    path: PathBuf,
    source: io::Error,
}

/// The audit file of one person. Several backends may append to it at once.
pub struct Audit {
    file: Mutex<RotatingFile>,
}

impl Audit {
    /// Opens the file in co's state directory. Makes the directory if it is missing.
    ///
    /// # Errors
    /// The directory or the file cannot be made.
    pub fn open(state: &Path) -> Result<Self, Error> {
        Self::with_limit(state, MAX_BYTES)
    }

    fn with_limit(state: &Path, max: u64) -> Result<Self, Error> {
        let path = state.join("audit.jsonl");
        let full = (1..MAX_FILES).map(|n| path.with_extension(format!("{n}.jsonl")));
        let open = || {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(state)?;
            RotatingFile::open(path.clone(), full.collect(), max)
        };
        match open() {
            Ok(file) => Ok(Self {
                file: Mutex::new(file),
            }),
            Err(source) => Err(Error { path, source }),
        }
    }

    /// Appends one line with a single write.
    ///
    /// # Errors
    /// The file cannot be written. The next call tries again.
    pub fn write(&self, record: Record) -> Result<(), Error> {
        let mut file = self.file.lock();
        let mut append = || {
            let mut line = serde_json::to_vec(&record)?;
            line.push(b'\n');
            file.write_all(&line)
        };
        append().map_err(|source| Error {
            path: file.path().to_owned(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn record(call: usize) -> Record {
        Record {
            time: Record::now(),
            call: call.to_string(),
            command: "ls\n'a'".to_owned(),
            verdict: "auto".to_owned(),
            ..Record::default()
        }
    }

    #[test]
    fn lines_come_back_and_files_rotate() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let audit = Audit::with_limit(&state, 1_000).unwrap();
        let other = Audit::with_limit(&state, 1_000).unwrap();
        for call in 0..60 {
            let log = if call % 2 == 0 { &audit } else { &other };
            log.write(record(call)).unwrap();
        }
        let mut files: Vec<PathBuf> = fs::read_dir(&state)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert_eq!(files.len(), MAX_FILES);
        let mut calls = Vec::new();
        for file in &files {
            let meta = file.metadata().unwrap();
            assert!(meta.len() <= 1_000);
            assert_eq!(meta.permissions().mode() & 0o777, 0o600);
            for line in fs::read_to_string(file).unwrap().lines() {
                let record: Record = serde_json::from_str(line).unwrap();
                calls.push(record.call.parse::<usize>().unwrap());
            }
        }
        calls.sort_unstable();
        let newest: Vec<usize> = (60 - calls.len()..60).collect();
        assert_eq!(calls, newest, "the newest records are kept, each once");
    }
}
