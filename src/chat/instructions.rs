//! The instructions for the model: a `CO.md`, `AGENTS.md` or `CLAUDE.md` of the working directory, of the directories above
//! it in the workspace, and of the person, as soon as the person trusts its text.
//!
//! A prompt never waits for the answer: co sends it without the instructions, and the first turn after a yes has them. The
//! question belongs to no chat: it stays open until the person answers or the file changes. co reads the text once to hash,
//! show and send it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chat_context::ChatContext;
use super::message::WorkDirs;
use super::prompt;
use crate::blocking::blocking;
use crate::protocol::{Answer, NoticeLevel, QuestionAnswer, ToEditor, TrustQuestion};
use crate::services::instruction_answers::{AnswerState, OpenTrustQuestion};
use crate::services::{ServicePaths, Services};
use crate::trust::{FileText, TrustAnswer};
use co_llm::transcript::InstructionFile;
use co_text::one_line;

/// The names of instruction files. In each directory, co uses the first file that the person does not refuse.
const NAMES: [&str; 3] = ["CO.md", "AGENTS.md", "CLAUDE.md"];

/// The most bytes of all instructions that co sends.
const LONGEST_TOGETHER: usize = 2 * prompt::LONGEST_INSTRUCTIONS;

/// The note to a question if there is an answer about an earlier text.
pub(super) const TEXT_CHANGED: &str = "its text changed since your last answer";

/// The slash command in questions about the file that names tool servers, which is not sent.
pub(super) const SERVERS: &str = "/mcp";

/// The instructions of a turn.
#[derive(Debug, Default)]
pub(super) struct Instructions {
    trusted: Vec<(PathBuf, InstructionFile)>,
    /// The texts that the person was asked about.
    asked: Vec<AskedText>,
}

#[derive(Debug, PartialEq, Eq)]
struct AskedText {
    name: String,
    sha256: String,
}

impl Instructions {
    /// Reads the instructions for a new turn. Returns a notice about each file that has begun to wait for the person's answer.
    pub(super) async fn renew(&mut self, context: &ChatContext) -> Vec<String> {
        let found = find(&context.services, &context.dirs).await;
        let before = std::mem::replace(self, found);
        let new = self
            .asked
            .iter()
            .filter(|text| !before.asked.contains(text));
        let notice = |text: &AskedText| {
            let name = &text.name;
            format!(
                "{name} is not sent to the model until you trust it: `:Co /approve` shows the question"
            )
        };
        new.map(notice).collect()
    }

    /// Returns the name of the file `path`, if its text is among those that go to the model. Without `path`, returns the name of
    /// any such file.
    pub(super) fn sent(&self, path: Option<&Path>) -> Option<&str> {
        let mut trusted = self.trusted.iter();
        let sent = trusted.find(|(sent, _)| path.is_none_or(|path| path == sent));
        sent.map(|(_, file)| file.name.as_str())
    }

    /// Returns the texts that go to the model.
    pub(super) fn texts(&self) -> Vec<InstructionFile> {
        self.trusted.iter().map(|(_, file)| file.clone()).collect()
    }
}

/// The directories whose instructions hold for a chat, the one that counts most first.
struct InstructionDirs {
    workspace: PathBuf,
    home: PathBuf,
    dirs: Vec<PathBuf>,
}

impl InstructionDirs {
    fn new(work: &WorkDirs, places: &ServicePaths) -> Self {
        let above = work.cwd.ancestors();
        let inside = above.take_while(|dir| dir.starts_with(&work.workspace));
        let dirs = inside.chain([places.config.as_path()]);
        Self {
            workspace: work.workspace.clone(),
            home: places.home.clone(),
            dirs: dirs.map(Path::to_owned).collect(),
        }
    }

    /// Returns the short name of a file.
    fn name(&self, path: &Path) -> String {
        if let Ok(inside) = path.strip_prefix(&self.workspace) {
            return one_line(&inside.display().to_string());
        }
        match path.strip_prefix(&self.home) {
            Ok(below) => one_line(&format!("~/{}", below.display())),
            Err(_) => one_line(&path.display().to_string()),
        }
    }
}

/// The files of each directory, from one reading.
#[derive(Default)]
struct InstructionFiles {
    /// For each directory, its files.
    files: Vec<Vec<FileText>>,
    problems: Vec<String>,
}

impl InstructionFiles {
    fn read(dirs: &InstructionDirs) -> Self {
        let mut problems = Vec::new();
        let mut read_file = |path: PathBuf| match FileText::read(path.clone()) {
            Ok(file) => Some(file).filter(|file| !file.text.trim().is_empty()),
            Err(error) => {
                if error.kind() != std::io::ErrorKind::NotFound {
                    problems.push(format!("{} is left out: {error}", dirs.name(&path)));
                }
                None
            }
        };
        let mut files_of = |dir: &PathBuf| -> Vec<_> {
            let files = NAMES.iter().filter_map(|name| read_file(dir.join(name)));
            files.collect()
        };
        Self {
            files: dirs.dirs.iter().map(&mut files_of).collect(),
            problems,
        }
    }
}

