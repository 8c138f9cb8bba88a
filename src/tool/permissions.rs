//! The answers of the person to questions, and the permissions that they give.

use std::path::PathBuf;

use crate::protocol::{AskedHost, ChosenAnswer, HunkAnswer, Scope};
use crate::services::Services;
use co_policy::{HostPattern, HostRules, HostVerdict};

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
    Hosts(Vec<HostPattern>),
    /// Confined commands of this workspace may reach these hosts. It is saved.
    SavedHosts(PathBuf, Vec<HostPattern>),
    /// All text for this job.
    Job(u64),
    Everything,
    /// co may try commands of this workspace before it asks. It is saved.
    TryFirst(PathBuf),
}

/// The permissions of a chat that the person gave so far.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    pub rules: Vec<co_policy::Pattern>,
    pub everything: bool,
    /// co tries commands of the workspace before it asks, from an answer in this turn on. For later turns, it is saved.
    pub tries_first: bool,
    /// The hosts that confined commands of the chat may reach.
    pub hosts: Vec<HostPattern>,
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

    /// Returns true if a question is about hosts, and the person has allowed all of them for this chat.
    pub fn reach(&self, hosts: &[AskedHost]) -> bool {
        let rules = HostRules {
            allow: self.hosts.clone(),
            deny: Vec::new(),
        };
        let allowed =
            |it: &AskedHost| matches!(rules.verdict(&it.host, it.port), HostVerdict::Allowed(_));
        !hosts.is_empty() && hosts.iter().all(allowed)
    }

    /// Adds a permission.
    pub fn add(&mut self, allowance: &Allowance) {
        match allowance {
            Allowance::Job(job) => self.jobs.push(*job),
            Allowance::Everything => self.everything = true,
            Allowance::TryFirst(_) => self.tries_first = true,
            Allowance::Hosts(hosts) | Allowance::SavedHosts(_, hosts) => {
                self.hosts.extend(hosts.iter().cloned());
            }
            Allowance::Rule(rule) | Allowance::Saved(_, rule) => self.rules.push(rule.clone()),
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
