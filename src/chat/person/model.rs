//! The model of a chat: the person's choice with `/model` and `/effort`, and the provider that answers.
//!
//! A bare name means the provider that answers now, if it has a model of that name. Otherwise the person chooses among the
//! providers that could be meant: nothing goes to another provider without its name on the screen.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::agent::AgentOption;
use crate::chat::Chat;
use crate::chat::events::ChatEvent;
use crate::chat::turn::RequestHistory;
use crate::config::{Config, ModelChoice};
use crate::protocol::{Choice, NoticeLevel, ToEditor};
use crate::services::Services;
use co_llm::provider_table;
use co_llm::transcript::Item;
use co_llm::{Effort, Fault, Provider, UnknownEffort};

/// The longest wait for the list of a server. After that, the server counts as one without the model.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// The model of one chat.
#[derive(Default)]
pub(in crate::chat) struct ChatModel {
    /// None until the first turn needs it, or after a change of the choice.
    provider: Option<Arc<dyn Provider>>,
    /// The model and the effort that the person chose for this chat.
    choice: ModelChoice,
    /// The requests that this provider accepted and refused in this chat.
    pub(in crate::chat) history: Arc<RequestHistory>,
    /// The model that is looked up in the list of the provider. The result of the task is true if the model is in the list.
    lookup: Option<(String, JoinHandle<bool>)>,
}

impl ChatModel {
    /// Returns the provider if it is made already.
    pub(in crate::chat) fn known(&self) -> Option<&Arc<dyn Provider>> {
        self.provider.as_ref()
    }

    /// Returns the name of the model for the winbar; empty if no model is known yet.
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

    /// Returns the name of the agent that works in the place of a model, if one does.
    pub(in crate::chat) fn agent(&self) -> Option<&str> {
        self.choice.agent.as_deref()
    }

    /// Uses another choice from the next turn on.
    pub(in crate::chat) fn choose(&mut self, choice: ModelChoice) {
        self.choice = choice;
        self.provider = None;
        self.history = Arc::default();
    }

    /// Returns true while a model is looked up. A prompt waits for the result.
    pub(in crate::chat) fn is_looking_up(&self) -> bool {
        self.lookup.is_some()
    }

    /// Waits until a model was looked up. Returns its name, and whether the provider has it.
    pub(in crate::chat) async fn looked_up(&mut self) -> (String, bool) {
        let found = match &mut self.lookup {
            Some((_, task)) => task.await.unwrap_or(false),
            None => std::future::pending().await,
        };
        let name = self.lookup.take().map(|(name, _)| name);
        (name.unwrap_or_default(), found)
    }
}

/// A provider that a name of a model could mean.
struct Candidate {
    /// Its name, and the model's.
    label: String,
    choice: ModelChoice,
}

impl Chat {
    /// Carries out `/model [name [provider]]`.
    pub(in crate::chat) fn switch_model(&mut self, args: &str) {
        if self.model.agent().is_some() {
            return self.set_agent_option(AgentOption::Model, args);
        }
        if args.is_empty() {
            return self.choose_model();
        }
        if let Some((model, provider)) = args.rsplit_once(char::is_whitespace)
            && let Some(choice) = self.choice_at(provider, model.trim_end())
        {
            return self.use_model(choice);
        }
        if self.services.config.names_profile(args) {
            return self.use_model(ModelChoice {
                provider: None,
                model: Some(args.to_owned()),
                effort: self.model.choice.effort,
                agent: None,
            });
        }
        match self.provider() {
            Ok(provider) => self.look_up(provider, args.to_owned()),
            // The model may be what makes a provider possible.
            Err(_) => self.offer_providers(args),
        }
    }

    /// Looks a model up in the list of the provider, in another task, so that a slow server delays nothing.
    fn look_up(&mut self, provider: Arc<dyn Provider>, name: String) {
        let wanted = name.clone();
        let task = tokio::spawn(async move {
            let found = tokio::time::timeout(LIST_TIMEOUT, provider.offers(&wanted)).await;
            matches!(found, Ok(Ok(true)))
        });
        if let Some((_, earlier)) = self.model.lookup.replace((name, task)) {
            earlier.abort();
        }
    }

