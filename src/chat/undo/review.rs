//! `/review`: the review of the changes of a chat that the person has neither accepted nor rejected yet.
//!
//! co saves each answer to disk at once. The next `/review` shows it again. The end of the review carries the answers out:
//! accepted parts go into the baseline, and rejected parts are taken back as by `/undo`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::base::since_base;
use super::event::UndoEvent;
use super::plan::Plan;
use super::task::UndoTask;
use super::texts::call_words;
use crate::blocking::blocking;
use crate::checkpoint::{
    AcceptedFile, ChangeCause, ChatRecord, Checkpoints, KeptAnswer, MOST_REVIEW_BYTES, OpenFile,
    OpenPart, PartKind, Record, Round, Store, Undo, Verdict, in_order, shown,
};
use crate::protocol::{
    ChangesReview, FileChange, HunkAnswer, NoticeLevel, PartAnswer, QuickfixEntry, ToEditor,
    with_first_parts,
};
use crate::services::Services;
use crate::tool::permissions::Reply;
use co_text::{code_block, counted, one_line};

/// The largest number of lines of one part of a change that a prompt with comments contains.
const MOST_PART_LINES: usize = 40;

/// The index of a file in the review, and the answers about the parts of its change.
pub(super) type FileAnswers = (usize, Vec<PartAnswer>);

/// The open changes of a chat in one workspace: the changes that the person has neither accepted nor rejected yet.
pub(super) struct OpenWork {
    pub(super) workspace: PathBuf,
    pub(super) files: Vec<OpenFile>,
    round: Round,
    /// For each record of changes: the text of its call, or the name of the chat if the record belongs to another chat.
    /// [`OpenPart::records`] contains indexes of this list.
    calls: Vec<String>,
    /// For each record of `calls`, the number of its turn in this chat; none for a record of another chat.
    turns: Vec<Option<usize>>,
}

/// A file in a review.
struct ReviewedFile {
    /// The index of the file's workspace in the review.
    work: usize,
    /// The index of the file in its workspace.
    file: usize,
    /// The lines of each part of the file's changes.
    texts: Vec<String>,
    answers: Vec<PartAnswer>,
}

/// The files of a review, and the person's answers.
pub(super) struct Review {
    works: Vec<OpenWork>,
    files: Vec<ReviewedFile>,
    /// The saved answers about parts that no longer exist.
    gone: Vec<KeptAnswer>,
    /// The saved answers that do not belong to this review: those of reviews with another base, and those about files that this
    /// review does not show.
    others: Vec<KeptAnswer>,
    /// The commit with which the files are compared. If it is `None`, they are compared with the state that the person accepted.
    base: Option<String>,
    /// The number of files that are left out because all files together are too long.
    left_out: usize,
}

/// The open changes that a review can show, and the files that it cannot show.
pub(super) struct FoundChanges {
    pub(super) works: Vec<OpenWork>,
    /// The commit with which the files are compared.
    pub(super) base: Option<String>,
    /// The files that cannot be reviewed.
    pub(super) left_out: Vec<PathBuf>,
}

/// The state with which the files are compared to find the open changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenSince {
    /// The state that the person accepted last.
    Accepted,
    /// The state before the first change of the chat.
    Start,
}

/// Returns the open changes of a chat, separately for each workspace. `open_since` is the state from which on changes are open.
pub(super) async fn find_open(
    services: &Arc<Services>,
    transcript: &str,
    open_since: OpenSince,
) -> Result<Vec<OpenWork>, String> {
    let (checkpoints, chat) = (Arc::clone(&services.checkpoints), transcript.to_owned());
    let read = move || match checkpoints.records(&chat) {
        none if none.is_empty() => Ok(None),
        own => Ok::<_, io::Error>(Some((own, checkpoints.store()?))),
    };
    let Some((own, store)) = blocking(read).await? else {
        return Ok(Vec::new());
    };
    let mut roots: Vec<PathBuf> = Vec::new();
    for record in &own {
        if !roots.contains(&record.workspace) && record.workspace.is_dir() {
            roots.push(record.workspace.clone());
        }
    }
    let mut works = Vec::new();
    for workspace in roots {
        let mut records = own.clone();
        records.retain(|it| it.workspace == workspace);
        let (checkpoints, chat) = (Arc::clone(&services.checkpoints), transcript.to_owned());
        let (root, copies) = (workspace.clone(), Arc::clone(&store));
        let read =
            move || KnownChanges::read(&checkpoints, &chat, records, &root, (open_since, &copies));
        let mut known = blocking(read).await?;
        let paths: Vec<_> = known.round.paths().map(|it| workspace.join(it)).collect();
        if paths.is_empty() {
            continue;
        }
        let open = services.buffers.read(paths.iter().map(PathBuf::as_path));
        let open = open.await;
        let (services, store) = (Arc::clone(services), Arc::clone(&store));
        let find = move || {
            known.round.look(&workspace, &open, &store)?;
            Ok::<_, io::Error>(known.open_work(workspace, &services, &store))
        };
        works.push(blocking(find).await?);
    }
    works.retain(|it| !it.files.is_empty());
    Ok(works)
}

