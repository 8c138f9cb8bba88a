//! Rules for messages that single servers add to their protocol. `docs/PROVIDERS.md` names the source of each rule.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::request_info::RequestInfo;
use crate::provider_table::Protocol;
use crate::server_memory::Adaptation;

/// Parts of the names of Mistral's models. Other servers also run these models with Mistral's checks or chat templates.
const MISTRAL: [&str; 6] = [
    "mistral",
    "mixtral",
    "ministral",
    "magistral",
    "codestral",
    "devstral",
];

/// Returns true for Mistral's models, at any server.
pub(super) fn is_mistral(info: &RequestInfo) -> bool {
    let model = info.model.to_lowercase();
    info.is_at("api.mistral.ai") || MISTRAL.iter().any(|part| model.contains(part))
}

/// Returns true if a message of the model must stand before each prompt, except the first.
///
/// Chat templates and several servers refuse two messages of the person in a row, and a message of the person directly after a
/// result. co assumes this rule for each server unless it knows better.
pub(super) fn must_alternate(info: &RequestInfo) -> bool {
    let is_openai = info.is_openai() || info.is_at("api.x.ai");
    match info.protocol {
        Protocol::Gemini | Protocol::Ollama => false,
        Protocol::Anthropic => !info.own,
        Protocol::OpenAi | Protocol::Responses => is_mistral(info) || !is_openai,
    }
}

/// The characters and the length that a server allows in the ids of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdForm {
    /// Any characters.
    Any,
    /// Letters, digits, `_` and `-`.
    Word,
    /// Letters and digits. Each id has exactly `longest` characters.
    Exact,
}

/// Makes ids of calls that the server accepts. Each id is unique, and is the same in all requests.
#[derive(Debug)]
pub(super) struct CallIds {
    form: IdForm,
    /// The largest number of characters in an id.
    longest: usize,
    /// Maps the id of a call in the transcript to its id for the server.
    given: HashMap<String, String>,
    used: HashSet<String>,
}

impl CallIds {
    pub(super) fn new(info: &RequestInfo) -> Self {
        let adapted = info.adaptations.contains(&Adaptation::NineCharacterIds);
        let (form, longest) = match info.protocol {
            Protocol::OpenAi if is_mistral(info) || adapted => (IdForm::Exact, 9),
            Protocol::OpenAi => (IdForm::Word, 40),
            Protocol::Anthropic | Protocol::Responses | Protocol::Ollama => (IdForm::Word, 64),
            Protocol::Gemini => (IdForm::Any, 64),
        };
        Self {
            form,
            longest,
            given: HashMap::new(),
            used: HashSet::new(),
        }
    }

    /// Returns the id for the server, from the id in the transcript. Both are the same if the server accepts the transcript's id.
    pub(super) fn get(&mut self, id: &str) -> String {
        if let Some(given) = self.given.get(id) {
            return given.clone();
        }
        let mut new = self.mended(id);
        let mut number = 0;
        while new.is_empty() || self.used.contains(&new) {
            number += 1;
            new = self.numbered(id, number);
        }
        self.used.insert(new.clone());
        self.given.insert(id.to_owned(), new.clone());
        new
    }

