//! The parts of a chat that most of its handlers need: its services, its directories, and the ways to send events to the person.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::events::{ChatEvent, FrontEnd};
use super::message::WorkDirs;
use crate::blocking::blocking;
use crate::protocol::{Choice, NoticeLevel, ToEditor};
use crate::services::Services;
use crate::workspace::judge::{Judge, workspace_of};

/// The parts of a chat that every handler gets. A handler also gets the part of the chat's state that it changes.
pub(super) struct ChatContext {
    pub id: u64,
    pub services: Arc<Services>,
    pub dirs: WorkDirs,
    pub front_end: Arc<dyn FrontEnd>,
    /// Cancelled when the chat ends.
    pub cancel: CancellationToken,
}

impl ChatContext {
    /// Returns the judge of the chat's workspace.
    pub(super) fn judge(&self) -> Arc<Judge> {
        self.services.judge(&self.dirs.workspace)
    }

    /// Shows an event in the chat.
    pub(super) fn show(&self, event: ChatEvent) {
        self.front_end.show(event);
    }

    /// Shows the person the answer to one of their commands.
    pub(super) fn say(&self, message: impl Into<String>) {
        self.services.answer(NoticeLevel::Info, message);
    }

    /// Shows the person the reason why one of their commands is not carried out.
    pub(super) fn complain(&self, message: impl Into<String>) {
        self.services.answer(NoticeLevel::Error, message);
    }

    /// Shows the person a list from which to choose the arguments of a slash command.
    pub(super) fn offer(&self, name: &str, title: &str, choices: Vec<Choice>) {
        self.services.editor.tell(ToEditor::Choose {
            chat: self.id,
            name: name.to_owned(),
            title: title.to_owned(),
            choices,
        });
    }

    /// Resolves a path that the person typed. A relative path is relative to the chat's working directory, and `~` is the home
    /// directory.
    pub(super) fn named(&self, path: &str) -> PathBuf {
        let home = &self.services.places.home;
        match path.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None if path == "~" => home.clone(),
            None => self.dirs.cwd.join(path),
        }
    }

    /// Returns the directories of the chat after `/cd path`. Returns `None`, after a notice, if the chat cannot go there.
    pub(super) async fn new_directories(&self, path: &str) -> Option<WorkDirs> {
        let asked = self.named(if path.is_empty() { "~" } else { path });
        let (there, now) = (asked.clone(), self.dirs.workspace.clone());
        // Its jobs and files are there.
        let held = self.services.probe.in_container();
        let found = blocking(move || {
            let cwd = there.canonicalize()?;
            if !cwd.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            let inside = cwd.starts_with(&now);
            if held && !inside {
                return Err(io::Error::other(format!(
                    "the container of this chat has {} only",
                    now.display()
                )));
            }
            let workspace = if inside { now } else { workspace_of(&cwd) };
            io::Result::Ok(WorkDirs { workspace, cwd })
        });
        match found.await {
            Ok(dirs) => Some(dirs),
            Err(why) => {
                self.complain(format!(
                    "cannot go to {}: {why}; choose another directory",
                    asked.display()
                ));
                None
            }
        }
    }
}
