//! `/undo` and `/redo`: take the chat's changes of files back, and bring them back.
//!
//! A separate task compares the files, asks the person and changes the files, because Neovim may answer slowly about its
//! buffers.

mod changes;
mod texts;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(super) use self::texts::named;
use self::texts::{TurnSummary, change, reasons, turns, without_directories};
use super::Chat;
use super::events::ChatEvent;
use super::rewind::RewindPoint;
use super::services::Services;
use super::text::one_line;
use super::turn::Reply;
use crate::blocking::blocking;
use crate::checkpoint::{
    self, By, Checkpoints, Overlap, Record, TurnChanges, Undo, UndoResult, files,
};
use crate::protocol::{Change, ChangesReview, NoticeLevel, Question};
use co_llm::transcript::Item;

/// An `/undo`, `/redo` or review of `/changes` that is not complete.
pub(super) struct OpenUndo {
    events: mpsc::Receiver<UndoEvent>,
    /// The prompt to which the chat goes back after the files are taken back.
    then: Option<RewindPoint>,
    /// Cancelled if the question is no longer needed.
    cancel: CancellationToken,
    question: Option<u64>,
}

/// A message of the task to its chat.
pub(super) enum UndoEvent {
    Ask(Box<Question>, oneshot::Sender<Reply>),
    Review(ChangesReview, oneshot::Sender<Reply>),
    /// The undo is complete. The text is a note for the model; none if no file was changed.
    Done(Option<String>),
}

/// The task of an `/undo`, `/redo` or review of `/changes`.
struct UndoTask {
    services: Arc<Services>,
    chat: u64,
    transcript: String,
    cwd: PathBuf,
    by: By,
    /// Take back this turn and all later ones. If it is none, take back only the last turn that changed files.
    from: Option<usize>,
    /// The chat also goes back, after the files.
    with_chat: bool,
    turns: Vec<TurnSummary>,
    /// Sentences about jobs whose changes are not known yet.
    jobs: Vec<String>,
    events: mpsc::Sender<UndoEvent>,
    cancel: CancellationToken,
}

/// The changes to make.
struct Plan {
    /// The first of the turns.
    turn: usize,
    workspace: PathBuf,
    undo: Undo,
    /// Sentences for the question about changes that cannot be taken back.
    reasons: Vec<String>,
}

impl Chat {
    /// Carries out `/undo` or `/redo`. With `from`, takes back that turn and all later ones. With `then`, the chat goes back
    /// to the moment before that prompt afterwards.
    pub(super) fn undo(&mut self, by: By, from: Option<usize>, then: Option<RewindPoint>) {
        if self.running.is_some() {
            return self.complain("a turn is running; <C-c> cancels it");
        }
        match self.undo_task(by, from, then) {
            Some(task) => drop(tokio::spawn(task.run())),
            None => self.say("this chat has changed no file"),
        }
    }

    /// Returns the task that takes changes back; none if the chat has none.
    fn undo_task(
        &mut self,
        by: By,
        from: Option<usize>,
        then: Option<RewindPoint>,
    ) -> Option<UndoTask> {
        let transcript = self.recorder.id()?;
        self.drop_undo();
        // The chat takes them one by one.
        let (events, receiver) = mpsc::channel(1);
        let cancel = self.cancel.child_token();
        let task = UndoTask {
            services: Arc::clone(&self.services),
            chat: self.id,
            transcript,
            cwd: self.dirs.cwd.clone(),
            by,
            from,
            with_chat: then.is_some(),
            turns: turns(self.recorder.items()),
            jobs: self
                .jobs
                .with_checkpoints()
                .into_iter()
                .map(texts::running_job)
                .collect(),
            events,
            cancel: cancel.clone(),
        };
        self.undo = Some(OpenUndo {
            events: receiver,
            then,
            cancel,
            question: None,
        });
        Some(task)
    }

