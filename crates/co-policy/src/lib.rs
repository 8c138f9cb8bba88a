//! What may run unasked, and why: pure over the facts it is given.
//!
//! [`review::assess`] reads a command and says of each part what is proved, what is not, and what no
//! rule may cover; [`verdict::decide`] weighs that against a person's rules. Nothing here looks at a
//! file or starts a process: [`facts::Facts`] answers what must be known of the world.

pub mod bash;
mod deny;
pub mod facts;
mod git;
pub mod glob;
mod options;
pub mod paths;
pub mod programs;
mod proved;
pub mod review;
pub mod rules;
pub mod saved;
pub mod secret_names;
mod special;
mod text;
pub mod verdict;
mod word;
mod wrap;

use std::ops::Range;

pub use bash::MAX_CHARS;
pub use deny::NAMES as DENY_RULES;
pub use git::HARDENING;
pub use proved::Proved;
pub use review::{Assessment, assess, assess_argv};
pub use rules::Pattern;
pub use text::printable;
pub use verdict::{Ask, Grant, Rules, Verdict, decide};

/// What a person may set of the policy. Rules are token patterns: `cargo test` covers `cargo test --lib`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Given, it replaces the built-in list of programs; the option tables still apply.
    pub safe_commands: Option<Vec<String>>,
    pub allow: Vec<String>,
    pub ask: Vec<String>,
    pub deny: Vec<String>,
    /// Names of built-in deny rules that the person lifted.
    pub deny_lifted: Vec<String>,
}

/// Why a command is not proved, with the bytes of the command it speaks of.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Reason {
    pub text: String,
    pub span: Option<Range<usize>>,
}

impl Reason {
    /// A reason that speaks of the whole command.
    pub fn whole(text: String) -> Self {
        Self { text, span: None }
    }

    /// A reason that speaks of some bytes of the command.
    pub fn at(text: String, span: Range<usize>) -> Self {
        Self {
            text,
            span: Some(span),
        }
    }
}
