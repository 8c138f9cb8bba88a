//! `/mcp`: the tool servers of a chat, for the person.

use super::Chat;
use crate::protocol::Choice;
use crate::tool::server::ListedServer;

impl Chat {
    /// Lists the tool servers, or says more about the one with a name.
    pub(super) fn list_servers(&self, name: &str) {
        let servers = self.servers.listed(&self.services.config);
        if servers.is_empty() {
            return self
                .say("the setting `mcp_servers` names no tool server, see :help co-tool-servers");
        }
        if name.is_empty() {
            let choice = |it: &ListedServer| Choice {
                label: format!("{} ({}; {})", it.name, it.state, it.level),
                value: it.name.clone(),
                confirm: None,
            };
            return self.offer("mcp", "Tool servers", servers.iter().map(choice).collect());
        }
        let Some(server) = servers.iter().find(|it| it.name == name) else {
            return self.complain(format!("there is no tool server {name}; /mcp lists them"));
        };
        let ListedServer {
            name,
            command,
            state,
            level,
            tools,
        } = server;
        let tools = match tools.as_slice() {
            [] => String::new(),
            tools => format!("; the model may call {}", tools.join(", ")),
        };
        self.say(format!(
            "{name}: {state}; {level}; command: {command}{tools}"
        ));
    }
}
