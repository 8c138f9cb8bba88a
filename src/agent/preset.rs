//! The presets of agents that co knows by name, and the person's settings for agents.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::config::{AgentConfinement, Config, ToolSource};
use crate::paths::workspace_name;
use crate::tool::{IN_PLACE_OF_OWN, OF_AGENTS};
use co_policy::HostPattern;

/// The preset of an agent that co knows by name.
#[derive(Debug)]
pub struct AgentPreset {
    pub name: &'static str,
    /// The program of the agent, and its arguments.
    pub cmd: &'static [&'static str],
    /// All programs in the agent's package, including programs for a terminal.
    pub programs: &'static [&'static str],
    /// Environment variables for the agent. They turn off its own sandbox, because a sandbox cannot start inside another one.
    pub env: &'static [(&'static str, &'static str)],
    /// The names of the person's variables that the agent gets: the keys for its vendor, and the settings for these keys.
    pub keys: &'static [&'static str],
    pub home: AgentHome,
    /// The hosts of the agent's vendor.
    pub hosts: &'static [&'static str],
    /// The command that a person types into a terminal to log in to the agent's vendor.
    pub login: &'static str,
    /// The login methods in which the agent waits for the person's browser at the loopback interface. These methods do not work
    /// while the agent is confined.
    pub browser_logins: &'static [&'static str],
    /// The command that installs the agent.
    pub install: &'static str,
    /// The `_meta` of its sessions that switches its own tools off, as JSON; none if it cannot work without them.
    pub without_tools: Option<&'static str>,
}

/// The directories of an agent. A confined agent gets a private directory, which nothing outside the confinement reads. So an
/// agent that the person starts without co does not load files that the confined agent wrote.
#[derive(Debug)]
pub struct AgentHome {
    /// The environment variables that point to the private directory or to a directory in it. Each variable comes with the path
    /// inside the private directory.
    pub variables: &'static [(&'static str, &'static str)],
    /// The person's directories. The agent may read or write some of their entries.
    pub parts: &'static [HomePart],
}

/// A directory of the person that an agent uses.
#[derive(Debug)]
pub struct HomePart {
    /// The path of the person's directory, relative to the home directory.
    pub of_person: &'static str,
    /// The path inside the agent's private directory where the entries appear as links.
    pub inside: &'static str,
    /// The names of the entries that the confined agent may read.
    pub read: &'static [&'static str],
    /// The names of the files that the agent may also write: its login.
    pub write: &'static [&'static str],
}

