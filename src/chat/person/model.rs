//! The model of a chat: the person's choice with `/model` and `/effort`, and the provider of the model.
//!
//! A bare model name refers to the current provider, if this provider has such a model. Otherwise the person chooses among the
//! providers that the name could refer to. So nothing goes to another provider without its name on the screen.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::agent::AgentSpec;
use crate::chat::chat_context::ChatContext;
use crate::chat::events::ChatEvent;
use crate::chat::record::Recorder;
use crate::chat::turn::RequestHistory;
use crate::config::{AgentConfinement, Config, ModelChoice};
use crate::protocol::{Choice, NoticeLevel, ToEditor};
use crate::services::Services;
use co_llm::provider_table;
use co_llm::transcript::Item;
use co_llm::{Effort, Fault, Provider, UnknownEffort};

/// The longest time to wait for a server's list of models. After that, co assumes that the server does not have the model.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// The model of one chat.
#[derive(Default)]
pub(in crate::chat) struct ChatModel {
    /// The provider. It is `None` before the first turn needs it, and again after the person has chosen another model.
    provider: Option<Arc<dyn Provider>>,
    /// The model and the effort that the person chose for this chat.
    choice: ModelChoice,
    /// The requests that the provider accepted and refused in this chat.
    pub(in crate::chat) history: Arc<RequestHistory>,
    /// The name of the model that a task looks up in the provider's list. The task returns true if the list has the model.
    lookup: Option<(String, JoinHandle<bool>)>,
}

impl ChatModel {
    /// Returns the name of the model for the winbar; empty if the model is not known yet.
    pub(in crate::chat) fn label(&self, config: &Config) -> String {
        match (&self.provider, &self.choice) {
            (
                _,
                ModelChoice {
                    agent: Some(agent), ..
                },
            ) => agent.clone(),
            (Some(provider), _) => provider.label(),
            (
                None,
                ModelChoice {
                    provider: Some(provider),
                    model: Some(model),
                    ..
                },
            ) => format!("{provider}/{model}"),
            (None, choice) => {
                let model = choice.model.as_ref().or(config.llm.model.as_ref());
                model.cloned().unwrap_or_default()
            }
        }
    }

    /// Returns true if the person chose a model or an agent for the chat.
    pub(in crate::chat) fn is_chosen(&self) -> bool {
        self.choice.model.is_some() || self.choice.agent.is_some()
    }

    /// Returns the name of the agent that works in the chat in place of a model; none if a model works.
    pub(in crate::chat) fn agent(&self) -> Option<&str> {
        self.choice.agent.as_deref()
    }

    /// Returns the settings of the chat's agent; none if a model works in the chat.
    ///
    /// # Errors
    /// The settings no longer contain the agent.
    pub(in crate::chat) fn agent_spec(
        &self,
        services: &Services,
    ) -> Option<Result<AgentSpec, String>> {
        let name = self.agent()?;
        let found = AgentSpec::find(name, &services.config, &services.places.home);
        Some(found.ok_or_else(|| format!("the settings have no agent {name} any more")))
    }

    /// Returns true if an agent without confinement works in the chat.
    pub(in crate::chat) fn agent_is_unconfined(&self, services: &Services) -> bool {
        let spec = self.agent_spec(services).and_then(Result::ok);
        spec.is_some_and(|spec| spec.confinement == AgentConfinement::None)
    }

    /// Uses another model from the next turn on.
    pub(in crate::chat) fn choose(&mut self, choice: ModelChoice) {
        self.choice = choice;
        self.provider = None;
        self.history = Arc::default();
    }

    /// Returns true while co looks a model up. Prompts wait for the result.
    pub(in crate::chat) fn is_looking_up(&self) -> bool {
        self.lookup.is_some()
    }

    /// Waits until the lookup of a model has ended. Returns the name of the model, and true if the provider has it.
    pub(in crate::chat) async fn looked_up(&mut self) -> (String, bool) {
        let found = match &mut self.lookup {
            Some((_, task)) => task.await.unwrap_or(false),
            None => std::future::pending().await,
        };
        let name = self.lookup.take().map(|(name, _)| name);
        (name.unwrap_or_default(), found)
    }