/// The recorded changes of a chat in one workspace.
struct KnownChanges {
    round: Round,
    records: Vec<ChatRecord>,
    /// The ids of the other chats. The chat at index 0 has the number 1.
    others: Vec<String>,
}

impl KnownChanges {
    /// Reads the recorded changes in the workspace `root`. `own` are the records of the chat in this workspace.
    fn read(
        checkpoints: &Checkpoints,
        chat: &str,
        own: Vec<Record>,
        root: &Path,
        (open_since, store): (OpenSince, &Store),
    ) -> io::Result<Self> {
        // What others changed before is in the files as this chat found them.
        let since = own.first().and_then(|it| it.at);
        let others = checkpoints.others(chat, root, since);
        let (others, chats): (Vec<_>, Vec<_>) = others.into_iter().unzip();
        let chats = without_copies(std::iter::once(own).chain(chats));
        let mut records = in_order(chats);
        if open_since == OpenSince::Start {
            records.retain(|(_, it)| !matches!(it.by, ChangeCause::Accepted { .. }));
        }
        Ok(Self {
            round: Round::of(&records, root, store)?,
            records,
            others,
        })
    }

    fn open_work(self, workspace: PathBuf, services: &Services, store: &Store) -> OpenWork {
        let files = self.round.open_files(store);
        let parts = files.iter().flat_map(|it| &it.parts);
        let mut named = parts.flat_map(|it| &it.records);
        let titles = match named.any(|at| self.records[*at].0 > 0) {
            true => services.store.list(Some(&workspace)),
            false => Vec::new(),
        };
        let words = |(chat, record): &ChatRecord| {
            let Some(id) = chat.checked_sub(1).map(|it| &self.others[it]) else {
                return call_words(record).unwrap_or_default();
            };
            let title = titles.iter().find(|it| it.id == *id);
            let title = title.map_or("another chat".to_owned(), |it| {
                format!("the chat “{}”", it.title)
            });
            format!("changed by {title} too")
        };
        OpenWork {
            workspace,
            calls: self.records.iter().map(words).collect(),
            turns: (self.records.iter())
                .map(|(chat, it)| (*chat == 0).then_some(it.turn))
                .collect(),
            files,
            round: self.round,
        }
    }
}

/// Removes each record that an earlier chat of the list also has. Such copies exist because `/fork` copies the records of a chat.
fn without_copies(chats: impl Iterator<Item = Vec<Record>>) -> Vec<Vec<Record>> {
    let mut all: Vec<Vec<Record>> = Vec::new();
    for mut records in chats {
        records.retain(|it| !all.iter().any(|earlier| earlier.contains(it)));
        all.push(records);
    }
    all
}

impl UndoTask {
    /// Lets the person review the open changes, and carries out the answers.
    pub(super) async fn review_open(
        self,
        base: Option<(PathBuf, String)>,
        mut kept: mpsc::UnboundedReceiver<FileAnswers>,
    ) {
        let none = match &base {
            None => "nothing to review: the chat has no change that you have not answered",
            Some(_) => "nothing to review: no file differs from the merge base",
        };
        let found = tokio::select! {
            () = self.cancel.cancelled() => return,
            found = self.find_review(base.clone()) => found,
        };
        let review = match found {
            Ok((review, changes)) if !review.works.is_empty() => {
                let Some(answer) = self.show_review(&review, changes).await else {
                    return;
                };
                match self.wait_for_end(review, answer, &mut kept).await {
                    Some(review) => review,
                    None => return,
                }
            }
            Ok((review, _)) => review,
            Err(why) => return self.services.answer(NoticeLevel::Error, why),
        };
        let prompt = review.prompt();
        if review.works.is_empty() && prompt.is_none() {
            self.services.answer(NoticeLevel::Info, none);
            return self.done(None).await;
        }
        let all = review.kept();
        let kept = match review.works.is_empty() {
            true => Ok(review.kept_after_end()),
            false => self.end_review(review, base).await,
        };
        let is_done = kept.is_ok();
        // After a failure, the answers come back with the next review.
        let kept = kept.unwrap_or_else(|why| {
            self.services.answer(NoticeLevel::Error, why);
            all
        });
        if let Err(why) = self.keep(kept).await {
            self.services.answer(NoticeLevel::Warn, why);
        }
        if !is_done {
            return;
        }
        if let Some(text) = prompt {
            self.services.editor.tell(ToEditor::Unsent {
                chat: self.chat,
                text,
            });
        }
    }

