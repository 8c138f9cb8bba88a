//! The model and the effort that a chat asks for, and the provider that results from them.

use super::{Config, Env};
use co_llm::transcript::Item;

/// The model that a chat uses instead of the model in the settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelChoice {
    /// The provider that serves `model`, by its name in the provider table. `None` means the default provider, or the provider of
    /// the profile that `model` names.
    pub provider: Option<String>,
    /// The name of a model of the usual provider, the name of a profile, or both as `profile/model`.
    pub model: Option<String>,
    pub effort: Option<co_llm::Effort>,
    /// The agent that works in the chat instead of a model.
    pub agent: Option<String>,
}

impl ModelChoice {
    /// Returns the last choice in a transcript, and the name of the profile in this choice.
    pub fn recorded(items: &[Item]) -> (Self, Option<&str>) {
        let chosen = items.iter().rev().find_map(|item| match item {
            Item::ModelChosen {
                model,
                provider,
                profile,
                effort,
                agent,
            } => Some((
                Self {
                    provider: provider.clone(),
                    model: model.clone(),
                    effort: effort.as_deref().and_then(|name| name.parse().ok()),
                    agent: agent.clone(),
                },
                profile.as_deref(),
            )),
            _ => None,
        });
        chosen.unwrap_or_default()
    }
}

impl Config {
    /// Checks that the settings allow prompts to be sent.
    ///
    /// # Errors
    /// A layer could not be read, or a setting has a wrong value that its default value must not replace.
    pub fn check(&self) -> Result<(), co_llm::Fault> {
        match self.wrong.clone() {
            Some(wrong) => Err(co_llm::Fault::WrongSetting { wrong: wrong.what }),
            None => Ok(()),
        }
    }

    /// Returns the reason why no command of the person may run: a wrong setting leaves the confinement unknown. Returns `None` if
    /// commands may run.
    pub fn confinement_fault(&self) -> Option<String> {
        let wrong = self.wrong.as_ref().filter(|wrong| wrong.confines)?;
        Some(format!(
            "no command runs, because {} is wrong, so co cannot tell how to confine commands: co-nvim doctor says how to correct it",
            wrong.what
        ))
    }

    /// Returns the settings of the provider and the model that a chat asks for.
    ///
    /// Settings of one provider are never sent to another, because a profile has its own key, headers and fields.
    pub fn provider_settings(
        &self,
        choice: &ModelChoice,
        env: Env<'_>,
    ) -> co_llm::ProviderSettings {
        let wanted = self.wanted(choice);
        let profile = self.chosen_profile(choice);
        let mut settings = match (profile, &choice.provider, wanted) {
            (Some(profile), ..) => profile,
            (None, Some(provider), Some(model)) => self.llm.with_provider(provider, model, env),
            (None, None, Some(model)) => self.llm.with_model(model, env),
            (None, _, None) => self.llm.clone(),
        };
        settings.effort = choice.effort.or(settings.effort);
        settings
    }

    /// Returns the name of the profile that a chat asks for.
    pub fn profile_name(&self, choice: &ModelChoice) -> Option<String> {
        self.chosen_profile(choice)?.name
    }

    /// Returns true if a name is a profile, or a profile and a model.
    pub fn names_profile(&self, name: &str) -> bool {
        self.profile(name).is_some()
    }

    fn chosen_profile(&self, choice: &ModelChoice) -> Option<co_llm::ProviderSettings> {
        let wanted = self.wanted(choice).filter(|_| choice.provider.is_none());
        self.profile(wanted?)
    }

    fn wanted<'a>(&'a self, choice: &'a ModelChoice) -> Option<&'a str> {
        choice.model.as_deref().or(self.llm.model.as_deref())
    }

