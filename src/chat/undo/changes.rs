//! `/changes`: fills the quickfix list with the files that the chat changed, and opens a review that can take parts back.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::super::Chat;
use super::UndoTask;
use super::event::UndoEvent;
use super::plan::Plan;
use super::texts::{call_words, entries};
use crate::blocking::blocking;
use crate::buffers::OpenBuffers;
use crate::checkpoint::{
    self, By, ChangedFile, Checkpoints, MOST_REVIEW_BYTES, Overlap, Part, Record, Store, Undo,
};
use crate::protocol::{
    ChangesReview, FileChange, HunkAnswer, NoticeLevel, ToEditor, with_first_parts,
};
use crate::tool::permissions::Reply;
use crate::workspace::edits::accepted_hunks;
use co_edit::Hunk;
use co_text::one_line;

/// The changes of a chat in one workspace.
struct Changes {
    workspace: PathBuf,
    /// The changes, in the order in which they were made.
    all: Vec<checkpoint::Change>,
    /// The records of the calls.
    records: Vec<Record>,
}

/// The files of one workspace in a review.
struct ReviewedFiles {
    workspace: PathBuf,
    files: Vec<ChangedFile>,
    records: Vec<Record>,
    /// The changes that remove created directories and restore removed directories.
    directories: Vec<checkpoint::Change>,
}

impl Chat {
    /// Fills the quickfix list with the files that the chat changed. If no turn runs, or one of an agent, opens the review of them too.
    pub(in crate::chat) async fn changes(&mut self) {
        let (Some(chat), services) = (self.recorder.id(), Arc::clone(&self.services)) else {
            return self.say("this chat has changed no file");
        };
        let found = blocking(move || {
            let checkpoints = &services.checkpoints;
            checkpoints.record_open(&chat)?;
            let store = checkpoints.store()?;
            let done = checkpoints.history(&chat).done;
            let records = checkpoints.records(&chat).into_iter();
            let entries = records.flat_map(|it| {
                let taken_back = !done.iter().any(|done| done.has_turn(it.turn));
                entries(&it, taken_back, &store)
            });
            Ok::<_, io::Error>(entries.collect::<Vec<_>>())
        });
        match found.await {
            Ok(entries) if entries.is_empty() => self.say("this chat has changed no file"),
            Ok(entries) => {
                self.services.editor.tell(ToEditor::Quickfix {
                    title: "Co /changes".to_owned(),
                    entries,
                    update: false,
                });
                if self.takes_undo()
                    && let Some(task) = self.undo_task(By::TakenBack, None, None)
                {
                    tokio::spawn(task.review());
                }
            }
            Err(why) => self.complain(format!("the changes cannot be read: {why}")),
        }
    }
}

impl UndoTask {
    /// Lets the person review the changes of the chat, and takes the refused parts back.
    async fn review(self) {
        let found = self.cancel.run_until_cancelled(self.find_reviewed());
        let reviewed = match found.await {
            None => return,
            Some(Ok(reviewed)) => reviewed,
            Some(Err(why)) => return self.services.answer(NoticeLevel::Error, why),
        };
        let Some(mut answers) = self.ask_review(&reviewed).await else {
            return;
        };
        let prompt = prompt(&reviewed, &answers);
        for one in reviewed {
            let own = answers.drain(..one.parts().count()).collect();
            match self.plan_of(one, own).await {
                Ok(Some(plan)) => self.apply(plan, "").await,
                Ok(None) => {}
                Err(why) => self.services.answer(NoticeLevel::Error, why),
            }
        }
        if let Some(text) = prompt {
            self.services.editor.tell(ToEditor::Unsent {
                chat: self.chat,
                text,
            });
        }
    }

    /// Returns the files that can be reviewed.
    async fn find_reviewed(&self) -> Result<Vec<ReviewedFiles>, String> {
        let (checkpoints, chat) = (
            Arc::clone(&self.services.checkpoints),
            self.transcript.clone(),
        );
        let read =
            move || Ok::<_, io::Error>((by_workspace(&checkpoints, &chat), checkpoints.store()?));
        let (all, store) = blocking(read).await?;
        let mut reviewed = Vec::new();
        let mut room = MOST_REVIEW_BYTES;
        for changes in all {
            let files: Vec<_> = (changes.all.iter())
                .map(|it| changes.workspace.join(&it.path))
                .collect();
            let open = (self.services.buffers)
                .read(files.iter().map(PathBuf::as_path))
                .await;
            let store = Arc::clone(&store);
            let found = move || Ok::<_, String>(ReviewedFiles::of(changes, &store, &open, room));
            let found = blocking(found).await?;
            room -= found.files.iter().map(ChangedFile::size).sum::<usize>();
            reviewed.push(found);
        }
        Ok(reviewed)
    }

    /// Shows the review and waits for the answers to all parts. Returns none if the person gave no answers.
    async fn ask_review(&self, reviewed: &[ReviewedFiles]) -> Option<Vec<HunkAnswer>> {
        let files: Vec<_> = reviewed.iter().flat_map(ReviewedFiles::changes).collect();
        let parts = reviewed.iter().map(|it| it.parts().count()).sum::<usize>();
        if parts == 0 {
            return None;
        }
        let review = ChangesReview {
            id: self.services.id(),
            chat: self.chat,
            round: false,
            files: with_first_parts(files),
        };
        let (reply, answer) = oneshot::channel();
        let asked = UndoEvent::Review(review, reply);
        self.events.send(asked).await.ok()?;
        match self.cancel.run_until_cancelled(answer).await? {
            Ok(Reply::Reviewed(answers)) if answers.len() == parts => Some(answers),
            _ => None,
        }
    }

