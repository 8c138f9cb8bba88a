//! Tests of cli.

mod descriptors;
mod messages;
mod settings;
mod settings_help;
pub(crate) mod state;
mod usage;
