//! The errors of a request, by type. Other modules decide by the type, never by the error message.

use std::time::Duration;

/// The largest size of one answer, in bytes of text and reasoning. No model writes that much.
pub(crate) const LONGEST_ANSWER: usize = 4 << 20;

/// The reason why a request got no answer, or only a part of one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    #[error("no provider is set up")]
    NoProvider,
    /// The chat belongs to an agent, so no model answers in it.
    #[error("{name} works in this chat, so no model answers")]
    AgentWorks { name: String },
    /// A setting has a wrong value. co sends no request, because the value could send prompts to the wrong server or weaken the
    /// protection.
    #[error("no prompt is sent, because {wrong} is wrong")]
    WrongSetting { wrong: String },
    #[error("there is no provider called {name}")]
    UnknownProvider { name: String },
    /// The file or program that should provide the key provides none.
    #[error("the key from {source_name} cannot be used")]
    KeyUnusable { source_name: String, cause: String },
    #[error("the key for {provider} is missing")]
    NoKey {
        provider: String,
        /// The environment variable to set. It is `None` if this server has no usual variable; then the setting `api_key_env`
        /// must name one.
        variable: Option<String>,
    },
    /// The provider gives each customer an address of their own, and no setting names this address.
    #[error("the address for {provider} is missing")]
    NoAddress { provider: String },
    #[error("nothing answers at {url} ({cause})")]
    Unreachable { url: String, cause: String },
    /// The TLS connection was refused, for example because of a self-signed certificate.
    #[error("no secure connection to {url} ({cause})")]
    Tls { url: String, cause: String },
    /// TLS connections are impossible, usually because this system has no CA certificates.
    #[error("no secure connection is possible ({cause})")]
    NoCaCertificates { cause: String },
    #[error("{provider} refused the key (HTTP {status})")]
    Unauthorized {
        provider: String,
        status: u16,
        /// The variable, file or program that provides the key.
        source_name: String,
        /// The error message of the server. It is empty if the server sent none.
        body: String,
    },
    /// The key is valid, but the account may not make this request.
    #[error("{provider} does not allow this (HTTP {status})")]
    Forbidden {
        provider: String,
        status: u16,
        body: String,
    },
    #[error("{provider} does not know the model {model} (HTTP 404)")]
    NotFound {
        provider: String,
        model: String,
        body: String,
        /// The names on offer that are most similar to the unknown name.
        near: Vec<String>,
    },
    #[error("{provider} asks to slow down (HTTP 429)")]
    RateLimited {
        provider: String,
        retry_after: Option<Duration>,
    },
    /// The credit or the quota is used up, so waiting does not help.
    #[error("the quota of {provider} is used up (HTTP {status})")]
    QuotaUsedUp {
        provider: String,
        status: u16,
        body: String,
    },
    #[error("{provider} failed (HTTP {status})")]
    Server {
        provider: String,
        status: u16,
        retry_after: Option<Duration>,
        body: String,
        /// True if the body was JSON. Then a server that knows the protocol wrote it, not a gateway.
        explained: bool,
    },
    #[error("the chat is longer than the model's context window")]
    Overflow { body: String },
    /// The request has too many bytes, for example because of an image. It may still fit into the context window.
    #[error("the request is larger than {provider} takes (HTTP 413)")]
    TooLarge { provider: String, body: String },
    #[error("{provider} refused the request (HTTP 400)")]
    BadRequest { provider: String, body: String },
    #[error("a web page came back instead of an answer")]
    HtmlPage { url: String },
    #[error("the answer broke off")]
    Cut,
    /// The answer has more text and reasoning than co accepts.
    #[error("the answer is longer than {} MiB", LONGEST_ANSWER >> 20)]
    AnswerTooLong,
    #[error("the answer could not be read")]
    Malformed { detail: String },
    #[error("no byte came for {0:?}")]
    Stalled(Duration),
}