    /// Returns the review with the saved answers, and the changes of its files.
    async fn find_review(
        &self,
        base: Option<(PathBuf, String)>,
    ) -> Result<(Review, Vec<FileChange>), String> {
        // An earlier review may not have written its last answer.
        if let Some(after) = &self.after {
            after.cancelled().await;
        }
        let found = self.find(base).await?;
        if !found.left_out.is_empty() {
            let text = format!(
                "not in the review, because they are no text: {}",
                counted(found.left_out.len(), "file")
            );
            self.services.answer(NoticeLevel::Warn, text);
        }
        let checkpoints = Arc::clone(&self.services.checkpoints);
        let chat = self.transcript.clone();
        let make = move || {
            let store = checkpoints.store()?;
            let kept = checkpoints.kept_answers(&chat);
            Ok::<_, io::Error>(Review::of(found, kept, MOST_REVIEW_BYTES, &store))
        };
        blocking(make).await
    }

    /// Carries out the answers of a review. Returns the answers that stay saved. Reads the files again, because an answer is only
    /// valid for the changes that the person saw.
    async fn end_review(
        &self,
        review: Review,
        base: Option<(PathBuf, String)>,
    ) -> Result<Vec<KeptAnswer>, String> {
        let found = self.find(base.clone()).await?;
        let given = review.count(|it| it.accept.is_some());
        let others = review.others.clone();
        let checkpoints = Arc::clone(&self.services.checkpoints);
        let read = move || {
            let store = checkpoints.store()?;
            let mut kept = review.given();
            for answer in &mut kept {
                answer.base.clone_from(&found.base);
            }
            let (review, _) = Review::of(found, kept, MOST_REVIEW_BYTES, &store);
            Ok::<_, io::Error>(review)
        };
        let mut review = blocking(read).await?;
        let mut kept = review.kept_after_end();
        kept.extend(others);
        let void = given.saturating_sub(review.count(|it| it.accept.is_some()));
        let said = review.outcome(void);
        let moves_baseline = review.base.is_none();
        let is_done = self.carry_out(&mut review, said, moves_baseline).await;
        self.update_list(base).await;
        match is_done {
            true => Ok(kept),
            false => Err("the answers to the review are kept: :Co /review shows them".to_owned()),
        }
    }

    /// Updates the quickfix list, so that it contains the changes that are still open.
    async fn update_list(&self, base: Option<(PathBuf, String)>) {
        let Ok(found) = self.find(base).await else {
            return;
        };
        let (checkpoints, chat) = (
            Arc::clone(&self.services.checkpoints),
            self.transcript.clone(),
        );
        let make = move || {
            let store = checkpoints.store()?;
            let kept = checkpoints.kept_answers(&chat);
            let (review, _) = Review::of(found, kept, MOST_REVIEW_BYTES, &store);
            Ok::<_, io::Error>(review.quickfix_list(true))
        };
        if let Ok(list) = blocking(make).await {
            self.services.editor.tell(list);
        }
    }

    /// Returns the open changes, or the changes since a branch if `base` is set.
    async fn find(&self, base: Option<(PathBuf, String)>) -> Result<FoundChanges, String> {
        self.record_open().await?;
        match base {
            None => Ok(FoundChanges {
                works: find_open(&self.services, &self.transcript, OpenSince::Accepted).await?,
                base: None,
                left_out: Vec::new(),
            }),
            Some((root, name)) => self.find_since(root, &name).await,
        }
    }

