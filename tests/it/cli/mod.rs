//! Tests of cli.

mod descriptors;
mod edit;
mod hostile_clients;
mod message_fuzz;
mod messages;
mod settings;
mod settings_help;
pub(crate) mod state;
pub(crate) mod trial;
mod trial_commands;
mod trial_git;
pub(crate) mod trial_hosts;
mod trial_ignored;
mod trial_refused;
mod trial_scene;
mod trial_surroundings;
mod usage;
