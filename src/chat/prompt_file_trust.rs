//! The trust in the prompt files of a workspace: a file is sent only after the person trusts its text.

use super::blocking::blocking;
use super::text::one_line;
use super::{Chat, Prompt, instructions};
use crate::trust::{FileText, TrustAnswer};

impl Chat {
    /// Takes a prompt of the person.
    pub(super) async fn typed_prompt(&mut self, prompt: Prompt) {
        self.cancel_pressed = false;
        if self.may_send_file_of(&prompt).await {
            self.prompt(prompt.without_secret_files()).await;
        } else {
            self.give_back(prompt);
        }
    }

    /// Returns false if the prompt comes from a file whose text the person does not trust. Then it asks about the text,
    /// or says that the person refused it.
    async fn may_send_file_of(&self, prompt: &Prompt) -> bool {
        let Some(file) = &prompt.file else {
            return true;
        };
        let Some(path) = &file.path else {
            return true;
        };
        let slash = prompt.text.split_whitespace().next().unwrap_or_default();
        let file = FileText::given(path.clone(), file.text.clone());
        let shared = &self.services.instructions;
        let trust = shared.trust.clone();
        // After the answers that are being saved.
        let alone = shared.writing.lock().await;
        let saved = match blocking(move || trust.entries()).await {
            Ok(saved) => saved,
            Err(why) => {
                self.complain(why);
                return false;
            }
        };
        let mut state = shared.state();
        drop(alone);
        let answer = state.answer(&saved, &file.path);
        match answer.filter(|answer| answer.sha256 == file.sha256) {
            Some(TrustAnswer { trusted: true, .. }) => return true,
            Some(TrustAnswer { trusted: false, .. }) => self.complain(format!(
                "{slash} was not sent: you refused {}; /rules takes that answer back",
                file.path.display()
            )),
            None => {
                let notes = match answer {
                    Some(_) => vec![instructions::TEXT_CHANGED.to_owned()],
                    None => Vec::new(),
                };
                instructions::withdraw(&self.services, &mut state, |question| {
                    question.path == file.path && !question.is_about(&file)
                });
                let name = file.path.strip_prefix(&self.dirs.workspace);
                let name = one_line(&name.unwrap_or(&file.path).display().to_string());
                instructions::ask(&self.services, &mut state, &file, name, notes, Some(slash));
                self.say(format!(
                    "{slash} is not sent until you trust its file: :Co /approve shows the question"
                ));
            }
        }
        false
    }
}