    /// Uses a model that was looked up, or asks which provider is meant. Prompts that waited for it go on.
    pub(in crate::chat) async fn found_model(&mut self, (name, found): (String, bool)) {
        let current = self.provider_name();
        let own = current.as_ref().and_then(|current| {
            // As the winbar shows it.
            let rest = name.strip_prefix(current.as_str());
            rest.and_then(|rest| rest.strip_prefix('/'))
        });
        let own = if found { Some(name.as_str()) } else { own };
        let choice = own.zip(current.as_deref());
        match choice.and_then(|(model, current)| self.choice_at(current, model)) {
            Some(choice) => self.use_model(choice),
            None => self.offer_providers(&name),
        }
        if self.running.is_none()
            && !self.queue.is_held()
            && let Some(prompt) = self.queue.next()
        {
            Box::pin(self.prompt(prompt)).await;
        }
    }

    /// Returns the choice of a model at a provider: a profile, a provider of the table, or the provider that answers now.
    fn choice_at(&mut self, provider: &str, model: &str) -> Option<ModelChoice> {
        let effort = self.model.choice.effort;
        if self.services.config.names_profile(provider) {
            return Some(ModelChoice {
                provider: None,
                model: Some(format!("{provider}/{model}")),
                effort,
                agent: None,
            });
        }
        let known = provider_table::NAMES.contains(&provider)
            || self.provider_name().as_deref() == Some(provider);
        known.then(|| ModelChoice {
            provider: Some(provider.to_owned()),
            model: Some(model.to_owned()),
            effort,
            agent: None,
        })
    }

    /// Returns the name of the provider that answers now: the name of a profile, or of a provider of the table.
    fn provider_name(&mut self) -> Option<String> {
        let profile = self.services.config.profile_name(&self.model.choice);
        if profile.is_some() {
            return profile;
        }
        let label = self.provider().ok()?.label();
        label.split('/').next().map(str::to_owned)
    }

    /// Lets the person choose the provider that a name means. If only one is possible, uses it at once.
    fn offer_providers(&mut self, name: &str) {
        let mut candidates = self.candidates(name);
        if candidates.len() < 2 {
            let bare = ModelChoice {
                provider: None,
                model: Some(name.to_owned()),
                effort: self.model.choice.effort,
                agent: None,
            };
            return self.use_model(candidates.pop().map_or(bare, |it| it.choice));
        }
        let title = match self.provider_name() {
            Some(current) => format!("{current} does not list {name}. Ask"),
            None => "Ask".to_owned(),
        };
        let choice = |candidate: &Candidate| Choice {
            label: candidate.label.clone(),
            value: spelled(&candidate.label),
            confirm: None,
        };
        self.offer("model", &title, candidates.iter().map(choice).collect());
    }