    /// Returns the changes since the branch `name`.
    async fn find_since(&self, root: PathBuf, name: &str) -> Result<FoundChanges, String> {
        let checkpoints = Arc::clone(&self.services.checkpoints);
        let (chat, workspace) = (self.transcript.clone(), root.clone());
        let read = move || {
            let mut records = checkpoints.records(&chat);
            records.retain(|it| it.workspace == workspace);
            Ok::<_, io::Error>((in_order(vec![records]), checkpoints.store()?))
        };
        let (records, store) = blocking(read).await?;
        let base = since_base(&self.services, &root, name, records.clone()).await?;
        let services = Arc::clone(&self.services);
        let find = move || {
            let known = KnownChanges {
                round: base.round,
                records,
                others: Vec::new(),
            };
            Ok::<_, io::Error>(known.open_work(root, &services, &store))
        };
        let work = blocking(find).await?;
        Ok(FoundChanges {
            works: Vec::from_iter((!work.files.is_empty()).then_some(work)),
            base: Some(base.commit),
            left_out: base.left_out,
        })
    }

    /// Shows the review and its quickfix list. Returns the channel for the answers. Returns `None` if the chat has ended.
    async fn show_review(
        &self,
        review: &Review,
        changes: Vec<FileChange>,
    ) -> Option<oneshot::Receiver<Reply>> {
        self.services.editor.tell(review.quickfix_list(false));
        if review.left_out > 0 {
            let more = counted(review.left_out, "file");
            let text = format!("too long for one review: the next one has {more}");
            self.services.answer(NoticeLevel::Warn, text);
        }
        let (reply, answer) = oneshot::channel();
        let changes = ChangesReview {
            id: self.services.id(),
            chat: self.chat,
            round: true,
            files: with_first_parts(changes),
        };
        let shown = self.events.send(UndoEvent::Review(changes, reply)).await;
        shown.ok().map(|()| answer)
    }

    /// Saves the answers until the review ends. Returns `None` if the person closed the review without ending it, or if the task
    /// was cancelled.
    async fn wait_for_end(
        &self,
        mut review: Review,
        mut answer: oneshot::Receiver<Reply>,
        kept: &mut mpsc::UnboundedReceiver<FileAnswers>,
    ) -> Option<Review> {
        loop {
            tokio::select! {
                biased;
                Some(answers) = kept.recv() => {
                    review.take(answers);
                    while let Ok(answers) = kept.try_recv() {
                        review.take(answers);
                    }
                    if let Err(why) = self.keep(review.kept()).await {
                        let text = format!("the answers are lost if Neovim ends now: {why}");
                        self.services.answer(NoticeLevel::Warn, text);
                    }
                }
                reply = &mut answer => {
                    return matches!(reply, Ok(Reply::Reviewed(_))).then_some(review);
                }
                () = self.cancel.cancelled() => return None,
            }
        }
    }

    async fn keep(&self, answers: Vec<KeptAnswer>) -> Result<(), String> {
        let checkpoints = Arc::clone(&self.services.checkpoints);
        let chat = self.transcript.clone();
        blocking(move || checkpoints.keep_answers(&chat, &answers)).await
    }

    /// Takes the rejected parts back. If `moves_baseline` is true, adds the accepted parts to the baseline. The notice about the
    /// result begins with `said`. If the answers about a workspace cannot be carried out, tells the person and returns false.
    pub(super) async fn carry_out(
        &self,
        review: &mut Review,
        mut said: String,
        moves_baseline: bool,
    ) -> bool {
        let mut failed = false;
        for (index, work) in std::mem::take(&mut review.works).into_iter().enumerate() {
            let mut verdicts: Vec<Vec<Verdict>> = (work.files.iter())
                .map(|it| vec![Verdict::Open; it.parts.len()])
                .collect();
            for file in review.files.iter().filter(|it| it.work == index) {
                verdicts[file.file] = verdicts_of(&work.files[file.file], &file.answers);
            }
            match self.answer_work(work, verdicts, moves_baseline).await {
                Ok(Some(plan)) => {
                    let mut before = Vec::from_iter((!said.is_empty()).then_some(said));
                    said = String::new();
                    if !plan.undo.all().is_empty() {
                        before.extend(plan.reasons.iter().cloned());
                    }
                    before.push(String::new());
                    self.apply(plan, &before.join("; ")).await;
                }
                Ok(None) => {}
                Err(why) => {
                    failed = true;
                    self.services.answer(NoticeLevel::Error, why);
                }
            }
        }
        if !failed && !said.is_empty() {
            self.services.answer(NoticeLevel::Info, said);
        }
        !failed
    }

