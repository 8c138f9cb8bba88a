//! The access of the command of `co-nvim exec` to hosts.

use std::sync::Arc;

use super::request::{ExecRequest, Machine};
use super::terminal::{self, TerminalAsker};
use super::trial;
use crate::config::Network;
use crate::network::HostAccess;
use crate::workspace::judge::workspace_of;
use crate::workspace::rules;
use co_exec::Confinement;
use co_policy::HostRules;

/// Returns the access of the command to hosts, or `None` if it has none. Blocks on file operations.
///
/// The options of the command line allow hosts. If the settings let confined commands ask for hosts, the hosts in the settings
/// and in the person's saved rules are allowed too.
///
/// # Errors
/// The options allow hosts, but the command cannot get access to them. The error is a sentence for the person.
pub(super) fn access(
    request: &ExecRequest,
    machine: &Machine,
    confinement: &Confinement,
) -> Result<Option<HostAccess>, String> {
    let config = &machine.config;
    let options_allow = !request.allow_hosts.is_empty();
    let by_settings = config.sandbox_network == Network::Ask;
    if !options_allow && !by_settings {
        return Ok(None);
    }
    if !confinement.has_own_network() {
        let checked = machine.launcher.report().own_network();
        return match checked {
            Err(why) if options_allow => Err(why.to_string()),
            _ => Ok(None),
        };
    }
    let workspace = workspace_of(&request.cwd);
    let mut allow = request.allow_hosts.clone();
    if by_settings {
        let dir = machine
            .paths
            .rules_dir()
            .map_err(|error| error.to_string())?;
        let saved = rules::load(&dir, &workspace).map_err(|error| error.to_string())?;
        allow.extend(config.hosts.allow.iter().cloned());
        allow.extend(saved.allow_hosts);
    }
    let own = HostRules {
        allow,
        deny: config.hosts.deny.clone(),
    };
    let judge = trial::judge(
        &machine.launcher,
        &machine.paths,
        workspace,
        machine.paths.home.clone(),
    );
    let asker = TerminalAsker {
        rules: judge.host_rules(own)?,
        is_terminal: !request.json && terminal::is_there(),
    };
    Ok(Some(HostAccess::new(Arc::new(asker))))
}
