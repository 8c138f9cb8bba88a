//! The command `/rules`: lists the rules and the trusted files, and removes them.

use std::path::PathBuf;

use crate::blocking::blocking;
use crate::chat::Chat;
use crate::protocol::Choice;
use crate::trust::TrustAnswer;
use crate::workspace::rules;
use co_policy::{HostPattern, Pattern};

impl Chat {
    /// Shows all rules, or removes the chosen one.
    pub(in crate::chat) async fn rules(&mut self, value: &str) {
        if let Some(rule) = value.strip_prefix("chat:") {
            self.permissions
                .rules
                .retain(|kept| kept.to_string() != rule);
            self.revoked();
            self.show_state();
            return self.say(format!("no longer allowed: {rule}"));
        }
        if let Some(host) = value.strip_prefix("chat_host:") {
            self.permissions
                .hosts
                .retain(|kept| kept.to_string() != host);
            self.revoked();
            return self.say(format!("commands of this chat ask again about {host}"));
        }
        if let Some(host) = value.strip_prefix("saved_host:") {
            return self.remove_saved_host(host).await;
        }
        if value == "everything:" {
            self.permissions.everything = false;
            self.revoked();
            self.show_state();
            return self.say("co asks again before each command that does more than look");
        }
        if let Some(job) = value.strip_prefix("job:") {
            self.permissions.jobs.retain(|kept| kept.to_string() != job);
            self.revoked();
            return self.say(format!(
                "co asks again before the model types into job {job}"
            ));
        }
        if let Some(rule) = value.strip_prefix("saved:") {
            return self.remove_saved(rule).await;
        }
        if value == "try_first:" {
            return self.ask_before_trials().await;
        }
        if let Some(file) = value.strip_prefix("file:") {
            return self.forget_file(file).await;
        }
        if let Some(rule) = value.strip_prefix("config:") {
            return self.say(format!("{rule} comes from your settings; change it there"));
        }
        let choices = self.rule_choices().await;
        if choices.is_empty() {
            return self.say(
                "no rules yet: `a` in a question adds one, allow/ask/deny in the settings too",
            );
        }
        self.offer("rules", "Rules (choose one to remove it)", choices);
    }

    /// Cancels the running turn, because it still has the removed rule.
    fn revoked(&self) {
        if let Some(running) = &self.running {
            running.cancel.cancel();
            self.say(
                "the running turn was cancelled, since it had that rule; /retry continues without it",
            );
        }
    }

    async fn remove_saved(&self, rule: &str) {
        let pattern = match rule.parse::<Pattern>() {
            Ok(pattern) => pattern,
            Err(error) => return self.complain(error.to_string()),
        };
        let (dir, workspace) = self.saved_rules();
        match blocking(move || rules::remove(&dir, &workspace, &pattern)).await {
            Ok(true) => {
                self.services.forget_judge(&self.dirs.workspace);
                self.revoked();
                self.say(format!("no longer saved: {rule}"));
            }
            Ok(false) => self.say(format!("{rule} was not saved")),
            Err(why) => self.complain(why),
        }
    }

    async fn remove_saved_host(&self, text: &str) {
        let host = match text.parse::<HostPattern>() {
            Ok(host) => host,
            Err(error) => return self.complain(error.to_string()),
        };
        let (dir, workspace) = self.saved_rules();
        match blocking(move || rules::remove_host(&dir, &workspace, &host)).await {
            Ok(true) => {
                self.services.forget_judge(&self.dirs.workspace);
                self.revoked();
                self.say(format!("commands of this workspace ask again about {text}"));
            }
            Ok(false) => self.say(format!("{text} was not saved")),
            Err(why) => self.complain(why),
        }
    }

    /// Takes back that co may try commands of the workspace before it asks.
    async fn ask_before_trials(&mut self) {
        let (dir, workspace) = self.saved_rules();
        match blocking(move || rules::set_try_first(&dir, &workspace, false)).await {
            Ok(_) => {
                self.services.forget_judge(&self.dirs.workspace);
                self.revoked();
                self.show_state();
                self.say("co asks again before it tries a command of this workspace");
            }
            Err(why) => self.complain(why),
        }
    }