    /// Returns the providers that could answer for a model: the one that answers now, the profiles, the usual provider, the
    /// vendor of the model, and the provider with which the name begins.
    fn candidates(&mut self, name: &str) -> Vec<Candidate> {
        let profiles = self.services.config.providers.iter();
        let profiles: Vec<_> = profiles.filter_map(|it| it.name.clone()).collect();
        let providers = self.provider_name().into_iter().chain(profiles);
        let mut choices: Vec<Option<ModelChoice>> = providers
            .map(|provider| self.choice_at(&provider, name))
            .collect();
        let usual = ModelChoice {
            model: Some(name.to_owned()),
            ..ModelChoice::default()
        };
        choices.push(Some(usual));
        if let Some((provider, model)) = name.split_once('/') {
            choices.push(self.choice_at(provider, model));
        }
        let mut candidates: Vec<Candidate> = Vec::new();
        for choice in choices.into_iter().flatten() {
            let Ok(provider) = self.services.provider(&choice) else {
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
    pub(in crate::chat) fn switch_effort(&mut self, name: &str) {
        if self.model.agent().is_some() {
            return self.set_agent_option(AgentOption::Effort, name);
        }
        if name.is_empty() {
            let choices = Effort::NAMES.map(|name| Choice {
                label: name.to_owned(),
                value: name.to_owned(),
                confirm: None,
            });
            return self.offer("effort", "Effort", choices.to_vec());
        }
        match name.parse() {
            Ok(effort) => {
                let choice = ModelChoice {
                    effort: Some(effort),
                    ..self.model.choice.clone()
                };
                self.switch(choice, |label| {
                    format!("{label} thinks with effort {effort}")
                });
            }
            Err(UnknownEffort) => self.complain(format!("{UnknownEffort}, not {name}")),
        }
    }

    fn use_model(&mut self, choice: ModelChoice) {
        // A turn keeps its provider.
        let from = match self.running {
            Some(_) => "after this turn",
            None => "from now on",
        };
        self.switch(choice, |label| {
            format!("{label} answers {from}, and reads the chat from its start")
        });
    }

    /// Uses another model or effort from the next turn on. `words` makes the notice from the provider's label.
    fn switch(&mut self, choice: ModelChoice, words: impl FnOnce(&str) -> String) {
        match self.services.provider(&choice) {
            Ok(provider) => {
                self.say(words(&provider.label()));
                self.model.choice = choice;
                self.model.provider = Some(provider);
                self.model.history = Arc::default();
                self.show_state();
            }
            Err(fault) => self.show(ChatEvent::ProviderFailed(fault)),
        }
    }

    /// Asks the provider for its models in another task, so that a slow server delays nothing.
    fn choose_model(&mut self) {
        let provider = match self.provider() {
            Ok(provider) => provider,
            Err(fault) => return self.show(ChatEvent::ProviderFailed(fault)),
        };
        let name = self.provider_name().unwrap_or_default();
        let (services, chat) = (Arc::clone(&self.services), self.id);
        let front_end = Arc::clone(&self.front_end);
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

    /// Sends the editor the words that complete the argument of `/model`.
    pub(in crate::chat) fn list_models(&mut self, head: String) {
        let provider = self.provider().ok();
        let services = Arc::clone(&self.services);
        tokio::spawn(list_models(services, provider, Some(self.id), head));
    }

    pub(in crate::chat) fn provider(&mut self) -> Result<Arc<dyn Provider>, Fault> {
        if let Some(provider) = &self.model.provider {
            return Ok(Arc::clone(provider));
        }
        let provider = self.services.provider(&self.model.choice)?;
        self.model.provider = Some(Arc::clone(&provider));
        Ok(provider)
    }

    /// Records the model and the effort that the person chose, if they are not those of the last turn, so that a resumed chat
    /// goes to the same provider.
    pub(in crate::chat) async fn record_choice(&mut self) {
        if ModelChoice::recorded(self.recorder.items()).0 != self.model.choice {
            let config = &self.services.config;
            let chosen = Item::ModelChosen {
                provider: self.model.choice.provider.clone(),
                model: self.model.choice.model.clone(),
                profile: config.profile_name(&self.model.choice),
                effort: self.model.choice.effort.map(|effort| effort.to_string()),
                agent: self.model.choice.agent.clone(),
            };
            self.recorder.record(chosen).await;
        }
    }

    /// Goes back to the model that the person chose for a resumed chat. If the profile of that model is gone, warns that the
    /// chat goes to another provider.
    pub(in crate::chat) fn resume_choice(&mut self, items: &[Item]) {
        let (choice, profile) = ModelChoice::recorded(items);
        self.model.choose(choice);
        let lost = profile.filter(|_| {
            self.services
                .config
                .profile_name(&self.model.choice)
                .is_none()
        });
        if let Some(profile) = lost {
            self.model.choice.model = None;
            let text = format!(
                "this chat was held with the profile {profile}, which is not set; the next prompt sends it to the usual provider"
            );
            self.services.notice(NoticeLevel::Warn, text);
        }
    }
}

/// Sends the editor the words that complete the argument of `/model`: the models of the profile that `head` names, or else the
/// models of the provider and the names of all profiles.
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

/// Returns the arguments of `/model` that mean a provider and a model, and nothing else: `some-model work` for `work/some-model`.
fn spelled(label: &str) -> String {
    match label.split_once('/') {
        Some((provider, model)) => format!("{model} {provider}"),
        None => label.to_owned(),
    }
}
