//! The person's answers about trust in files of a workspace that co would load, such as instructions.
//!
//! An answer is valid for one path and the SHA-256 of one text, so a changed file needs a new answer. This module does not know
//! the purpose of the files, and does not ask the person.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::shared_file;
use co_exec::beneath;
use co_exec::regular::SMALL_FILE_BYTES;

/// An error while reading or writing the file with the answers.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the trusted files in {path} cannot be read: {why}; mend or remove that file")]
    Read { path: PathBuf, why: String },
    #[error("the trusted files cannot be written to {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
}

/// The person's answer about one text of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustAnswer {
    pub path: PathBuf,
    pub sha256: String,
    pub trusted: bool,
}

/// The person's decision about the current text of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileTrust {
    Trusted,
    Refused,
    Unanswered,
    /// The person answered about an earlier text of the file.
    Changed,
}

impl FileTrust {
    /// Returns the decision about a file. `answer` is the person's last answer about this file.
    pub fn of(file: &FileText, answer: Option<&TrustAnswer>) -> Self {
        match answer {
            None => Self::Unanswered,
            Some(answer) if answer.sha256 != file.sha256 => Self::Changed,
            Some(answer) if answer.trusted => Self::Trusted,
            Some(_) => Self::Refused,
        }
    }

    /// Returns the wording for a list from which the person can choose a file to read it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Refused => "refused; choose it to read it again",
            Self::Unanswered => "not trusted yet; choose it to read it",
            Self::Changed => "changed since you answered; choose it to read it",
        }
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Entries {
    #[serde(default)]
    file: Vec<TrustAnswer>,
}

/// The text of a file at the time when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    pub path: PathBuf,
    /// The size of the file in bytes.
    pub size: usize,
    pub text: String,
    /// The SHA-256 of `text`, in hexadecimal digits.
    pub sha256: String,
    /// True if some bytes of the file are not UTF-8. `text` has U+FFFD instead of them.
    pub replaced: bool,
}

impl FileText {
    /// Makes a value from a text that was read elsewhere.
    pub fn given(path: PathBuf, text: String) -> Self {
        Self {
            path,
            size: text.len(),
            sha256: sha256(&text),
            replaced: false,
            text,
        }
    }

    /// Returns the same text, such that an answer about it also covers `more` that a yes lets co do. An answer that was given
    /// before co did so is one about another text.
    #[must_use]
    pub fn covering(self, more: &str) -> Self {
        Self {
            sha256: sha256(&format!("{} {more}", self.sha256)),
            ..self
        }
    }

    /// Reads a regular file of at most 1 MiB.
    ///
    /// # Errors
    /// The file cannot be read, is not a regular file, or is larger than 1 MiB.
    pub fn read(path: PathBuf) -> io::Result<Self> {
        let bytes = beneath::read_resolved(&path, SMALL_FILE_BYTES)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(Self {
            sha256: sha256(&text),
            size: bytes.len(),
            replaced: matches!(text, Cow::Owned(_)),
            text: text.into_owned(),
            path,
        })
    }
}

/// The file with the answers. All backends of the person share it.
#[derive(Debug, Clone)]
pub struct Trust {
    dir: PathBuf,
}

