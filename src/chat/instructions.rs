//! The instructions for the model. They come from files named `CO.md`, `AGENTS.md` or `CLAUDE.md`. co looks for these files in
//! the working directory, in the directories above it in the workspace, and in the person's configuration. co sends the text of a
//! file only after the person trusts it.
//!
//! A prompt never waits for the person's answer about a file. co sends the prompt without the file, and adds the file from the
//! first turn after a yes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chat_context::ChatContext;
use super::message::WorkDirs;
use super::prompt;
use super::trust_questions::{self, TEXT_CHANGED, warn_once};
use crate::blocking::blocking;
use crate::services::trust_answers::AnswerState;
use crate::services::{ServicePaths, Services};
use crate::trust::{FileText, TrustAnswer};
use co_llm::transcript::InstructionFile;
use co_text::one_line;

/// The names of instruction files. In each directory, co uses the first of these files that the person does not refuse.
const NAMES: [&str; 3] = ["CO.md", "AGENTS.md", "CLAUDE.md"];

/// The largest number of bytes that co sends of all instructions together.
const LONGEST_TOGETHER: usize = 2 * prompt::LONGEST_INSTRUCTIONS;

/// The instructions of a turn.
#[derive(Debug, Default)]
pub(super) struct Instructions {
    trusted: Vec<(PathBuf, InstructionFile)>,
    /// The texts that co has asked the person about.
    asked: Vec<AskedText>,
}

#[derive(Debug, PartialEq, Eq)]
struct AskedText {
    name: String,
    sha256: String,
}

impl Instructions {
    /// Reads the instructions for a new turn. Returns a notice about each file that now waits for the person's answer.
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

    /// Returns the name of the file `path` if the model gets the text of this file. If `path` is `None`, returns the name of any
    /// file that the model gets.
    pub(super) fn sent(&self, path: Option<&Path>) -> Option<&str> {
        let mut trusted = self.trusted.iter();
        let sent = trusted.find(|(sent, _)| path.is_none_or(|path| path == sent));
        sent.map(|(_, file)| file.name.as_str())
    }

    /// Returns the texts that the model gets.
    pub(super) fn texts(&self) -> Vec<InstructionFile> {
        self.trusted.iter().map(|(_, file)| file.clone()).collect()
    }
}

/// The directories in which co looks for the instructions of a chat. The most important directory comes first.
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

    /// Returns the short name of a file, for the person.
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

/// The texts of the instruction files of all directories.
#[derive(Default)]
struct InstructionFiles {
    /// The files in each directory.
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

/// Finds the instructions of a chat. Asks the person about each text that they have neither trusted nor refused.
async fn find(services: &Services, work: &WorkDirs) -> Instructions {
    let shared = &services.trust_answers;
    let dirs = Arc::new(InstructionDirs::new(work, &services.places));
    let to_read = Arc::clone(&dirs);
    let read = blocking(move || Ok::<_, String>(InstructionFiles::read(&to_read))).await;
    let read = read.unwrap_or_default();
    if read.files.iter().all(Vec::is_empty) {
        return decide(services, (&mut shared.state.lock(), &[]), &dirs, &read);
    }
    let found = shared.with_saved(|state, saved| decide(services, (state, saved), &dirs, &read));
    found.await.unwrap_or_else(|why| {
        warn_once(services, &mut shared.state.lock(), &work.workspace, &why);
        Instructions::default()
    })
}

/// Returns the trusted instructions for directories outside of any chat. Asks the person about each text that they have neither
/// trusted nor refused.
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
    trust_questions::withdraw(services, state, |question| {
        question.slash.is_none()
            && dirs
                .dirs
                .iter()
                .any(|dir| question.path.parent() == Some(dir))
            && !asked.iter().any(|(file, ..)| question.is_about(file))
    });
    for (file, name, changed) in asked {
        trust_questions::ask(services, state, file, name, notes(file, changed), None);
    }
    found
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
