//! The secrets of a workspace: which names they have, and where they are.
//!
//! [`names`] decides by name alone. [`survey`] walks a workspace once. The policy asks before it
//! shows what lies there, and the sandbox hides it. Nothing here decides about commands.

pub mod names;
mod survey;

pub use survey::{Survey, survey};
