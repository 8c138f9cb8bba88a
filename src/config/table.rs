//! The table of all settings, by topic.

mod agents;
mod chat;
mod exec;
mod model;
mod policy;
mod sandbox;
mod servers;

use super::setting::Setting;

/// Returns all settings, in the order of the help.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    let topics = [
        model::SETTINGS,
        agents::SETTINGS,
        servers::SETTINGS,
        chat::SETTINGS,
        policy::SETTINGS,
        exec::SETTINGS,
        sandbox::SETTINGS,
    ];
    topics.into_iter().flatten()
}
