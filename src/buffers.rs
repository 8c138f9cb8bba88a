//! The texts of Neovim's buffers, which the person sees, saved or not, and questions about the editor.
//!
//! Each request is a message to Neovim. [`Buffers::read_reply`], [`Buffers::change_reply`] and
//! [`Buffers::query_reply`] take its answer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::editor::Editor;
use crate::protocol::{
    BufferChange, BufferChanged, BufferText, EditorAnswer, EditorQuery, ToEditor,
};

/// The loaded buffers among some files, by the real paths of the files.
pub type OpenBuffers = HashMap<PathBuf, BufferText>;

/// Reads and changes buffers of Neovim, and asks about the editor. It is cheap to clone.
#[derive(Clone)]
pub struct Buffers {
    editor: Editor,
    waiting: Arc<Mutex<Waiting>>,
    requests: Arc<AtomicU64>,
}

/// The requests that Neovim has not answered.
#[derive(Default)]
struct Waiting {
    reads: HashMap<u64, oneshot::Sender<Vec<BufferText>>>,
    changes: HashMap<u64, oneshot::Sender<BufferChanged>>,
    queries: HashMap<u64, oneshot::Sender<EditorAnswer>>,
}

impl Buffers {
    pub fn new(editor: Editor) -> Self {
        Self {
            editor,
            waiting: Arc::default(),
            requests: Arc::default(),
        }
    }

    /// Returns the loaded buffers of some files. `files` are real paths. It waits until Neovim has time.
    pub async fn read<'a>(&self, files: impl IntoIterator<Item = &'a Path>) -> OpenBuffers {
        // A path that is no UTF-8 does not pass to Lua: such a file is read from the disk.
        let files = files.into_iter().filter_map(Path::to_str);
        let files: Vec<_> = files.map(str::to_owned).collect();
        let request = self.request();
        let (reply, found) = oneshot::channel();
        self.waiting().reads.insert(request, reply);
        self.editor.tell(ToEditor::ReadBuffers { request, files });
        let found = found.await.unwrap_or_default().into_iter();
        found.map(|it| (PathBuf::from(&it.file), it)).collect()
    }

    /// Changes a buffer, and writes it if it had no unsaved changes. It waits until Neovim has time.
    pub async fn change(&self, change: BufferChange) -> BufferChanged {
        let request = self.request();
        let (reply, changed) = oneshot::channel();
        self.waiting().changes.insert(request, reply);
        self.editor.tell(ToEditor::ChangeBuffer { request, change });
        changed.await.unwrap_or_else(|_| BufferChanged {
            problem: Some("Neovim did not answer".to_owned()),
            ..BufferChanged::default()
        })
    }

    /// Tells Neovim that a file was deleted, or has another name now. A path that is no UTF-8 does not pass to Lua.
    pub fn file_gone(&self, file: &Path, to: Option<&Path>) {
        if let Some(file) = file.to_str() {
            self.editor.tell(ToEditor::FileGone {
                file: file.to_owned(),
                to: to.and_then(Path::to_str).map(str::to_owned),
            });
        }
    }

    /// Asks Neovim or the person's language servers. It waits until Neovim has time, and then a few seconds at most.
    pub async fn query(&self, query: EditorQuery) -> EditorAnswer {
        let request = self.request();
        let (reply, answer) = oneshot::channel();
        self.waiting().queries.insert(request, reply);
        self.editor.tell(ToEditor::EditorQuery { request, query });
        answer.await.unwrap_or_default()
    }

    /// Takes Neovim's answer to [`Buffers::read`].
    pub fn read_reply(&self, request: u64, buffers: Vec<BufferText>) {
        if let Some(reply) = self.waiting().reads.remove(&request) {
            // The turn that asked may have ended.
            let _ended = reply.send(buffers);
        }
    }

    /// Takes Neovim's answer to [`Buffers::change`].
    pub fn change_reply(&self, request: u64, changed: BufferChanged) {
        if let Some(reply) = self.waiting().changes.remove(&request) {
            let _ended = reply.send(changed);
        }
    }

    /// Takes Neovim's answer to [`Buffers::query`].
    pub fn query_reply(&self, request: u64, answer: EditorAnswer) {
        if let Some(reply) = self.waiting().queries.remove(&request) {
            let _ended = reply.send(answer);
        }
    }

    fn request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
