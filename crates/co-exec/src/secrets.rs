//! Finds the secret files of a workspace, and removes secret values from text.
//!
//! `names` (of co-policy) recognizes secret files by their names alone, and [`content`] recognizes them by their contents.
//! [`survey()`] walks a workspace once, and [`Surveys`] caches the results, so that the sandbox can hide these files. [`Values`]
//! reads the secret values from the files, and [`redact`] removes these values from text for a model. `exposure` finds secrets
//! that appeared while a command ran. This module does not judge commands.

pub(crate) mod config_credential;
pub mod content;
pub(crate) mod exposure;
mod extract;
mod matcher;
mod named;
pub mod redact;
mod survey;
mod surveys;
mod value;
mod values;

pub use matcher::Matcher;
pub use named::named;
pub use survey::{Survey, survey};
pub(crate) use survey::{is_generated, is_unsurveyed};
pub use surveys::Surveys;
pub use values::Values;
