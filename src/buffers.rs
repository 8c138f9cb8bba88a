//! Sends requests to Neovim. Neovim reads and changes the texts of buffers, answers queries about the editor, runs the hooks of
//! plugins before a command, and opens files that a command of the person wants edited.
//!
//! Each request is a message to Neovim. [`Buffers::reply`] handles its answer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::editor::Editor;
use crate::protocol::{
    BufferChange, BufferChanged, BufferText, EditorAnswer, EditorQuery, FileEdit, PlannedCommand,
    ToEditor,
};

/// The largest number of files that one message asks about.
const MOST_FILES: usize = 2_000;

/// The loaded buffers of some files, by the canonical paths of the files.
pub type OpenBuffers = HashMap<PathBuf, BufferText>;

/// Reads and changes buffers of Neovim, and queries the editor. Cloning is cheap.
#[derive(Clone)]
pub struct Buffers {
    editor: Editor,
    /// The turn that waits for the answers. It is `None` if no turn sends the requests.
    turn: Option<AskingTurn>,
    waiting: Arc<Mutex<Waiting>>,
    requests: Arc<AtomicU64>,
    /// True if at least one plugin has a hook before commands.
    hooked: Arc<AtomicBool>,
}

/// The turn that sends the requests.
#[derive(Clone)]
struct AskingTurn {
    chat: u64,
    cancel: CancellationToken,
}

/// The requests that Neovim has not answered, by number.
type Waiting = HashMap<u64, oneshot::Sender<BufferReply>>;

/// An answer of Neovim to a request.
pub enum BufferReply {
    Read(Vec<BufferText>),
    Changed(BufferChanged),
    Editor(EditorAnswer),
    /// The reason why a plugin refuses a command, or `None` if no plugin refuses it.
    Hooked(Option<String>),
    /// The reason why the program that wanted a file edited must fail. It is `None` if the person finished and closed the file.
    Edited(Option<String>),
}

impl Buffers {
    pub fn new(editor: Editor) -> Self {
        Self {
            editor,
            turn: None,
            waiting: Arc::default(),
            requests: Arc::default(),
            hooked: Arc::default(),
        }
    }

    /// Returns a clone for the turn of a chat. If a request waits for the person to complete a Vim command, cancelling the turn
    /// ends this wait.
    pub fn of_turn(&self, chat: u64, cancel: CancellationToken) -> Self {
        Self {
            turn: Some(AskingTurn { chat, cancel }),
            ..self.clone()
        }
    }

