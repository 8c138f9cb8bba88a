//! The settings of a backend that runs: where they come from, and what is said when they change.

use std::path::PathBuf;
use std::sync::Arc;

use super::{App, HANGS, env, variables};
use crate::config::{Applies, Given, Layers, Read};
use crate::llm;
use crate::protocol::Level;
use crate::session::Msg;

/// The settings as they were read last.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    file: PathBuf,
    pub(super) given: Given,
    pub(super) problems: Vec<String>,
    /// Keys that the settings name: no model may read them.
    pub(super) secrets: Vec<String>,
}

impl Settings {
    /// Reads all layers. Blocks on files.
    pub(super) fn read(file: PathBuf, lua: &serde_json::Value) -> Self {
        let layers = Layers {
            file: Some(&file),
            lua,
            env: &env,
            variables: &variables(),
        };
        let Read { given, problems } = layers.read();
        Self {
            secrets: llm::secrets(&given.config().llm, &env),
            file,
            given,
            problems,
        }
    }
}

impl App {
    /// Reads the settings anew, with what Lua has now: applies them, and says what does not apply at once.
    pub(super) async fn change_settings(&mut self, lua: serde_json::Value) {
        let file = self.settings.file.clone();
        let shown = file.display().to_string();
        let reading = tokio::task::spawn_blocking(move || Settings::read(file, &lua));
        let Ok(Ok(new)) = tokio::time::timeout(HANGS, reading).await else {
            let why = format!("the settings stay as they were: {shown} does not answer");
            return self.kit.notice(Level::Error, why);
        };
        for problem in &new.problems {
            if !self.settings.problems.contains(problem) {
                self.kit.notice(Level::Warn, problem.clone());
            }
        }
        match self.kit.changed(&new.given, &new.secrets) {
            Ok(kit) => self.kit = Arc::new(kit),
            Err(error) => {
                let why = format!("the settings stay as they were: {error}");
                return self.kit.notice(Level::Error, why);
            }
        }
        let old = std::mem::replace(&mut self.settings, new);
        let new = &self.settings;
        self.shell.take_settings(Arc::clone(&self.kit));
        for session in self.sessions.values() {
            session.send(Msg::Settings(Arc::clone(&self.kit)));
        }
        let later = Later {
            next_chat: match self.sessions.is_empty() {
                true => Vec::new(),
                false => old.given.changed(&new.given, Applies::NextChat),
            },
            restart: self.needs_restart(&old.given),
        };
        if let Some(sentence) = later.sentence() {
            self.kit.notice(Level::Info, sentence);
        }
    }

    /// Returns the settings that changed since `old` and that this backend does not have.
    fn needs_restart(&self, old: &Given) -> Vec<&'static str> {
        let new = &self.settings.given;
        let missing = self.kit.given().changed(new, Applies::Restart);
        let mut changed = old.changed(new, Applies::Restart);
        changed.retain(|name| missing.contains(name));
        changed
    }
}

/// The settings that changed and do not apply at once.
struct Later {
    next_chat: Vec<&'static str>,
    restart: Vec<&'static str>,
}

impl Later {
    /// Returns one sentence; none if nothing waits.
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

#[cfg(test)]
mod tests {
    use super::Later;

    #[test]
    fn what_waits_is_one_sentence() {
        let check =
            |next_chat: &[&'static str], restart: &[&'static str], expected: Option<&str>| {
                let later = Later {
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
