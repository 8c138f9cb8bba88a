//! The transcript file of a chat and its copy in memory. co records first, then acts, then shows.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::message::WorkDirs;
use crate::blocking::blocking;
use crate::error;
use crate::protocol::NoticeLevel;
use crate::services::Services;
use crate::store::{Meta, TranscriptWriter};
use co_llm::transcript::{self, Item};
use co_text::{first_line, shorten_chars};

/// The time between two writes of streamed text. Text is shown only after it is written.
const WRITE_INTERVAL: Duration = Duration::from_millis(30);

/// Characters of the first prompt in the title of a chat.
const TITLE_CHARS: usize = 60;

pub(super) struct Recorder {
    services: Arc<Services>,
    log: Option<Arc<Mutex<TranscriptWriter>>>,
    /// A copy of the id of the file: locking `log` may wait for a write.
    id: Option<String>,
    /// A copy of the title of the chat, for the same reason.
    title: String,
    items: Vec<Item>,
    /// The end of the last turn, if it could not be written. Without it, the next prompt would count as one of that turn.
    lost_end: Option<Item>,
    waiting: String,
    due: Instant,
}

impl Recorder {
    pub(super) fn new(services: Arc<Services>) -> Self {
        Self {
            services,
            log: None,
            id: None,
            title: String::new(),
            items: Vec::new(),
            lost_end: None,
            waiting: String::new(),
            due: Instant::now(),
        }
    }

    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the transcript's id in the store, if it has a file.
    pub(super) fn id(&self) -> Option<String> {
        self.id.clone()
    }

    /// Returns the chat's title; empty before the first prompt.
    pub(super) fn title(&self) -> String {
        self.title.clone()
    }

    /// Returns whether the title is still that of the first prompt.
    pub(super) fn has_first_title(&self) -> bool {
        let first = self.items.iter().find_map(|item| match item {
            Item::User { text, .. } => Some(title(text)),
            _ => None,
        });
        first.is_some_and(|first| first == self.title)
    }

    /// Gives the chat another title. Returns false if the chat has not begun.
    ///
    /// # Errors
    /// The title cannot be written.
    pub(super) async fn rename(&mut self, title: &str) -> Result<bool, String> {
        let Some(log) = self.log.clone() else {
            return Ok(false);
        };
        let title = title.to_owned();
        let wanted = title.clone();
        let written = blocking(move || {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.rename(&wanted)
        });
        written.await?;
        self.title = title;
        Ok(true)
    }

    /// Returns the transcript file. No other process can open it as long as this chat has it.
    #[cfg(test)]
    pub(super) fn log(&self) -> Option<Arc<Mutex<TranscriptWriter>>> {
        self.log.clone()
    }

    /// Continues a transcript from the store.
    pub(super) fn resume(&mut self, log: TranscriptWriter, items: Vec<Item>) {
        self.write_to(log);
        self.items = items;
        self.lost_end = None;
        self.waiting.clear();
    }

    fn write_to(&mut self, log: TranscriptWriter) {
        self.id = Some(log.id().to_owned());
        log.title().clone_into(&mut self.title);
        self.log = Some(Arc::new(Mutex::new(log)));
    }

    /// Creates the transcript file if there is none. If that fails, notifies the person and returns false.
    pub(super) async fn ready(&mut self, dirs: &WorkDirs, prompt: &str) -> bool {
        if self.log.is_some() {
            return true;
        }
        let services = Arc::clone(&self.services);
        let meta = Meta {
            workspace: dirs.workspace.clone(),
            cwd: dirs.cwd.clone(),
            title: title(prompt),
        };
        // Items that came before the first prompt, such as notices, are not in a file yet.
        let before = self.items.clone();
        let create = move || {
            let mut log = services.store.create(meta)?;
            for item in &before {
                log.append(item)?;
            }
            Ok::<_, crate::store::Error>(log)
        };
        match blocking(move || create().map_err(|error| error::text_of(&error).plain())).await {
            Ok(log) => {
                self.write_to(log);
                true
            }
            Err(why) => self.fail(&why),
        }
    }

    /// Writes an item, and before it the end of the last turn if that is lost. If it fails, notifies the person and returns false:
    /// then the chat must not act on the item.
    pub(super) async fn record(&mut self, item: Item) -> bool {
        if let Some(end) = self.lost_end.take()
            && !self.append(end).await
        {
            return false;
        }
        self.append(item).await
    }

    async fn append(&mut self, item: Item) -> bool {
        let Some(log) = &self.log else {
            self.items.push(item);
            return true;
        };
        let log = Arc::clone(log);
        let line = item.clone();
        let append = move || {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.append(&line)
                .map_err(|error| error::text_of(&error).plain())
        };
        match blocking(append).await {
            Ok(()) => {
                self.items.push(item);
                true
            }
            Err(why) => {
                self.lost_end = Some(item).filter(|item| matches!(item, Item::End { .. }));
                self.fail(&why)
            }
        }
    }

    /// Adds a piece of the model's text.
    pub(super) fn text(&mut self, piece: &str) {
        self.waiting.push_str(piece);
    }

    /// Waits until the collected text must be written.
    pub(super) async fn due(&self) {
        match self.waiting.is_empty() {
            true => std::future::pending().await,
            false => tokio::time::sleep_until(self.due).await,
        }
    }

    /// Writes the collected text and returns it to be shown.
    pub(super) async fn flush(&mut self) -> Option<String> {
        if self.waiting.is_empty() {
            return None;
        }
        let text = std::mem::take(&mut self.waiting);
        self.due = Instant::now() + WRITE_INTERVAL;
        self.record(Item::Text { text: text.clone() })
            .await
            .then_some(text)
    }

    fn fail(&self, why: &str) -> bool {
        tracing::error!(why, "the chat could not be written");
        self.services.notice(
            NoticeLevel::Error,
            format!("the chat could not be written, so nothing was done: {why}"),
        );
        false
    }
}

/// Returns the title of a chat that begins with a prompt: its first words, or those of the task to plan or to explore.
fn title(prompt: &str) -> String {
    let task = transcript::task_to_plan(prompt).or_else(|| transcript::task_to_explore(prompt));
    let prompt = task.unwrap_or(prompt);
    shorten_chars(first_line(prompt), TITLE_CHARS)
}