impl Trust {
    /// Makes a value for the answers in the directory `dir`. The first saved answer makes the directory.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Returns all answers. There is at most one for each file.
    ///
    /// # Errors
    /// The file with the answers exists but cannot be read.
    pub fn entries(&self) -> Result<Vec<TrustAnswer>, Error> {
        let path = self.file();
        let fail = |why: String| Error::Read {
            path: path.clone(),
            why,
        };
        match fs::read_to_string(&path) {
            Ok(text) => toml::from_str::<Entries>(&text)
                .map(|entries| entries.file)
                .map_err(|error| fail(error.message().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(fail(error.to_string())),
        }
    }

    /// Saves an answer. It replaces an earlier answer about the same file.
    ///
    /// # Errors
    /// The file with the answers cannot be read or written.
    pub fn save(&self, entry: TrustAnswer) -> Result<(), Error> {
        let _alone = self.lock()?;
        let mut entries = self.entries()?;
        entries.retain(|kept| kept.path != entry.path);
        entries.push(entry);
        self.write(entries)
    }

    /// Removes the answer about a file. Returns true if there was one.
    ///
    /// # Errors
    /// The file with the answers cannot be read or written.
    pub fn forget(&self, path: &Path) -> Result<bool, Error> {
        let _alone = self.lock()?;
        let mut entries = self.entries()?;
        let before = entries.len();
        entries.retain(|kept| kept.path != path);
        let found = entries.len() < before;
        if found {
            self.write(entries)?;
        }
        Ok(found)
    }

    fn file(&self) -> PathBuf {
        self.dir.join("files.toml")
    }

    fn lock(&self) -> Result<fs::File, Error> {
        shared_file::lock(&self.dir).map_err(|source| Error::Write {
            path: self.dir.join(shared_file::LOCK),
            source,
        })
    }

    fn write(&self, file: Vec<TrustAnswer>) -> Result<(), Error> {
        let path = self.file();
        let put = || {
            let text = toml::to_string(&Entries { file }).map_err(io::Error::other)?;
            shared_file::replace(&path, &text)
        };
        put().map_err(|source| Error::Write { path, source })
    }
}

/// Returns the SHA-256 of a text, in hexadecimal digits.
fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn entry(path: &str, text: &str, trusted: bool) -> TrustAnswer {
        TrustAnswer {
            path: path.into(),
            sha256: sha256(text),
            trusted,
        }
    }

    #[test]
    fn a_text_has_the_hash_that_sha256sum_prints() {
        assert_eq!(
            sha256("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn a_text_is_hashed_as_it_is_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("AGENTS.md");
        fs::write(&path, b"na\xefve").unwrap();
        let file = FileText::read(path.clone()).unwrap();
        assert_eq!((file.text.as_str(), file.size), ("na\u{fffd}ve", 5));
        assert!(file.replaced);
        assert_eq!(file.sha256, sha256("na\u{fffd}ve"));
        fs::write(&path, "x".repeat(1 << 20)).unwrap();
        assert!(!FileText::read(path.clone()).unwrap().replaced);
        fs::write(&path, "x".repeat((1 << 20) + 1)).unwrap();
        let why = FileText::read(path).unwrap_err().to_string();
        assert_eq!(why, "it is larger than 1 MiB");
    }

    #[test]
    fn answers_come_back_one_for_each_file_and_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let trust = Trust::new(dir.path().join("trust"));
        assert_eq!(trust.entries().unwrap(), []);
        let (yes, no) = (entry("/w/a", "one", true), entry("/w/b", "two", false));
        let (odd, newer) = (entry("/w/a \"b\"\n", "x", true), entry("/w/a", "1", false));
        for entry in [&yes, &no, &odd] {
            trust.save(entry.clone()).unwrap();
        }
        assert_eq!(trust.entries().unwrap(), [yes, no.clone(), odd.clone()]);
        trust.save(newer.clone()).unwrap();
        assert_eq!(
            trust.entries().unwrap(),
            [no.clone(), odd.clone(), newer.clone()]
        );
        assert!(trust.forget(Path::new("/w/b")).unwrap());
        assert!(!trust.forget(Path::new("/w/b")).unwrap());
        assert_eq!(
            Trust::new(trust.dir.clone()).entries().unwrap(),
            [odd, newer]
        );
        let mode = trust.file().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_is_not_understood_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let trust = Trust::new(dir.path().to_owned());
        fs::write(trust.file(), "file = 3").unwrap();
        let told = trust.entries().unwrap_err().to_string();
        assert!(told.contains(trust.file().to_str().unwrap()), "{told}");
        assert!(trust.save(entry("/w/a", "one", true)).is_err());
        assert!(trust.forget(Path::new("/w/a")).is_err());
        assert_eq!(fs::read_to_string(trust.file()).unwrap(), "file = 3");
    }

    #[test]
    fn answers_given_at_the_same_time_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let trust = Trust::new(dir.path().to_owned());
                let entry = entry(&format!("/w/{number}"), "text", true);
                scope.spawn(move || trust.save(entry).unwrap());
            }
        });
        let kept = Trust::new(dir.path().to_owned()).entries().unwrap();
        assert_eq!(kept.len(), 16, "{kept:?}");
    }
}
