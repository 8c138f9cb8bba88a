//! Tests of cli.

mod settings_help;
mod usage;
