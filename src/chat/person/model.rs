//! The model of a chat: the person's choice with `/model` and `/effort`, and the provider that answers.

use std::sync::Arc;

use crate::chat::Chat;
use crate::chat::events::ChatEvent;
use crate::chat::turn::RequestHistory;
use crate::config::{Config, ModelChoice};
use crate::protocol::{Choice, NoticeLevel, ToEditor};
use co_llm::transcript::Item;
use co_llm::{Effort, Fault, Provider, UnknownEffort};

/// The model of one chat.
#[derive(Default)]
pub(in crate::chat) struct ChatModel {
    /// None until the first turn needs it, or after a change of the choice.
    provider: Option<Arc<dyn Provider>>,
    /// The model and the effort that the person chose for this chat.
    choice: ModelChoice,
    /// What this provider took and refused in this chat.
    pub(in crate::chat) history: Arc<RequestHistory>,
}

impl ChatModel {
    /// Returns the provider if it is made already.
    pub(in crate::chat) fn known(&self) -> Option<&Arc<dyn Provider>> {
        self.provider.as_ref()
    }

    /// Returns the name of the model for the winbar; empty if no model is known yet.
    pub(in crate::chat) fn label(&self, config: &Config) -> String {
        let configured = || {
            self.choice
                .model
                .clone()
                .or_else(|| config.llm.model.clone())
        };
        match &self.provider {
            Some(provider) => provider.label(),
            None => configured().unwrap_or_default(),
        }
    }
}

impl Chat {
    pub(in crate::chat) async fn switch_model(&mut self, model: &str) {
        if model.is_empty() {
            return self.choose_model().await;
        }
        let choice = ModelChoice {
            model: Some(model.to_owned()),
            ..self.model.choice.clone()
        };
        self.switch(choice, |label| {
            format!("{label} answers from now on, and reads the chat from its start")
        });
    }

    /// Sets the effort with which the model thinks in this chat.
    pub(in crate::chat) fn switch_effort(&mut self, name: &str) {
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
    async fn choose_model(&mut self) {
        let provider = match self.provider() {
            Ok(provider) => provider,
            Err(fault) => return self.show(ChatEvent::ProviderFailed(fault)),
        };
        let (services, chat) = (Arc::clone(&self.services), self.id);
        let (front_end, used) = (Arc::clone(&self.front_end), self.model.choice.clone());
        tokio::spawn(async move {
            match provider.models().await {
                Ok(models) => services.editor.tell(ToEditor::Choose {
                    chat,
                    name: "model".to_owned(),
                    title: "Model".to_owned(),
                    choices: models
                        .into_iter()
                        .map(|model| Choice {
                            value: services.config.model_name(&used, &model),
                            label: model,
                            confirm: None,
                        })
                        .collect(),
                }),
                Err(fault) => front_end.show(ChatEvent::ProviderFailed(fault)),
            }
        });
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
                model: self.model.choice.model.clone(),
                profile: config.profile_name(&self.model.choice),
                effort: self.model.choice.effort.map(|effort| effort.to_string()),
            };
            self.recorder.record(chosen).await;
        }
    }

    /// Goes back to the model that the person chose for a resumed chat. If the profile of that model is gone, warns that the
    /// chat goes to another provider.
    pub(in crate::chat) fn resume_choice(&mut self, items: &[Item]) {
        let (choice, profile) = ModelChoice::recorded(items);
        self.model.choice = choice;
        self.model.provider = None;
        self.model.history = Arc::default();
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