    /// Returns the settings of the profile at the start of a name, with the model after it.
    fn profile(&self, name: &str) -> Option<co_llm::ProviderSettings> {
        let (profile, model) = name.split_once('/').unwrap_or((name, ""));
        let mut profiles = self.providers.iter();
        let found = profiles.find(|settings| settings.name.as_deref() == Some(profile))?;
        let mut settings = found.clone();
        if !model.is_empty() {
            settings.model = Some(model.to_owned());
        }
        Some(settings)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::load;

    #[test]
    fn a_profile_has_its_own_settings_and_nothing_of_the_others() {
        let lua = json!({
            "model": "usual", "headers": { "X-Usual": "1" }, "api_key_env": "USUAL",
            "providers": { "work": { "provider": "groq", "api_key_env": "WORK", "model": "big", "effort": "low" } },
        });
        let (config, problems) = load(None, &lua, &|_| None);
        assert_eq!(problems, [""; 0]);
        let chosen = |model: Option<&str>| {
            let choice = ModelChoice {
                provider: None,
                model: model.map(str::to_owned),
                effort: None,
                agent: None,
            };
            config.provider_settings(&choice, &|_| None)
        };
        let usual = chosen(None);
        assert_eq!(usual.model.as_deref(), Some("usual"));
        assert_eq!((usual.headers.len(), usual.effort), (1, None));
        assert_eq!(chosen(Some("a/b")).model.as_deref(), Some("a/b"));
        for (name, model) in [("work", "big"), ("work/other/one", "other/one")] {
            let work = chosen(Some(name));
            assert_eq!(work.name.as_deref(), Some("work"));
            assert_eq!(work.provider.as_deref(), Some("groq"));
            assert_eq!(work.key_env.as_deref(), Some("WORK"));
            assert_eq!(work.model.as_deref(), Some(model));
            assert_eq!(work.headers, []);
            assert_eq!(work.effort, Some(co_llm::Effort::Low));
        }
        for refused in [
            json!({ "a/b": {} }),
            json!({ "work": { "max_steps": 1 } }),
            json!({ "work": { "protocol": "smtp" } }),
            json!({ "work": 1 }),
        ] {
            let (config, problems) = load(None, &json!({ "providers": refused }), &|_| None);
            assert_eq!(
                (config.providers.len(), problems.len()),
                (0, 1),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_model_of_another_vendor_gets_nothing_that_was_meant_for_the_first() {
        let usual = json!({
            "model": "claude-sonnet-4-5", "api_key_env": "WORK", "api_key_cmd": ["pass"], "headers": { "X-Team": "1" },
            "extra_body": { "service_tier": "priority" }, "effort": "low",
        });
        let check = |more: serde_json::Value, model: &str, kept: bool| {
            let mut lua = usual.clone();
            lua.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            let (config, problems) = load(None, &lua, &|_| None);
            assert_eq!(problems, [""; 0]);
            let choice = ModelChoice {
                provider: None,
                model: Some(model.to_owned()),
                effort: None,
                agent: None,
            };
            let found = config.provider_settings(&choice, &|_| None);
            assert_eq!(found.model.as_deref(), Some(model));
            assert_eq!(found.effort, Some(co_llm::Effort::Low));
            let theirs = [
                found.key_env.is_some(),
                found.key_cmd.is_some(),
                !found.headers.is_empty(),
                found.extra_body.is_some(),
            ];
            assert_eq!(theirs, [kept; 4], "{more} {model}");
        };
        check(json!({}), "gpt-5.1", false);
        check(json!({}), "gemini-2.5-pro", false);
        check(json!({}), "llama3", false);
        check(json!({}), "claude-opus-4-1", true);
        check(json!({ "provider": "anthropic" }), "gpt-5.1", true);
        check(
            json!({ "base_url": "http://127.0.0.1:1/" }),
            "gpt-5.1",
            true,
        );
    }

    #[test]
    fn a_transcript_holds_the_last_choice_of_a_model() {
        let chosen = |model: &str, profile: Option<&str>| Item::ModelChosen {
            provider: None,
            model: Some(model.to_owned()),
            profile: profile.map(str::to_owned),
            effort: Some("low".to_owned()),
            agent: None,
        };
        assert_eq!(ModelChoice::recorded(&[]), (ModelChoice::default(), None));
        let items = [chosen("gpt-5.1", None), chosen("work/other", Some("work"))];
        let choice = ModelChoice {
            provider: None,
            model: Some("work/other".to_owned()),
            effort: Some(co_llm::Effort::Low),
            agent: None,
        };
        assert_eq!(ModelChoice::recorded(&items), (choice, Some("work")));
    }
}
