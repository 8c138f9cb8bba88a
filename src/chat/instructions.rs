//! The instructions of a workspace: its `CO.md` or `AGENTS.md`, as soon as the person trusts its text.
//!
//! A prompt never waits for an answer. It is sent without the text, and the next turn has it. The question belongs to no
//! chat: it stays until it is answered or the file changes. One read gives the text that is hashed, shown and sent.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;

use super::blocking::blocking;
use super::prompt;
use super::render::one_line;
use super::services::Services;
use super::{Answered, Session};
use crate::protocol::{Answer, Level, ToEditor, TrustQuestion};
use crate::trust::{self, FileText, Trust, TrustAnswer};
use co_llm::transcript::Item;

/// The files, the first one that is not refused counts.
const NAMES: [&str; 2] = ["CO.md", "AGENTS.md"];

/// A person takes answers back one by one. A chat that misses one ends its turn, too.
const REVOKED: usize = 16;

/// The instructions of a workspace as they stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// No file, or the person refused it.
    None,
    /// The person was asked about the text with this hash.
    Asked {
        name: String,
        sha256: String,
    },
    Trusted {
        path: PathBuf,
        text: String,
    },
}

impl Found {
    /// Returns the text that goes to the model.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Trusted { text, .. } => Some(text.clone()),
            Self::None | Self::Asked { .. } => None,
        }
    }
}

/// The answers about instructions and the questions that wait, shared by all chats.
pub struct Instructions {
    trust: Trust,
    state: Mutex<State>,
    /// Held while the answers on disk change.
    writing: tokio::sync::Mutex<()>,
    /// Files whose trusted text is trusted no more.
    revoked: broadcast::Sender<PathBuf>,
}

#[derive(Default)]
struct State {
    questions: Vec<Question>,
    /// The last answer about each file that is on its way to the disk, or that could not be written there.
    unsaved: HashMap<PathBuf, TrustAnswer>,
    /// Counts the changes on disk.
    changes: u64,
    /// The problems that the person was told of, by workspace.
    told: HashSet<(PathBuf, String)>,
}

/// A question that waits for its answer.
struct Question {
    id: u64,
    name: String,
    path: PathBuf,
    sha256: String,
}

impl Instructions {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self {
            trust: Trust::new(dir),
            state: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            revoked: broadcast::Sender::new(REVOKED),
        }
    }

    /// Returns the files that the person trusts no more, as they take their answers back.
    pub(super) fn revoked(&self) -> broadcast::Receiver<PathBuf> {
        self.revoked.subscribe()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answers about files of a workspace.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) async fn answers(&self, workspace: &Path) -> Result<Vec<TrustAnswer>, String> {
        let trust = self.trust.clone();
        let mut entries = blocking(move || trust.entries()).await?;
        entries.retain(|entry| entry.path.parent() == Some(workspace));
        Ok(entries)
    }

    /// Forgets the answer about a file, so that the next prompt asks again.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) async fn forget(&self, path: PathBuf) -> Result<bool, String> {
        let _alone = self.writing.lock().await;
        let unsaved = self.state().unsaved.remove(&path).is_some();
        let (trust, file) = (self.trust.clone(), path.clone());
        let forgotten = blocking(move || trust.forget(&file)).await;
        self.state().changes += 1;
        let forgotten = forgotten.map(|saved| saved || unsaved);
        if unsaved || forgotten == Ok(true) {
            // It fails if there is no chat.
            self.revoked.send(path).ok();
        }
        forgotten
    }
}

/// The files of a workspace and the answers, as one read found them.
struct InstructionFiles {
    files: Vec<FileText>,
    problems: Vec<String>,
    entries: Vec<TrustAnswer>,
}

