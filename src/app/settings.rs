//! The settings of a running backend. Reads them again when they change, and applies them to chats and runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::App;
use crate::chat::Msg;
use crate::config::{Applies, Config, ConfinementSetting, GivenSettings, Layers, LoadedSettings};
use crate::protocol::{NoticeLevel, ToEditor};

/// The time-out for reading the settings and directories.
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(8);

/// The settings as they were last read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CurrentSettings {
    file: PathBuf,
    pub(super) given: GivenSettings,
    pub(super) problems: Vec<String>,
    /// The API keys that the settings name. They must not be sent to a model.
    pub(super) secrets: Vec<String>,
}

impl CurrentSettings {
    /// Reads all layers of the settings. Blocks on file operations.
    pub(super) fn read(file: PathBuf, lua: &serde_json::Value) -> Self {
        let layers = Layers {
            file: Some(&file),
            lua,
            env: &env,
            variables: &variables(),
        };
        let LoadedSettings { given, problems } = layers.read();
        Self {
            secrets: secrets(&given.config()),
            file,
            given,
            problems,
        }
    }
}

/// Returns the keys of all providers, for redaction.
fn secrets(config: &Config) -> Vec<String> {
    let all = config.providers.iter().chain([&config.llm]);
    let mut keys: Vec<String> = all.flat_map(|it| co_llm::known_keys(it, &env)).collect();
    keys.sort();
    keys.dedup();
    keys
}

impl App {
    /// Reads the settings again, with the new settings of Lua, and applies them. Tells the person which settings do not apply at
    /// once.
    pub(super) async fn change_settings(&mut self, lua: serde_json::Value) {
        let file = self.settings.file.clone();
        let shown = file.display().to_string();
        let reading = tokio::task::spawn_blocking(move || CurrentSettings::read(file, &lua));
        let Ok(Ok(new)) = tokio::time::timeout(START_TIMEOUT, reading).await else {
            let why = format!("the settings stay as they were: {shown} does not answer");
            return self.services.notice(NoticeLevel::Error, why);
        };
        for problem in &new.problems {
            if !self.settings.problems.contains(problem) {
                self.services.notice(NoticeLevel::Warn, problem.clone());
            }
        }
        match self.services.changed(&new.given, &new.secrets) {
            Ok(services) => self.services = Arc::new(services),
            Err(error) => {
                let why = format!("the settings stay as they were: {error}");
                return self.services.notice(NoticeLevel::Error, why);
            }
        }
        let old = std::mem::replace(&mut self.settings, new);
        self.spread();
        let new = &self.settings;
        let later = PendingSettings {
            next_chat: match self.chats.is_empty() {
                true => Vec::new(),
                false => old.given.changed(&new.given, Applies::NextChat),
            },
            restart: self.needs_restart(&old.given),
        };
        if let Some(sentence) = later.sentence() {
            self.services.notice(NoticeLevel::Info, sentence);
        }
    }

    /// Changes the confinement of approved commands to the argument of `/sandbox`. An empty argument changes nothing. Tells Lua,
    /// so that the next backend keeps the choice. If the change fails, reports the reason and returns false.
    pub(super) async fn confine(&mut self, word: &str) -> bool {
        if word.is_empty() {
            return true;
        }
        let Some(setting) = ConfinementSetting::from_word(word) else {
            let why = format!(
                "/sandbox takes landlock, docker, subprocess, auto, build or clean, not \"{word}\""
            );
            self.services.notice(NoticeLevel::Error, why);
            return false;
        };
        let why =
            match tokio::time::timeout(START_TIMEOUT, self.services.confined_by(setting)).await {
                Ok(Ok(services)) => {
                    self.services = Arc::new(services);
                    self.spread();
                    self.services.editor.tell(ToEditor::Sandbox {
                        confinement: word.to_owned(),
                    });
                    return true;
                }
                Ok(Err(refused)) => refused.to_string(),
                Err(_) => "co is still testing the sandbox, try again in a moment".to_owned(),
            };
        let why = format!("the sandbox is not changed: {why}");
        self.services.notice(NoticeLevel::Error, why);
        false
    }

    /// Sends the current services to all runs and chats.
    fn spread(&mut self) {
        self.runs.take_settings(Arc::clone(&self.services));
        for chat in self.chats.values() {
            chat.send(Msg::Settings(Arc::clone(&self.services)));
        }
    }

    /// Returns the names of the settings that changed since `old` and apply only after a restart of the backend.
    fn needs_restart(&self, old: &GivenSettings) -> Vec<&'static str> {
        let new = &self.settings.given;
        let missing = self.services.given().changed(new, Applies::Restart);
        let mut changed = old.changed(new, Applies::Restart);
        changed.retain(|name| missing.contains(name));
        changed
    }
}

/// The names of the settings that changed but do not apply at once.
struct PendingSettings {
    next_chat: Vec<&'static str>,
    restart: Vec<&'static str>,
}

impl PendingSettings {
    /// Returns a sentence about the pending settings, or `None` if there are none.
    fn sentence(&self) -> Option<String> {
        let clause = |names: &[&str], what: (&str, &str), then: &str| {
            let verb = if names.len() == 1 { what.0 } else { what.1 };
            (!names.is_empty()).then(|| format!("{} {verb} {then}", names.join(", ")))
        };
        let clauses: Vec<String> = [
            clause(
                &self.next_chat,
                ("applies", "apply"),
                "from the next chat (:Co /new)",
            ),
            clause(
                &self.restart,
                ("needs", "need"),
                "a new backend (:Co /restart)",
            ),
        ]
        .into_iter()
        .flatten()
        .collect();
        (!clauses.is_empty()).then(|| clauses.join("; "))
    }
}

pub(super) fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the names of all environment variables of this process. Leaves out names that are not UTF-8.
pub fn variables() -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name.into_string());
    names.filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use super::PendingSettings;

    #[test]
    fn what_waits_is_one_sentence() {
        let check =
            |next_chat: &[&'static str], restart: &[&'static str], expected: Option<&str>| {
                let later = PendingSettings {
                    next_chat: next_chat.to_vec(),
                    restart: restart.to_vec(),
                };
                assert_eq!(later.sentence().as_deref(), expected);
            };
        check(&[], &[], None);
        check(
            &["model"],
            &[],
            Some("model applies from the next chat (:Co /new)"),
        );
        check(
            &["provider", "model"],
            &["sandbox_backend"],
            Some(
                "provider, model apply from the next chat (:Co /new); \
                 sandbox_backend needs a new backend (:Co /restart)",
            ),
        );
    }
}
