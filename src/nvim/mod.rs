//! The connection to Neovim, and the only place that knows nvim-rs.
//!
//! What comes in is decoded and queued, nothing more: nvim-rs handles notifications one at a time, so
//! waiting here would stop everything. What goes out is the business of one task, the writer.

mod stdio;
mod text;
mod writer;

use std::io;

use async_trait::async_trait;
use nvim_rs::{Handler, Neovim};
use rmpv::Value;
use tokio::sync::mpsc;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt, TokioAsyncWriteCompatExt};

use crate::editor::Editor;
use crate::protocol::{FromEditor, Level, ToEditor};

type Pipe = Compat<stdio::Writer>;

/// What Neovim may have sent before the app got to it. A person cannot fill it; a runaway script is told.
const INBOX: usize = 1024;

/// Takes standard input and output and speaks RPC on them.
///
/// Returns the messages from Neovim, which end when Neovim does, and the handle to tell it something.
///
/// # Errors
/// Where standard input and output are not Neovim's.
pub fn connect() -> io::Result<(mpsc::Receiver<FromEditor>, Editor)> {
    let (reader, output) = stdio::take()?;
    let (editor, outbox) = Editor::new();
    let (inbox, messages) = mpsc::channel(INBOX);
    let handler = Inbox {
        messages: inbox,
        editor: editor.clone(),
    };
    let (neovim, io_loop) = Neovim::new(reader.compat(), output.compat_write(), handler);
    tokio::spawn(async move {
        // The inbox is dropped with the loop's handler: that is how the app learns that Neovim is gone.
        if let Err(error) = io_loop.await {
            tracing::info!(%error, "neovim closed the channel");
        }
    });
    tokio::spawn(writer::run(neovim, outbox));
    Ok((messages, editor))
}

/// Decodes notifications.
#[derive(Clone)]
struct Inbox {
    messages: mpsc::Sender<FromEditor>,
    editor: Editor,
}

#[async_trait]
impl Handler for Inbox {
    type Writer = Pipe;

    async fn handle_notify(&self, name: String, args: Vec<Value>, _: Neovim<Pipe>) {
        if name != "co" {
            tracing::debug!(name, "a notification that is not for co");
            return;
        }
        for mut arg in args {
            if text::mend(&mut arg) {
                self.tell(Level::Warn, text::MENDED);
            }
            match rmpv::ext::from_value::<FromEditor>(arg) {
                Ok(message) => self.queue(message),
                Err(error) => {
                    tracing::error!(%error, "undecodable message");
                    // The log begins with the handshake, which this may have been.
                    self.complain(&format!(
                        "co could not read a message from its Lua side ({error}); restart Neovim after an update"
                    ));
                }
            }
        }
    }
}

impl Inbox {
    fn queue(&self, message: FromEditor) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.messages.try_send(message) {
            // What was dropped may hold a password: it is not logged.
            tracing::error!("inbox full");
            self.complain("co is busy and dropped a message; try again");
        }
    }

    fn complain(&self, message: &str) {
        self.tell(Level::Error, message);
    }

    fn tell(&self, level: Level, message: &str) {
        self.editor.tell(ToEditor::Notice {
            level,
            message: message.to_owned(),
        });
    }
}
