//! The facts about servers that their answers showed since the backend started, and the clients of these servers.
//!
//! The memory is passed to [`crate::make_provider_with`], so that a new chat does not learn the facts again.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::fault::Fault;
use crate::listed_model::ListedModel;

/// The most refused requests that are remembered.
const MAX_REFUSED: usize = 1000;

/// A change that a server needs in its requests, as it said when it refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Adaptation {
    UseResponses,
    UseChatCompletions,
    /// Reasoning must not be sent back.
    WithoutReasoning,
    /// Reasoning must be sent back with each call, even if it is empty.
    WithReasoning,
    WithoutCacheMarks,
    WithoutCacheKey,
    WithoutEffort,
    /// No summary of the reasoning may be asked for.
    WithoutSummary,
    /// No encrypted reasoning may be asked for.
    WithoutEncrypted,
    /// No thoughts may be asked for.
    WithoutThoughts,
    WithoutStreamOptions,
    /// The limit of an answer has the name `max_completion_tokens`.
    NewTokenLimit,
    /// The ids of calls have nine letters and digits.
    NineCharacterIds,
    /// A message with calls alone has an empty text, and not none.
    EmptyContent,
    /// No tools may be offered.
    WithoutTools,
    /// The system prompt is a part of the first prompt.
    SystemInPrompt,
    /// The most tokens that an answer may ask for.
    AnswerLimit(u64),
}

impl Adaptation {
    /// Returns true if the change depends on the server alone. The other changes also depend on the model.
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

/// The facts about servers, and their clients, that all chats share.
#[derive(Debug, Clone, Default)]
pub struct ServerMemory(Arc<Mutex<ServerFacts>>);

#[derive(Debug, Default)]
struct ServerFacts {
    /// By host, and by model or an empty text.
    adaptations: HashMap<(String, String), HashSet<Adaptation>>,
    /// By profile, since a key has its own list on some servers, and by base address. Empty if the server lists no models.
    models: HashMap<(String, String), Arc<[ListedModel]>>,
    /// By host and model: the context window that refusals and answers showed.
    windows: HashMap<(String, String), u64>,
    /// Requests that were refused, by [`RequestKey`].
    refused: HashMap<RequestKey, Fault>,
    /// The clients by base address. Each has the certificate authorities of the system and its open connections.
    clients: HashMap<String, reqwest::Client>,
}

/// A request: its address, its headers and its bytes, as a hash.
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
    /// Returns all that a host needs for a model.
    pub(crate) fn adaptations(&self, host: &str, model: &str) -> HashSet<Adaptation> {
        let facts = self.0.lock();
        let of = |model: &str| facts.adaptations.get(&(host.to_owned(), model.to_owned()));
        let both = [of(""), of(model)];
        both.into_iter().flatten().flatten().copied().collect()
    }

    /// Remembers what a host needs. Returns false if the need is known already, so that another try would be refused again.
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

    /// Returns the context window that was learned for a model.
    pub(crate) fn window(&self, host: &str, model: &str) -> Option<u64> {
        let key = (host.to_owned(), model.to_owned());
        self.0.lock().windows.get(&key).copied()
    }

    /// Remembers the context window of a model, or forgets it.
    pub(crate) fn learn_window(&self, host: &str, model: &str, tokens: Option<u64>) {
        let key = (host.to_owned(), model.to_owned());
        let mut facts = self.0.lock();
        match tokens {
            Some(tokens) => facts.windows.insert(key, tokens),
            None => facts.windows.remove(&key),
        };
    }

    /// Returns the fault with which a server refused this request. The server must not get the request again.
    pub(crate) fn refusal(&self, request: RequestKey) -> Option<Fault> {
        self.0.lock().refused.get(&request).cloned()
    }

    /// Remembers a request if `fault` says that the server refused it.
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

    /// Returns the client for a server, which `make` makes for the first chat.
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
