//! The memory of facts about servers, learned from their answers since the backend started, and the HTTP clients of these
//! servers.
//!
//! The caller passes the memory to [`crate::make_provider_with`], so that a new chat need not learn the facts again.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::fault::Fault;
use crate::listed_model::ListedModel;

/// The largest number of refused requests that are remembered.
const MAX_REFUSED: usize = 1000;

/// A change that co makes in all requests to a server, because the server asked for it in a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Adaptation {
    UseResponses,
    UseChatCompletions,
    /// Send no reasoning back.
    WithoutReasoning,
    /// Send reasoning back with each call, even if the reasoning is empty.
    WithReasoning,
    WithoutCacheMarks,
    WithoutCacheKey,
    WithoutEffort,
    /// Do not ask for a summary of the reasoning.
    WithoutSummary,
    /// Do not ask for encrypted reasoning.
    WithoutEncrypted,
    /// Do not ask for thoughts.
    WithoutThoughts,
    WithoutStreamOptions,
    /// Call the output limit `max_completion_tokens`.
    NewTokenLimit,
    /// Make ids of calls with exactly nine letters and digits.
    NineCharacterIds,
    /// Write an empty text into a message that has only calls, instead of leaving the text out.
    EmptyContent,
    /// Offer no tools.
    WithoutTools,
    /// Put the system prompt into the first prompt.
    SystemInPrompt,
    /// Ask for at most this number of tokens in an answer.
    AnswerLimit(u64),
}

impl Adaptation {
    /// Returns true if the change applies to all models of the server. The other changes apply to one model.
    fn is_of_server(self) -> bool {
        matches!(
            self,
            Self::WithoutReasoning
                | Self::WithoutCacheMarks
                | Self::WithoutCacheKey
                | Self::WithoutStreamOptions
                | Self::EmptyContent
        )
    }
}

/// The facts about servers, and their HTTP clients. All chats share them. A clone refers to the same memory.
#[derive(Debug, Clone, Default)]
pub struct ServerMemory(Arc<Mutex<ServerFacts>>);

#[derive(Debug, Default)]
struct ServerFacts {
    /// The changes by host and model. The model is empty if a change applies to all models of the host.
    adaptations: HashMap<(String, String), HashSet<Adaptation>>,
    /// The lists of models, by profile and base address. A list is empty if the server lists no models. The profile is part of
    /// the key, because some servers show a different list to each API key.
    models: HashMap<(String, String), Arc<[ListedModel]>>,
    /// The context window in tokens by host and model, as refusals and answers of the server showed it.
    windows: HashMap<(String, String), u64>,
    /// The faults of the requests that were refused.
    refused: HashMap<RequestKey, Fault>,
    /// The HTTP clients by base address. Each client has the system's certificate authorities and its own open connections.
    clients: HashMap<String, reqwest::Client>,
}

/// Identifies a request by the hash of its address, headers and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestKey(u64);

impl RequestKey {
    pub(crate) fn new(url: &str, headers: &[(String, String)], body: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (url, headers, body).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl ServerMemory {
    /// Returns all changes that a host needs in requests to a model.
    pub(crate) fn adaptations(&self, host: &str, model: &str) -> HashSet<Adaptation> {
        let facts = self.0.lock();
        let of = |model: &str| facts.adaptations.get(&(host.to_owned(), model.to_owned()));
        let both = [of(""), of(model)];
        both.into_iter().flatten().flatten().copied().collect()
    }

    /// Remembers a change that a host needs. Returns false if the change was known, so that another try would be refused again.
    pub(crate) fn learn(&self, host: &str, model: &str, adaptation: Adaptation) -> bool {
        let model = if adaptation.is_of_server() { "" } else { model };
        let key = (host.to_owned(), model.to_owned());
        let mut facts = self.0.lock();
        facts.adaptations.entry(key).or_default().insert(adaptation)
    }

    pub(crate) fn models(&self, profile: &str, base_url: &str) -> Option<Arc<[ListedModel]>> {
        let key = (profile.to_owned(), base_url.to_owned());
        self.0.lock().models.get(&key).cloned()
    }

    pub(crate) fn keep_models(&self, profile: &str, base_url: &str, models: Arc<[ListedModel]>) {
        let key = (profile.to_owned(), base_url.to_owned());
        self.0.lock().models.insert(key, models);
    }

    /// Returns the context window in tokens that was learned for a model.
    pub(crate) fn window(&self, host: &str, model: &str) -> Option<u64> {
        let key = (host.to_owned(), model.to_owned());
        self.0.lock().windows.get(&key).copied()
    }

    /// Remembers the context window of a model. `None` forgets it.
    pub(crate) fn learn_window(&self, host: &str, model: &str, tokens: Option<u64>) {
        let key = (host.to_owned(), model.to_owned());
        let mut facts = self.0.lock();
        match tokens {
            Some(tokens) => facts.windows.insert(key, tokens),
            None => facts.windows.remove(&key),
        };
    }

    /// Returns the fault with which a server refused this request. The request must not be sent again.
    pub(crate) fn refusal(&self, request: RequestKey) -> Option<Fault> {
        self.0.lock().refused.get(&request).cloned()
    }

    /// Remembers a request as refused, if the fault is a refusal.
    pub(crate) fn keep_refusal(&self, request: RequestKey, fault: &Fault) {
        if !fault.is_refusal() {
            return;
        }
        let mut facts = self.0.lock();
        if facts.refused.len() >= MAX_REFUSED {
            facts.refused.clear();
        }
        facts.refused.insert(request, fault.clone());
    }

    /// Returns the HTTP client for a server. The first call makes it with `make`.
    ///
    /// # Errors
    /// The client cannot be made.
    pub(crate) fn client(
        &self,
        base_url: &str,
        make: impl FnOnce(&str) -> Result<reqwest::Client, Fault>,
    ) -> Result<reqwest::Client, Fault> {
        let known = self.0.lock().clients.get(base_url).cloned();
        if let Some(client) = known {
            return Ok(client);
        }
        // Another chat may make one meanwhile.
        let client = make(base_url)?;
        let mut facts = self.0.lock();
        let kept = facts.clients.entry(base_url.to_owned());
        Ok(kept.or_insert(client).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_facts_are_of_a_server_and_some_of_its_model() {
        let memory = ServerMemory::default();
        assert!(memory.learn("h", "m", Adaptation::WithoutReasoning));
        assert!(!memory.learn("h", "n", Adaptation::WithoutReasoning));
        assert!(memory.learn("h", "m", Adaptation::UseResponses));
        assert_eq!(memory.adaptations("h", "m").len(), 2);
        assert_eq!(
            memory.adaptations("h", "n"),
            HashSet::from([Adaptation::WithoutReasoning])
        );
        assert!(memory.adaptations("other", "m").is_empty());
    }
    #[test]
    fn chats_share_the_client_of_a_server() {
        let memory = ServerMemory::default();
        let mut made = Vec::new();
        for url in ["http://a/v1", "http://b/v1", "http://a/v1"] {
            let client = memory.clone().client(url, |url| {
                made.push(url.to_owned());
                Ok(reqwest::Client::new())
            });
            assert!(client.is_ok());
        }
        assert_eq!(made, ["http://a/v1", "http://b/v1"]);
    }
}