/// Finds the instructions of a chat. Asks the person about each text that they neither trusted nor refused.
async fn find(services: &Services, work: &WorkDirs) -> Instructions {
    let shared = &services.instructions;
    let dirs = Arc::new(InstructionDirs::new(work, &services.places));
    let to_read = Arc::clone(&dirs);
    let read = blocking(move || Ok::<_, String>(InstructionFiles::read(&to_read))).await;
    let read = read.unwrap_or_default();
    if read.files.iter().all(Vec::is_empty) {
        return decide(services, (&mut shared.state(), &[]), &dirs, &read);
    }
    let found = shared.with_saved(|state, saved| decide(services, (state, saved), &dirs, &read));
    found.await.unwrap_or_else(|why| {
        warn_once(services, &mut shared.state(), &work.workspace, &why);
        Instructions::default()
    })
}

/// Returns the instructions for the model in a directory that is not that of a chat.
pub(super) async fn trusted(services: &Services, work: &WorkDirs) -> Vec<InstructionFile> {
    find(services, work).await.texts()
}

fn decide(
    services: &Services,
    (state, saved): (&mut AnswerState, &[TrustAnswer]),
    dirs: &InstructionDirs,
    read: &InstructionFiles,
) -> Instructions {
    for problem in &read.problems {
        warn_once(services, state, &dirs.workspace, problem);
    }
    let mut found = Instructions::default();
    let mut asked = Vec::new();
    let mut length = 0;
    for files in &read.files {
        for file in files {
            let name = dirs.name(&file.path);
            let answer = state.answer(saved, &file.path);
            match answer.filter(|answer| answer.sha256 == file.sha256) {
                Some(TrustAnswer { trusted: false, .. }) => continue,
                Some(TrustAnswer { trusted: true, .. }) => {
                    let text = prompt::cut(&file.text).to_owned();
                    length += text.len();
                    if length > LONGEST_TOGETHER {
                        let most = co_text::size_text(LONGEST_TOGETHER as u64);
                        let problem =
                            format!("{name} is left out: all instructions may have {most}");
                        warn_once(services, state, &dirs.workspace, &problem);
                        break;
                    }
                    let told = InstructionFile { name, text };
                    found.trusted.push((file.path.clone(), told));
                }
                None => {
                    asked.push((file, name.clone(), answer.is_some()));
                    found.asked.push(AskedText {
                        name,
                        sha256: file.sha256.clone(),
                    });
                }
            }
            break;
        }
    }
    withdraw(services, state, |question| {
        question.slash.is_none()
            && dirs
                .dirs
                .iter()
                .any(|dir| question.path.parent() == Some(dir))
            && !asked.iter().any(|(file, ..)| question.is_about(file))
    });
    for (file, name, changed) in asked {
        ask(services, state, file, name, notes(file, changed), None);
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

/// Asks about a text, unless a question is open. Returns the id of the question. `slash` is the slash command that sends it, or the
/// context of a skill.
pub(super) fn ask(
    services: &Services,
    state: &mut AnswerState,
    file: &FileText,
    name: String,
    notes: Vec<String>,
    slash: Option<&str>,
) -> u64 {
    if let Some(open) = state.questions.iter().find(|it| it.is_about(file)) {
        return open.id;
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
        text: co_text::printable(&file.text.replace("\r\n", "\n")),
        notes,
        slash: question.slash.clone(),
        context: false,
    }));
    let id = question.id;
    state.questions.push(question);
    id
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
    drop(state);
    let message = match (entry.trusted, slash.as_deref()) {
        (true, Some(SERVERS)) => {
            format!("{name} is trusted: its tool servers start with the next prompt")
        }
        (false, Some(SERVERS)) => {
            format!("the tool servers of {name} are not started; :Co /rules takes that answer back")
        }
        (true, Some(slash)) => format!("{name} is trusted: {slash} sends it"),
        (true, None) => format!("{name} is sent to the model from the next prompt on"),
        (false, _) => format!("{name} is not sent to the model; :Co /rules takes that answer back"),
    };
    services.notice(NoticeLevel::Info, message);
}

/// Notifies the person of a problem in a workspace, but only once, because co finds it again at each prompt.
pub(super) fn warn_once(
    services: &Services,
    state: &mut AnswerState,
    workspace: &Path,
    problem: &str,
) {
    if state.told.insert((workspace.into(), problem.into())) {
        services.notice(NoticeLevel::Warn, problem);
    }
}