impl InstructionFiles {
    fn read(trust: &Trust, workspace: &Path) -> Result<Self, trust::Error> {
        let mut read = Self {
            files: Vec::new(),
            problems: Vec::new(),
            entries: Vec::new(),
        };
        for name in NAMES {
            match FileText::read(workspace.join(name)) {
                Ok(file) if file.text.trim().is_empty() => {}
                Ok(file) => read.files.push(file),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => read.problems.push(format!("{name} is left out: {error}")),
            }
        }
        if !read.files.is_empty() {
            read.entries = trust.entries()?;
        }
        Ok(read)
    }

    /// Returns the last answer about a file, whichever text it was for.
    fn answer<'a>(&'a self, state: &'a State, path: &Path) -> Option<&'a TrustAnswer> {
        let saved = || self.entries.iter().find(|entry| entry.path == path);
        state.unsaved.get(path).or_else(saved)
    }
}

/// Finds the instructions of a workspace; asks about a text that was neither trusted nor refused.
async fn find(services: &Services, workspace: &Path) -> Found {
    let shared = &services.instructions;
    loop {
        let changes = shared.state().changes;
        let (trust, root) = (shared.trust.clone(), workspace.to_owned());
        let read = match blocking(move || InstructionFiles::read(&trust, &root)).await {
            Ok(read) => read,
            Err(why) => {
                warn_once(services, &mut shared.state(), workspace, &why);
                return Found::None;
            }
        };
        let mut state = shared.state();
        // An answer saved after the read is in neither list.
        if state.changes == changes {
            return decide(services, &mut state, workspace, &read);
        }
    }
}

fn decide(
    services: &Services,
    state: &mut State,
    workspace: &Path,
    read: &InstructionFiles,
) -> Found {
    for problem in &read.problems {
        warn_once(services, state, workspace, problem);
    }
    let mut found = Found::None;
    let mut asked = None;
    for file in &read.files {
        let name = name_of(&file.path);
        let answer = read.answer(state, &file.path);
        match answer.filter(|answer| answer.sha256 == file.sha256) {
            Some(TrustAnswer { trusted: false, .. }) => continue,
            Some(TrustAnswer { trusted: true, .. }) => {
                found = Found::Trusted {
                    path: file.path.clone(),
                    text: prompt::cut(&file.text).to_owned(),
                };
            }
            None => {
                asked = Some((file, answer.is_some()));
                found = Found::Asked {
                    name,
                    sha256: file.sha256.clone(),
                };
            }
        }
        break;
    }
    withdraw(services, state, |question| {
        question.path.parent() == Some(workspace)
            && asked.is_none_or(|(file, _)| !question.is_about(file))
    });
    if let Some((file, changed)) = asked {
        ask(services, state, file, changed);
    }
    found
}

impl Question {
    fn is_about(&self, file: &FileText) -> bool {
        self.path == file.path && self.sha256 == file.sha256
    }
}

/// Takes questions away whose text is no longer in the file.
fn withdraw(services: &Services, state: &mut State, gone: impl Fn(&Question) -> bool) {
    state.questions.retain(|question| {
        let gone = gone(question);
        if gone {
            settle(services, question.id, "withdrawn");
        }
        !gone
    });
}

fn settle(services: &Services, id: u64, decision: &str) {
    services.editor.tell(ToEditor::Settled {
        id,
        decision: decision.to_owned(),
    });
}

/// Asks about a text, once however many chats want it.
fn ask(services: &Services, state: &mut State, file: &FileText, changed: bool) {
    if state.questions.iter().any(|it| it.is_about(file)) {
        return;
    }
    let question = Question {
        id: services.id(),
        name: name_of(&file.path),
        path: file.path.clone(),
        sha256: file.sha256.clone(),
    };
    services.editor.tell(ToEditor::Trust(TrustQuestion {
        id: question.id,
        name: question.name.clone(),
        path: one_line(&file.path.display().to_string()),
        size: file.size,
        text: co_policy::printable(&file.text.replace("\r\n", "\n")),
        notes: notes(file, changed),
    }));
    state.questions.push(question);
}