    /// Records the parts that the person accepted. Returns a plan that takes the rejected parts back; none if no part was
    /// rejected.
    async fn answer_work(
        &self,
        work: OpenWork,
        mut verdicts: Vec<Vec<Verdict>>,
        moves_baseline: bool,
    ) -> Result<Option<Plan>, String> {
        let paths: Vec<_> = (work.files.iter())
            .map(|it| work.workspace.join(&it.path))
            .collect();
        // The person may have typed during the review.
        let open = &self.services.buffers;
        let open = open.read(paths.iter().map(PathBuf::as_path)).await;
        let checkpoints = Arc::clone(&self.services.checkpoints);
        let chat = self.transcript.clone();
        let answer = move || {
            let store = checkpoints.store()?;
            let (mut refused, mut accepted) = (Vec::new(), Vec::new());
            let last_turn = work.turns.iter().flatten().max().copied();
            let last_turn = last_turn.unwrap_or_default();
            let mut turn = None;
            for (file, verdicts) in work.files.iter().zip(&verdicts) {
                let parts = file.parts.iter().zip(verdicts);
                let back = parts.filter(|(_, verdict)| **verdict == Verdict::Refused);
                let records = back.flat_map(|(part, _)| &part.records);
                turn = turn.max(records.filter_map(|at| work.turns[*at]).max());
                let answered = file.answered(verdicts, &store)?;
                refused.extend(answered.refused);
                accepted.extend(answered.accepted);
            }
            refused.extend(work.round.directories_of(&refused));
            let root = &work.workspace;
            let mut undo = Undo::of(refused.iter(), root, &store, &open);
            for (file, verdicts) in work.files.iter().zip(&mut verdicts) {
                if !undo.kept.iter().any(|(path, _)| file.has_path(path)) {
                    continue;
                }
                // A file that cannot be changed is not moved either.
                undo.changes.retain(|it| !file.has_path(&it.path));
                let is_edited = |it: &&mut Verdict| matches!(it, Verdict::Edited(_));
                let edited = verdicts.iter_mut().filter(is_edited);
                edited.for_each(|it| *it = Verdict::Open);
                accepted.retain(|it: &AcceptedFile| it.path != file.path);
                accepted.extend(file.answered(verdicts, &store)?.accepted);
            }
            if moves_baseline && !accepted.is_empty() {
                let by = ChangeCause::Accepted { files: accepted };
                let record = Record::new(last_turn, by, root);
                checkpoints.append(&chat, &record)?;
            }
            if refused.is_empty() {
                return Ok(None);
            }
            let kept = undo.kept.iter();
            let reasons =
                kept.map(|(path, why)| one_line(&format!("{} stays: {why}", path.display())));
            Ok::<_, io::Error>(Some(Plan {
                turn: turn.unwrap_or(last_turn),
                workspace: root.clone(),
                reasons: reasons.collect(),
                // A review is about files only.
                git: None,
                undo,
            }))
        };
        blocking(answer).await
    }
}

impl Review {
    /// Returns the review of the changes in `found`, and the changes of its files. `kept` are the saved answers. The texts of all
    /// files together have at most `room` bytes. Files that do not fit are left out.
    pub(super) fn of(
        found: FoundChanges,
        kept: Vec<KeptAnswer>,
        mut room: usize,
        store: &Store,
    ) -> (Self, Vec<FileChange>) {
        let FoundChanges {
            works,
            base,
            left_out: unreadable,
        } = found;
        let is_of_it = |it: &KeptAnswer| it.base == base && !unreadable.contains(&it.path);
        let (mut kept, mut others): (Vec<_>, Vec<_>) = kept.into_iter().partition(is_of_it);
        let (mut files, mut changes, mut left_out) = (Vec::new(), Vec::new(), 0);
        for (work_index, work) in works.iter().enumerate() {
            for (file_index, file) in work.files.iter().enumerate() {
                let mut change = file.for_review(store);
                let Some(rest) = room.checked_sub(change.text.as_str().len()) else {
                    left_out += 1;
                    others.extend(kept.extract_if(.., |it| work.is_about(file, it)));
                    continue;
                };
                room = rest;
                let texts = part_texts(change.text.as_str());
                let answers: Vec<_> = (texts.iter().enumerate())
                    .map(|(at, _)| take_kept(&mut kept, work, file, &texts, at))
                    .collect();
                change.calls = file.parts.iter().map(|it| work.call(it)).collect();
                let is_answer = |it: &&PartAnswer| **it != open_part(it.part);
                change.answers = answers.iter().filter(is_answer).cloned().collect();
                changes.push(change);
                files.push(ReviewedFile {
                    work: work_index,
                    file: file_index,
                    texts,
                    answers,
                });
            }
        }
        kept.retain(|it| it.answer.comment.is_some());
        let review = Self {
            works,
            files,
            gone: kept,
            others,
            base,
            left_out,
        };
        (review, changes)
    }