    /// Returns the id without characters that the server refuses. If this is not enough, returns a new id.
    fn mended(&self, id: &str) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let short = id.chars().count() <= self.longest;
        match self.form {
            IdForm::Any if short => id.to_owned(),
            IdForm::Word if short => id.replace(|c| !is_word(c), "_"),
            IdForm::Exact
                if id.len() == self.longest && id.chars().all(|c| c.is_ascii_alphanumeric()) =>
            {
                id.to_owned()
            }
            _ => self.numbered(id, 0),
        }
    }

    /// Returns an id of nine characters: a hash of the id in the transcript and of `number`.
    fn numbered(&self, id: &str, number: u64) -> String {
        const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
        let mut hasher = DefaultHasher::new();
        (id, number).hash(&mut hasher);
        let hash = hasher.finish();
        let digit = |at: u32| char::from(DIGITS[(hash >> (at * 5)) as usize % DIGITS.len()]);
        (0..9).map(digit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::request_info::test_info;

    fn at(protocol: Protocol, host: &str, model: &str) -> RequestInfo {
        RequestInfo {
            host: host.into(),
            model: model.into(),
            ..test_info(protocol)
        }
    }

    #[test]
    fn prompts_in_a_row_by_server_and_model() {
        let check = |protocol, host: &str, model: &str, own, expected| {
            let info = RequestInfo {
                own,
                ..at(protocol, host, model)
            };
            assert_eq!(must_alternate(&info), expected, "{host} {model}");
        };
        use Protocol::{Anthropic, Gemini, Ollama, OpenAi, Responses};
        check(OpenAi, "api.openai.com", "gpt-4.1", true, false);
        check(Responses, "api.openai.com", "gpt-6-astra", true, false);
        check(OpenAi, "my.services.ai.azure.com", "gpt-5.1", true, false);
        check(
            OpenAi,
            "my.services.ai.azure.com",
            "Mistral-Large",
            true,
            true,
        );
        check(OpenAi, "api.x.ai", "grok-4.5", true, false);
        check(OpenAi, "api.mistral.ai", "magistral-medium", true, true);
        check(OpenAi, "127.0.0.1:8000", "Devstral-Small-2", false, true);
        check(OpenAi, "127.0.0.1:8000", "qwen3", false, true);
        check(Anthropic, "api.anthropic.com", "claude-x", true, false);
        check(Anthropic, "127.0.0.1:8000", "claude-x", false, true);
        check(
            Gemini,
            "generativelanguage.googleapis.com",
            "gemini-3",
            true,
            false,
        );
        check(Ollama, "127.0.0.1:11434", "mistral", true, false);
    }

    /// Returns the ids that a server gets for these.
    fn given(info: &RequestInfo, ids: &[&str]) -> Vec<String> {
        let mut calls = CallIds::new(info);
        let given: Vec<String> = ids.iter().map(|id| calls.get(id)).collect();
        let again: Vec<String> = ids.iter().map(|id| calls.get(id)).collect();
        assert_eq!(given, again);
        let different: HashSet<&String> = given.iter().collect();
        assert_eq!(different.len(), ids.len(), "{given:?}");
        given
    }

    #[test]
    fn ids_are_unique_short_and_of_the_servers_form() {
        let long = "x".repeat(100);
        let longer = format!("{long}y");
        let ids = ["a:1", "a_1", "", "_", "toolu_ok", &long, &longer, "é"];
        let chat = given(&at(Protocol::OpenAi, "h", "m"), &ids);
        assert_eq!((&*chat[0], &*chat[4]), ("a_1", "toolu_ok"));
        for id in &chat {
            assert!(!id.is_empty() && id.len() <= 40, "{id}");
            assert!(
                id.chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
            );
        }
        let ids = ["V2bduoFbR", "V2bduoFb", "call_123", "a:1", "a_1", ""];
        let mistral = given(&at(Protocol::OpenAi, "api.mistral.ai", "m"), &ids);
        assert_eq!(mistral[0], "V2bduoFbR");
        for id in &mistral {
            assert!(
                id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()),
                "{id}"
            );
        }
        let gemini = given(&at(Protocol::Gemini, "h", "m"), &["call#run#0", &long]);
        assert_eq!(gemini[0], "call#run#0");
        assert!(gemini[1].len() <= 64, "{gemini:?}");
    }

    #[test]
    fn a_server_can_ask_for_short_ids() {
        let mut info = at(Protocol::OpenAi, "127.0.0.1:8000", "my-coder");
        assert_eq!(given(&info, &["call_123"]), ["call_123"]);
        info.adaptations.insert(Adaptation::NineCharacterIds);
        assert_eq!(given(&info, &["call_123"])[0].len(), 9);
    }

    #[test]
    fn an_id_that_was_given_stays_with_its_call() {
        let info = at(Protocol::OpenAi, "h", "m");
        let first = given(&info, &["a:1", "b"]);
        let more = given(&info, &["a:1", "b", "a_1", "c"]);
        assert_eq!(more[..2], first);
    }
}
