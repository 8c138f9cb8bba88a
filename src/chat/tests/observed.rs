//! The things that a chat has shown, written to its files and sent to its model, and the files of its workspace.

use std::path::PathBuf;

use super::chat::Chat;
use super::checks::told;
use crate::protocol::{TextPart, ToEditor};
use co_llm::ModelRequest;
use co_llm::transcript::{Decision, Item};

impl Chat {
    /// Returns the text that was appended to the chat so far.
    pub(super) fn screen(&self) -> String {
        self.seen
            .iter()
            .filter_map(pick!(ToEditor::Append { text, .. } | ToEditor::Replace { part: TextPart { text, .. }, .. } => text.as_str()))
            .collect()
    }

    /// Returns the output of commands that was shown so far, in lines.
    pub(super) fn blocks(&self) -> Vec<String> {
        let seen = self.seen.iter();
        seen.filter_map(pick!(ToEditor::Block { patch: Some(patch), .. } => patch.lines.clone()))
            .flatten()
            .collect()
    }

    pub(super) fn asks(&self) -> usize {
        let asks = self.seen.iter();
        asks.filter(|message| matches!(message, ToEditor::Question(_)))
            .count()
    }

    /// The items on disk, of the chat that was written last.
    pub(super) fn disk(&self) -> Vec<Item> {
        std::fs::read_to_string(self.file())
            .unwrap()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Returns the id of the chat's file, as `/resume` takes it.
    pub(super) fn id(&self) -> String {
        let file = self.file();
        file.file_stem().unwrap().to_str().unwrap().to_owned()
    }

    pub(super) fn file(&self) -> PathBuf {
        let mut files = self.files();
        // Files written within one tick of the clock have the same time; their names sort by when they began.
        files.sort_by_key(|path| (path.metadata().unwrap().modified().unwrap(), path.clone()));
        files.pop().unwrap()
    }

    pub(super) fn files(&self) -> Vec<PathBuf> {
        let chats = self.root.path().join("data").join("chats");
        let entries = std::fs::read_dir(chats).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// The items as the store would read them back.
    pub(super) fn kit_items(&self) -> Vec<Item> {
        co_llm::transcript::repair(self.disk()).0
    }

    pub(super) fn last_request(&self) -> ModelRequest {
        self.model.requests().pop().unwrap()
    }

    /// Returns the result of a call in the last request.
    #[track_caller]
    pub(super) fn told(&self, id: &str) -> String {
        told(&self.last_request().items, id)
    }

    /// Checks that the model was told this of a call.
    #[track_caller]
    pub(super) fn assert_told(&self, id: &str, part: &str) {
        let told = self.told(id);
        assert!(told.contains(part), "{part:?} is not in\n{told}");
    }

    /// Checks that the chat shows this.
    #[track_caller]
    pub(super) fn assert_shown(&self, part: &str) {
        let screen = self.screen();
        assert!(screen.contains(part), "{part:?} is not in\n{screen}");
    }

    /// Returns what was decided about each call.
    pub(super) fn decisions(&self) -> Vec<(String, Decision)> {
        let disk = self.disk().into_iter();
        disk.filter_map(pick!(Item::Decision { call, decision } => (call, decision)))
            .collect()
    }

    pub(super) fn audit(&self) -> String {
        std::fs::read_to_string(self.root.path().join("state").join("audit.jsonl")).unwrap()
    }

    pub(super) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.work.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Returns the text of a file in the workspace, or `none` if it is not there.
    pub(super) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.work.join(path)).unwrap_or_else(|_| "none".to_owned())
    }

    pub(super) fn rules(&self) -> Vec<String> {
        let rules = crate::tool::rules::load(&self.services.places.rules, &self.work).unwrap();
        rules.allow.iter().map(ToString::to_string).collect()
    }
}