    /// Ends an `/undo` that has not been answered.
    pub(super) fn drop_undo(&mut self) {
        if let Some(undo) = &mut self.undo {
            undo.cancel.cancel();
            undo.then = None;
            if let Some(question) = undo.question.take() {
                self.questions.withdraw(question);
            }
        }
    }

    pub(super) async fn undo_event(&mut self, event: Option<UndoEvent>) {
        match event {
            None => self.undo = None,
            Some(UndoEvent::Ask(question, reply)) => {
                if let Some(undo) = self.undo.as_mut().filter(|it| !it.cancel.is_cancelled()) {
                    undo.question = Some(question.id);
                    self.questions.put(*question, reply);
                }
            }
            Some(UndoEvent::Review(review, reply)) => {
                if let Some(undo) = self.undo.as_mut().filter(|it| !it.cancel.is_cancelled()) {
                    undo.question = Some(review.id);
                    self.questions.put_review(review, reply);
                }
            }
            Some(UndoEvent::Done(text)) => {
                if let Some(text) = text {
                    let note = Item::Note {
                        text: text.clone(),
                        once: false,
                    };
                    if self.recorder.record(note).await {
                        self.show(ChatEvent::ToldModel(text));
                    }
                }
                if let Some(point) = self.undo.as_mut().and_then(|undo| undo.then.take()) {
                    self.rewind_chat(point).await;
                }
            }
        }
    }
}

/// Makes changes in the workspace `root`: those of files by calling `on_disk`, then those of Neovim's buffers.
///
/// # Errors
/// `on_disk` failed, and nothing was changed.
pub(super) async fn apply(
    services: &Services,
    root: &Path,
    mut undo: Undo,
    on_disk: impl FnOnce(&Checkpoints, Undo, &Path) -> std::io::Result<UndoResult> + Send + 'static,
) -> Result<UndoResult, String> {
    let all: Vec<_> = undo.all().iter().map(|it| root.join(&it.path)).collect();
    for file in &all {
        // A command of another chat may run.
        services.checkpoints.saved(file);
    }
    let in_buffers = std::mem::take(&mut undo.buffers);
    let (checkpoints, place) = (Arc::clone(&services.checkpoints), root.to_owned());
    let mut done = blocking(move || on_disk(&checkpoints, undo, &place)).await?;
    let buffers = services.buffers.clone();
    for (buffer, change) in in_buffers {
        let changed = buffers.change(buffer).await;
        let moved = changed.moved.then(|| "it has changed meanwhile".to_owned());
        match changed.problem.or(moved) {
            Some(why) => done.failed.push((change.path, why)),
            None => done.changes.push(change),
        }
    }
    for (file, to) in gone(&done.changes) {
        let to = to.map(|it| root.join(it));
        buffers.file_gone(&root.join(file), to.as_deref());
    }
    // The buffers of these files are read again. That may take long, so nothing waits for it.
    tokio::spawn(async move {
        let files = all.iter().map(PathBuf::as_path);
        buffers.read(files).await;
    });
    Ok(done)
}

/// Returns the files that changes removed, with their new names if they were moved.
fn gone(changes: &[checkpoint::Change]) -> impl Iterator<Item = (&Path, Option<&Path>)> {
    let mut made: HashMap<_, &Path> = HashMap::new();
    for change in changes.iter().filter(|it| it.before.is_none()) {
        made.entry(&change.after).or_insert(&change.path);
    }
    let removed = changes.iter().filter(|it| {
        let was_file = matches!(it.before, Some(checkpoint::Entry::File { .. }));
        was_file && it.after.is_none()
    });
    removed.map(move |it| (it.path.as_path(), made.get(&it.before).copied()))
}

/// Waits for a message of an `/undo`, if there is one.
pub(super) async fn next_event(undo: &mut Option<OpenUndo>) -> Option<UndoEvent> {
    match undo {
        Some(undo) => undo.events.recv().await,
        None => std::future::pending().await,
    }
}