/// The agents that co knows by name. The facts are of November 2026. Each was checked in a confined turn with the version that
/// its comment names.
pub const PRESETS: &[AgentPreset] = &[
    // Sources: the README, CHANGELOG and `--help` of @agentclientprotocol/claude-agent-acp 0.101.0; the settings and the network
    // configuration of Claude Code at code.claude.com/docs. Without the first variable, it reaches hosts for updates and
    // statistics. `plugins` is not read, because Claude Code also writes there.
    AgentPreset {
        name: "claude",
        cmd: &["claude-agent-acp"],
        programs: &["claude", "claude-agent-acp"],
        env: &[("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")],
        keys: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        home: AgentHome {
            variables: &[("CLAUDE_CONFIG_DIR", "")],
            parts: &[HomePart {
                of_person: ".claude",
                inside: "",
                read: &[
                    "CLAUDE.md",
                    "agents",
                    "commands",
                    "output-styles",
                    "rules",
                    "settings.json",
                    "skills",
                ],
                write: &[".credentials.json"],
            }],
        },
        hosts: &["api.anthropic.com", "claude.ai", "platform.claude.com"],
        login: "claude-agent-acp --cli auth login",
        browser_logins: &[],
        install: "npm install -g @agentclientprotocol/claude-agent-acp",
        // src/acp-agent.ts reads it for new sessions and for those that go on. co itself asks about the calls of its tools, so the
        // permission modes of Claude Code, one of which lets a model decide, do not count for these.
        without_tools: Some(
            r#"{ "claudeCode": { "options": { "tools": [], "strictMcpConfig": true, "allowedTools": ["mcp__co"] } } }"#,
        ),
    },
    // Sources: the README and dist/index.js of @agentclientprotocol/codex-acp 2.6.0, and docs/config.md of openai/codex.
    // `agent-full-access` turns codex's own sandbox off.
    AgentPreset {
        name: "codex",
        cmd: &["codex-acp"],
        programs: &["codex", "codex-acp"],
        env: &[
            ("INITIAL_AGENT_MODE", "agent-full-access"),
            ("NO_BROWSER", "1"),
        ],
        keys: &["CODEX_API_KEY", "OPENAI_API_KEY"],
        home: AgentHome {
            variables: &[("CODEX_HOME", "")],
            parts: &[HomePart {
                of_person: ".codex",
                inside: "",
                read: &["AGENTS.md", "config.toml", "prompts", "rules"],
                write: &["auth.json"],
            }],
        },
        hosts: &["api.openai.com", "auth.openai.com", "chatgpt.com"],
        login: "codex login",
        browser_logins: &["chat-gpt"],
        install: "npm install -g @agentclientprotocol/codex-acp @openai/codex",
        // `features.shell_tool` turns off the shell, but nothing turns off `apply_patch`.
        without_tools: None,
    },
    // Sources: docs/cli/acp-mode.md, docs/reference/configuration.md and the Storage class of @google/gemini-cli 0.61.0. Its own
    // sandbox is off unless GEMINI_SANDBOX or a setting turns it on; the variable goes before the setting. What co confines may
    // trust its workspace. No terminal can be made inside, so its commands get pipes.
    AgentPreset {
        name: "gemini",
        cmd: &["gemini", "--acp"],
        programs: &["gemini"],
        env: &[
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            ("GEMINI_PTY_INFO", "child_process"),
            ("GEMINI_SANDBOX", "false"),
            ("NO_BROWSER", "true"),
        ],
        keys: &[
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_CLOUD_LOCATION",
            "GOOGLE_CLOUD_PROJECT",
            "GOOGLE_GENAI_USE_VERTEXAI",
        ],
        home: AgentHome {
            variables: &[("GEMINI_CLI_HOME", "")],
            parts: &[HomePart {
                of_person: ".gemini",
                inside: ".gemini",
                read: &[
                    "GEMINI.md",
                    "agents",
                    "commands",
                    "extensions",
                    "policies",
                    "settings.json",
                    "skills",
                ],
                write: &["google_accounts.json", "oauth_creds.json"],
            }],
        },
        hosts: &[
            "cloudcode-pa.googleapis.com",
            "generativelanguage.googleapis.com",
            "oauth2.googleapis.com",
        ],
        login: "gemini",
        browser_logins: &["oauth-personal"],
        install: "npm install -g @google/gemini-cli",
        // Any value of `tools.core` also denies all tools of servers (google-gemini/gemini-cli#28361).
        without_tools: None,
    },
    // Sources: the documentation at opencode.ai/docs (CLI, config, providers), and turns of opencode-ai 1.18.33. It has no
    // sandbox of its own. Its watcher of files must be off: no confined command has inotify, and without it opencode waits for
    // ever. `plugin` and `tool` are not read, because they need packages of npm beside them.
    AgentPreset {
        name: "opencode",
        cmd: &["opencode", "acp"],
        programs: &["opencode"],
        env: &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "true"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "true"),
            ("OPENCODE_EXPERIMENTAL_DISABLE_FILEWATCHER", "true"),
        ],
        keys: &["OPENCODE_API_KEY"],
        home: AgentHome {
            variables: &[
                ("XDG_CACHE_HOME", "cache"),
                ("XDG_CONFIG_HOME", "config"),
                ("XDG_DATA_HOME", "data"),
                ("XDG_STATE_HOME", "state"),
            ],
            parts: &[
                HomePart {
                    of_person: ".config/opencode",
                    inside: "config/opencode",
                    read: &[
                        "AGENTS.md",
                        "agent",
                        "agents",
                        "command",
                        "commands",
                        "config.json",
                        "opencode.json",
                        "opencode.jsonc",
                        "skill",
                        "skills",
                    ],
                    write: &[],
                },
                HomePart {
                    of_person: ".local/share/opencode",
                    inside: "data/opencode",
                    // An entry of the type `wellknown` names a configuration that opencode fetches and obeys, so the agent must not
                    // write it.
                    read: &["auth.json"],
                    write: &[],
                },
            ],
        },
        hosts: &["models.opencode.ai", "opencode.ai"],
        login: "opencode auth login",
        browser_logins: &[],
        install: "npm install -g opencode-ai",
        // Its permissions could deny them, but no turn has been tried so.
        without_tools: None,
    },
];