fn notes(file: &FileText, changed: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if changed {
        notes.push("its text changed since your last answer".to_owned());
    }
    if prompt::cut(&file.text).len() < file.text.trim().len() {
        let most = prompt::LONGEST_INSTRUCTIONS >> 10;
        notes.push(format!("only its first {most} KiB are sent"));
    }
    if file.replaced {
        notes.push("it is not valid UTF-8: \u{fffd} replaces wrong bytes".to_owned());
    }
    notes
}

/// Takes in the answer to a question about a file. False if it is another kind of question.
pub fn answer(services: &Arc<Services>, answered: &Answered) -> bool {
    let mut state = services.instructions.state();
    let Some(at) = state.questions.iter().position(|it| it.id == answered.id) else {
        return false;
    };
    let question = state.questions.swap_remove(at);
    let trusted = answered.decision == Answer::Once;
    let entry = TrustAnswer {
        path: question.path,
        sha256: question.sha256,
        trusted,
    };
    state.unsaved.insert(entry.path.clone(), entry.clone());
    drop(state);
    if !trusted {
        // It fails if there is no chat.
        services.instructions.revoked.send(entry.path.clone()).ok();
    }
    settle(
        services,
        question.id,
        if trusted { "approved" } else { "denied" },
    );
    tracing::info!(path = %entry.path.display(), sha256 = entry.sha256, trusted, "a file was judged");
    let services = Arc::clone(services);
    tokio::spawn(async move { save(&services, &question.name, entry).await });
    true
}

/// Writes an answer down and says what follows from it; does nothing if the person took it back meanwhile.
async fn save(services: &Services, name: &str, entry: TrustAnswer) {
    let _alone = services.instructions.writing.lock().await;
    let is_last = |state: &State| state.unsaved.get(&entry.path) == Some(&entry);
    if !is_last(&services.instructions.state()) {
        return;
    }
    let (trust, kept) = (services.instructions.trust.clone(), entry.clone());
    if let Err(why) = blocking(move || trust.save(kept)).await {
        let message =
            format!("the answer about {name} could not be saved, so it ends with Neovim: {why}");
        return services.notice(Level::Error, message);
    }
    let mut state = services.instructions.state();
    if is_last(&state) {
        state.unsaved.remove(&entry.path);
    }
    state.changes += 1;
    drop(state);
    let message = match entry.trusted {
        true => format!("{name} is sent to the model from the next prompt on"),
        false => format!("{name} is not sent to the model; :Co /rules takes that answer back"),
    };
    services.notice(Level::Info, message);
}

/// Says a problem once for each backend: it is there at every prompt.
fn warn_once(services: &Services, state: &mut State, workspace: &Path, problem: &str) {
    if state.told.insert((workspace.into(), problem.into())) {
        services.notice(Level::Warn, problem);
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl Session {
    /// Ends the turn that runs if it was sent a text that the person trusts no more; `path` is none if any may be it.
    pub(super) fn end_turn_sent(&self, path: Option<&Path>) {
        let Found::Trusted { path: sent, .. } = &self.instructions else {
            return;
        };
        let Some(running) = &self.running else {
            return;
        };
        if path.is_none_or(|path| path == sent) && !running.cancel.is_cancelled() {
            running.cancel.cancel();
            self.say(format!(
                "the turn of chat {} is cancelled: it was sent {}; /retry goes on without it",
                self.id,
                name_of(sent)
            ));
        }
    }

    /// Takes the instructions of the workspace for the turn that begins. Says in the chat if they wait for an answer.
    pub(super) async fn find_instructions(&mut self) {
        let found = find(&self.services, &self.place.workspace).await;
        let before = std::mem::replace(&mut self.instructions, found);
        let Found::Asked { name, .. } = &self.instructions else {
            return;
        };
        if self.instructions == before {
            return;
        }
        let text = format!(
            "{name} is not sent to the model until you trust it: `:Co /approve` shows the question"
        );
        let item = Item::Notice { text: text.clone() };
        if self.recorder.record(item).await {
            self.paragraph(&format!("> {text}"));
        }
    }
}