impl Fault {
    /// Returns true if the same request may succeed a little later.
    ///
    /// Retry only if no part of the answer was kept. Otherwise the retry shows the text twice.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Server { .. }
                | Self::Unreachable { .. }
                | Self::Cut
                | Self::Stalled(_)
        )
    }

    /// Returns true if the server refused the request because of its content. Then co must not send the same bytes again.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::BadRequest { .. } | Self::Overflow { .. } | Self::TooLarge { .. }
        )
    }

    /// Returns true for a server error (status 500 or 502) with an explanation in the form that the protocol defines. Some
    /// gateways, and servers whose chat template fails, refuse a request by such an error.
    pub fn is_explained(&self) -> bool {
        matches!(
            self,
            Self::Server {
                status: 500 | 502,
                explained: true,
                ..
            }
        )
    }

    /// Returns true if the content of the request may be the cause of the fault, although the server reports another cause. For
    /// example, OpenRouter answers 404 if no model takes the images, and a filter in front of a server answers with a web page.
    pub fn may_be_refusal(&self) -> bool {
        let by_status = matches!(
            self,
            Self::NotFound { .. } | Self::Forbidden { .. } | Self::HtmlPage { .. }
        );
        self.is_refusal() || self.is_explained() || by_status
    }

    /// Returns the error message of the server for a request that it refused.
    pub fn words(&self) -> &str {
        match self {
            Self::BadRequest { body, .. }
            | Self::Overflow { body }
            | Self::TooLarge { body, .. }
            | Self::Server { body, .. } => body,
            _ => "",
        }
    }

    /// Returns the token limit in the server's error message: 200000 for "prompt is too long: 210543 tokens > 200000 maximum".
    pub fn named_limit(&self) -> Option<u64> {
        /// The possible sizes of a context window, in tokens. This range leaves out small numbers, and the dates in names of
        /// models.
        const TOKENS: std::ops::RangeInclusive<u64> = 1_024..=10_000_000;
        /// The assumed upper limit for the ratio between the size of a request and the context window.
        const MOST_TIMES: u64 = 64;
        let words = self.words().to_lowercase();
        let about_tokens = ["token", "context", "length", "n_ctx", "seq_len"];
        if !about_tokens.iter().any(|word| words.contains(word)) {
            return None;
        }
        let mut numbers: Vec<u64> = numbers(&words).filter(|it| TOKENS.contains(it)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let longest = numbers.pop()?;
        let limit = numbers.pop().filter(|limit| longest / limit < MOST_TIMES);
        Some(limit.unwrap_or(longest))
    }

    /// Returns the waiting time that the provider asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Server { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }
}

/// Returns the numbers in a text, such as 8192 and 200,000.
pub(crate) fn numbers(text: &str) -> impl Iterator<Item = u64> {
    let parts = text.split(|c: char| !c.is_ascii_digit() && !matches!(c, ',' | '_'));
    parts.filter_map(|part| {
        let groups: Vec<&str> = part.trim_matches([',', '_']).split([',', '_']).collect();
        let grouped = groups.len() > 1 && groups[1..].iter().all(|group| group.len() == 3);
        match grouped && !groups[0].is_empty() {
            true => groups.concat().parse().ok(),
            false => groups.iter().find_map(|group| group.parse().ok()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_text() {
        let all = |text: &str| numbers(text).collect::<Vec<_>>();
        assert_eq!(
            all("8192 > 4,096, [1, 200_000] n_ctx: 7."),
            [8_192, 4_096, 1, 200_000, 7]
        );
        assert_eq!(all(", _ x"), [0; 0]);
    }

    /// The sentences are those of the servers, as their users report them.
    #[test]
    fn the_limit_that_a_server_names() {
        for (words, limit) in [
            (
                "prompt is too long: 210543 tokens > 200000 maximum",
                Some(200_000),
            ),
            (
                "This model's maximum context length is 131072 tokens. However, you requested 133034 tokens (125034 in the messages, \
                 8000 in the completion).",
                Some(131_072),
            ),
            (
                "greater than the context length (n_keep: 13055>= n_ctx: 4096).",
                Some(4_096),
            ),
            (
                "Input tokens exceed the configured limit of 272000 tokens.",
                Some(272_000),
            ),
            (
                "Input tokens exceed the configured limit of 272000 tokens for gpt-5-2025-08-07",
                Some(272_000),
            ),
            (
                "<400> InvalidParameter: Range of input length should be [1, 204800]",
                Some(204_800),
            ),
            (
                "`inputs` tokens + `max_new_tokens` must be <= 65537. Given: 79993 `inputs` tokens",
                Some(65_537),
            ),
            (
                "tokens per min (TPM): Limit 30000, Requested 132819",
                Some(30_000),
            ),
            (
                "Request body too large for gpt-4.1 model. Max size: 8000 tokens.",
                Some(8_000),
            ),
            (
                "length of prompt_tokens (163,280) must be less than max_seq_len (32,768).",
                Some(32_768),
            ),
            (
                "prompt too long; exceeded max context length by 4 tokens",
                None,
            ),
            ("image has 9000 x 4000 pixels", None),
            ("", None),
        ] {
            let fault = Fault::Overflow { body: words.into() };
            assert_eq!(fault.named_limit(), limit, "{words}");
        }
    }
}