    /// Returns the plan that takes the refused parts back; none if no part was refused.
    async fn plan_of(
        &self,
        reviewed: ReviewedFiles,
        answers: Vec<HunkAnswer>,
    ) -> Result<Option<Plan>, String> {
        let files: Vec<_> = (reviewed.files.iter())
            .map(|it| reviewed.workspace.join(it.path()))
            .collect();
        // The person may have typed during the review.
        let open = (self.services.buffers)
            .read(files.iter().map(PathBuf::as_path))
            .await;
        let checkpoints = Arc::clone(&self.services.checkpoints);
        let plan = move || {
            let store = checkpoints.store().map_err(|error| error.to_string())?;
            reviewed.plan(&answers, &store, &open)
        };
        blocking(plan).await
    }
}

/// Returns the changes of a chat that were not taken back.
fn by_workspace(checkpoints: &Checkpoints, chat: &str) -> Vec<Changes> {
    let mut found: Vec<Changes> = Vec::new();
    let done = checkpoints.history(chat).done;
    for turn in &done {
        let of_turn = turn.changes().cloned();
        match found.iter_mut().find(|it| it.workspace == turn.workspace()) {
            Some(changes) => changes.all.extend(of_turn),
            None => found.push(Changes {
                workspace: turn.workspace().to_owned(),
                all: of_turn.collect(),
                records: Vec::new(),
            }),
        }
    }
    for record in checkpoints.records(chat) {
        let stays = done.iter().any(|done| done.has_turn(record.turn));
        let same = found
            .iter_mut()
            .find(|it| stays && it.workspace == record.workspace);
        if let (Some(changes), By::Call { .. }) = (same, &record.by) {
            changes.records.push(record);
        }
    }
    found
}

impl ReviewedFiles {
    /// Makes the review of these changes. Leaves files out if all texts together would have more than `room` bytes.
    fn of(changes: Changes, store: &Store, open: &OpenBuffers, mut room: usize) -> Self {
        let Changes {
            workspace,
            all,
            records,
        } = changes;
        let undo = Undo::of(all.iter(), &workspace, store, open, Overlap::Leave);
        let mut files = Vec::new();
        for change in undo.all() {
            if let Some(file) = ChangedFile::of(change, &records, store)
                && file.size() <= room
            {
                room -= file.size();
                files.push(file);
            }
        }
        let directories = undo.changes.into_iter().filter(|it| it.is_directory());
        Self {
            workspace,
            files,
            records,
            directories: directories.collect(),
        }
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.files.iter().flat_map(|file| &file.parts)
    }

    /// Returns the changes for the review.
    fn changes(&self) -> impl Iterator<Item = FileChange> {
        self.files.iter().map(|file| FileChange {
            calls: file.parts.iter().map(|it| self.calls(it)).collect(),
            ..file.for_review()
        })
    }

    /// Returns the calls that made a part, in words.
    fn calls(&self, part: &Part) -> String {
        let mut words: Vec<_> = (part.records.iter())
            .filter_map(|at| call_words(&self.records[*at]))
            .collect();
        words.dedup();
        one_line(&words.join(", "))
    }

    fn plan(
        &self,
        answers: &[HunkAnswer],
        store: &Store,
        open: &OpenBuffers,
    ) -> Result<Option<Plan>, String> {
        let mut answers = answers.iter();
        let mut changes = Vec::new();
        let mut turn = None;
        for file in &self.files {
            let own: Vec<_> = answers.by_ref().take(file.parts.len()).collect();
            let hunks: Vec<Hunk> = file.parts.iter().map(|it| it.hunk.clone()).collect();
            let stay = accepted_hunks(&hunks, own.iter().copied());
            if stay == hunks {
                continue;
            }
            let refused = (file.parts.iter().zip(own)).filter(|(_, it)| !it.accept);
            let records = refused.flat_map(|(part, _)| &part.records);
            turn = turn.max(records.map(|at| self.records[*at].turn).max());
            changes.push(file.without(&stay, store)?);
        }
        if changes.is_empty() {
            return Ok(None);
        }
        let directories: Vec<_> = (self.directories.iter())
            .filter(|dir| {
                let whole = |it: &checkpoint::Change| it.before.is_none() || it.after.is_none();
                (changes.iter()).any(|it| whole(it) && it.path.starts_with(&dir.path))
            })
            .map(checkpoint::Change::inverse)
            .collect();
        changes.extend(directories);
        let undo = Undo::of(
            changes.iter(),
            &self.workspace,
            store,
            open,
            Overlap::Refuse,
        );
        let kept = undo.kept.iter();
        let reasons = kept.map(|(path, why)| one_line(&format!("{} stays: {why}", path.display())));
        let last = self.records.iter().map(|it| it.turn).max();
        Ok(Some(Plan {
            turn: turn.or(last).unwrap_or_default(),
            workspace: self.workspace.clone(),
            reasons: reasons.collect(),
            // A review is about files only.
            git: None,
            undo,
        }))
    }
}

/// Returns the comments of the person as a prompt; none if there are none.
fn prompt(reviewed: &[ReviewedFiles], answers: &[HunkAnswer]) -> Option<String> {
    let files = reviewed.iter().flat_map(|it| &it.files);
    let parts = files.flat_map(|file| file.parts.iter().map(move |part| (file.path(), part)));
    let mut prompt = String::new();
    for ((path, part), answer) in parts.zip(answers) {
        if let Some(comment) = &answer.comment {
            let back = if answer.accept {
                ""
            } else {
                ", which I took back"
            };
            let (path, line) = (path.display(), part.line);
            prompt.push_str(&format!("\n- {path}, line {line}{back}: {comment}"));
        }
    }
    (!prompt.is_empty()).then(|| format!("About your changes:{prompt}"))
}
