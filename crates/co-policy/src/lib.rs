#![doc = include_str!("../README.md")]

mod args;
pub mod assess;
pub mod assessment;
pub mod bash;
mod deny;
pub mod facts;
mod git;
pub mod glob;
mod options;
pub mod paths;
pub mod programs;
mod proved;
mod reason;
pub mod rules;
pub mod saved;
pub mod secret_names;
mod special;
mod text;
pub mod verdict;
mod word;
mod wrappers;

pub use assess::{assess, assess_argv};
pub use assessment::Assessment;
pub use bash::MAX_CHARS;
pub use deny::NAMES as DENY_RULES;
pub use git::HARDENING;
pub use proved::Proved;
pub use reason::Reason;
pub use rules::{Pattern, PolicySettings};
pub use text::printable;
pub use verdict::{ApprovalQuestion, Grant, Rules, Verdict, decide};
