//! Checks which agents are installed, and which of them are not confined.

use std::path::{Path, PathBuf};

use super::check::{Check, CheckLevel};
use crate::agent::{AgentSpec, names};
use crate::config::{AgentConfinement, Config, Env};

/// Checks the agents in the settings and in the presets.
pub(super) fn checks(config: &Config, env: Env<'_>) -> Vec<Check> {
    let path = env("PATH").unwrap_or_default();
    let home = PathBuf::from(env("HOME").unwrap_or_default());
    let specs = names(config);
    let specs = specs.iter().map(|name| {
        let is_set = config.agents.iter().any(|it| it.name == *name);
        check(name, AgentSpec::find(name, config, &home), is_set, &path)
    });
    specs.collect()
}

fn check(name: &str, spec: Option<AgentSpec>, is_set: bool, path: &str) -> Check {
    let bad =
        |message: String, advice: &str| Check::bad("agent", CheckLevel::Warn, message, advice);
    let Some(spec) = spec else {
        return bad(
            format!("{name} has no cmd"),
            "set agents, with cmd = { program, arguments... }",
        );
    };
    if spec.cannot_do_without_tools() {
        return bad(
            format!("{name} does not start, because co cannot switch its own tools off"),
            "remove tools = 'co' from its settings in agents",
        );
    }
    let found = spec.installed(Path::new(path).as_os_str());
    match (found, spec.confinement) {
        (Some(program), AgentConfinement::Workspace) => Check::ok(
            "agent",
            format!(
                "{name} is {}; `/agent {name}` runs it confined",
                program.display()
            ),
        ),
        (Some(program), AgentConfinement::None) => bad(
            format!(
                "{name} is {}, and runs without confinement",
                program.display()
            ),
            "remove confinement = 'none' from agents, unless you want that",
        ),
        (None, _) if is_set => bad(
            format!("{name}: {} is not installed", spec.cmd[0]),
            "install it, or set its cmd in agents",
        ),
        (None, _) => {
            let install = spec.preset().map(|it| format!(" (`{}`)", it.install));
            let install = install.unwrap_or_default();
            Check::ok("agent", format!("{name} is not installed{install}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AgentSettings;

    #[test]
    fn an_agent_of_the_settings_must_be_there_and_a_preset_need_not() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("mine");
        std::fs::write(&program, "").unwrap();
        let set = |name: &str, cmd: &str, confinement| AgentSettings {
            name: name.to_owned(),
            cmd: (!cmd.is_empty()).then(|| vec![cmd.to_owned()]),
            confinement,
            ..AgentSettings::default()
        };
        let confined = AgentConfinement::Workspace;
        let mut config = Config::default();
        config.agents.extend([
            set("mine", program.to_str().unwrap(), confined),
            set("free", program.to_str().unwrap(), AgentConfinement::None),
            set("gone", "/nowhere/agent", confined),
            set("bare", "", confined),
        ]);
        let found = checks(&config, &|name| {
            (name == "HOME").then(|| "/home/ann".to_owned())
        });
        let told: Vec<_> = found
            .iter()
            .map(|it| {
                (
                    it.message.split_whitespace().next().unwrap(),
                    it.level == CheckLevel::Ok,
                )
            })
            .collect();
        let wanted = [
            ("bare", false),
            ("claude", true),
            ("codex", true),
            ("free", false),
            ("gemini", true),
            ("gone:", false),
            ("mine", true),
            ("opencode", true),
        ];
        assert_eq!(told, wanted);
    }
}
