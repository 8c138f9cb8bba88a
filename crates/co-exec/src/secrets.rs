//! Finds the secret files of a workspace, and removes secret values from text.
//!
//! `names` (of co-policy) decides by name alone, [`content`] by what a file contains. [`survey()`] walks a workspace once, and
//! [`Surveys`] keeps what it finds; the sandbox hides these files. [`Values`] reads their values, and [`redact`] removes these
//! from text for a model. `exposure` finds secrets that appeared while a command ran. Nothing here decides about commands.

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
