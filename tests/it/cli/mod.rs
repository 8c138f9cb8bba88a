//! Tests of cli.

mod messages;
mod settings;
mod settings_help;
mod usage;
