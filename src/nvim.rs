//! The connection to Neovim. Only this module uses nvim-rs.
//!
//! Incoming messages are only decoded and queued. nvim-rs handles notifications one at a time, so a handler that waits would
//! block all others. A single task, `writer`, sends outgoing messages.

mod bounded;
pub mod remote;
mod stdio;
mod text;
mod writer;

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use nvim_rs::error::LoopError;
use nvim_rs::{Handler, Neovim};
use parking_lot::Mutex;
use rmpv::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::compat::{TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use self::bounded::{BoundedReader, MAX_MESSAGE_BYTES, UnfinishedMessage};
use self::stdio::Pipe;
use self::text::{Received, Refusal};
use crate::editor::Editor;
use crate::protocol::{FromEditor, NoticeLevel, ToEditor};

/// The capacity of the queue of incoming messages. A person cannot fill it; a script that sends too fast gets an error.
const INBOX_CAPACITY: usize = 1024;

/// The reason why the backend stopped reading messages although Neovim has not ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the backend ended because a message was longer than {} MiB; the next :Co starts it again",
        MAX_MESSAGE_BYTES >> 20
    )]
    TooLong,
    #[error(
        "the backend ended because its standard input is not a message of Neovim; the next :Co starts it again"
    )]
    Malformed,
    #[error(
        "the backend ended because it could not read a message of its plugin ({0}): restart Neovim if co was updated"
    )]
    Unknown(String),
}

/// A connection to Neovim.
pub struct Connection {
    /// Receives the messages of Neovim. The channel closes when Neovim ends.
    pub messages: mpsc::Receiver<FromEditor>,
    /// Sends messages to Neovim.
    pub editor: Editor,
    /// Receives the reason why the backend stopped reading messages. Receives nothing if Neovim has ended.
    pub broken: oneshot::Receiver<Error>,
}

/// Connects to Neovim on standard input and output.
///
/// # Errors
/// Standard input and output are not connected to Neovim.
pub fn connect() -> io::Result<Connection> {
    let (input, output) = stdio::take()?;
    let (editor, outbox) = Editor::new();
    let (inbox, messages) = mpsc::channel(INBOX_CAPACITY);
    let (breaks, broken) = oneshot::channel();
    let (unknown, unreadable) = oneshot::channel();
    let unfinished = UnfinishedMessage::default();
    let handler = Inbox {
        messages: inbox,
        editor: editor.clone(),
        unfinished: unfinished.clone(),
        unknown: Arc::new(Mutex::new(Some(unknown))),
    };
    let input = BoundedReader {
        input,
        unfinished: unfinished.clone(),
    };
    let (neovim, io_loop) = Neovim::new(input.compat(), output.compat_write(), handler);
    tokio::spawn(writer::run(neovim, outbox, unfinished.clone()));
    tokio::spawn(async move {
        let error = tokio::select! {
            biased;
            Ok(error) = unreadable => Some(error),
            ended = io_loop => ended.err().and_then(|error| reason(&error, &unfinished)),
        };
        if let Some(error) = error {
            tracing::error!(%error, "stopped reading messages");
            let _ = breaks.send(error);
        }
        // This drops the inbox with the loop's handler, which tells the app that Neovim has ended.
    });
    Ok(Connection {
        messages,
        editor,
        broken,
    })
}

/// Returns the reason why the I/O loop ended, or `None` if Neovim has ended.
fn reason(error: &LoopError, unfinished: &UnfinishedMessage) -> Option<Error> {
    tracing::info!(%error, "neovim closed the channel");
    if unfinished.is_too_long() {
        return Some(Error::TooLong);
    }
    (!error.is_reader_error()).then_some(Error::Malformed)
}

/// Decodes the notifications of Neovim and queues the messages in them.
#[derive(Clone)]
struct Inbox {
    messages: mpsc::Sender<FromEditor>,
    editor: Editor,
    unfinished: UnfinishedMessage,
    /// Sends the error about the first message that cannot be decoded.
    unknown: Arc<Mutex<Option<oneshot::Sender<Error>>>>,
}

#[async_trait]
impl Handler for Inbox {
    type Writer = Pipe;

    async fn handle_notify(&self, name: String, args: Vec<Value>, _: Neovim<Pipe>) {
        self.unfinished.reset();
        if name != "co" {
            tracing::debug!(name, "a notification that is not for co");
            return;
        }
        for arg in args {
            match text::read(arg) {
                Received::Message { message, replaced } => {
                    if replaced {
                        self.tell(NoticeLevel::Warn, text::REPLACED);
                    }
                    self.queue(message);
                }
                Received::Refused(refusal) => self.refuse(&refusal),
                Received::Unknown(error) => self.give_up(&error),
            }
        }
    }

    async fn handle_request(
        &self,
        _name: String,
        _args: Vec<Value>,
        _: Neovim<Pipe>,
    ) -> Result<Value, Value> {
        self.unfinished.reset();
        Err("co takes no requests, only notifications".into())
    }
}

impl Inbox {
    fn queue(&self, message: FromEditor) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.messages.try_send(message) {
            // The message may hold a password, so it is not logged.
            tracing::error!("inbox full");
            self.tell(
                NoticeLevel::Error,
                "co is busy and dropped a message; try again",
            );
        }
    }

    /// Tells the person about a message that was refused because it has bytes that are not UTF-8. If the message answers a
    /// request of the backend, the request fails.
    fn refuse(&self, refusal: &Refusal) {
        self.tell(
            NoticeLevel::Error,
            &format!(
                "nothing was done: a message ({}) has a name or a command that is not all UTF-8",
                refusal.kind.escape_debug()
            ),
        );
        if let Some(request) = refusal.answers {
            self.queue(FromEditor::Failed { request });
        }
    }

    /// Stops reading messages. The versions of the plugin and the backend differ, so later messages would fail too.
    fn give_up(&self, error: &rmpv::ext::Error) {
        let mut unknown = self.unknown.lock();
        if let Some(unknown) = unknown.take() {
            let _ = unknown.send(Error::Unknown(shown(error)));
        }
    }

    fn tell(&self, level: NoticeLevel, message: &str) {
        self.editor.tell(ToEditor::Notice {
            level,
            message: message.to_owned(),
            answer: false,
        });
    }
}

/// Returns the first part of serde's error message, without the list of known names.
fn shown(error: &rmpv::ext::Error) -> String {
    let rmpv::ext::Error::Syntax(said) = error;
    let first = said.split(", expected").next().unwrap_or_default();
    let shown = first.chars().take(100).flat_map(char::escape_debug);
    shown.collect()
}