    fn file(&self, file: &ReviewedFile) -> (&OpenWork, &OpenFile) {
        let work = &self.works[file.work];
        (work, &work.files[file.file])
    }

    /// Stores the answers about a file. They replace the earlier answers about this file.
    fn take(&mut self, (file, answers): FileAnswers) {
        let Some(file) = self.files.get_mut(file) else {
            return;
        };
        file.answers = (1..=file.texts.len()).map(open_part).collect();
        for answer in answers {
            let index = answer.part.wrapping_sub(1);
            if let Some(place) = file.answers.get_mut(index) {
                *place = answer;
            }
        }
    }

    /// Stores the answers about all parts, in the order of the parts.
    pub(super) fn take_all(&mut self, answers: Vec<HunkAnswer>) {
        let parts = self.files.iter_mut().flat_map(|it| &mut it.answers);
        for (part, answer) in parts.zip(answers) {
            *part = PartAnswer {
                part: part.part,
                accept: Some(answer.accept),
                lines: answer.lines,
                comment: answer.comment,
            };
        }
    }

    /// Returns the answers in the form in which they are saved.
    fn kept(&self) -> Vec<KeptAnswer> {
        let rest = self.gone.iter().chain(&self.others).cloned();
        self.given().into_iter().chain(rest).collect()
    }

    /// Returns the answers about the parts that still exist.
    fn given(&self) -> Vec<KeptAnswer> {
        let mut kept = Vec::new();
        for file in &self.files {
            let (work, open) = self.file(file);
            let parts = open.parts.iter().zip(&file.texts).zip(&file.answers);
            let given = parts.filter(|(_, answer)| **answer != open_part(answer.part));
            kept.extend(given.map(|((part, text), answer)| KeptAnswer {
                workspace: work.workspace.clone(),
                base: self.base.clone(),
                path: open.path.clone(),
                line: part.line,
                part: open.part_id(part, text),
                text: shortened(text),
                answer: answer.clone(),
            }));
        }
        kept
    }

    /// Returns the answers that stay saved after the review. After a review since a branch, the answers that accept a part stay
    /// saved. Other reviews record the accepted parts in the baseline instead.
    fn kept_after_end(&self) -> Vec<KeptAnswer> {
        let mut kept = self.given();
        kept.retain(|it| it.base.is_some() && it.answer.accept == Some(true));
        for it in &mut kept {
            (it.answer.comment, it.answer.lines) = (None, None);
        }
        kept.extend(self.others.iter().cloned());
        kept
    }

    fn count(&self, is: impl Fn(&PartAnswer) -> bool) -> usize {
        let answers = self.files.iter().flat_map(|it| &it.answers);
        answers.filter(|it| is(it)).count()
    }

    /// Returns a notice about the person's answers. `void` is the number of answers about parts that no longer exist.
    fn outcome(&self, void: usize) -> String {
        let accepted = self.count(|it| it.accept == Some(true));
        let open = self.count(|it| it.accept.is_none());
        let mut said = Vec::new();
        if void > 0 {
            let void = counted(void, "answer");
            said.push(format!(
                "{void} not carried out, as the lines have changed since"
            ));
        }
        said.extend((accepted > 0).then(|| format!("{} accepted", counted(accepted, "change"))));
        said.extend((open > 0).then(|| format!("{} still open", counted(open, "change"))));
        said.join("; ")
    }

    fn summary(&self) -> String {
        let files_of_all = self.works.iter().flat_map(|it| &it.files);
        let parts: usize = files_of_all.clone().map(|it| it.parts.len()).sum();
        let count = files_of_all.count();
        format!("{} in {}", counted(parts, "change"), counted(count, "file"))
    }

    /// Returns the message that sets the quickfix list of the open changes.
    fn quickfix_list(&self, update: bool) -> ToEditor {
        ToEditor::Quickfix {
            title: format!("Co /review: {}", self.summary()),
            entries: self.quickfix(),
            update,
        }
    }

    /// Returns a quickfix entry for each part of the open changes.
    fn quickfix(&self) -> Vec<QuickfixEntry> {
        let mut entries = Vec::new();
        for file in &self.files {
            let (work, open) = self.file(file);
            let path = work.workspace.join(&open.path).display().to_string();
            entries.extend(open.parts.iter().map(|part| {
                let words = match &part.kind {
                    PartKind::Lines(hunk) => format!("+{} -{}", hunk.added(), hunk.removed()),
                    PartKind::Moved => "moved".to_owned(),
                    PartKind::Mode => "another mode".to_owned(),
                    PartKind::Whole => "the whole file".to_owned(),
                };
                // A change against a branch may be by nobody that co knows.
                let call = Some(work.call(part)).filter(|it| !it.is_empty());
                let text = Vec::from_iter(std::iter::once(words).chain(call)).join(" · ");
                QuickfixEntry {
                    file: path.clone(),
                    line: part.line,
                    text: one_line(&text),
                }
            }));
        }
        entries
    }

