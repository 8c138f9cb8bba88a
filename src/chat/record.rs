//! The transcript of a chat: its file, the copy in memory, and the text on the screen. co first records, then acts, then shows.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::events::{ChatEvent, FrontEnd};
use super::message::WorkDirs;
use crate::blocking::blocking;
use crate::error;
use crate::protocol::NoticeLevel;
use crate::services::Services;
use crate::store::{Meta, TranscriptWriter};
use co_exec::Caller;
use co_llm::transcript::{self, Item};
use co_text::{first_line, shorten_chars};

/// The time between two writes of streamed text. co shows a text only after it is written.
const WRITE_INTERVAL: Duration = Duration::from_millis(30);

/// The largest number of characters of the title that a chat gets from its first prompt.
const TITLE_CHARS: usize = 60;

/// Writes the transcript of a chat, and shows the written text.
pub(super) struct Recorder {
    services: Arc<Services>,
    log: Option<Arc<Mutex<TranscriptWriter>>>,
    /// The id of the transcript. This copy exists because locking `log` may wait for a write.
    id: Option<String>,
    /// The title of the chat. This copy exists for the same reason as `id`.
    title: String,
    items: Vec<Item>,
    /// The end of the last turn, if it could not be written. Without this item, the next prompt would belong to the last turn.
    lost_end: Option<Item>,
    waiting: String,
    due: Instant,
    front_end: Arc<dyn FrontEnd>,
    /// True if the front end got `AnswerStarted` for the last answer. A `/retry` replaces this answer on the screen.
    answering: bool,
}

impl Recorder {
    pub(super) fn new(services: Arc<Services>, front_end: Arc<dyn FrontEnd>) -> Self {
        Self {
            services,
            log: None,
            id: None,
            title: String::new(),
            items: Vec::new(),
            lost_end: None,
            waiting: String::new(),
            due: Instant::now(),
            front_end,
            answering: false,
        }
    }

    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the id of the transcript in the store; none if the transcript has no file yet.
    pub(super) fn id(&self) -> Option<String> {
        self.id.clone()
    }

    /// Returns the chat's title; empty before the first prompt.
    pub(super) fn title(&self) -> String {
        self.title.clone()
    }

    /// Returns true if the title still comes from the first prompt.
    pub(super) fn has_first_title(&self) -> bool {
        let first = self.items.iter().find_map(|item| match item {
            Item::User { text, .. } => Some(title(text)),
            _ => None,
        });
        first.is_some_and(|first| first == self.title)
    }

