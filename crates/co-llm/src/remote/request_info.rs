//! The facts about one request that its messages, its answer and its errors depend on.

use std::collections::HashSet;
use std::time::Duration;

use crate::effort::Effort;
use crate::family;
use crate::fault::Fault;
use crate::provider_table::{Protocol, is_below};
use crate::server_memory::Adaptation;

/// One request: the provider and its address, the model and the keys.
#[derive(Debug, Clone)]
pub(super) struct RequestInfo {
    pub(super) protocol: Protocol,
    /// The provider's name for a person; a host if the server is not the provider's own.
    pub(super) title: String,
    pub(super) url: String,
    /// The host of the address, with its port if it has one.
    pub(super) host: String,
    /// True if the request goes to the provider's own server.
    pub(super) own: bool,
    pub(super) model: String,
    /// The variable, file or program that has the key. None: the request has no key.
    pub(super) key_source: Option<String>,
    /// The variable to set if the request has no key. None: this server has no usual variable, and the setting `api_key_env` must
    /// name it.
    pub(super) key_variable: Option<String>,
    /// Keys to remove from a server's error text, which may repeat them.
    pub(super) keys: Vec<String>,
    /// True if the address is a guess because nothing is set.
    pub(super) guessed: bool,
    /// True if Anthropic's thinking is on. Each call must then follow the reasoning that led to it.
    pub(super) thinking: bool,
    /// True if the model takes images.
    pub(super) images: bool,
    /// The longest silence of the server.
    pub(super) stall: Duration,
    pub(super) effort: Option<Effort>,
    /// The changes that the server asked for when it refused earlier requests.
    pub(super) adaptations: HashSet<Adaptation>,
}

impl RequestInfo {
    /// Returns the fault for a web page in place of an answer.
    pub(super) fn page(&self) -> Fault {
        Fault::HtmlPage {
            url: self.url.clone(),
        }
    }

    /// Returns true if the request goes to this domain.
    pub(super) fn is_at(&self, domain: &str) -> bool {
        let host = self.host.split(':').next().unwrap_or_default();
        is_below(host, domain)
    }

    /// Returns true for OpenAI's own servers, and for those of Azure.
    pub(super) fn is_openai(&self) -> bool {
        self.is_at("api.openai.com") || self.is_at("azure.com")
    }

    /// Returns true for Anthropic's models, also under the names that a gateway gives to them.
    pub(super) fn is_claude(&self) -> bool {
        self.model.contains("claude")
    }

    /// Returns the most tokens of an answer that the server takes, if it named them when it refused more.
    pub(super) fn answer_limit(&self) -> Option<u64> {
        let limits = self.adaptations.iter().filter_map(|it| match it {
            Adaptation::AnswerLimit(most) => Some(*most),
            _ => None,
        });
        limits.min()
    }

    /// Returns the mark that a transcript keeps with a signature: who can read it.
    ///
    /// Reasoning is encrypted for one model at one host. Claude's signatures are valid for one model everywhere.
    fn signature_mark(&self) -> String {
        match self.protocol {
            Protocol::Anthropic if self.is_claude() || self.own => {
                format!("anthropic|{}|", family::plain(&self.model))
            }
            protocol => format!("{}|{}|{}|", protocol.name(), self.host, self.model),
        }
    }

    /// Returns the signature with its mark, as a transcript keeps it.
    pub(super) fn keep_signature(&self, signature: &str) -> String {
        self.signature_mark() + signature
    }

    /// Returns a kept signature as the server sent it; none if this server and model cannot read it.
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
