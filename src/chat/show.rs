//! What a session tells the editor.

use super::{Prompt, Session};
use crate::protocol::{State, ToEditor};
use co_exec::Patch;

impl Session {
    pub(super) fn set_state(&mut self, state: State, detail: String) {
        self.state = state;
        self.detail = detail;
        self.show_state();
    }

    pub(super) fn show_state(&self) {
        let configured = self
            .model
            .clone()
            .or_else(|| self.services.config.llm.model.clone());
        self.services.editor.tell(ToEditor::State {
            session: self.id,
            state: self.state,
            detail: self.detail.clone(),
            model: self.provider.as_ref().map_or_else(
                || configured.unwrap_or_default(),
                |provider| provider.label(),
            ),
            cwd: self.place.cwd.display().to_string(),
            backend: self.services.probe.name().to_owned(),
            used: self.usage.into(),
            turn: self.turn_usage.into(),
            commands: self.services.foreground.of(self.id),
            queued: self.queue.len(),
            begun: self.begun,
            kept: self.recorder.id(),
            everything: self.standing.confirms(&self.services),
        });
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        let text = self.page.paragraph(text);
        self.append(text);
    }

    /// Shows output that is there as a whole, as a block.
    pub(super) fn output(&mut self, text: &str) {
        self.services.editor.tell(ToEditor::Block {
            session: self.id,
            block: self.services.id(),
            patch: Some(Patch {
                lines: text.lines().map(str::to_owned).collect(),
                ..Patch::default()
            }),
            done: true,
        });
        self.page.block();
    }

    pub(super) fn append(&self, text: String) {
        self.services.editor.tell(ToEditor::Append {
            session: self.id,
            text,
        });
    }

    pub(super) fn fire(&self, name: &str, data: serde_json::Value) {
        self.services.editor.tell(ToEditor::Event {
            name: name.to_owned(),
            data,
        });
    }

    /// Lets the person have a prompt again that was not taken, and those behind it, which no turn would come to.
    pub(super) fn give_all_back(&mut self, prompt: Prompt) {
        let waiting = std::mem::take(&mut self.queue);
        // The last one first: each goes in front of what the prompt area has by then.
        for prompt in std::iter::once(prompt).chain(waiting).rev() {
            self.services.editor.tell(ToEditor::Unsent {
                session: self.id,
                text: prompt.text,
            });
        }
        self.show_state();
    }
}