    /// Returns the person's comments as a prompt with one line for each comment; none if there are no comments.
    pub(super) fn comment_list(&self) -> Option<String> {
        let mut prompt = String::new();
        for file in &self.files {
            let (_, open) = self.file(file);
            let path = open.path.display();
            for (part, answer) in open.parts.iter().zip(&file.answers) {
                if let Some(comment) = &answer.comment {
                    let (line, about) = (part.line, about(answer));
                    prompt.push_str(&format!("\n- {path}, line {line}{about}: {comment}"));
                }
            }
        }
        (!prompt.is_empty()).then(|| format!("About your changes:{prompt}"))
    }

    /// Returns the person's comments as a prompt that contains the lines of each part; none if there are no comments.
    fn prompt(&self) -> Option<String> {
        let mut comments: Vec<String> = Vec::new();
        let mut add = |path: &Path, line: usize, about: &str, comment: &str, text: &str| {
            let place = format!("{}:{line}", shown(path));
            let block = code_block("diff", text);
            comments.push(format!("{place}{about}: {comment}\n{block}\n"));
        };
        for file in &self.files {
            let (_, open) = self.file(file);
            for ((part, text), answer) in open.parts.iter().zip(&file.texts).zip(&file.answers) {
                if let Some(comment) = &answer.comment {
                    let about = about(answer);
                    add(&open.path, part.line, about, comment, &shortened(text));
                }
            }
        }
        for gone in &self.gone {
            let Some(comment) = &gone.answer.comment else {
                continue;
            };
            let about = ", which has changed since";
            add(&gone.path, gone.line, about, comment, &gone.text);
        }
        let all = comments.join("\n");
        (!comments.is_empty()).then(|| format!("About your changes:\n\n{all}"))
    }
}

impl OpenWork {
    fn is_about(&self, file: &OpenFile, answer: &KeptAnswer) -> bool {
        answer.workspace == self.workspace && answer.path == file.path
    }

    /// Returns the names of the calls that made a part of a change.
    fn call(&self, part: &OpenPart) -> String {
        let words = part.records.iter().map(|at| self.calls[*at].as_str());
        let mut words: Vec<_> = words.filter(|it| !it.is_empty()).collect();
        words.dedup();
        one_line(&words.join(", "))
    }
}

/// Returns a clause about the answer to a part, for a prompt.
fn about(answer: &PartAnswer) -> &'static str {
    match answer.accept {
        Some(false) => ", which I took back",
        _ => "",
    }
}

/// Returns the answer for a part that the person has not answered.
fn open_part(part: usize) -> PartAnswer {
    PartAnswer {
        part,
        ..PartAnswer::default()
    }
}

/// Returns the lines of each part of a text under review: the changed lines, or the facts about the file if no lines have
/// changed.
fn part_texts(review: &str) -> Vec<String> {
    let mut parts: Vec<[String; 2]> = Vec::new();
    for line in review.split_inclusive('\n') {
        let Some(part) = parts.last_mut().filter(|_| !line.starts_with('@')) else {
            parts.extend(line.starts_with('@').then(Default::default));
            continue;
        };
        match line.as_bytes().first() {
            Some(b'+' | b'-') => part[0].push_str(line),
            Some(b'!') => part[1].push_str(line),
            _ => {}
        }
    }
    let text = |[lines, facts]: [String; 2]| if lines.is_empty() { facts } else { lines };
    parts.into_iter().map(text).collect()
}

/// Removes the answer about the part at `index` from the saved answers, and returns it. If several parts have the same lines, a
/// saved answer belongs to the part that is nearest to the line of the answer.
fn take_kept(
    kept: &mut Vec<KeptAnswer>,
    work: &OpenWork,
    file: &OpenFile,
    texts: &[String],
    index: usize,
) -> PartAnswer {
    let text = &texts[index];
    let id = file.part_id(&file.parts[index], text);
    let nearest = |line: usize| {
        let parts = file.parts.iter().zip(texts).enumerate();
        let same = parts.filter(|(_, (_, other))| *other == text);
        same.min_by_key(|(_, (part, _))| part.line.abs_diff(line))
            .map(|(at, _)| at)
    };
    let is_it = |it: &KeptAnswer| {
        work.is_about(file, it) && it.part == id && nearest(it.line) == Some(index)
    };
    let part = index + 1;
    match kept.iter().position(is_it) {
        Some(at) => PartAnswer {
            part,
            ..kept.remove(at).answer
        },
        None => open_part(part),
    }
}

