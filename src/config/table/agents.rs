//! The settings for agents.

use crate::config::agents::set_agents;
use crate::config::setting::{Applies, Setting, setting};
use crate::config::units::MIB;
use crate::config::value::Kind;

/// The settings for agents, in the order of the help.
pub(super) static SETTINGS: &[Setting] = &[
    setting(
        "agents",
        "{}",
        Kind::Tables {
            accepts: "a table from names to tables of cmd, env, home, hosts, confinement and tools",
            read: set_agents,
        },
        "Agents for |co-/agent|, such as { codex = { cmd = { '/opt/codex-acp' } }, mine = { cmd = { 'my-agent', '--acp' }, env = \
         { MODE = 'x' }, hosts = { 'api.example.org' } } }. What is left out comes from the preset with that name, see |co-other-agents|. \
         home is your own directory of an agent that has a preset, such as ~/.codex. confinement = 'none' runs it as a plain process, with all that you may do. \
         tools = 'co' lets claude work by the tools of co alone, see |co-agent-tools|.",
    )
    .strict()
    .applies(Applies::NextChat),
    setting(
        "agent_memory",
        "16GiB",
        Kind::SizeLimit(64 * MIB, |c, v| c.agent_memory = v),
        "The most memory of an agent with all that it starts. Beyond that, co ends it.",
    )
    .applies(Applies::NextChat),
    setting(
        "agent_processes",
        "4096",
        Kind::Limit(16..=1 << 22, |c, v| c.agent_processes = v),
        "The most processes and threads of an agent with all that it starts. Beyond that, co ends it.",
    )
    .applies(Applies::NextChat),
];