/// Merges the changes of turn `from` and of all later turns into one.
fn merged(turns: Vec<TurnChanges>, from: usize) -> std::io::Result<Vec<TurnChanges>> {
    let turns: Vec<_> = turns.into_iter().filter(|it| it.last >= from).collect();
    if turns.iter().any(|it| it.turn < from) {
        return Err(std::io::Error::other(
            "the changes since then were brought back together with earlier ones; take all of them back with /undo",
        ));
    }
    let last = turns.iter().map(|it| it.last).max().unwrap_or(from);
    let records: Vec<_> = turns.into_iter().flat_map(|it| it.records).collect();
    if records
        .iter()
        .any(|it| it.workspace != records[0].workspace)
    {
        return Err(std::io::Error::other(
            "the changes lie in several workspaces; take them back one by one with /undo",
        ));
    }
    Ok(vec![TurnChanges {
        turn: from,
        last,
        records,
    }])
}

impl UndoTask {
    async fn run(self) {
        let plan = tokio::select! {
            () = self.cancel.cancelled() => return,
            plan = self.plan() => plan,
        };
        match plan {
            Ok(Some((plan, change))) => {
                if let Some(plan) = self.ask(plan, change).await {
                    self.apply(plan).await;
                }
            }
            Ok(None) => {
                let said = std::iter::once(self.nothing().to_owned()).chain(self.jobs.clone());
                let said = said.collect::<Vec<_>>().join("; ");
                self.services.answer(NoticeLevel::Info, said);
                self.done(None).await;
            }
            Err(why) => self.services.answer(NoticeLevel::Error, why),
        }
    }

    async fn done(&self, text: Option<String>) {
        // It fails if the chat has ended.
        let _ended = self.events.send(UndoEvent::Done(text)).await;
    }

