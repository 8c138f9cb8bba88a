//! `/undo` and `/redo`: take the chat's changes of files back, and bring them back.
//!
//! A separate task compares the files, asks the person and changes the files, because Neovim may answer slowly about its
//! buffers.

mod base;
mod changes;
mod count;
mod event;
mod plan;
mod review;
mod texts;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(super) use self::count::Count;
use self::event::UndoEvent;
use self::plan::{Plan, Planned};
use self::texts::{TurnSummary, changed_words, note, turns};
use super::Chat;
use super::events::ChatEvent;
use super::rewind::RewindPoint;
use crate::blocking::blocking;
use crate::checkpoint::{By, Checkpoints, Record, Undo, UndoResult};
use crate::protocol::{Change, NoticeLevel, Question};
use crate::services::Services;
use crate::tool::permissions::Reply;
use crate::tool::tried::apply;
use co_llm::transcript::Item;
use co_text::{counted, one_line};

/// An `/undo`, `/redo`, `/review` or review of `/changes` that is not complete.
pub(super) struct OpenUndo {
    events: mpsc::Receiver<UndoEvent>,
    /// The prompt to which the chat goes back after the files are taken back.
    then: Option<RewindPoint>,
    /// Cancelled if the question is no longer needed.
    cancel: CancellationToken,
    question: Option<u64>,
    /// Cancelled when the task has ended.
    ended: CancellationToken,
    /// The answers of a `/review` that goes on.
    answers: Option<mpsc::UnboundedSender<review::FileAnswers>>,
    /// `/undo`, `/redo`, `/rewind` or `/review`.
    command: &'static str,
}

impl OpenUndo {
    /// Returns the id of its question, if it asks.
    pub(super) fn question(&self) -> Option<u64> {
        self.question
    }
}

/// The task of an `/undo`, `/redo`, `/review` or review of `/changes`.
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
    /// Cancelled when the task before this one has ended.
    after: Option<CancellationToken>,
    _ended: DropGuard,
}

impl Chat {
    /// Carries out `/undo` or `/redo`. With `from`, takes back that turn and all later ones. With `then`, the chat goes back
    /// to the moment before that prompt afterwards.
    pub(super) fn undo(&mut self, by: By, from: Option<usize>, then: Option<RewindPoint>) {
        if !self.takes_undo() || then.is_some() && self.running.is_some() {
            return self.complain("a turn is running; <C-c> cancels it");
        }
        // A new task would drop the one that asks, unseen. The person may expect that /redo reverses it.
        if let Some(command) = self.unanswered_undo()
            && by == By::Redo
            && command != "/redo"
        {
            let text = format!("{command} waits for your answer; :Co /approve goes to it");
            return self.complain(text);
        }
        match self.undo_task(by, from, then) {
            Some(task) => drop(tokio::spawn(task.run())),
            None => self.say("this chat has changed no file"),
        }
    }

    /// Returns whether changes can be reviewed and taken back now: no turn runs, or only the turn of an agent, which acts by
    /// itself.
    pub(super) fn takes_undo(&self) -> bool {
        self.running.is_none() || self.model.agent().is_some()
    }

    /// Records a note about files that were taken back, and shows it.
    pub(super) async fn tell_undone(&mut self, text: String) {
        let note = Item::Note {
            text: text.clone(),
            once: false,
        };
        if self.recorder.record(note).await {
            self.show(ChatEvent::ToldModel(text));
        }
    }

    /// Returns the command that asks or is about to ask, if there is one.
    fn unanswered_undo(&self) -> Option<&'static str> {
        let undo = (self.undo.as_ref()).filter(|undo| !undo.cancel.is_cancelled())?;
        let waits = undo.question.is_none_or(|it| self.questions.is_open(it));
        waits.then_some(undo.command)
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
        let ended = CancellationToken::new();
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
            after: self.undo.as_ref().map(|it| it.ended.clone()),
            _ended: ended.clone().drop_guard(),
        };
        self.undo = Some(OpenUndo {
            events: receiver,
            then,
            cancel,
            question: None,
            ended,
            answers: None,
            command: task.command(),
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
            None => {
                self.undo = None;
                self.services.checkpoints.tell_changed();
            }
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
                match text {
                    // A note of the turn that runs would not go with the next prompt.
                    Some(text) if self.running.is_some() => self.undo_notes.push(text),
                    Some(text) => self.tell_undone(text).await,
                    None => {}
                }
                if let Some(point) = self.undo.as_mut().and_then(|undo| undo.then.take()) {
                    self.rewind_chat(point).await;
                }
            }
        }
    }
}

/// Waits for a message of an `/undo`, if there is one.
pub(super) async fn next_event(undo: &mut Option<OpenUndo>) -> Option<UndoEvent> {
    match undo {
        Some(undo) => undo.events.recv().await,
        None => std::future::pending().await,
    }
}