    /// Carries out `/model [name [provider]]`. `in_turn` says that a turn runs. This turn keeps its provider.
    pub(in crate::chat) fn switch_model(
        &mut self,
        context: &ChatContext,
        args: &str,
        in_turn: bool,
    ) {
        if args.is_empty() {
            return self.offer_models(context);
        }
        let services = &context.services;
        if let Some((model, provider)) = args.rsplit_once(char::is_whitespace)
            && let Some(choice) = self.choice_at(services, provider, model.trim_end())
        {
            return self.use_model(context, choice, in_turn);
        }
        if services.config.names_profile(args) {
            let choice = ModelChoice {
                provider: None,
                model: Some(args.to_owned()),
                effort: self.choice.effort,
                agent: None,
            };
            return self.use_model(context, choice, in_turn);
        }
        match self.provider(services) {
            Ok(provider) => self.look_up(provider, args.to_owned()),
            // The model may be what makes a provider possible.
            Err(_) => self.offer_providers(context, args, in_turn),
        }
    }

    /// Looks a model up in the provider's list. A separate task does so, so that a slow server does not block the chat.
    fn look_up(&mut self, provider: Arc<dyn Provider>, name: String) {
        let wanted = name.clone();
        let task = tokio::spawn(async move {
            let found = tokio::time::timeout(LIST_TIMEOUT, provider.offers(&wanted)).await;
            matches!(found, Ok(Ok(true)))
        });
        if let Some((_, earlier)) = self.lookup.replace((name, task)) {
            earlier.abort();
        }
    }

    /// Switches to a model that was looked up, unless the person has chosen an agent meanwhile. If the provider does not have the
    /// model, asks which provider is meant.
    pub(in crate::chat) fn found_model(
        &mut self,
        context: &ChatContext,
        (name, found): (String, bool),
        in_turn: bool,
    ) {
        if self.agent().is_some() {
            return;
        }
        let services = &context.services;
        let current = self.provider_name(services);
        let own = current.as_ref().and_then(|current| {
            // As the winbar shows it.
            let rest = name.strip_prefix(current.as_str());
            rest.and_then(|rest| rest.strip_prefix('/'))
        });
        let own = if found { Some(name.as_str()) } else { own };
        let choice = own.zip(current.as_deref());
        match choice.and_then(|(model, current)| self.choice_at(services, current, model)) {
            Some(choice) => self.use_model(context, choice, in_turn),
            None => self.offer_providers(context, &name, in_turn),
        }
    }

    /// Returns the choice of a model at a provider. `provider` is the name of a profile, of a provider that co knows by name
    /// (`provider_table`), or of the current provider. Returns `None` for any other name.
    fn choice_at(
        &mut self,
        services: &Services,
        provider: &str,
        model: &str,
    ) -> Option<ModelChoice> {
        let effort = self.choice.effort;
        if services.config.names_profile(provider) {
            return Some(ModelChoice {
                provider: None,
                model: Some(format!("{provider}/{model}")),
                effort,
                agent: None,
            });
        }
        let known = provider_table::NAMES.contains(&provider)
            || self.provider_name(services).as_deref() == Some(provider);
        known.then(|| ModelChoice {
            provider: Some(provider.to_owned()),
            model: Some(model.to_owned()),
            effort,
            agent: None,
        })
    }

    /// Returns the name of the current provider: the name of its profile, or the name under which co knows the provider
    /// (`provider_table`).
    fn provider_name(&mut self, services: &Services) -> Option<String> {
        let profile = services.config.profile_name(&self.choice);
        if profile.is_some() {
            return profile;
        }
        let label = self.provider(services).ok()?.label();
        label.split('/').next().map(str::to_owned)
    }

    /// Lets the person choose the provider to which the model name `name` refers. If only one provider is possible, uses it at
    /// once.
    fn offer_providers(&mut self, context: &ChatContext, name: &str, in_turn: bool) {
        let mut candidates = self.candidates(&context.services, name);
        if candidates.len() < 2 {
            let bare = ModelChoice {
                provider: None,
                model: Some(name.to_owned()),
                effort: self.choice.effort,
                agent: None,
            };
            let only = candidates.pop().map_or(bare, |it| it.choice);
            return self.use_model(context, only, in_turn);
        }
        let title = match self.provider_name(&context.services) {
            Some(current) => format!("{current} does not list {name}. Ask"),
            None => "Ask".to_owned(),
        };
        let choice = |candidate: &Candidate| Choice {
            label: candidate.label.clone(),
            value: spelled(&candidate.label),
            confirm: None,
        };
        context.offer("model", &title, candidates.iter().map(choice).collect());
    }

