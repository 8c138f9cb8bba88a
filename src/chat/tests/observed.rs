//! The things that a chat has shown, written to its files and sent to its model, and the files of its workspace.

use std::path::PathBuf;

use super::chat::Chat;
use super::checks::told;
use crate::protocol::{CallLine, CallState, ToEditor};
use co_llm::ModelRequest;
use co_llm::transcript::{Decision, Item};

/// The buffer of a chat, as Lua makes it.
#[derive(Default)]
struct Screen {
    texts: Vec<String>,
    /// The number of texts above the last answer.
    answer: usize,
    /// The calls, each with the number of texts above it and its output.
    calls: Vec<(u64, usize, CallLine, Vec<String>)>,
}

impl Screen {
    fn take(&mut self, message: &ToEditor) {
        match message {
            ToEditor::Append { text, .. } => self.texts.push(text.clone()),
            ToEditor::AnswerBegins { .. } => self.answer = self.texts.len(),
            ToEditor::SeparateAnswer { .. } => self.texts.insert(self.answer, "\n".to_owned()),
            ToEditor::Replace { part, .. } => {
                *self = Self::default();
                let rows: Vec<_> = part.text.split_inclusive('\n').collect();
                let mut next = 0;
                for call in &part.calls {
                    self.texts.push(rows[next..call.row].concat());
                    next = call.row + 1 + call.output;
                    let output = rows[call.row + 1..next].iter();
                    let output = output.map(|line| line.trim_end_matches('\n').to_owned());
                    self.calls
                        .push((0, self.texts.len(), call.line.clone(), output.collect()));
                }
                self.texts.push(rows[next..].concat());
            }
            ToEditor::Call { call, line, .. } => {
                match self.calls.iter_mut().find(|it| it.0 == *call) {
                    Some(known) => known.2 = line.clone(),
                    None => self
                        .calls
                        .push((*call, self.texts.len(), line.clone(), Vec::new())),
                }
            }
            ToEditor::Block {
                block,
                patch: Some(patch),
                ..
            } => {
                let call = self.calls.iter_mut().find(|it| it.2.block == Some(*block));
                let (.., output) = call.expect("a block belongs to a call");
                output.truncate(patch.from);
                output.extend(patch.lines.clone());
            }
            _ => {}
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut above = 0;
        for (_, at, line, output) in &self.calls {
            text.extend(self.texts[above..*at].iter().map(String::as_str));
            above = *at;
            let sign = match line.state {
                CallState::Waits => "?",
                CallState::Runs => "~",
                CallState::Looks => "·",
                CallState::Done => "✓",
                CallState::Failed => "✗",
            };
            let details = match line.details.as_str() {
                "" => String::new(),
                details => format!("  [{details}]"),
            };
            text.push_str(&format!("{sign} {}{details}\n", line.text));
            for line in line.lead.iter().chain(output).chain(&line.remarks) {
                text.push_str(&format!("  {line}\n"));
            }
        }
        text.extend(self.texts[above..].iter().map(String::as_str));
        text
    }
}

impl Chat {
    /// Returns the text of the chat so far, with its calls as they stand and all their output.
    pub(super) fn screen(&self) -> String {
        let mut screen = Screen::default();
        self.seen.iter().for_each(|message| screen.take(message));
        screen.text()
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
        let rules = crate::workspace::rules::load(&self.services.places.rules, &self.work).unwrap();
        rules.allow.iter().map(ToString::to_string).collect()
    }
}
