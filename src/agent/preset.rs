//! The agents that co knows by name, and what the person's settings make of them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::config::{AgentConfinement, Config};
use crate::paths::workspace_name;
use co_policy::HostPattern;

/// An agent that co knows.
#[derive(Debug)]
pub struct AgentPreset {
    pub name: &'static str,
    /// Its program and arguments.
    pub cmd: &'static [&'static str],
    /// Variables for its environment. They turn its own sandbox off, because no sandbox can start inside another one.
    pub env: &'static [(&'static str, &'static str)],
    pub home: AgentHome,
    /// The hosts of its vendor.
    pub hosts: &'static [&'static str],
    /// The command that logs in, for a terminal.
    pub login: &'static str,
    /// The command that installs it.
    pub install: &'static str,
}

/// The directory of an agent. The confined agent gets a directory of its own, which nothing outside the confinement reads: what it
/// writes there is not obeyed when the person starts the agent without co.
#[derive(Debug)]
pub struct AgentHome {
    /// The variable that names it.
    pub variable: &'static str,
    /// The person's own one, below their home directory.
    pub of_person: &'static str,
    /// The entries of the person's directory that the confined agent reads.
    pub read: &'static [&'static str],
    /// The files of the person's directory that it also writes: its login.
    pub write: &'static [&'static str],
}

/// The agents that co knows.
pub const PRESETS: &[AgentPreset] = &[
    // Sources: the README and dist/index.js of @agentclientprotocol/codex-acp 2.6.0, and docs/config.md of openai/codex; November 2026.
    // `agent-full-access` turns codex's own sandbox off.
    AgentPreset {
        name: "codex",
        cmd: &["codex-acp"],
        env: &[
            ("INITIAL_AGENT_MODE", "agent-full-access"),
            ("NO_BROWSER", "1"),
        ],
        home: AgentHome {
            variable: "CODEX_HOME",
            of_person: ".codex",
            read: &["AGENTS.md", "config.toml", "prompts", "rules"],
            write: &["auth.json"],
        },
        hosts: &["api.openai.com", "auth.openai.com", "chatgpt.com"],
        login: "codex login",
        install: "npm install -g @agentclientprotocol/codex-acp @openai/codex",
    },
];

/// An agent, from its preset and the person's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSpec {
    pub name: String,
    /// Its program and arguments.
    pub cmd: Vec<String>,
    pub env: Vec<(String, String)>,
    /// The person's own directory of the agent, if its preset knows one.
    pub person_home: Option<PathBuf>,
    /// The hosts that it needs, with those that the person set.
    pub vendor_hosts: Vec<String>,
    pub allowed_hosts: Vec<HostPattern>,
    pub confinement: AgentConfinement,
}

impl AgentSpec {
    /// Returns the agent with a name; none if there is no such preset, and no such agent with a program in the settings.
    pub fn find(name: &str, config: &Config, home: &Path) -> Option<Self> {
        let preset = preset(name);
        let set = config.agents.iter().find(|it| it.name == name);
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
        let cmd = set.and_then(|it| it.cmd.clone());
        let cmd = cmd.or_else(|| preset.map(|it| words(it.cmd)))?;
        let env = preset.into_iter().flat_map(|it| it.env);
        let env = env.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let more = set.into_iter().flat_map(|it| it.env.iter().cloned());
        let of_preset = preset.map(|it| home.join(it.home.of_person));
        Some(Self {
            name: name.to_owned(),
            cmd,
            env: env.chain(more).collect(),
            person_home: set.and_then(|it| it.home.clone()).or(of_preset),
            vendor_hosts: preset.map_or_else(Vec::new, |it| words(it.hosts)),
            allowed_hosts: set.map_or_else(Vec::new, |it| it.hosts.clone()),
            confinement: set.map_or(AgentConfinement::default(), |it| it.confinement),
        })
    }

    /// Returns the preset with its name, if there is one.
    pub fn preset(&self) -> Option<&'static AgentPreset> {
        preset(&self.name)
    }

    /// Returns the directory of the confined agent, below that of all agents. Each workspace has one: what the agent writes there in one
    /// workspace, it neither reads nor obeys in another.
    pub fn own_home(&self, agents: &Path, workspace: &Path) -> PathBuf {
        agents.join(&self.name).join(workspace_name(workspace))
    }

    /// Returns the path of its program; none if it is not installed.
    pub fn installed(&self, path: &OsStr) -> Option<PathBuf> {
        let program = Path::new(self.cmd.first()?);
        match program.is_absolute() {
            true => program.is_file().then(|| program.to_owned()),
            false => co_exec::find_program(program.to_str()?, path),
        }
    }
}

/// Returns the names of all agents: those of the settings, and the presets.
pub fn names(config: &Config) -> Vec<String> {
    let set = config.agents.iter().map(|it| it.name.clone());
    let presets = PRESETS.iter().map(|it| it.name.to_owned());
    let mut names: Vec<_> = set.chain(presets).collect();
    names.sort();
    names.dedup();
    names
}

fn preset(name: &str) -> Option<&'static AgentPreset> {
    PRESETS.iter().find(|it| it.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AgentSettings;

    #[test]
    fn settings_change_a_preset_and_name_other_agents() {
        let mut config = Config::default();
        config.agents.extend([
            AgentSettings {
                name: "codex".to_owned(),
                env: vec![("MODE".to_owned(), "x".to_owned())],
                confinement: AgentConfinement::None,
                ..AgentSettings::default()
            },
            AgentSettings {
                name: "mine".to_owned(),
                cmd: Some(vec!["mine".to_owned(), "--acp".to_owned()]),
                ..AgentSettings::default()
            },
            AgentSettings {
                name: "bare".to_owned(),
                ..AgentSettings::default()
            },
        ]);
        let find = |name, config| AgentSpec::find(name, config, Path::new("/home/ann"));
        let codex = find("codex", &config).unwrap();
        assert_eq!(codex.cmd, ["codex-acp"]);
        assert_eq!(codex.env.last().unwrap().0, "MODE");
        assert_eq!(codex.person_home, Some("/home/ann/.codex".into()));
        assert_eq!(codex.confinement, AgentConfinement::None);
        let mine = find("mine", &config).unwrap();
        assert_eq!((mine.cmd.len(), mine.preset().is_none()), (2, true));
        assert_eq!(mine.confinement, AgentConfinement::Workspace);
        assert_eq!(find("bare", &config), None);
        let codex = find("codex", &Config::default()).unwrap();
        let own = |workspace: &str| codex.own_home(Path::new("/agents"), Path::new(workspace));
        assert!(own("/a").starts_with("/agents/codex"));
        assert_ne!(own("/a"), own("/b"));
        assert_eq!(names(&config), ["bare", "codex", "mine"]);
    }

    #[test]
    fn the_hosts_of_presets_can_be_asked_about() {
        for preset in PRESETS {
            for host in preset.hosts {
                assert!(co_proxy::Target::parse(host, Some(443)).is_ok(), "{host}");
            }
            assert!(!preset.home.of_person.starts_with('/'));
        }
    }
}