    /// Returns the providers that could have a model of this name: the current provider, the profiles, the provider that co uses
    /// for such a model by default, and the provider before the slash in `name`.
    fn candidates(&mut self, services: &Services, name: &str) -> Vec<Candidate> {
        let profiles = services.config.providers.iter();
        let profiles: Vec<_> = profiles.filter_map(|it| it.name.clone()).collect();
        let providers = self.provider_name(services).into_iter().chain(profiles);
        let mut choices: Vec<Option<ModelChoice>> = providers
            .map(|provider| self.choice_at(services, &provider, name))
            .collect();
        let usual = ModelChoice {
            model: Some(name.to_owned()),
            ..ModelChoice::default()
        };
        choices.push(Some(usual));
        if let Some((provider, model)) = name.split_once('/') {
            choices.push(self.choice_at(services, provider, model));
        }
        let mut candidates: Vec<Candidate> = Vec::new();
        for choice in choices.into_iter().flatten() {
            let Ok(provider) = services.provider(&choice) else {
                continue;
            };
            let label = provider.label();
            if !candidates.iter().any(|known| known.label == label) {
                candidates.push(Candidate { label, choice });
            }
        }
        candidates
    }

    /// Sets the effort with which the model thinks in this chat.
    pub(in crate::chat) fn switch_effort(&mut self, context: &ChatContext, name: &str) {
        if name.is_empty() {
            let choices = Effort::NAMES.map(|name| Choice {
                label: name.to_owned(),
                value: name.to_owned(),
                confirm: None,
            });
            return context.offer("effort", "Effort", choices.to_vec());
        }
        match name.parse() {
            Ok(effort) => {
                let choice = ModelChoice {
                    effort: Some(effort),
                    ..self.choice.clone()
                };
                self.switch(context, choice, |label| {
                    format!("{label} thinks with effort {effort}")
                });
            }
            Err(UnknownEffort) => context.complain(format!("{UnknownEffort}, not {name}")),
        }
    }

    fn use_model(&mut self, context: &ChatContext, choice: ModelChoice, in_turn: bool) {
        let from = match in_turn {
            true => "after this turn",
            false => "from now on",
        };
        self.switch(context, choice, |label| {
            format!("{label} answers {from}, and reads the chat from its start")
        });
    }

    /// Uses another model or effort from the next turn on. `words` makes the text of the notice from the provider's label.
    fn switch(
        &mut self,
        context: &ChatContext,
        choice: ModelChoice,
        words: impl FnOnce(&str) -> String,
    ) {
        match context.services.provider(&choice) {
            Ok(provider) => {
                context.say(words(&provider.label()));
                self.choose(choice);
                self.provider = Some(provider);
            }
            Err(fault) => context.show(ChatEvent::ProviderFailed(fault)),
        }
    }

    /// Lets the person choose one of the provider's models. A separate task gets the list, so that a slow server does not block
    /// the chat.
    fn offer_models(&mut self, context: &ChatContext) {
        let provider = match self.provider(&context.services) {
            Ok(provider) => provider,
            Err(fault) => return context.show(ChatEvent::ProviderFailed(fault)),
        };
        let name = self.provider_name(&context.services).unwrap_or_default();
        let (services, chat) = (Arc::clone(&context.services), context.id);
        let front_end = Arc::clone(&context.front_end);
        tokio::spawn(async move {
            let models = match provider.models().await {
                Ok(models) => models,
                Err(fault) => return front_end.show(ChatEvent::ProviderFailed(fault)),
            };
            let choice = |model: String| {
                let label = format!("{name}/{model}");
                Choice {
                    value: spelled(&label),
                    label,
                    confirm: None,
                }
            };
            services.editor.tell(ToEditor::Choose {
                chat,
                name: "model".to_owned(),
                title: "Model".to_owned(),
                choices: models.into_iter().map(choice).collect(),
            });
        });
    }