    /// Waits until the turn is cancelled.
    pub async fn cancelled(&self) {
        match &self.turn {
            Some(turn) => turn.cancel.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Returns the loaded buffers of some files. `files` must be canonical paths. Waits until Neovim is idle.
    pub async fn read<'a>(&self, files: impl IntoIterator<Item = &'a Path>) -> OpenBuffers {
        // A path that is no UTF-8 does not pass to Lua: such a file is read from the disk.
        let files = files.into_iter().filter_map(Path::to_str);
        let files: Vec<_> = files.map(str::to_owned).collect();
        let mut found = OpenBuffers::new();
        // Neovim reads keys between two messages.
        for some in files.chunks(MOST_FILES) {
            found.extend(self.ask_for(some.to_vec(), None).await);
        }
        found
    }

    /// Returns the buffers with unsaved changes for a file, or for all files in a directory. `path` must be canonical. Waits
    /// until Neovim is idle.
    pub async fn modified_below(&self, path: &Path) -> OpenBuffers {
        self.ask_for(Vec::new(), path.to_str().map(str::to_owned))
            .await
    }

    async fn ask_for(&self, files: Vec<String>, modified_below: Option<String>) -> OpenBuffers {
        let found = match self
            .ask(|request| ToEditor::ReadBuffers {
                request,
                chat: self.chat(),
                files,
                modified_below,
            })
            .await
        {
            Some(BufferReply::Read(found)) => found,
            _ => Vec::new(),
        };
        let found = found.into_iter();
        found.map(|it| (PathBuf::from(&it.file), it)).collect()
    }

    /// Changes a buffer, and writes it if it had no unsaved changes before. Waits until Neovim is idle and the person has
    /// completed a pending Vim command. Even if the turn is cancelled, the answer says whether the buffer was changed.
    pub async fn change(&self, change: BufferChange) -> BufferChanged {
        let asked = self.send(|request| ToEditor::ChangeBuffer {
            request,
            chat: self.chat(),
            change,
        });
        let request = asked.request;
        let mut answer = std::pin::pin!(asked.answer());
        let reply = tokio::select! {
            reply = &mut answer => reply,
            () = self.cancelled() => {
                self.editor.tell(ToEditor::WithdrawRequest { request });
                answer.await
            }
        };
        match reply {
            Some(BufferReply::Changed(changed)) => changed,
            _ => BufferChanged {
                problem: Some("Neovim did not answer".to_owned()),
                ..BufferChanged::default()
            },
        }
    }

    /// Tells Neovim that a file was deleted or renamed. Does nothing for a path that is not UTF-8, because Lua could not receive
    /// it.
    pub fn file_gone(&self, file: &Path, to: Option<&Path>) {
        if let Some(file) = file.to_str() {
            self.editor.tell(ToEditor::FileGone {
                file: file.to_owned(),
                to: to.and_then(Path::to_str).map(str::to_owned),
            });
        }
    }

    /// Sends a query to Neovim or the person's language servers. Waits until Neovim is idle, and then at most a few seconds.
    pub async fn query(&self, query: EditorQuery) -> EditorAnswer {
        match self
            .ask(|request| ToEditor::EditorQuery { request, query })
            .await
        {
            Some(BufferReply::Editor(answer)) => answer,
            _ => EditorAnswer::default(),
        }
    }

    /// Stores whether plugins have hooks before commands.
    pub fn set_hooked(&self, hooked: bool) {
        self.hooked.store(hooked, Ordering::Relaxed);
    }

    /// Returns the reason why a plugin refuses a command, or `None` if no plugin does. Waits until all hooks have returned.
    pub async fn refusal(&self, command: PlannedCommand) -> Option<String> {
        if !self.hooked.load(Ordering::Relaxed) {
            return None;
        }
        match self
            .ask(|request| ToEditor::BeforeCommand { request, command })
            .await
        {
            Some(BufferReply::Hooked(refusal)) => refusal,
            _ => Some("Neovim did not answer".to_owned()),
        }
    }

    /// Opens a file for the person, and waits until they have closed it. Returns the reason if the program that wants the file
    /// edited must fail, or `None` if it may continue.
    pub async fn edit(&self, edit: FileEdit) -> Option<String> {
        match self
            .ask(|request| ToEditor::EditFile { request, edit })
            .await
        {
            Some(BufferReply::Edited(problem)) => problem,
            _ => Some("Neovim did not answer".to_owned()),
        }
    }

    /// Handles Neovim's answer to a request.
    pub fn reply(&self, request: u64, reply: BufferReply) {
        if let Some(waiting) = self.waiting.lock().remove(&request) {
            // The turn that asked may have ended.
            let _ended = waiting.send(reply);
        }
    }

    /// Ends the wait for an answer that will not come.
    pub fn fail(&self, request: u64) {
        self.waiting.lock().remove(&request);
    }

    /// Sends a request with a new number and waits. Returns the answer, or `None` if Neovim ended or failed.
    async fn ask(&self, message: impl FnOnce(u64) -> ToEditor) -> Option<BufferReply> {
        self.send(message).answer().await
    }

    /// Sends a request with a new number, without waiting.
    fn send(&self, message: impl FnOnce(u64) -> ToEditor) -> SentRequest<'_> {
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.waiting.lock().insert(request, reply);
        self.editor.tell(message(request));
        SentRequest {
            buffers: self,
            request,
            answer,
        }
    }

    fn chat(&self) -> Option<u64> {
        self.turn.as_ref().map(|turn| turn.chat)
    }
}

/// A request that Neovim has not answered. Dropping it withdraws the request.
struct SentRequest<'a> {
    buffers: &'a Buffers,
    request: u64,
    answer: oneshot::Receiver<BufferReply>,
}

impl SentRequest<'_> {
    /// Waits for the answer. Returns `None` if Neovim ended.
    async fn answer(mut self) -> Option<BufferReply> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for SentRequest<'_> {
    fn drop(&mut self) {
        let request = self.request;
        if self.buffers.waiting.lock().remove(&request).is_some() {
            let withdraw = ToEditor::WithdrawRequest { request };
            self.buffers.editor.tell(withdraw);
        }
    }
}
