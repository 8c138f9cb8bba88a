//! The secrets of a workspace: which names they have, and where they are.
//!
//! [`names`] decides by name alone. [`survey`] walks a workspace once. The policy asks before it
//! shows what lies there, and the sandbox hides it. [`Values`] reads them, and [`redact`]
//! takes them out of what a model reads. Nothing here decides about commands.

mod extract;
mod matcher;
pub mod names;
pub mod redact;
mod survey;
mod values;

pub use matcher::Matcher;
pub use survey::{Survey, survey};
pub use values::Values;