    fn nothing(&self) -> &'static str {
        match self.by {
            _ if self.from.is_some() => "no file was changed since that prompt",
            By::Redo => "there is no /undo to take back",
            _ => "there is nothing to take back: this chat has changed no file",
        }
    }

    /// Returns the plan and its changes for the question; none if no turn changed files.
    async fn plan(&self) -> Result<Option<(Plan, Change)>, String> {
        let (services, chat, redo) = (
            Arc::clone(&self.services),
            self.transcript.clone(),
            self.by == By::Redo,
        );
        let from = self.from;
        let read = move || {
            let history = services.checkpoints.history(&chat);
            let mut turns = if redo { history.undone } else { history.done };
            if let Some(from) = from {
                turns = merged(turns, from)?;
            }
            let at = turns.iter().rposition(TurnChanges::has_changes);
            let later = at.map_or_else(Vec::new, |at| turns.split_off(at + 1));
            Ok::<_, std::io::Error>((turns.pop(), later, services.checkpoints.store()?))
        };
        let (turn, later, store) = blocking(read).await?;
        let Some(turn) = turn.filter(TurnChanges::has_changes) else {
            return Ok(None);
        };
        let files: Vec<_> = turn.files().collect();
        let files = files.iter().map(PathBuf::as_path);
        let open = self.services.buffers.read(files).await;
        let (turns, jobs) = (self.turns.clone(), self.jobs.clone());
        let plan = move || {
            let workspace = turn.workspace().to_owned();
            let undo = Undo::of(turn.changes(), &workspace, &store, &open, Overlap::Refuse);
            let mut reasons = reasons(&turns, &turn, &later, &undo);
            reasons.extend(jobs);
            let change = change(&undo, &store);
            let plan = Plan {
                turn: turn.turn,
                workspace,
                undo,
                reasons,
            };
            Ok::<_, String>((plan, change))
        };
        blocking(plan).await.map(Some)
    }

    /// Asks the person. Returns the plan after a yes.
    async fn ask(&self, plan: Plan, change: Change) -> Option<Plan> {
        if plan.undo.all().is_empty() {
            // Nothing is left to take back in this turn. The next `/undo` takes back an earlier one.
            return Some(plan);
        }
        let question = Question {
            id: self.services.id(),
            cwd: one_line(&self.cwd.display().to_string()),
            reasons: plan.reasons.clone(),
            ..Question::about_change(self.chat, self.command().to_owned(), change)
        };
        let (reply, answer) = oneshot::channel();
        let asked = UndoEvent::Ask(Box::new(question), reply);
        self.events.send(asked).await.ok()?;
        tokio::select! {
            () = self.cancel.cancelled() => None,
            answer = answer => (answer == Ok(Reply::Once)).then_some(plan),
        }
    }

    fn command(&self) -> &'static str {
        match self.by {
            By::Redo => "/redo",
            _ if self.from.is_some() => "/rewind",
            _ => "/undo",
        }
    }

    /// Changes the files and records the changes.
    async fn apply(&self, plan: Plan) {
        let Plan {
            turn,
            workspace,
            undo,
            reasons,
        } = plan;
        let left_alone = undo.kept.len();
        let on_disk = |checkpoints: &Checkpoints, undo: Undo, root: &Path| {
            Ok(undo.apply(root, &*checkpoints.store()?))
        };
        let done = match apply(&self.services, &workspace, undo, on_disk).await {
            Ok(done) => done,
            Err(why) => return self.services.answer(NoticeLevel::Error, why),
        };
        let record = Record {
            planned: false,
            turn,
            by: self.by.clone(),
            workspace: workspace.clone(),
            changes: done.changes.clone(),
            repository: None,
            unclear: Vec::new(),
            unknown: None,
        };
        let (checkpoints, chat) = (
            Arc::clone(&self.services.checkpoints),
            self.transcript.clone(),
        );
        let kept = blocking(move || checkpoints.append(&chat, &record)).await;
        self.tell(&done, left_alone, &reasons, kept.err());
        if done.changes.is_empty() {
            if left_alone == 0 && done.failed.is_empty() {
                self.done(None).await;
            }
            return;
        }
        self.done(Some(self.note(&done))).await;
    }

    /// Tells the person what was done.
    fn tell(
        &self,
        done: &UndoResult,
        left_alone: usize,
        reasons: &[String],
        unkept: Option<String>,
    ) {
        let mut text = match (without_directories(done.changes.iter()).len(), &self.by) {
            (0, _) if left_alone == 0 && done.failed.is_empty() => {
                format!(
                    "nothing to change: the files are as they were; {}",
                    reasons.join("; ")
                )
            }
            (0, _) => format!("nothing was changed: {}", reasons.join("; ")),
            (count, By::Redo) => format!("{} brought back", files(count)),
            (count, By::TakenBack) => format!(
                "parts of {} taken back; :Co /redo undoes that",
                files(count)
            ),
            (count, _) if self.with_chat => format!(
                "{} taken back; :Co /redo in the original chat undoes that",
                files(count)
            ),
            (count, _) => format!("{} taken back; :Co /redo undoes that", files(count)),
        };
        for (path, why) in &done.failed {
            text.push_str(&format!("; {} was not changed: {why}", path.display()));
        }
        if left_alone > 0 && !done.changes.is_empty() {
            text.push_str(&format!("; {} left alone", files(left_alone)));
        }
        if let Some(why) = &unkept {
            text.push_str(&format!("; this cannot be taken back: {why}"));
        }
        let level = match done.failed.is_empty() && unkept.is_none() {
            true => NoticeLevel::Info,
            false => NoticeLevel::Warn,
        };
        self.services.answer(level, text);
    }

    /// Returns the note for the model.
    fn note(&self, done: &UndoResult) -> String {
        let changes = without_directories(done.changes.iter()).into_iter();
        let paths = named(changes.map(|it| it.path.display().to_string()).collect());
        match self.by {
            By::Redo => format!(
                "The person brought changes back that they had taken back. Read these files again before you change them: {paths}."
            ),
            By::TakenBack => format!(
                "The person took parts of your changes back. Read these files again before you change them: {paths}."
            ),
            _ => format!(
                "The person took changes of an earlier turn back. Read these files again before you change them: {paths}."
            ),
        }
    }
}