    /// Removes the answer about a file, for all chats.
    async fn forget_file(&self, file: &str) {
        match self.services.instructions.forget(file.into()).await {
            Ok(true) => self.say(format!("the next prompt asks about {file} again")),
            Ok(false) => self.say(format!("no answer about {file} was saved")),
            Err(why) => self.complain(why),
        }
    }

    /// Returns the directory of saved rules and the workspace.
    fn saved_rules(&self) -> (PathBuf, PathBuf) {
        (
            self.services.places.rules.clone(),
            self.dirs.workspace.clone(),
        )
    }

    async fn rule_choices(&self) -> Vec<Choice> {
        let choice = |kind: &str, effect: &str, rule: &str| {
            removable(
                format!("{effect} {rule} ({kind})"),
                format!("{kind}:{rule}"),
            )
        };
        let mut choices = Vec::new();
        if self.permissions.everything {
            let label = "allow everything (this chat)".to_owned();
            choices.push(removable(label, "everything:".to_owned()));
        }
        choices.extend(self.permissions.jobs.iter().map(|job| {
            let label = format!("allow what is typed into job {job} (this chat)");
            removable(label, format!("job:{job}"))
        }));
        choices.extend(
            self.permissions
                .rules
                .iter()
                .map(|rule| choice("chat", "allow", &rule.to_string())),
        );
        choices.extend(self.permissions.hosts.iter().map(|host| {
            let label = format!("reach {host} (this chat)");
            removable(label, format!("chat_host:{host}"))
        }));
        let (dir, workspace) = self.saved_rules();
        match blocking(move || rules::load(&dir, &workspace)).await {
            Ok(saved) => {
                let rules = saved.allow.iter();
                choices.extend(rules.map(|rule| choice("saved", "allow", &rule.to_string())));
                choices.extend(saved.allow_hosts.iter().map(|host| {
                    removable(
                        format!("reach {host} (saved)"),
                        format!("saved_host:{host}"),
                    )
                }));
                if saved.try_first {
                    let label = "try commands of this workspace before asking (saved)".to_owned();
                    choices.push(removable(label, "try_first:".to_owned()));
                }
            }
            Err(why) => self.complain(why),
        }
        choices.extend(self.file_choices().await);
        let policy = &self.services.config.policy;
        for (effect, rules) in [
            ("allow", &policy.allow),
            ("ask", &policy.ask),
            ("deny", &policy.deny),
        ] {
            choices.extend(rules.iter().map(|rule| Choice {
                confirm: None,
                ..choice("config", effect, rule)
            }));
        }
        let hosts = &self.services.config.hosts;
        for (effect, rules) in [("reach", &hosts.allow), ("never reach", &hosts.deny)] {
            choices.extend(rules.iter().map(|rule| Choice {
                confirm: None,
                ..choice("config", effect, &rule.to_string())
            }));
        }
        choices
    }

    /// Returns the files of this workspace and of the person that the person trusts or refused.
    async fn file_choices(&self) -> Vec<Choice> {
        let dirs = [self.dirs.workspace.as_path(), &self.services.places.config];
        let answers = self.services.instructions.answers(&dirs).await;
        let answers = answers.unwrap_or_else(|why| {
            self.complain(why);
            Vec::new()
        });
        let choice = |entry: &TrustAnswer| {
            let file = entry.path.display();
            let answer = if entry.trusted { "trust" } else { "refuse" };
            removable(format!("{answer} {file} (saved)"), format!("file:{file}"))
        };
        answers.iter().map(choice).collect()
    }
}

/// Returns the choice that removes an entry, with a confirmation.
fn removable(label: String, value: String) -> Choice {
    let confirm = Some(format!("Remove `{label}`?"));
    Choice {
        label,
        value,
        confirm,
    }
}
