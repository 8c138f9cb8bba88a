//! The audit log: lines of JSON for every call that policy saw, kept private and bounded: one when it is decided, one
//! for what it came to.
//!
//! Knows nothing of policy or the executor: whoever decides and runs fills in a [`Record`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

/// A file that reached this size is put aside.
const MAX_BYTES: u64 = 4 << 20;
/// How many files are kept, the current one among them.
const FILES: usize = 5;

/// One call: the verdict, who decided, and what it came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Seconds since 1970, in UTC, with milliseconds.
    pub time: String,
    pub session: String,
    pub call: String,
    pub command: String,
    /// The text that bash runs in its place, if it is proved to only look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Each simple command of it.
    pub segments: Vec<String>,
    /// `auto`, `ask` or `deny`.
    pub verdict: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Who decided: `proof`, `rule`, `person`, `auto_confirm`, `nobody`.
    pub decided: String,
    /// Where it is to run, or ran.
    pub backend: String,
    /// What it came to; none in the line that says what was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Hash of the whole output's spill file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<String>,
}

impl Record {
    /// Returns the time now, as records write it.
    pub fn now() -> String {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        format!("{}.{:03}", since.as_secs(), since.subsec_millis())
    }
}

/// Why a record was not kept.
#[derive(Debug, thiserror::Error)]
#[error("the audit log {path} cannot be written: {source}")]
pub struct Error {
    path: PathBuf,
    source: io::Error,
}

/// The log of one machine's co; several backends may append to it at once.
pub struct Audit {
    path: PathBuf,
    max: u64,
    file: Mutex<Option<File>>,
}

impl Audit {
    /// Opens the log in co's state directory, which is made if it is not there.
    ///
    /// # Errors
    /// Where the directory or the file cannot be made.
    pub fn open(state: &Path) -> Result<Self, Error> {
        Self::with_limit(state, MAX_BYTES)
    }

    fn with_limit(state: &Path, max: u64) -> Result<Self, Error> {
        let path = state.join("audit.jsonl");
        let open = || {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(state)?;
            append(&path)
        };
        match open() {
            Ok(file) => Ok(Self {
                file: Mutex::new(Some(file)),
                path,
                max,
            }),
            Err(source) => Err(Error { path, source }),
        }
    }

    /// Appends one line, whole.
    ///
    /// # Errors
    /// Where the file cannot be written; the log tries again with the next record.
    pub fn write(&self, record: Record) -> Result<(), Error> {
        let mut slot = self
            .file
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        let put = |slot: &mut Option<File>| -> io::Result<()> {
            let mut line = serde_json::to_vec(&record)?;
            line.push(b'\n');
            let file = match slot.take() {
                Some(file) if is_current(&file, &self.path) => file,
                _ => append(&self.path)?,
            };
            let mut file = if file.metadata()?.len() + line.len() as u64 > self.max {
                self.rotate()?;
                append(&self.path)?
            } else {
                file
            };
            file.write_all(&line)?;
            *slot = Some(file);
            Ok(())
        };
        put(&mut slot).map_err(|source| Error {
            path: self.path.clone(),
            source,
        })
    }

    /// Moves every file one place on; the oldest is overwritten.
    fn rotate(&self) -> io::Result<()> {
        let name = |n: usize| match n {
            0 => self.path.clone(),
            n => self.path.with_extension(format!("{n}.jsonl")),
        };
        for n in (0..FILES - 1).rev() {
            match fs::rename(name(n), name(n + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

/// False where another backend has put the file aside.
fn is_current(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(mine), Ok(there)) => mine.ino() == there.ino() && mine.dev() == there.dev(),
        _ => false,
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
        assert_eq!(files.len(), FILES);
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