    /// Changes the title of the chat. Returns false if the transcript has not begun.
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
            let mut log = log.lock();
            log.rename(&wanted)
        });
        written.await?;
        self.title = title;
        Ok(true)
    }

    /// Returns the transcript file. No other process can open the file as long as this chat holds it.
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
        self.log.is_some() || self.create(dirs, prompt).await
    }

    /// Creates the transcript file with the items so far.
    async fn create(&mut self, dirs: &WorkDirs, prompt: &str) -> bool {
        let services = Arc::clone(&self.services);
        let meta = Meta {
            workspace: dirs.workspace.clone(),
            cwd: dirs.cwd.clone(),
            title: title(prompt),
        };
        let items = self.items.clone();
        let create = move || {
            let created = services.store.create(meta, &items);
            created.map_err(|error| error::text_of(&error).plain())
        };
        match blocking(create).await {
            Ok(log) => {
                self.write_to(log);
                true
            }
            Err(why) => self.fail(&why),
        }
    }

    /// Writes an item. If the end of the last turn could not be written, writes this end first. If a write fails, notifies the
    /// person and returns false. The chat must then not act on the item.
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
            let mut log = log.lock();
            let appended = match may_be_lost(&line) {
                true => log.append_unsynced(&line),
                false => log.append(&line),
            };
            appended.map_err(|error| error::text_of(&error).plain())
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

    /// Adds a piece of the model's text to the collected text.
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

    /// Writes the collected text and shows it.
    pub(super) async fn flush(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.waiting);
        self.due = Instant::now() + WRITE_INTERVAL;
        if self.record(Item::Text { text: text.clone() }).await {
            if !std::mem::replace(&mut self.answering, true) {
                self.front_end.show(ChatEvent::AnswerStarted);
            }
            self.front_end.show(ChatEvent::Text(text));
        }
    }

    /// Writes the collected text, and then an item of a turn.
    pub(super) async fn record_of_turn(&mut self, item: Item) -> bool {
        self.flush().await;
        self.answering &= !matches!(item, Item::Outcome(_));
        self.record(item).await
    }

    /// Writes a prompt, and creates the transcript file with it if there is none. If that fails, notifies the person and returns
    /// false. The next text of the model begins a new answer.
    pub(super) async fn record_prompt(
        &mut self,
        dirs: &WorkDirs,
        prompt: &str,
        item: Item,
    ) -> bool {
        let written = match &self.log {
            Some(_) => self.record(item).await,
            None => {
                self.items.push(item);
                let is_created = self.create(dirs, prompt).await;
                if !is_created {
                    self.items.pop();
                }
                is_created
            }
        };
        self.answering &= !written;
        written
    }

    /// Writes and shows a notice about the turn.
    pub(super) async fn notice(&mut self, text: String) {
        if self.record(Item::Notice { text: text.clone() }).await {
            let caller = Caller::Agent;
            self.front_end.show(ChatEvent::Notice { text, caller });
        }
    }

    /// Writes and shows a note to the model.
    pub(super) async fn note(&mut self, text: String) {
        let note = Item::Note {
            text: text.clone(),
            once: false,
        };
        if self.record(note).await {
            self.front_end.show(ChatEvent::ToldModel(text));
        }
    }

    /// Hides the last answer from the model. Does nothing if there is no answer. Returns false if the change could not be
    /// recorded.
    pub(super) async fn drop_answer(&mut self) -> bool {
        let answered = transcript::has_answer(&self.items);
        if !self.record(Item::Retried).await {
            return false;
        }
        if std::mem::take(&mut self.answering) {
            self.front_end.show(ChatEvent::AnswerDropped);
        }
        if answered {
            self.front_end.show(ChatEvent::AskedAgain);
        }
        true
    }

    /// Asks the model to continue its last answer. Returns false if the request could not be recorded.
    pub(super) async fn ask_to_go_on(&mut self) -> bool {
        let text = transcript::GO_ON.to_owned();
        let recorded = self.record(Item::Note { text, once: true }).await;
        if recorded {
            self.front_end.show(ChatEvent::AskedToContinue);
        }
        recorded
    }

    /// Replaces the transcript on the screen by the resumed one.
    ///
    /// # Errors
    /// The front end failed.
    pub(super) async fn show_resumed(&mut self, resumed: ChatEvent) -> Result<(), String> {
        self.answering = matches!(resumed, ChatEvent::Resumed { answered: true, .. });
        let front_end = Arc::clone(&self.front_end);
        // To make a long text takes a while.
        let show = move || {
            front_end.show(resumed);
            Ok::<_, String>(())
        };
        blocking(show).await
    }

    /// Returns the number of ended turns. Turns are numbered from 0, so this is also the number of the next turn.
    pub(super) fn turns_ended(&self) -> usize {
        let items = self.items.iter();
        items
            .filter(|item| matches!(item, Item::End { .. }))
            .count()
    }

    /// Returns the number of the running turn if `runs` is true, or else the number of the last turn.
    pub(super) fn last_turn(&self, runs: bool) -> usize {
        let since = self.items.iter().rev();
        let mut since = since.take_while(|item| !matches!(item, Item::End { .. }));
        let is_open = runs || since.any(|it| matches!(it, Item::User { .. }));
        self.turns_ended() - usize::from(!is_open && self.turns_ended() > 0)
    }

    /// Returns true if the transcript contains a prompt.
    pub(super) fn has_prompt(&self) -> bool {
        let mut items = self.items.iter();
        items.any(|item| matches!(item, Item::User { .. }))
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

/// Returns true if a crash of the machine may lose the item until the next item is on disk. Such an item is not shown, and nothing
/// that was done depends on it: without it, the next turn records the surroundings again, or the agent begins a new session.
fn may_be_lost(item: &Item) -> bool {
    matches!(
        item,
        Item::AgentSession {
            session: Some(_),
            ..
        } | Item::Surroundings(_)
    )
}

/// Returns the title of a chat that begins with this prompt: the first words of the prompt. For `/plan` and `/explore`, they are
/// the first words of the task.
fn title(prompt: &str) -> String {
    let task = transcript::task_to_plan(prompt).or_else(|| transcript::task_to_explore(prompt));
    let prompt = task.unwrap_or(prompt);
    shorten_chars(first_line(prompt), TITLE_CHARS)
}
