//! The person's settings for agents, which are programs that work instead of a model.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Config;
use super::setting::{Setting, read_fields, setting};
use super::value::{BadValue, Kind, object};
use co_policy::HostPattern;

/// The person's settings for one agent. The preset with the same name provides missing settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentSettings {
    pub name: String,
    /// The program of the agent, and its arguments.
    pub cmd: Option<Vec<String>>,
    /// Environment variables for the agent.
    pub env: Vec<(String, String)>,
    /// The person's directory with the agent's settings and login.
    pub home: Option<PathBuf>,
    /// The hosts that the agent may connect to besides the hosts of its preset.
    pub hosts: Vec<HostPattern>,
    pub confinement: AgentConfinement,
    pub tools: ToolSource,
}

/// The tools that an agent works with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolSource {
    /// Its own, and a few of co.
    #[default]
    Own,
    /// Those of co alone, so that co judges and carries out each edit and each command.
    Co,
}

/// The confinement of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentConfinement {
    /// The agent can write in the workspace and in a private directory. It can connect to the hosts that the person allows.
    #[default]
    Workspace,
    None,
}

/// The settings that the table of an agent may have. Each one sets a field of the first agent of a [`Config`].
static FIELDS: &[Setting] = &[
    setting("cmd", "", Kind::Argv(|c, v| agent(c).cmd = Some(v)), ""),
    setting("env", "", Kind::Pairs(|c, v| agent(c).env = v), ""),
    setting("home", "", Kind::Path(|c, v| agent(c).home = Some(v)), ""),
    setting("hosts", "", Kind::Hosts(|c, v| agent(c).hosts = v), ""),
    setting(
        "confinement",
        "",
        Kind::Choice(&["workspace", "none"], |c, v| {
            agent(c).confinement = match v {
                "none" => AgentConfinement::None,
                _ => AgentConfinement::Workspace,
            };
        }),
        "",
    ),
    setting(
        "tools",
        "",
        Kind::Choice(&["own", "co"], |c, v| {
            agent(c).tools = match v {
                "co" => ToolSource::Co,
                _ => ToolSource::Own,
            };
        }),
        "",
    ),
];

fn agent(config: &mut Config) -> &mut AgentSettings {
    if config.agents.is_empty() {
        config.agents.push(AgentSettings::default());
    }
    &mut config.agents[0]
}

/// Reads the agents in a table. The name of an agent must be a word, because it is used as an argument and as part of a path.
pub(super) fn set_agents(
    config: &mut Config,
    value: &Value,
    home: Option<&Path>,
) -> Result<(), BadValue> {
    let mut agents = Vec::new();
    for (name, fields) in object(value)? {
        let is_word = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(BadValue);
        }
        let mut read = read_fields(&fields, FIELDS.iter(), home)?;
        agents.push(AgentSettings {
            name,
            ..std::mem::take(agent(&mut read))
        });
    }
    config.agents = agents;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::load;

    fn read(agents: &Value) -> (Vec<AgentSettings>, usize) {
        let (config, problems) = load(None, &json!({ "agents": agents }), &|_| None);
        (config.agents, problems.len())
    }

    #[test]
    fn agents_have_a_program_variables_a_home_and_hosts() {
        let given = json!({
            "codex": { "cmd": ["/opt/codex-acp", "--x"], "env": { "A": "b" }, "home": "/h/.codex", "hosts": ["example.org"] },
            "mine": { "cmd": ["mine"], "confinement": "none" },
            "bare": {},
        });
        let (agents, problems) = read(&given);
        assert_eq!(problems, 0);
        let names: Vec<_> = agents.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["codex", "mine", "bare"]);
        assert_eq!(agents[0].cmd.as_ref().unwrap().len(), 2);
        assert_eq!(agents[0].env, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(agents[0].hosts.len(), 1);
        assert_eq!(agents[0].confinement, AgentConfinement::Workspace);
        assert_eq!(agents[1].confinement, AgentConfinement::None);
        assert_eq!(agents[2].cmd, None);
        assert_eq!(agents[2].tools, ToolSource::Own);
        let (agents, _) = read(&json!({ "claude": { "tools": "co" } }));
        assert_eq!(agents[0].tools, ToolSource::Co);
    }

    #[test]
    fn a_wrong_field_makes_the_setting_wrong() {
        for wrong in [
            json!({ "a/b": {} }),
            json!({ "": {} }),
            json!({ "a": { "cmd": [] } }),
            json!({ "a": { "cmd": "x" } }),
            json!({ "a": { "confinement": "some" } }),
            json!({ "a": { "unheard": 1 } }),
            json!({ "a": { "tools": [] } }),
            json!({ "a": 1 }),
            json!("a"),
        ] {
            assert_eq!(read(&wrong), (Vec::new(), 1), "{wrong}");
        }
    }
}
