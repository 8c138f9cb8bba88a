//! The messages of a chat to the client, apart from its text: its state and prompts that go back.

use super::events::ChatEvent;
use super::{Chat, Prompt};
use crate::protocol::{ChatState, ToEditor};

impl Chat {
    pub(super) fn set_state(&mut self, state: ChatState, detail: String) {
        self.state = state;
        self.detail = detail;
        self.show_state();
    }

    pub(super) fn show_state(&self) {
        let steering = self.queue.iter().filter(|prompt| prompt.steer).count();
        let configured = self
            .choice
            .model
            .clone()
            .or_else(|| self.services.config.llm.model.clone());
        self.services.editor.tell(ToEditor::State {
            chat: self.id,
            state: self.state,
            detail: self.detail.clone(),
            model: self.provider.as_ref().map_or_else(
                || configured.unwrap_or_default(),
                |provider| provider.label(),
            ),
            cwd: self.dirs.cwd.display().to_string(),
            confinement: self.services.probe.name().to_owned(),
            used: self.usage.into(),
            turn: self.turn_usage.into(),
            window_used: self.window_used,
            commands: self.services.foreground.of(self.id),
            queued: self.queue.len() - steering,
            steering,
            taken_prompts: self.taken_prompts,
            transcript: self.recorder.id(),
            title: self.recorder.title(),
            everything: self.permissions.confirms(&self.services),
        });
    }

    pub(super) fn show(&self, event: ChatEvent) {
        self.front_end.show(event);
    }

    pub(super) fn fire(&self, name: &str, data: serde_json::Value) {
        self.services.editor.tell(ToEditor::Event {
            name: name.to_owned(),
            data,
        });
    }

    /// Gives back a prompt that was not taken, and all queued prompts.
    pub(super) fn give_all_back(&mut self, prompt: Prompt) {
        let waiting = std::mem::take(&mut self.queue);
        // The last one first: each is put in front of the text in the prompt.
        for prompt in std::iter::once(prompt).chain(waiting).rev() {
            self.services.editor.tell(ToEditor::Unsent {
                chat: self.id,
                text: prompt.text,
            });
        }
        self.show_state();
    }
}
