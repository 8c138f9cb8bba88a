//! The reasons why a command gets no connection, as sentences that the command prints.

use std::io;
use std::net::IpAddr;

use hyper::StatusCode;

use crate::target::{Target, TargetError};

/// The reason why a request of a command is not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyRefusal {
    #[error("{0}")]
    Target(#[from] TargetError),
    #[error(
        "this is a proxy: ask it for a whole URL that begins with http://, or CONNECT to a host and a port"
    )]
    NoProxyRequest,
    #[error("the header Host must name the host of the URL, once: {0}")]
    HostHeader(Target),
    #[error("port 443 of {0} takes TLS only: use https://")]
    PlainOn443(Target),
    #[error("{0} is not allowed: the command has reached too many other hosts")]
    TooManyTargets(Target),
    /// The decider refused the target. `why` is its reason.
    #[error("{target} is not allowed: {why}")]
    Denied { target: Target, why: String },
    #[error(
        "{target} is not allowed: its address {address} belongs to {special}, not to the internet"
    )]
    Special {
        target: Target,
        address: IpAddr,
        special: &'static str,
    },
    #[error("{target} has no address that can be found: {source}")]
    Unresolved { target: Target, source: io::Error },
    #[error("{target} cannot be reached: {source}")]
    Unreachable { target: Target, source: io::Error },
    #[error("{target} did not answer: {source}")]
    NoAnswer {
        target: Target,
        source: hyper::Error,
    },
    #[error("{0} did not answer in time")]
    LateAnswer(Target),
    #[error("your proxy {0} cannot be used: only an http:// proxy can")]
    OuterKind(String),
    #[error("your proxy {proxy} does not connect to {target}: {why}")]
    Outer {
        proxy: String,
        target: Target,
        why: String,
    },
    #[error("the command asked for {target}, but its TLS names {}", .name.as_deref().unwrap_or("no host"))]
    OtherName {
        target: Target,
        name: Option<String>,
    },
    #[error("{0} takes TLS only, but the command sent something else")]
    NoTls(Target),
}

impl Target {
    /// Returns the refusal of this target by the decider. `why` is its reason.
    pub(crate) fn denied(&self, why: String) -> ProxyRefusal {
        ProxyRefusal::Denied {
            target: self.clone(),
            why,
        }
    }
}

impl ProxyRefusal {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Target(_) | Self::NoProxyRequest => StatusCode::BAD_REQUEST,
            Self::Denied { .. }
            | Self::TooManyTargets(_)
            | Self::Special { .. }
            | Self::OtherName { .. }
            | Self::HostHeader(_)
            | Self::PlainOn443(_)
            | Self::NoTls(_) => StatusCode::FORBIDDEN,
            Self::Unresolved { .. }
            | Self::Unreachable { .. }
            | Self::NoAnswer { .. }
            | Self::LateAnswer(_)
            | Self::OuterKind(_)
            | Self::Outer { .. } => StatusCode::BAD_GATEWAY,
        }
    }

    /// Returns true if the command lacks the permission. Returns false for a failure of the network.
    pub(crate) fn is_denial(&self) -> bool {
        self.status() == StatusCode::FORBIDDEN
    }
}