impl AgentPreset {
    /// Returns true if the first word of a command starts a program of this agent. The word must be the program's name or
    /// absolute path.
    pub(super) fn is_started_by(&self, word: &str) -> bool {
        let path = Path::new(word);
        let name = path.file_name().and_then(OsStr::to_str);
        let is_known = name.is_some_and(|name| self.programs.contains(&name));
        is_known && (path.is_absolute() || name == Some(word))
    }
}

impl AgentHome {
    /// Returns a text for the person about the entries of their directories that the agent may read or write.
    pub fn words(&self) -> String {
        let part = |part: &HomePart| {
            let does = |verb: &str, names: &[&str]| match names.is_empty() {
                true => None,
                false => Some(format!("{verb} {}", names.join(", "))),
            };
            let (read, write) = (does("reads", part.read), does("writes", part.write));
            let does: Vec<_> = read.into_iter().chain(write).collect();
            format!("of ~/{} it {}", part.of_person, does.join(" and "))
        };
        let parts: Vec<_> = self.parts.iter().map(part).collect();
        parts.join("; ")
    }
}

/// An agent as it is started: its preset with the person's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSpec {
    pub name: String,
    /// The program and the arguments with which the agent is started.
    pub cmd: Vec<String>,
    pub env: Vec<(String, String)>,
    /// The person's directories that the agent's preset names, one for each `HomePart`.
    pub person_homes: Vec<PathBuf>,
    /// The hosts of the agent's vendor, from the preset.
    pub vendor_hosts: Vec<String>,
    pub allowed_hosts: Vec<HostPattern>,
    pub confinement: AgentConfinement,
    pub tools: ToolSource,
}

impl AgentSpec {
    /// Returns the agent with this name. Returns `None` if no preset has the name and the settings name no program for it.
    pub fn find(name: &str, config: &Config, home: &Path) -> Option<Self> {
        let preset = preset(name);
        let set = config.agents.iter().find(|it| it.name == name);
        let words = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
        let cmd = set.and_then(|it| it.cmd.clone());
        let cmd = cmd.or_else(|| preset.map(|it| words(it.cmd)))?;
        let env = preset.into_iter().flat_map(|it| it.env);
        let env = env.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let more = set.into_iter().flat_map(|it| it.env.iter().cloned());
        let parts = preset.map_or(&[][..], |it| it.home.parts);
        let mut homes: Vec<_> = parts.iter().map(|it| home.join(it.of_person)).collect();
        if let (Some(first), Some(set)) = (homes.first_mut(), set.and_then(|it| it.home.as_ref())) {
            first.clone_from(set);
        }
        Some(Self {
            name: name.to_owned(),
            cmd,
            env: env.chain(more).collect(),
            person_homes: homes,
            vendor_hosts: preset.map_or_else(Vec::new, |it| words(it.hosts)),
            allowed_hosts: set.map_or_else(Vec::new, |it| it.hosts.clone()),
            confinement: set.map_or(AgentConfinement::default(), |it| it.confinement),
            tools: set.map_or(ToolSource::default(), |it| it.tools),
        })
    }

