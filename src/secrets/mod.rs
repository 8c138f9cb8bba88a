//! The secrets of a workspace: which names they have, and where they are.
//!
//! [`names`] decides by name alone. [`survey`] walks a workspace once. The policy asks before it
//! shows what lies there, and the sandbox hides it. [`redact`] takes secrets out of what a model reads. Nothing here
//! decides about commands.

pub mod names;
pub mod redact;
mod survey;

pub use survey::{Survey, survey};
