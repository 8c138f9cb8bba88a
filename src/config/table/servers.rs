//! The settings for tool servers.

use std::time::Duration;

use crate::config::servers::set_servers;
use crate::config::setting::{Applies, Setting, setting};
use crate::config::value::Kind;

/// The settings for tool servers, in the order of the help.
pub(super) static SETTINGS: &[Setting] = &[
    setting(
        "mcp_servers",
        "{}",
        Kind::Tables {
            accepts: "a table from names to tables of cmd, env, env_cmd, confinement and hosts, or of url, headers, oauth, env and env_cmd",
            read: set_servers,
        },
        "Tool servers (MCP), whose tools the model may call, such as { git = { cmd = { 'mcp-server-git' } }, notes = { cmd = \
         { 'my-notes', '--stdio' }, env = { NOTES = 'work' } } }. Each is confined: `confinement` and `hosts` say what it may do, see \
         |co-tool-server-levels|. A server with a `url` is one that others run, see |co-tool-server-http|; for its login, see \
         |co-tool-server-login|. A server with wrong settings is left out, which the chat says.",
    )
    .strict()
    .applies(Applies::NextChat),
    setting(
        "mcp_wait",
        "10",
        Kind::Number(0..=600, |c, v| c.mcp_wait = Duration::from_secs(v)),
        "Seconds that a prompt waits for tool servers that start. Then it goes without their tools, and the chat says so.",
    ),
    setting(
        "mcp_timeout",
        "120",
        Kind::Number(1..=86_400, |c, v| c.mcp_timeout = Duration::from_secs(v)),
        "Seconds that a call of a tool server may take. Then it is cancelled.",
    ),
];
