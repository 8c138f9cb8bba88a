//! Tests of cli.

mod settings;
mod settings_help;
mod usage;