fn verdicts_of(file: &OpenFile, answers: &[PartAnswer]) -> Vec<Verdict> {
    let both = file.parts.iter().zip(answers);
    both.map(|(part, it)| Verdict::of(part, it.accept, it.lines.as_deref()))
        .collect()
}

/// Returns the first lines of a part, and a line with the number of omitted lines.
fn shortened(text: &str) -> String {
    let count = text.lines().count();
    if count <= MOST_PART_LINES {
        return text.to_owned();
    }
    let first: String = text.split_inclusive('\n').take(MOST_PART_LINES).collect();
    format!("{first}and {} more lines\n", count - MOST_PART_LINES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{Change, Entry};
    use co_llm::transcript::Decision;

    /// The changes of a call that makes files.
    fn found(files: &[(&str, &str)], store: &Store) -> FoundChanges {
        let root = Path::new("/work");
        let made = |(path, text): &(&str, &str)| Change {
            path: path.into(),
            before: None,
            after: Some(Entry::File {
                mode: 0o644,
                blob: Some(store.put(text.as_bytes()).unwrap()),
            }),
        };
        let by = ChangeCause::command("make".to_owned(), Decision::Approved);
        let record = Record {
            changes: files.iter().map(made).collect(),
            ..Record::new(0, by, root)
        };
        let round = Round::of(&[(0, record)], root, store).unwrap();
        let work = OpenWork {
            workspace: root.to_owned(),
            files: round.open_files(store),
            round,
            calls: vec!["make".to_owned()],
            turns: vec![Some(0)],
        };
        FoundChanges {
            works: vec![work],
            base: None,
            left_out: Vec::new(),
        }
    }

    fn paths(changes: &[FileChange]) -> Vec<&str> {
        changes.iter().map(|it| it.path.as_str()).collect()
    }

    #[test]
    fn the_answer_to_a_file_that_is_left_out_stays() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), 1 << 20).unwrap();
        let (a, b, c) = (("a", "1\n2\n"), ("b", "1\n2\n3\n"), ("c", "1\n"));
        let room = 15;
        let (mut first, changes) = Review::of(found(&[b], &store), Vec::new(), room, &store);
        assert_eq!(paths(&changes), ["b"]);
        let refused = PartAnswer {
            part: 1,
            accept: Some(false),
            lines: None,
            comment: Some("too long".to_owned()),
        };
        first.take((0, vec![refused.clone()]));
        let kept = first.kept();
        // `b` does not fit any more, but the shorter `c` does.
        let (second, changes) = Review::of(found(&[a, b, c], &store), kept.clone(), room, &store);
        assert_eq!((paths(&changes), second.left_out), (vec!["a", "c"], 1));
        assert_eq!((second.prompt(), second.kept()), (None, kept.clone()));
        assert_eq!(second.kept_after_end(), kept);
        let (last, changes) =
            Review::of(found(&[b], &store), second.kept_after_end(), room, &store);
        assert_eq!(
            (&changes[0].answers[..], last.left_out),
            (&[refused][..], 0)
        );
        assert!(
            last.prompt()
                .unwrap()
                .contains("b:1, which I took back: too long")
        );
        assert_eq!(last.kept_after_end(), []);
    }

    #[test]
    fn an_answer_against_another_commit_is_kept_for_its_review() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), 1 << 20).unwrap();
        let against = |commit: &str| FoundChanges {
            base: Some(commit.to_owned()),
            ..found(&[("a", "1\n")], &store)
        };
        let accepted = PartAnswer {
            part: 1,
            accept: Some(true),
            lines: None,
            comment: None,
        };
        let (mut one, _) = Review::of(against("one"), Vec::new(), 100, &store);
        one.take((0, vec![accepted.clone()]));
        let kept = one.kept_after_end();
        let (two, changes) = Review::of(against("two"), kept.clone(), 100, &store);
        assert_eq!(
            (&changes[0].answers[..], two.kept_after_end()),
            (&[][..], kept.clone())
        );
        let (_, changes) = Review::of(against("one"), kept, 100, &store);
        assert_eq!(changes[0].answers, [accepted]);
    }
}
