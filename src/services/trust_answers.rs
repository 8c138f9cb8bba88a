//! The person's answers about trust in files, and the open questions about trust. All chats share them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tokio::sync::broadcast;

use crate::blocking::blocking;
use crate::trust::{FileText, Trust, TrustAnswer};

/// The capacity of the channel of revoked files. It is large enough because a person revokes answers one by one. A chat that
/// misses a message cancels its turn too.
const MAX_WAITING_REVOKED: usize = 16;

/// The answers about trust in files, and the open questions.
pub(crate) struct TrustAnswers {
    pub(crate) trust: Trust,
    pub(crate) state: Mutex<AnswerState>,
    /// Locked while the answers on disk change.
    pub(crate) writing: tokio::sync::Mutex<()>,
    /// Sends the paths of the files that the person no longer trusts.
    pub(crate) revoked: broadcast::Sender<PathBuf>,
}

#[derive(Default)]
pub(crate) struct AnswerState {
    pub(crate) questions: Vec<OpenTrustQuestion>,
    /// The last answer about each file whose answer is not on disk yet, or could not be saved.
    pub(crate) unsaved: HashMap<PathBuf, TrustAnswer>,
    /// The problems that co has reported to the person, each with its workspace.
    pub(crate) told: HashSet<(PathBuf, String)>,
}

/// An open question about trust.
pub(crate) struct OpenTrustQuestion {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) sha256: String,
    /// The slash command that sends the text, or `/mcp`; none if the text goes with each prompt.
    pub(crate) slash: Option<String>,
}

impl AnswerState {
    /// Returns the last answer about a file, even if the answer was about another text. `saved` are the answers on disk.
    pub(crate) fn answer<'a>(
        &'a self,
        saved: &'a [TrustAnswer],
        path: &Path,
    ) -> Option<&'a TrustAnswer> {
        let saved = || saved.iter().find(|entry| entry.path == path);
        self.unsaved.get(path).or_else(saved)
    }
}

impl TrustAnswers {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self {
            trust: Trust::new(dir),
            state: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            revoked: broadcast::Sender::new(MAX_WAITING_REVOKED),
        }
    }

    /// Returns a receiver of the paths of the files that the person no longer trusts.
    pub(crate) fn revoked(&self) -> broadcast::Receiver<PathBuf> {
        self.revoked.subscribe()
    }

    /// Calls `use_answers` with the state of the questions and all answers on disk.
    ///
    /// # Errors
    /// The answers cannot be read.
    pub(crate) async fn with_saved<T>(
        &self,
        use_answers: impl FnOnce(&mut AnswerState, &[TrustAnswer]) -> T,
    ) -> Result<T, String> {
        // Waits for the answers that are being saved. Until they are, only the state has them.
        let alone = self.writing.lock().await;
        let trust = self.trust.clone();
        let saved = blocking(move || trust.entries()).await?;
        let mut state = self.state.lock();
        drop(alone);
        Ok(use_answers(&mut state, &saved))
    }

    /// Returns the answers about files below any of these directories.
    ///
    /// # Errors
    /// The answers cannot be read.
    pub(crate) async fn answers(&self, dirs: &[&Path]) -> Result<Vec<TrustAnswer>, String> {
        let trust = self.trust.clone();
        let mut entries = blocking(move || trust.entries()).await?;
        entries.retain(|entry| dirs.iter().any(|dir| entry.path.starts_with(dir)));
        Ok(entries)
    }

    /// Deletes the answer about a file, so that co asks again at the next prompt. Returns false if there was no answer.
    ///
    /// # Errors
    /// The file of the answers cannot be written.
    pub(crate) async fn forget(&self, path: PathBuf) -> Result<bool, String> {
        let _alone = self.writing.lock().await;
        let unsaved = self.state.lock().unsaved.remove(&path).is_some();
        let (trust, file) = (self.trust.clone(), path.clone());
        let forgotten = blocking(move || trust.forget(&file)).await;
        let forgotten = forgotten.map(|saved| saved || unsaved);
        if unsaved || forgotten == Ok(true) {
            // It fails if there is no chat.
            self.revoked.send(path).ok();
        }
        forgotten
    }
}

impl OpenTrustQuestion {
    pub(crate) fn is_about(&self, file: &FileText) -> bool {
        self.path == file.path && self.sha256 == file.sha256
    }
}
