//! The task of an `/undo`, `/redo`, `/review` or review of `/changes`: it compares the files, asks the person and changes the
//! files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::event::UndoEvent;
use super::plan::{Plan, Planned, is_of_git, merged};
use super::texts::{TurnSummary, change, changed_words, note, reasons};
use crate::blocking::blocking;
use crate::checkpoint::{
    ChangeCause, Checkpoints, Head, Record, TurnChanges, Undo, UndoResult, way_back,
};
use crate::protocol::{Change, NoticeLevel, Question};
use crate::services::Services;
use crate::tool::permissions::Reply;
use crate::tool::tried::apply;
use co_text::{counted, one_line};

/// The sentence about changes of `.git` that an older version of co kept after a trial.
const OF_OLDER: &str = "what an older co kept of a trial in .git stays, such as a commit";

/// The task of an `/undo`, `/redo`, `/review` or review of `/changes`.
pub(in crate::chat) struct UndoTask {
    pub(super) services: Arc<Services>,
    pub(super) chat: u64,
    pub(super) transcript: String,
    pub(super) cwd: PathBuf,
    pub(super) by: ChangeCause,
    /// The first turn to take back. All later turns are taken back too. If it is `None`, only the last turn that changed files is
    /// taken back.
    pub(super) from: Option<usize>,
    /// True if the chat is rewound too, after the files.
    pub(super) with_chat: bool,
    pub(super) turns: Vec<TurnSummary>,
    /// Sentences about jobs whose changes are not known yet.
    pub(super) jobs: Vec<String>,
    pub(super) events: mpsc::Sender<UndoEvent>,
    pub(super) cancel: CancellationToken,
    /// Cancelled when the previous task has ended.
    pub(super) after: Option<CancellationToken>,
    pub(super) _ended: DropGuard,
}

impl UndoTask {
    /// Carries out an `/undo`, a `/redo`, or the part of a `/rewind` that restores files.
    pub(in crate::chat) async fn run(self) {
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

    /// Returns the plan. If co must ask, also returns the changes that the question shows.
    async fn plan(&self) -> Result<Planned, String> {
        self.record_open().await?;
        let (services, chat, redo) = (
            Arc::clone(&self.services),
            self.transcript.clone(),
            self.by == ChangeCause::Redo,
        );
        let from = self.from;
        let read = move || {
            let history = services.checkpoints.history(&chat);
            let mut turns = if redo { history.undone } else { history.done };
            if let Some(from) = from {
                turns = merged(turns, from)?;
            }
            let at = turns.iter().rposition(TurnChanges::has_changes);
            let later = turns.split_off(at.map_or(0, |at| at + 1));
            Ok::<_, std::io::Error>((turns.pop(), later, services.checkpoints.store()?))
        };
        let (turn, later, store) = blocking(read).await?;
        let Some(turn) = turn else {
            let last = later.iter().rfind(|turn| is_of_git(turn)).into_iter();
            return Ok(Planned::Nothing(self.of_git(last).await));
        };
        let git = self.of_git(std::iter::once(&turn).chain(&later)).await;
        let files: Vec<_> = turn.files().collect();
        let files = files.iter().map(PathBuf::as_path);
        let open = self.services.buffers.read(files).await;
        let (turns, jobs) = (self.turns.clone(), self.jobs.clone());
        let plan = move || {
            let workspace = turn.workspace().to_owned();
            let undo = Undo::of(turn.changes(), &workspace, &store, &open);
            let mut reasons = reasons(&turns, &turn, &later, &undo);
            reasons.extend(git.clone());
            reasons.extend(jobs);
            // If nothing is left to take back in this turn, co does not ask, and the next `/undo` takes back an earlier turn.
            let change = (!undo.all().is_empty()).then(|| change(&undo, &store));
            let plan = Plan {
                turn: turn.turn,
                workspace,
                undo,
                git,
                reasons,
            };
            Ok::<_, String>(Planned::Changes(Box::new(plan), change))
        };
        blocking(plan).await
    }

    /// Returns a sentence about the changes that turns made in `.git`. These changes stay, so the sentence names the command that
    /// takes them back. Returns `None` if the turns changed nothing there, or if the changes no longer exist.
    async fn of_git<'a>(&self, turns: impl Iterator<Item = &'a TurnChanges>) -> Option<String> {
        let records: Vec<&Record> = turns.flat_map(|turn| &turn.records).collect();
        let workspace = &records.first()?.workspace;
        let records = || records.iter().filter(|it| it.workspace == *workspace);
        let of_older = records().any(|it| it.of_git).then_some(OF_OLDER);
        let moves: Vec<_> = records().filter_map(|it| it.head.as_ref()).collect();
        if self.by == ChangeCause::Redo || moves.is_empty() {
            return of_older.map(str::to_owned);
        }
        let judge = self.services.judge(workspace);
        let now = Head::read(&self.services.executor, &judge).await;
        let way_back = way_back(&moves, now.as_ref());
        let all: Vec<_> = of_older
            .map(str::to_owned)
            .into_iter()
            .chain(way_back)
            .collect();
        (!all.is_empty()).then(|| one_line(&all.join("; ")))
    }

    /// Records the changes that the running turn of the chat's agent has made so far. Does nothing if no such turn runs.
    pub(super) async fn record_open(&self) -> Result<(), String> {
        let (checkpoints, chat) = (
            Arc::clone(&self.services.checkpoints),
            self.transcript.clone(),
        );
        blocking(move || checkpoints.record_open(&chat)).await
    }

    pub(super) async fn done(&self, text: Option<String>) {
        // It fails if the chat has ended.
        let _ended = self.events.send(UndoEvent::Done(text)).await;
    }

    fn nothing(&self) -> &'static str {
        match self.by {
            _ if self.from.is_some() => "no file was changed since that prompt",
            ChangeCause::Redo => "there is no /undo to take back",
            _ => "there is nothing to take back: this chat has changed no file",
        }
    }

    /// Asks the person about the plan. Returns the plan if the answer is yes.
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

    pub(super) fn command(&self) -> &'static str {
        match self.by {
            ChangeCause::Redo => "/redo",
            _ if self.from.is_some() => "/rewind",
            _ => "/undo",
        }
    }

    /// Changes the files, and records these changes. The notice about them begins with `said`.
    pub(super) async fn apply(&self, plan: Plan, said: &str) {
        let Plan {
            turn,
            workspace,
            undo,
            git,
            reasons,
        } = plan;
        let (left_alone, keeps_linked) = (undo.kept.len(), undo.keeps_linked);
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
        // If everything failed, or would have, the next `/undo` tries it again.
        let counts = has_changed || done.failed.is_empty() && !keeps_linked;
        let append = move || match counts {
            true => checkpoints.append(&chat, &record),
            false => Ok(()),
        };
        let unkept = blocking(append).await.err();
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

    /// Returns a text about the result for the person.
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
