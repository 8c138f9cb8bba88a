//! The trust in the prompt files of a workspace: a file is sent only after the person trusts its text.
//!
//! The editor asks before it reads the contexts that the text names. The chat looks again when it gets the prompt. If the
//! person takes an answer back, a turn that was sent the file ends.

use std::path::Path;

use super::{Chat, Prompt, instructions};
use crate::mcp::WORKSPACE_FILE;
use crate::protocol::{PromptFileCheck, ToEditor};
use crate::services::instruction_answers::AnswerState;
use crate::trust::{FileText, TrustAnswer};
use co_text::one_line;

impl Chat {
    /// Takes a prompt of the person.
    pub(super) async fn typed_prompt(&mut self, mut prompt: Prompt) {
        self.cancel_pressed = false;
        if self.add_plan(&mut prompt) && self.may_send_file_of(&prompt).await {
            self.prompt(prompt).await;
        } else {
            self.give_back(prompt);
        }
    }

    /// Returns false, after a notice, if the prompt comes from a file whose text the person does not trust.
    async fn may_send_file_of(&self, prompt: &Prompt) -> bool {
        let (Some(path), Some(file)) = (prompt.untrusted_file(), &prompt.file) else {
            return true;
        };
        let file = FileText::given(path.to_owned(), file.text.clone());
        let trusted = self.services.instructions.with_saved(|state, saved| {
            let answer = state.answer(saved, &file.path);
            answer.is_some_and(|answer| answer.trusted && answer.sha256 == file.sha256)
        });
        let why = match trusted.await {
            Ok(true) => return true,
            Ok(false) => format!("not sent: you do not trust {}", file.path.display()),
            Err(why) => why,
        };
        self.complain(why);
        false
    }

    /// Cancels the running turn if it was sent a file that the person no longer trusts, and gives queued prompts of that
    /// file back. If `path` is none, this may be any file.
    pub(super) fn trust_revoked(&mut self, path: Option<&Path>) {
        let waiting = self.queue.take_from_file(path);
        if !waiting.is_empty() {
            waiting
                .into_iter()
                .rev()
                .for_each(|prompt| self.give_back(prompt));
            self.show_state();
        }
        if path.is_none_or(|path| path == self.dirs.workspace.join(WORKSPACE_FILE)) {
            self.servers.end_of_workspace(&self.tools);
        }
        let Some(running) = self.running.as_ref().filter(|it| !it.cancel.is_cancelled()) else {
            return;
        };
        let mut prompt_files = self.prompt_files.iter();
        let sent = match prompt_files.find(|sent| path.is_none_or(|path| path == *sent)) {
            Some(file) => format!(
                "{}; /rewind takes it out of the chat",
                self.short_name(file)
            ),
            None => match self.sent_text(path) {
                Some(name) => format!("{name}; /retry continues without it"),
                None => return,
            },
        };
        running.cancel.cancel();
        self.say(format!(
            "the turn of chat {} is cancelled: it was sent {sent}",
            self.id
        ));
    }

    /// Returns the name of the instructions or of the skill in the file `path`, if the last turn got them. Without `path`, any
    /// file counts.
    fn sent_text(&self, path: Option<&Path>) -> Option<String> {
        let instructions = self.sent_instructions(path).map(str::to_owned);
        instructions.or_else(|| self.skills.sent(path))
    }

    /// Returns the name of a file of the workspace.
    fn short_name(&self, file: &Path) -> String {
        let name = file.strip_prefix(&self.dirs.workspace);
        one_line(&name.unwrap_or(file).display().to_string())
    }

    /// Tells the editor whether the person trusts a prompt file. Asks the person if they have not answered yet.
    pub(super) async fn check_prompt_file(&self, check: PromptFileCheck) {
        let file = FileText::given(check.path, check.text);
        let slash = format!("/{}", check.name);
        let shared = &self.services.instructions;
        let judged = shared.with_saved(|state, saved| {
            let answer = state.answer(saved, &file.path);
            match answer.filter(|answer| answer.sha256 == file.sha256) {
                Some(TrustAnswer { trusted: true, .. }) => (true, None),
                Some(TrustAnswer { trusted: false, .. }) => {
                    self.complain(format!(
                        "{slash} was not sent: you refused {}; /rules takes that answer back",
                        file.path.display()
                    ));
                    (false, None)
                }
                None => {
                    let changed = answer.is_some();
                    (false, Some(self.ask_about(state, &file, &slash, changed)))
                }
            }
        });
        let (trusted, question) = judged.await.unwrap_or_else(|why| {
            self.complain(why);
            (false, None)
        });
        self.services.editor.tell(ToEditor::PromptFileChecked {
            request: check.request,
            trusted,
            question,
        });
    }

    /// Asks the person about a prompt file. Returns the id of the question.
    fn ask_about(
        &self,
        state: &mut AnswerState,
        file: &FileText,
        slash: &str,
        changed: bool,
    ) -> u64 {
        let notes = changed.then(|| instructions::TEXT_CHANGED.to_owned());
        instructions::withdraw(&self.services, state, |question| {
            question.path == file.path && !question.is_about(file)
        });
        let name = self.short_name(&file.path);
        let notes = notes.into_iter().collect();
        self.say(format!(
            "{slash} is sent when you trust its file: :Co /approve shows the question"
        ));
        instructions::ask(&self.services, state, file, name, notes, Some(slash))
    }
}