impl UndoTask {
    async fn run(self) {
        let plan = tokio::select! {
            () = self.cancel.cancelled() => return,
            plan = self.plan() => plan,
        };
        match plan {
            Ok(Planned::Changes(plan, change)) => {
                if let Some(plan) = self.ask(*plan, change).await {
                    self.apply(plan, "").await;
                }
            }
            Ok(Planned::Nothing(git)) => {
                let said = std::iter::once(self.nothing().to_owned());
                let said = said.chain(git).chain(self.jobs.clone());
                let said = said.collect::<Vec<_>>().join("; ");
                self.services.answer(NoticeLevel::Info, said);
                self.done(None).await;
            }
            Err(why) => self.services.answer(NoticeLevel::Error, why),
        }
    }

    /// Records what the turn of the chat's agent has changed until now, if one runs.
    async fn record_open(&self) -> Result<(), String> {
        let (checkpoints, chat) = (
            Arc::clone(&self.services.checkpoints),
            self.transcript.clone(),
        );
        blocking(move || checkpoints.record_open(&chat)).await
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

    /// Asks the person. Returns the plan after a yes.
    async fn ask(&self, plan: Plan, change: Option<Change>) -> Option<Plan> {
        let Some(change) = change else {
            return Some(plan);
        };
        let question = Question {
            id: self.services.id(),
            cwd: one_line(&self.cwd.display().to_string()),
            reasons: plan.reasons.clone(),
            ..Question::about_change(self.chat, self.command().to_owned(), change)
        };
        let (reply, answer) = oneshot::channel();
        let asked = UndoEvent::Ask(Box::new(question), reply);
        self.events.send(asked).await.ok()?;
        let answer = self.cancel.run_until_cancelled(answer).await?;
        (answer == Ok(Reply::Once)).then_some(plan)
    }

    fn command(&self) -> &'static str {
        match self.by {
            By::Redo => "/redo",
            _ if self.from.is_some() => "/rewind",
            _ => "/undo",
        }
    }

    /// Changes the files and records the changes. The notice about it begins with `said`.
    async fn apply(&self, plan: Plan, said: &str) {
        let Plan {
            turn,
            workspace,
            undo,
            git,
            reasons,
        } = plan;
        let left_alone = undo.kept.len();
        let by = self.by.clone();
        let on_disk = move |checkpoints: &Checkpoints, undo: Undo, root: &Path| {
            checkpoints.make(undo, root, by)
        };
        // What an agent changes until the files are changed is its own, and what it changes later.
        if let Err(why) = self.record_open().await {
            return self.services.answer(NoticeLevel::Error, why);
        }
        let done = match apply(&self.services, &workspace, undo, on_disk).await {
            Ok(done) => done,
            Err(why) => return self.services.answer(NoticeLevel::Error, why),
        };
        let record = Record {
            changes: done.changes.clone(),
            ..Record::new(turn, self.by.clone(), &workspace)
        };
        let has_changed = !record.changes.is_empty();
        let (checkpoints, chat) = (
            Arc::clone(&self.services.checkpoints),
            self.transcript.clone(),
        );
        let unkept = blocking(move || checkpoints.append(&chat, &record))
            .await
            .err();
        // The end of the turn records what this could not.
        let _later = self.record_open().await;
        let mut text = self.words(&done, has_changed, (left_alone, &reasons));
        if let Some(git) = git.filter(|_| has_changed) {
            text.push_str(&format!("; {git}"));
        }
        if let Some(why) = &unkept {
            text.push_str(&format!("; this cannot be taken back: {why}"));
        }
        let level = match done.failed.is_empty() && unkept.is_none() {
            true => NoticeLevel::Info,
            false => NoticeLevel::Warn,
        };
        self.services.answer(level, format!("{said}{text}"));
        if has_changed {
            self.done(Some(note(&done, &self.by))).await;
        } else if left_alone == 0 && done.failed.is_empty() {
            self.done(None).await;
        }
    }

    /// Returns the result in words, for the person.
    fn words(
        &self,
        done: &UndoResult,
        has_changed: bool,
        (left_alone, reasons): (usize, &[String]),
    ) -> String {
        let has_failed = !done.failed.is_empty();
        let mut text = match has_changed {
            true => changed_words(done, &self.by, self.with_chat),
            false if left_alone == 0 && !has_failed => {
                let why = reasons.join("; ");
                format!("nothing to change: the files are as they were; {why}")
            }
            false => format!("nothing was changed: {}", reasons.join("; ")),
        };
        for (path, why) in &done.failed {
            text.push_str(&format!("; {} was not changed: {why}", path.display()));
        }
        if left_alone > 0 && has_changed {
            text.push_str(&format!("; {} left alone", counted(left_alone, "file")));
        }
        text
    }
}
