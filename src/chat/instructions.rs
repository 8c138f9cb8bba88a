//! The instructions of a workspace: its `CO.md` or `AGENTS.md`, as soon as the person trusts its text.
//!
//! A prompt never waits for the answer: co sends it without the instructions, and the first turn after a yes has them. The
//! question belongs to no chat: it stays open until the person answers or the file changes. co reads the text once to hash,
//! show and send it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Chat;
use super::blocking::blocking;
use super::events::ChatEvent;
use super::prompt;
use super::services::Services;
use super::services::instruction_answers::{AnswerState, OpenTrustQuestion};
use super::text::one_line;
use crate::protocol::{Answer, NoticeLevel, QuestionAnswer, ToEditor, TrustQuestion};
use crate::trust::{self, FileText, Trust, TrustAnswer};
use co_exec::Caller;
use co_llm::transcript::Item;

/// The names of instruction files. co uses the first file that the person does not refuse.
const NAMES: [&str; 2] = ["CO.md", "AGENTS.md"];

/// The note to a question if there is an answer about an earlier text.
pub(super) const TEXT_CHANGED: &str = "its text changed since your last answer";

/// The state of the instructions of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WorkspaceInstructions {
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

impl WorkspaceInstructions {
    /// Returns the text that goes to the model.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Trusted { text, .. } => Some(text.clone()),
            Self::None | Self::Asked { .. } => None,
        }
    }
}

/// The files of a workspace and the answers about them, from one reading.
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
}

/// Finds the instructions of a workspace. Asks the person about a text that they neither trusted nor refused.
async fn find(services: &Services, workspace: &Path) -> WorkspaceInstructions {
    let shared = &services.instructions;
    loop {
        let changes = shared.state().changes;
        let (trust, root) = (shared.trust.clone(), workspace.to_owned());
        let read = match blocking(move || InstructionFiles::read(&trust, &root)).await {
            Ok(read) => read,
            Err(why) => {
                warn_once(services, &mut shared.state(), workspace, &why);
                return WorkspaceInstructions::None;
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
    state: &mut AnswerState,
    workspace: &Path,
    read: &InstructionFiles,
) -> WorkspaceInstructions {
    for problem in &read.problems {
        warn_once(services, state, workspace, problem);
    }
    let mut found = WorkspaceInstructions::None;
    let mut asked = None;
    for file in &read.files {
        let name = name_of(&file.path);
        let answer = state.answer(&read.entries, &file.path);
        match answer.filter(|answer| answer.sha256 == file.sha256) {
            Some(TrustAnswer { trusted: false, .. }) => continue,
            Some(TrustAnswer { trusted: true, .. }) => {
                found = WorkspaceInstructions::Trusted {
                    path: file.path.clone(),
                    text: prompt::cut(&file.text).to_owned(),
                };
            }
            None => {
                asked = Some((file, answer.is_some()));
                found = WorkspaceInstructions::Asked {
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
        ask(
            services,
            state,
            file,
            name_of(&file.path),
            notes(file, changed),
            None,
        );
    }
    found
}

/// Withdraws questions whose text is no longer in the file.
pub(super) fn withdraw(
    services: &Services,
    state: &mut AnswerState,
    gone: impl Fn(&OpenTrustQuestion) -> bool,
) {
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

/// Asks about a text, unless a question is open. `slash` is the slash command that sends it.
pub(super) fn ask(
    services: &Services,
    state: &mut AnswerState,
    file: &FileText,
    name: String,
    notes: Vec<String>,
    slash: Option<&str>,
) {
    if state.questions.iter().any(|it| it.is_about(file)) {
        return;
    }
    let question = OpenTrustQuestion {
        id: services.id(),
        name,
        path: file.path.clone(),
        sha256: file.sha256.clone(),
        slash: slash.map(str::to_owned),
    };
    services.editor.tell(ToEditor::Trust(TrustQuestion {
        id: question.id,
        name: question.name.clone(),
        path: one_line(&file.path.display().to_string()),
        size: file.size,
        text: co_policy::printable(&file.text.replace("\r\n", "\n")),
        notes,
        slash: question.slash.clone(),
    }));
    state.questions.push(question);
}

fn notes(file: &FileText, changed: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if changed {
        notes.push(TEXT_CHANGED.to_owned());
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

/// Takes the answer to a question about a file. Returns false if no such question has this id.
pub fn answer(services: &Arc<Services>, answered: &QuestionAnswer) -> bool {
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
    tokio::spawn(async move { save(&services, &question.name, question.slash, entry).await });
    true
}

/// Saves an answer and notifies the person. Does nothing if the person took the answer back meanwhile.
async fn save(services: &Services, name: &str, slash: Option<String>, entry: TrustAnswer) {
    let _alone = services.instructions.writing.lock().await;
    let is_last = |state: &AnswerState| state.unsaved.get(&entry.path) == Some(&entry);
    if !is_last(&services.instructions.state()) {
        return;
    }
    let (trust, kept) = (services.instructions.trust.clone(), entry.clone());
    if let Err(why) = blocking(move || trust.save(kept)).await {
        let message =
            format!("the answer about {name} could not be saved, so it ends with Neovim: {why}");
        return services.notice(NoticeLevel::Error, message);
    }
    let mut state = services.instructions.state();
    if is_last(&state) {
        state.unsaved.remove(&entry.path);
    }
    state.changes += 1;
    drop(state);
    let message = match (entry.trusted, slash) {
        (true, Some(slash)) => format!("{name} is trusted: send {slash} again"),
        (true, None) => format!("{name} is sent to the model from the next prompt on"),
        (false, _) => format!("{name} is not sent to the model; :Co /rules takes that answer back"),
    };
    services.notice(NoticeLevel::Info, message);
}

/// Notifies the person of a problem in a workspace, but only once, because co finds it again at each prompt.
fn warn_once(services: &Services, state: &mut AnswerState, workspace: &Path, problem: &str) {
    if state.told.insert((workspace.into(), problem.into())) {
        services.notice(NoticeLevel::Warn, problem);
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl Chat {
    /// Cancels the running turn if it got instructions that the person no longer trusts. If `path` is none, this may be any
    /// file.
    pub(super) fn end_turn_sent(&self, path: Option<&Path>) {
        let WorkspaceInstructions::Trusted { path: sent, .. } = &self.instructions else {
            return;
        };
        let Some(running) = &self.running else {
            return;
        };
        if path.is_none_or(|path| path == sent) && !running.cancel.is_cancelled() {
            running.cancel.cancel();
            self.say(format!(
                "the turn of chat {} is cancelled: it was sent {}; /retry continues without it",
                self.id,
                name_of(sent)
            ));
        }
    }

    /// Reads the instructions for a new turn. The chat shows a notice if they wait for an answer.
    pub(super) async fn find_instructions(&mut self) {
        let found = find(&self.services, &self.dirs.workspace).await;
        let before = std::mem::replace(&mut self.instructions, found);
        let WorkspaceInstructions::Asked { name, .. } = &self.instructions else {
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
            let caller = Caller::Agent;
            self.show(ChatEvent::Notice { text, caller });
        }
    }
}
