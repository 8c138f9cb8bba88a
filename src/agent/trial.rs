//! The grants for a program of an agent that a command of the person starts in a trial.

use std::path::Path;

use super::preset::{AgentSpec, PRESETS};
use super::process::{AgentGrants, HTTPS, path_variable};
use crate::config::AgentConfinement;
use crate::program_places;
use crate::services::Services;
use co_exec::{GrantedPlaces, find_program};
use co_policy::HostPattern;

/// The grants for a command of the person in a trial, besides the grants of every trial.
pub struct TrialGrants {
    pub places: GrantedPlaces,
    pub env: Vec<(String, String)>,
    /// The hosts to which the command may connect without a question.
    pub hosts: Vec<HostPattern>,
    /// A text for the person about the agent and its grants.
    pub words: String,
}

impl TrialGrants {
    /// Returns the grants for a command that starts a program of an agent with a preset. Returns `None` if the command starts no
    /// such program, or also does something else. `commands` has the words of each simple command in `command`.
    ///
    /// Makes the private directory of the agent. Blocks on file operations.
    ///
    /// # Errors
    /// The directory cannot be made. The error is a sentence for the person.
    pub fn find(
        (command, commands): (&str, &[Vec<String>]),
        services: &Services,
        workspace: &Path,
    ) -> Result<Option<Self>, String> {
        let path = path_variable(services);
        // What else the command starts must not get the keys, and bash must find the program where co does.
        let only = match commands {
            [words] => words.first(),
            _ => None,
        };
        let begins = |word: &&String| command.trim_start().starts_with(word.as_str());
        let is_found_alike = std::env::var_os("PATH")
            .is_none_or(|path| std::env::split_paths(&path).all(|it| it.is_absolute()));
        let only = only.filter(begins).filter(|_| is_found_alike);
        let found = only.and_then(|word| {
            let preset = PRESETS.iter().find(|it| it.is_started_by(word))?;
            let program = match Path::new(word).is_absolute() {
                true => word.into(),
                false => find_program(word, &path)?,
            };
            // The workspace must not choose who gets the keys.
            let is_chosen = program_places::is_chosen_by(&program, workspace);
            (!is_chosen).then_some((preset, program))
        });
        let Some((preset, program)) = found else {
            return Ok(None);
        };
        let (config, home) = (&services.config, &services.places.home);
        let Some(mut spec) = AgentSpec::find(preset.name, config, home) else {
            return Ok(None);
        };
        spec.confinement = AgentConfinement::Workspace;
        let grants = AgentGrants::of(&spec, (&program, &[]), services, workspace);
        let AgentGrants { places, env } = grants
            .map_err(|error| format!("the directory of {} cannot be made: {error}", spec.name))?;
        let exact = |it: &String| HostPattern::exact(it, HTTPS);
        let hosts = spec.vendor_hosts.iter().map(exact);
        Ok(Some(Self {
            places,
            env,
            hosts: hosts.chain(spec.allowed_hosts.iter().cloned()).collect(),
            words: format!(
                "{} also gets a directory of its own, of which all changes stay, and {}; {}",
                spec.name,
                spec.vendor_hosts.join(", "),
                preset.home.words()
            ),
        }))
    }
}
