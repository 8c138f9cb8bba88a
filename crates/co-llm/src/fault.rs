//! The errors of a request, by type. Nothing outside reads an error's text to decide.

use std::time::Duration;

/// The most bytes of text and reasoning in one answer. It is far more than a model writes.
pub(crate) const LONGEST_ANSWER: usize = 4 << 20;

/// The reason why there is no answer, or no more of it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Fault {
    #[error("no provider is set up")]
    NoProvider,
    /// A wrong value could send prompts to another server than the person wants, or protect less.
    #[error("no prompt is sent, because {wrong} is wrong")]
    WrongSetting { wrong: String },
    #[error("there is no provider called {name}")]
    UnknownProvider { name: String },
    /// The file or program that should have the key gives none.
    #[error("the key from {source_name} cannot be used")]
    KeyUnusable { source_name: String, cause: String },
    #[error("the key for {provider} is missing")]
    NoKey {
        provider: String,
        /// The variable to set. None: this server has no usual one, and the setting `api_key_env` must name it.
        variable: Option<String>,
    },
    /// Each customer has an address of their own there.
    #[error("the address for {provider} is missing")]
    NoAddress { provider: String },
    #[error("nothing answers at {url} ({cause})")]
    Unreachable { url: String, cause: String },
    /// The encrypted connection was refused, such as for a certificate that nobody vouches for.
    #[error("no secure connection to {url} ({cause})")]
    Tls { url: String, cause: String },
    /// Encrypted connections are impossible, usually because this system has no CA certificates.
    #[error("no secure connection is possible ({cause})")]
    NoCaCertificates { cause: String },
    #[error("{provider} refused the key (HTTP {status})")]
    Unauthorized {
        provider: String,
        status: u16,
        /// The variable, file or program that has the key.
        source_name: String,
        /// The server's own words; empty if there are none.
        body: String,
    },
    /// The key is known, but the account may not do this.
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
        /// The names of models on offer that are most like this one.
        near: Vec<String>,
    },
    #[error("{provider} asks to slow down (HTTP 429)")]
    RateLimited {
        provider: String,
        retry_after: Option<Duration>,
    },
    /// The credit or the quota is used up: waiting does not help.
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
        /// True if the answer was JSON: a server that knows the protocol wrote it, not a gateway.
        explained: bool,
    },
    #[error("the chat is longer than the model's context window")]
    Overflow { body: String },
    /// The request has too many bytes, perhaps in an image. The context window may have room for it.
    #[error("the request is larger than {provider} takes (HTTP 413)")]
    TooLarge { provider: String, body: String },
    #[error("{provider} refused the request (HTTP 400)")]
    BadRequest { provider: String, body: String },
    #[error("a web page came back instead of an answer")]
    HtmlPage { url: String },
    #[error("the answer broke off")]
    Cut,
    /// The answer has more text and reasoning than co takes.
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
    /// Use it only if nothing of the answer was kept: otherwise a retry shows the text twice.
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

    /// Returns true if the server refused the request for what is in it. The same bytes must not be sent again.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::BadRequest { .. } | Self::Overflow { .. } | Self::TooLarge { .. }
        )
    }

    /// Returns true if a server that knows the protocol failed at the request. Some gateways report a refusal like this.
    pub fn is_explained(&self) -> bool {
        matches!(
            self,
            Self::Server {
                status: 500,
                explained: true,
                ..
            }
        )
    }

    /// Returns the wait that the provider asks for.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Server { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }
}
