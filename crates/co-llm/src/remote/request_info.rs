//! The facts about one request that its messages, its answer and its errors depend on.

use std::collections::HashSet;
use std::time::Duration;

use crate::effort::Effort;
use crate::family;
use crate::fault::Fault;
use crate::provider_table::{Protocol, is_below};
use crate::server_memory::Adaptation;

/// The facts about one request: the provider and its address, the model and the keys.
#[derive(Debug, Clone)]
pub(super) struct RequestInfo {
    pub(super) protocol: Protocol,
    /// The name of the provider for messages. If the server is not the provider's own, it is the host.
    pub(super) title: String,
    pub(super) url: String,
    /// The host of the address, with its port if it has one.
    pub(super) host: String,
    /// True if the request goes to the provider's own server.
    pub(super) own: bool,
    pub(super) model: String,
    /// The variable, file or program that provides the key. It is `None` if the request has no key.
    pub(super) key_source: Option<String>,
    /// The environment variable to set if the request has no key. It is `None` if this server has no usual variable; then the
    /// setting `api_key_env` must name one.
    pub(super) key_variable: Option<String>,
    /// The keys to remove from the server's error messages, which may repeat them.
    pub(super) keys: Vec<String>,
    /// True if the address is a guess, because no setting names a server.
    pub(super) guessed: bool,
    /// True if Anthropic's thinking is on. Then each call must follow the reasoning that led to it.
    pub(super) thinking: bool,
    /// True if the model accepts images.
    pub(super) images: bool,
    /// The time-out while the server sends nothing.
    pub(super) stall: Duration,
    pub(super) effort: Option<Effort>,
    /// The changes that the server has asked for by refusing earlier requests.
    pub(super) adaptations: HashSet<Adaptation>,
}

impl RequestInfo {
    /// Returns the fault for a web page that was received instead of an answer.
    pub(super) fn page(&self) -> Fault {
        Fault::HtmlPage {
            url: self.url.clone(),
        }
    }

    /// Returns true if the request goes to a host of this domain.
    pub(super) fn is_at(&self, domain: &str) -> bool {
        let host = self.host.split(':').next().unwrap_or_default();
        is_below(host, domain)
    }

    /// Returns true for OpenAI's own servers and for Azure's.
    pub(super) fn is_openai(&self) -> bool {
        self.is_at("api.openai.com") || self.is_at("azure.com")
    }

    /// Returns true for Anthropic's models, also under the names that a gateway gives them.
    pub(super) fn is_claude(&self) -> bool {
        self.model.contains("claude")
    }

    /// Returns the largest output limit that the server accepts, if an earlier refusal named it.
    pub(super) fn answer_limit(&self) -> Option<u64> {
        let limits = self.adaptations.iter().filter_map(|it| match it {
            Adaptation::AnswerLimit(most) => Some(*most),
            _ => None,
        });
        limits.min()
    }

    /// Returns the mark that is stored with a signature. It identifies the servers and models that can read the signature.
    ///
    /// Reasoning is encrypted for one model at one host. Claude's signatures are valid for one model at all hosts.
    fn signature_mark(&self) -> String {
        match self.protocol {
            Protocol::Anthropic if self.is_claude() || self.own => {
                format!("anthropic|{}|", family::plain(&self.model))
            }
            protocol => format!("{}|{}|{}|", protocol.name(), self.host, self.model),
        }
    }

    /// Returns the signature with its mark, in the form in which a transcript stores it.
    pub(super) fn keep_signature(&self, signature: &str) -> String {
        self.signature_mark() + signature
    }

    /// Returns the original signature from its stored form. Returns `None` if this server and model cannot read it.
    pub(super) fn own_signature<'a>(&self, kept: Option<&'a str>) -> Option<&'a str> {
        kept?.strip_prefix(&self.signature_mark())
    }
}

#[cfg(test)]
pub(super) fn test_info(protocol: Protocol) -> RequestInfo {
    RequestInfo {
        protocol,
        title: "OpenAI".into(),
        url: "http://h/v1/".into(),
        host: "h".into(),
        own: false,
        model: "m".into(),
        key_source: Some("OPENAI_API_KEY".into()),
        key_variable: Some("OPENAI_API_KEY".into()),
        keys: vec!["sk-very-secret".into()],
        guessed: false,
        thinking: false,
        images: false,
        stall: Duration::from_secs(120),
        effort: None,
        adaptations: HashSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_reasoning_is_for_one_model_at_one_host() {
        let at = |protocol, host: &str, model: &str| RequestInfo {
            host: host.into(),
            model: model.into(),
            ..test_info(protocol)
        };
        let returned = |from: &RequestInfo, to: &RequestInfo| {
            let kept = from.keep_signature("sig");
            to.own_signature(Some(&kept)).map(str::to_owned)
        };
        let here = at(Protocol::Responses, "a:1", "gpt-5.6");
        assert_eq!(returned(&here, &here).as_deref(), Some("sig"));
        for other in [
            at(Protocol::Responses, "a:1", "gpt-5.7"),
            at(Protocol::Responses, "b:1", "gpt-5.6"),
            at(Protocol::Gemini, "a:1", "gpt-5.6"),
        ] {
            assert_eq!(returned(&here, &other), None, "{other:?}");
        }
        let claude = at(Protocol::Anthropic, "a", "claude-x-5-5");
        let elsewhere = at(Protocol::Anthropic, "b", "vendor/claude-x-5.5");
        assert_eq!(returned(&claude, &elsewhere).as_deref(), Some("sig"));
        let next = at(Protocol::Anthropic, "a", "claude-y-5-5");
        assert_eq!(returned(&claude, &next), None);
        let other = at(Protocol::Anthropic, "a", "deepseek");
        assert_eq!(returned(&claude, &other), None);
        assert_eq!(returned(&other, &claude), None);
    }
}
