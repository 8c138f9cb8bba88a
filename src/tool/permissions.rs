//! The person's answers to questions, and the permissions that the answers give.

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
        /// True if co must also try later commands of the workspace before it asks.
        later: bool,
    },
}

/// A permission that the answer `always` gives.
#[derive(Debug, Clone, PartialEq)]
pub enum Allowance {
    Rule(co_policy::Pattern),
    /// A saved rule for the workspace that the question was about. The chat may work in another workspace by now.
    Saved(PathBuf, co_policy::Pattern),
    /// The hosts that confined commands of the chat may contact.
    Hosts(Vec<AllowedHost>),
    /// Permission for every later text that the model sends to the standard input of the job with this number.
    Job(u64),
    Everything,
    /// The saved permission to try commands of this workspace before co asks.
    TryFirst(PathBuf),
}

/// A host that the person allowed for confined commands of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct AllowedHost {
    pub host: HostPattern,
    /// The only command that may contact the host; none if every command may.
    pub command: Option<String>,
}

impl AllowedHost {
    /// Returns the host, if this command may contact it.
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

/// The permissions that the person has given in a chat.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    pub rules: Vec<co_policy::Pattern>,
    pub everything: bool,
    /// True if an answer in this turn allowed co to try commands of the workspace before it asks. Later turns read the saved
    /// permission.
    pub tries_first: bool,
    /// The hosts that confined commands of the chat may contact.
    pub hosts: Vec<AllowedHost>,
    /// The jobs to whose input the model may send text without approval.
    pub jobs: Vec<u64>,
    /// The commands that failed in the read-only confinement. They need approval now.
    pub failed_confined: Vec<String>,
}

impl Permissions {
    /// Returns true if calls run without approval. Only calls that the deny rules cannot check still need approval.
    pub fn confirms(&self, services: &Services) -> bool {
        self.everything || services.config.auto_confirm
    }

    /// Returns true if a question is about hosts, and the person has allowed all these hosts for the command or for this chat.
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

    /// Adds a permission to the permissions of the chat, or saves it. The judge of the next command or turn applies saved
    /// permissions. If the permission cannot be saved, tells the person, and adds it to the chat instead.
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

    /// Adds commands that failed in the read-only confinement.
    pub fn learn(&mut self, failed: Vec<String>) {
        let known = |command: &String| self.failed_confined.contains(command);
        let new: Vec<_> = failed.into_iter().filter(|it| !known(it)).collect();
        self.failed_confined.extend(new);
    }
}

/// The state that a turn keeps from call to call.
#[derive(Debug, Clone, Default)]
pub struct TurnMemory {
    pub permissions: Permissions,
    /// The number of calls of the turn that have ended.
    pub calls_ended: usize,
    /// True if the model has been told that the confinement may have caused a failure.
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
