//! The agents that co knows by name, and the person's settings for them.

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
    /// The programs of the agent's package, also those for a terminal.
    pub programs: &'static [&'static str],
    /// Variables for its environment. They turn its own sandbox off, because no sandbox can start inside another one.
    pub env: &'static [(&'static str, &'static str)],
    /// The variables of the person that it gets: the keys for its vendor, and the settings beside a key.
    pub keys: &'static [&'static str],
    pub home: AgentHome,
    /// The hosts of its vendor.
    pub hosts: &'static [&'static str],
    /// The command that logs in, for a terminal.
    pub login: &'static str,
    /// The login methods that wait for the person's browser at the loopback interface. They cannot work while the agent is
    /// confined.
    pub browser_logins: &'static [&'static str],
    /// The command that installs it.
    pub install: &'static str,
}

/// The directories of an agent. The confined agent gets one of its own, which nothing outside the confinement reads: what it
/// writes there is not obeyed when the person starts the agent without co.
#[derive(Debug)]
pub struct AgentHome {
    /// The variables that name its own directory, or a directory inside.
    pub variables: &'static [(&'static str, &'static str)],
    /// The person's directories, of which it reads and writes some entries.
    pub parts: &'static [HomePart],
}

/// A directory of the person that an agent uses.
#[derive(Debug)]
pub struct HomePart {
    /// The path of the directory, below the home directory.
    pub of_person: &'static str,
    /// The directory for the same entries inside the agent's own directory.
    pub inside: &'static str,
    /// The entries that the confined agent reads.
    pub read: &'static [&'static str],
    /// The files that it also writes: its login.
    pub write: &'static [&'static str],
}

/// The agents that co knows. Facts of November 2026, each seen in a confined turn with that version.
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
    },
];

impl AgentPreset {
    /// Returns whether the first word of a command starts a program of this agent: the word is the name of the program, or its
    /// absolute path.
    pub(super) fn is_started_by(&self, word: &str) -> bool {
        let path = Path::new(word);
        let name = path.file_name().and_then(OsStr::to_str);
        let is_known = name.is_some_and(|name| self.programs.contains(&name));
        is_known && (path.is_absolute() || name == Some(word))
    }
}

impl AgentHome {
    /// Returns sentences about the entries of the person's directories that it reads and writes.
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

/// An agent, from its preset and the person's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentSpec {
    pub name: String,
    /// Its program and arguments.
    pub cmd: Vec<String>,
    pub env: Vec<(String, String)>,
    /// The person's own directories of the agent that its preset knows, one for each part.
    pub person_homes: Vec<PathBuf>,
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
        })
    }

    /// Returns the preset with its name, if there is one.
    pub fn preset(&self) -> Option<&'static AgentPreset> {
        preset(&self.name)
    }

    /// Returns the directory of the confined agent, below that of all agents. Each workspace has one: what the agent writes there
    /// in one workspace, it neither reads nor obeys in another.
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
