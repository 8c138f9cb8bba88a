//! The texts of trusted files that the model gets: instructions, skills and prompt files.
//!
//! If the person revokes the trust in a file, a turn that got the file ends.

use std::path::{Path, PathBuf};

use tokio::sync::broadcast;

use super::chat_context::ChatContext;
use super::instructions::Instructions;
use super::message::Prompt;
use super::prompt_file_trust::short_name;
use super::record::Recorder;
use super::skills::Skills;
use crate::services::Services;
use crate::tool::ToolSet;
use co_llm::transcript::InstructionFile;

/// The texts of trusted files that the last turn got.
pub(super) struct TrustedTexts {
    instructions: Instructions,
    skills: Skills,
    /// The prompt files of the workspace that the last turn got.
    prompt_files: Vec<PathBuf>,
    /// Receives the paths of the files that the person no longer trusts.
    revoked: broadcast::Receiver<PathBuf>,
}

impl TrustedTexts {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            instructions: Instructions::default(),
            skills: Skills::default(),
            prompt_files: Vec::new(),
            revoked: services.trust_answers.revoked(),
        }
    }

    /// Waits until the person no longer trusts a file, and returns the path of this file. Returns `None` if the path is not
    /// known.
    pub(super) async fn revoked(&mut self) -> Option<PathBuf> {
        self.revoked.recv().await.ok()
    }

    /// Forgets the prompt files of the last turn.
    pub(super) fn forget_prompt_files(&mut self) {
        self.prompt_files.clear();
    }

    /// Adds the prompt file of a prompt that goes to the model.
    pub(super) fn add_prompt_file(&mut self, prompt: &Prompt) {
        self.prompt_files
            .extend(prompt.untrusted_file().map(Path::to_owned));
    }

    /// Reads the instructions and skills for a new turn. Shows a notice about the files that wait for the person's answer.
    pub(super) async fn renew(
        &mut self,
        context: &ChatContext,
        tools: &ToolSet,
        recorder: &mut Recorder,
    ) {
        for notice in self.instructions.renew(context).await {
            recorder.notice(notice).await;
        }
        if let Some(notice) = self.skills.renew(context, tools).await {
            recorder.notice(notice).await;
        }
    }

    /// Returns the instructions for the model.
    pub(super) fn instructions(&self) -> Vec<InstructionFile> {
        self.instructions.texts()
    }

    /// Returns the instructions for the model, and the sections of the system prompt that name the skills.
    pub(super) fn of_system_prompt(&self) -> Vec<InstructionFile> {
        [self.instructions.texts(), self.skills.sections()].concat()
    }

    /// Returns the name of the file `path`, and a text about how the chat continues without it, if the last turn got this file.
    /// If `path` is `None`, any file may match.
    pub(super) fn sent(&self, context: &ChatContext, path: Option<&Path>) -> Option<String> {
        let mut prompt_files = self.prompt_files.iter();
        if let Some(file) = prompt_files.find(|sent| path.is_none_or(|path| path == *sent)) {
            let name = short_name(context, file);
            return Some(format!("{name}; /rewind takes it out of the chat"));
        }
        let instructions = self.instructions.sent(path).map(str::to_owned);
        let name = instructions.or_else(|| self.skills.sent(path))?;
        Some(format!("{name}; /retry continues without it"))
    }
}
