//! The draft of the next prompt, which stays on disk with the transcript, and the prompts of a resumed chat.

use std::time::Instant;

use crate::blocking::blocking;
use crate::chat::Chat;
use crate::protocol::{NoticeLevel, ToEditor};
use co_llm::transcript::Item;

/// The most prompts that a resumed chat gets back, and their most bytes together.
const MOST_PROMPTS: usize = 200;
const MOST_BYTES: usize = 1 << 20;

impl Chat {
    /// Keeps the draft with the transcript, without secret values. If there is no transcript and `begins` is set, begins one.
    pub(in crate::chat) async fn keep_draft(&mut self, text: &str, begins: bool) {
        self.write_draft(text, begins).await;
        let chat = self.id;
        self.services.editor.tell(ToEditor::DraftKept { chat });
    }

    async fn write_draft(&mut self, text: &str, begins: bool) {
        if self.recorder.id().is_none() && (!begins || text.trim().is_empty()) {
            return;
        }
        let keys = self.model.known().map(|provider| provider.secrets());
        let keys = keys.unwrap_or_default();
        let redacted =
            self.services
                .redact_for_model(&self.dirs.workspace, text, &keys, Instant::now());
        let text = match redacted.await {
            Ok(redacted) => redacted.text,
            Err(why) => return self.draft_is_lost(&why),
        };
        if !self.recorder.ready(&self.dirs, &text).await {
            return;
        }
        self.show_state();
        let Some(id) = self.recorder.id() else {
            return;
        };
        let store = self.services.store.clone();
        if let Err(why) = blocking(move || store.save_draft(&id, &text)).await {
            self.draft_is_lost(&why);
        }
    }

    fn draft_is_lost(&self, why: &str) {
        let message = format!("the draft of the prompt could not be kept: {why}");
        self.services.notice(NoticeLevel::Warn, message);
    }

    /// Gives the prompts and the draft of a resumed chat to Lua.
    pub(in crate::chat) async fn show_prompts(&self) {
        let Some(transcript) = self.recorder.id() else {
            return;
        };
        let mut room = MOST_BYTES;
        let prompts = self.recorder.items().iter().rev();
        let prompts = prompts.filter_map(|item| match item {
            Item::User { text, .. } => Some(text),
            _ => None,
        });
        let newest = prompts.take(MOST_PROMPTS).map_while(|text| {
            room = room.checked_sub(text.len())?;
            Some(text.clone())
        });
        let mut prompts: Vec<String> = newest.collect();
        prompts.reverse();
        let (store, id) = (self.services.store.clone(), transcript.clone());
        let draft = blocking(move || Ok::<_, String>(store.draft(&id))).await;
        self.services.editor.tell(ToEditor::Prompts {
            chat: self.id,
            transcript,
            prompts,
            draft: draft.ok().flatten(),
        });
    }
}
