//! The answers of the person to questions, and the permissions that they give.

use std::fmt;
use std::path::PathBuf;

use crate::protocol::{ChosenAnswer, HunkAnswer, NoticeLevel, Question, Scope};
use crate::services::Services;
use co_policy::{HostPattern, HostRules, HostVerdict};
use co_text::one_line;

/// The person's answer to a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Once,
    Always(Scope),
    Deny(Option<String>),
    Edited(Vec<u8>),
    Reviewed(Vec<HunkAnswer>),
    /// The answers to questions with choices.
    Chosen(Vec<ChosenAnswer>),
    /// Drop the changes of the trial, and run the command for real.
    Real,
    Try {
        /// Later commands of the workspace are tried without a question.
        later: bool,
    },
}

/// A permission that `always` gives.
#[derive(Debug, Clone, PartialEq)]
pub enum Allowance {
    Rule(co_policy::Pattern),
    /// A rule for the workspace of the question. The chat may work elsewhere by now.
    Saved(PathBuf, co_policy::Pattern),
    /// Confined commands of the chat may reach these hosts.
    Hosts(Vec<AllowedHost>),
    /// All text for this job.
    Job(u64),
    Everything,
    /// co may try commands of this workspace before it asks. The permission is saved.
    TryFirst(PathBuf),
}

/// A host that the person allowed for confined commands of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct AllowedHost {
    pub host: HostPattern,
    /// The only command that may reach it; none if all commands may.
    pub command: Option<String>,
}

impl AllowedHost {
    /// Returns the host if a command may reach it.
    pub fn for_command(self, command: &str) -> Option<HostPattern> {
        let is_meant = self.command.is_none_or(|it| it == command);
        is_meant.then_some(self.host)
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.command {
            Some(command) => write!(to, "{} for `{}`", self.host, one_line(command)),
            None => write!(to, "{}", self.host),
        }
    }
}

/// The permissions of a chat that the person gave so far.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    pub rules: Vec<co_policy::Pattern>,
    pub everything: bool,
    /// co tries commands of the workspace before it asks, because of an answer in this turn. The answer is saved for later turns.
    pub tries_first: bool,
    /// The hosts that confined commands of the chat may reach.
    pub hosts: Vec<AllowedHost>,
    /// The jobs that the model may type to.
    pub jobs: Vec<u64>,
    /// The commands that failed in the read-only sandbox. They need approval now.
    pub failed_confined: Vec<String>,
}

impl Permissions {
    /// Returns true if all calls run without approval, except those that the deny rules could not check.
    pub fn confirms(&self, services: &Services) -> bool {
        self.everything || services.config.auto_confirm
    }

    /// Returns true if a question is about hosts, and the person has allowed all of them for its command or this chat.
    pub fn reach(&self, question: &Question) -> bool {
        let known = self.hosts.iter().cloned();
        let rules = HostRules {
            allow: known
                .filter_map(|it| it.for_command(&question.command))
                .collect(),
            deny: Vec::new(),
        };
        let mut hosts = question.hosts.iter();
        !question.hosts.is_empty()
            && hosts.all(|it| matches!(rules.verdict(&it.host, it.port), HostVerdict::Allowed(_)))
    }

    /// Adds a permission.
    pub fn add(&mut self, allowance: &Allowance) {
        match allowance {
            Allowance::Job(job) => self.jobs.push(*job),
            Allowance::Everything => self.everything = true,
            Allowance::TryFirst(_) => self.tries_first = true,
            Allowance::Hosts(hosts) => self.hosts.extend(hosts.iter().cloned()),
            Allowance::Rule(rule) | Allowance::Saved(_, rule) => self.rules.push(rule.clone()),
        }
    }

    /// Adds a permission of the person to the permissions of the chat, or saves it. The judge of the next command or turn knows
    /// the saved permissions. If a permission cannot be saved, tells the person, and adds it to the chat.
    pub async fn take(&mut self, allowance: Allowance, services: &Services) {
        let saved = match &allowance {
            Allowance::TryFirst(workspace) => {
                let saved = services.save_try_first(workspace.clone()).await;
                let saved = saved.map_err(|error| {
                    format!(
                        "co tries commands first in this turn only, because that could not be saved: {error}"
                    )
                });
                // The turn that asked knows it already.
                return saved.unwrap_or_else(|text| services.notice(NoticeLevel::Error, text));
            }
            Allowance::Saved(workspace, rule) => {
                let saved = services.save_rule(workspace.clone(), rule.clone()).await;
                saved.map_err(|error| {
                    format!("the rule holds for this chat but could not be saved: {error}")
                })
            }
            _ => return self.add(&allowance),
        };
        if let Err(text) = saved {
            services.notice(NoticeLevel::Error, text);
            self.add(&allowance);
        }
    }

    /// Adds commands that failed in the sandbox.
    pub fn learn(&mut self, failed: Vec<String>) {
        let known = |command: &String| self.failed_confined.contains(command);
        let new: Vec<_> = failed.into_iter().filter(|it| !known(it)).collect();
        self.failed_confined.extend(new);
    }
}

/// The memory of a turn, from call to call.
#[derive(Debug, Clone, Default)]
pub struct TurnMemory {
    pub permissions: Permissions,
    /// The number of calls of the turn that have ended.
    pub calls_ended: usize,
    /// The model was told that the confinement may have caused a failure.
    pub hinted: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::AskedHost;

    #[test]
    fn a_host_may_be_allowed_for_one_command() {
        let asked = |command: &str, hosts: &[&str]| Question {
            command: command.to_owned(),
            hosts: hosts
                .iter()
                .map(|host| AskedHost {
                    host: (*host).to_owned(),
                    port: 443,
                    special: None,
                })
                .collect(),
            ..Question::default()
        };
        let host = |text: &str| text.parse::<HostPattern>().unwrap();
        let mut permissions = Permissions::default();
        permissions.add(&Allowance::Hosts(vec![AllowedHost {
            host: host("a.example"),
            command: Some("npm ci".to_owned()),
        }]));
        assert!(permissions.reach(&asked("npm ci", &["a.example"])));
        assert!(!permissions.reach(&asked("npm ci", &["a.example", "b.example"])));
        assert!(!permissions.reach(&asked("npm i", &["a.example"])));
        assert!(!permissions.reach(&asked("npm ci", &[])));
        permissions.add(&Allowance::Hosts(vec![AllowedHost {
            host: host("b.example"),
            command: None,
        }]));
        assert!(permissions.reach(&asked("npm ci", &["a.example", "b.example"])));
        assert!(permissions.reach(&asked("npm i", &["b.example"])));
        let named = permissions.hosts.iter().map(ToString::to_string);
        let expected = ["a.example for `npm ci`", "b.example"];
        assert_eq!(named.collect::<Vec<_>>(), expected);
    }
}
