#![doc = include_str!("../README.md")]

mod assess;
pub mod bash;
mod deny;
pub mod facts;
mod form;
mod hosts;
pub mod obeyed;
pub mod paths;
mod plain;
mod prefix;
pub mod programs;
mod reach;
mod reason;
pub mod rule_files;
pub mod rules;
pub mod secret_names;
mod sort;
mod text;
pub mod tool_server;
mod unconfined;
pub mod verdict;
mod wrappers;

pub use assess::{Assessment, CommandAssessment, PossibleTrial, RuleCommand, assess, assess_argv};
pub use bash::MAX_CHARS;
pub use deny::NAMES as DENY_RULES;
pub use form::{CommandForm, FormOption};
pub use hosts::{HostPattern, HostPatternError, HostRules, HostVerdict};
pub use programs::Sort;
pub use reason::Reason;
pub use rules::{Pattern, PolicySettings};
pub use tool_server::ToolServerCall;
pub use verdict::{ApprovalQuestion, Grant, Rules, Verdict, decide};
