//! The model of a chat: the person's choice with `/model` and `/effort`, and the provider that answers.

use std::sync::Arc;

use crate::chat::Chat;
use crate::chat::events::ChatEvent;
use crate::config::ModelChoice;
use crate::protocol::{Choice, NoticeLevel, ToEditor};
use co_llm::transcript::Item;
use co_llm::{Effort, Fault, Provider, UnknownEffort};

impl Chat {
    pub(in crate::chat) async fn switch_model(&mut self, model: &str) {
        if model.is_empty() {
            return self.choose_model().await;
        }
        let choice = ModelChoice {
            model: Some(model.to_owned()),
            ..self.choice.clone()
        };
        self.switch(choice, |label| {
            format!("{label} answers from now on, and reads the chat from its start")
        });
    }

    /// Sets how hard the model thinks in this chat.
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
                    ..self.choice.clone()
                };
                self.switch(choice, |label| {
                    format!("{label} thinks with effort {effort}")
                });
            }
            Err(UnknownEffort) => self.complain(format!("{UnknownEffort}, not {name}")),
        }
    }

    /// Answers with another choice from the next turn on. `words` makes the notice from the provider's label.
    fn switch(&mut self, choice: ModelChoice, words: impl FnOnce(&str) -> String) {
        match self.services.provider(&choice) {
            Ok(provider) => {
                self.say(words(&provider.label()));
                self.choice = choice;
                self.provider = Some(provider);
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
        let (front_end, used) = (Arc::clone(&self.front_end), self.choice.clone());
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
        if let Some(provider) = &self.provider {
            return Ok(Arc::clone(provider));
        }
        let provider = self.services.provider(&self.choice)?;
        self.provider = Some(Arc::clone(&provider));
        Ok(provider)
    }

    /// Records the model and the effort that the person chose, if they are not those of the last turn. A resumed chat is sent
    /// to no other provider then.
    pub(in crate::chat) async fn record_choice(&mut self) {
        if ModelChoice::recorded(self.recorder.items()).0 != self.choice {
            let config = &self.services.config;
            let chosen = Item::ModelChosen {
                model: self.choice.model.clone(),
                profile: config.profile_name(&self.choice),
                effort: self.choice.effort.map(|effort| effort.to_string()),
            };
            self.recorder.record(chosen).await;
        }
    }

    /// Goes back to the model that the person chose for a chat. Without its profile, the chat would go to another provider.
    pub(in crate::chat) fn resume_choice(&mut self, items: &[Item]) {
        let (choice, profile) = ModelChoice::recorded(items);
        self.choice = choice;
        self.provider = None;
        let lost = profile.filter(|_| self.services.config.profile_name(&self.choice).is_none());
        if let Some(profile) = lost {
            self.choice.model = None;
            let text = format!(
                "this chat was held with the profile {profile}, which is not set; the next prompt sends it to the usual provider"
            );
            self.services.notice(NoticeLevel::Warn, text);
        }
    }
}