    /// Returns the names of the tools of co that it gets.
    pub fn co_tools(&self) -> &'static [&'static str] {
        match self.tools {
            ToolSource::Own => &OF_AGENTS,
            ToolSource::Co => &IN_PLACE_OF_OWN,
        }
    }

    /// Returns true if the agent must use only co's tools, but co cannot turn off the agent's own tools.
    pub fn cannot_do_without_tools(&self) -> bool {
        self.tools == ToolSource::Co && self.session_meta().is_none()
    }

    /// Returns the `_meta` of a session that turns off the agent's own tools. Returns `None` if the agent keeps its own tools, or
    /// if co cannot turn them off.
    pub(super) fn session_meta(&self) -> Option<Map<String, Value>> {
        let meta = self.preset().filter(|_| self.tools == ToolSource::Co)?;
        serde_json::from_str(meta.without_tools?).ok()
    }

    /// Returns the preset of this agent. Returns `None` for an agent that only the settings define.
    pub fn preset(&self) -> Option<&'static AgentPreset> {
        preset(&self.name)
    }

    /// Returns the private directory of the confined agent. `agents` is the directory for all agents. The agent has a different
    /// private directory for each workspace, so files that it writes in one workspace have no effect in another.
    pub fn own_home(&self, agents: &Path, workspace: &Path) -> PathBuf {
        agents.join(&self.name).join(workspace_name(workspace))
    }

    /// Returns the path of the agent's program, or `None` if it is not installed. `path` is the variable `PATH`.
    pub fn installed(&self, path: &OsStr) -> Option<PathBuf> {
        let program = Path::new(self.cmd.first()?);
        match program.is_absolute() {
            true => program.is_file().then(|| program.to_owned()),
            false => co_exec::find_program(program.to_str()?, path),
        }
    }
}

/// Returns the names of all agents, in the settings and in the presets.
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
        assert_eq!(codex.person_homes, [Path::new("/home/ann/.codex")]);
        assert_eq!(codex.confinement, AgentConfinement::None);
        let mine = find("mine", &config).unwrap();
        assert_eq!((mine.cmd.len(), mine.preset().is_none()), (2, true));
        assert_eq!(mine.confinement, AgentConfinement::Workspace);
        assert_eq!(find("bare", &config), None);
        let codex = find("codex", &Config::default()).unwrap();
        let own = |workspace: &str| codex.own_home(Path::new("/agents"), Path::new(workspace));
        assert!(own("/a").starts_with("/agents/codex"));
        assert_ne!(own("/a"), own("/b"));
        let all = ["bare", "claude", "codex", "gemini", "mine", "opencode"];
        assert_eq!(names(&config), all);
    }

    #[test]
    fn an_agent_works_by_the_tools_of_co_alone_if_its_own_can_be_switched_off() {
        for (name, can) in [("claude", true), ("codex", false), ("mine", false)] {
            let mut config = Config::default();
            config.agents.push(AgentSettings {
                name: name.to_owned(),
                cmd: Some(vec!["mine".to_owned()]),
                tools: ToolSource::Co,
                ..AgentSettings::default()
            });
            let spec = AgentSpec::find(name, &config, Path::new("/home/ann")).unwrap();
            assert_eq!(spec.cannot_do_without_tools(), !can, "{name}");
            assert!(spec.co_tools().contains(&"edit_file"));
        }
        let own = AgentSpec::find("claude", &Config::default(), Path::new("/home/ann")).unwrap();
        assert_eq!(own.session_meta(), None);
        assert!(!own.co_tools().contains(&"edit_file"));
        for text in PRESETS.iter().filter_map(|it| it.without_tools) {
            assert!(
                serde_json::from_str::<Map<String, Value>>(text).is_ok(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_command_that_starts_a_program_of_an_agent_is_known() {
        let is_claude = |word: &str| preset("claude").unwrap().is_started_by(word);
        assert!(is_claude("claude") && is_claude("/opt/bin/claude"));
        for other in ["claudette", "./claude", "bin/claude", "codex", ""] {
            assert!(!is_claude(other), "{other}");
        }
    }

    #[test]
    fn the_hosts_of_presets_can_be_asked_about() {
        for preset in PRESETS {
            for host in preset.hosts {
                assert!(co_proxy::Target::parse(host, Some(443)).is_ok(), "{host}");
            }
            for part in preset.home.parts {
                assert!(!part.of_person.starts_with('/') && !part.inside.starts_with('/'));
            }
        }
    }
}