    /// Sends the editor the completions of the argument of `/model`.
    pub(in crate::chat) fn list_models(&mut self, context: &ChatContext, head: String) {
        let provider = self.provider(&context.services).ok();
        let services = Arc::clone(&context.services);
        tokio::spawn(list_models(services, provider, Some(context.id), head));
    }

    /// Returns the current provider of the chat.
    ///
    /// # Errors
    /// No provider is set up, or its key is missing.
    pub(in crate::chat) fn provider(
        &mut self,
        services: &Services,
    ) -> Result<Arc<dyn Provider>, Fault> {
        if let Some(provider) = &self.provider {
            return Ok(Arc::clone(provider));
        }
        let provider = services.provider(&self.choice)?;
        self.provider = Some(Arc::clone(&provider));
        Ok(provider)
    }

    /// Returns the values that the provider uses as keys; empty if the provider has not been made yet.
    pub(in crate::chat) fn keys(&self) -> Vec<String> {
        let keys = self.provider.as_ref().map(|provider| provider.secrets());
        keys.unwrap_or_default()
    }

    /// Records the model and the effort that the person chose, if the last turn used another model or effort. A resumed chat then
    /// uses the same provider.
    pub(in crate::chat) async fn record_choice(&self, config: &Config, recorder: &mut Recorder) {
        if ModelChoice::recorded(recorder.items()).0 != self.choice {
            let chosen = Item::ModelChosen {
                provider: self.choice.provider.clone(),
                model: self.choice.model.clone(),
                profile: config.profile_name(&self.choice),
                effort: self.choice.effort.map(|effort| effort.to_string()),
                agent: self.choice.agent.clone(),
            };
            recorder.record(chosen).await;
        }
    }

    /// Restores the model that the person chose in a resumed chat. If the profile of this model no longer exists, warns that
    /// another provider gets the chat.
    pub(in crate::chat) fn resume_choice(&mut self, services: &Services, items: &[Item]) {
        let (choice, profile) = ModelChoice::recorded(items);
        self.choose(choice);
        let lost = profile.filter(|_| services.config.profile_name(&self.choice).is_none());
        if let Some(profile) = lost {
            self.choice.model = None;
            let text = format!(
                "this chat was held with the profile {profile}, which is not set; the next prompt sends it to the usual provider"
            );
            services.notice(NoticeLevel::Warn, text);
        }
    }
}

/// A provider that a model name could refer to.
struct Candidate {
    /// The label that names the provider and the model.
    label: String,
    choice: ModelChoice,
}

/// Sends the editor the completions of the argument of `/model`. If `head` names a profile, they are the models of this profile.
/// Otherwise, they are the models of the provider and the names of all profiles.
pub async fn list_models(
    services: Arc<Services>,
    provider: Option<Arc<dyn Provider>>,
    chat: Option<u64>,
    head: String,
) {
    let config = &services.config;
    let profile = head.strip_suffix('/').filter(|it| config.names_profile(it));
    let asked = match profile {
        Some(profile) => {
            let choice = ModelChoice {
                model: Some(profile.to_owned()),
                ..ModelChoice::default()
            };
            services.provider(&choice).ok()
        }
        None => provider,
    };
    let mut words = Vec::new();
    if let Some(asked) = asked {
        let models = tokio::time::timeout(LIST_TIMEOUT, asked.models()).await;
        words = models.ok().and_then(Result::ok).unwrap_or_default();
    }
    match profile {
        Some(_) => words.iter_mut().for_each(|word| word.insert_str(0, &head)),
        None => {
            let profiles = config.providers.iter();
            words.extend(profiles.filter_map(|it| Some(format!("{}/", it.name.as_ref()?))));
        }
    }
    services.editor.tell(ToEditor::Models { chat, head, words });
}

/// Returns a label as arguments of `/model` that are not ambiguous: `work/some-model` becomes `some-model work`.
fn spelled(label: &str) -> String {
    match label.split_once('/') {
        Some((provider, model)) => format!("{model} {provider}"),
        None => label.to_owned(),
    }
}
