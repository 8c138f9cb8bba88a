//! A scene that is told what follows `:Co`, for those who test what a chat does and not how it looks.

use std::ops::Deref;

use serde_json::Value;

use super::scene::{Scene, typed};
use super::workspace::Workspace;

pub(crate) struct Chat(Scene);

impl Deref for Chat {
    type Target = Scene;

    fn deref(&self) -> &Scene {
        &self.0
    }
}

impl Chat {
    /// Starts Neovim in `workspace` with `settings` on top of the model's.
    pub(crate) fn start(workspace: Workspace, settings: &Value) -> Self {
        Self(Scene::in_workspace(workspace, settings.clone(), &[]))
    }

    /// Types `:Co` and what follows it.
    #[track_caller]
    pub(crate) fn co(&self, text: &str) {
        self.type_keys(&format!(":Co{}<CR>", typed(text)));
    }

    /// Waits for a question that says `text`, answers it with a key, and returns the screen it was on.
    #[track_caller]
    pub(crate) fn answer(&self, text: &str, key: &str) -> Vec<String> {
        let screen = self.wait_text(text);
        self.0.answer(key);
        screen
    }
}
