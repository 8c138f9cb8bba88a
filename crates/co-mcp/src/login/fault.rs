//! The reasons why a login fails.

use std::error::Error;

use rmcp::transport::auth::AuthError;

use super::requests::RequestFault;
use crate::cut;

/// The most bytes of the words of an authorization server.
const LONGEST_WORDS: usize = 300;

/// The reason why there is no login. It has no token; only [`LoginFault::Refused`] has words of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginFault {
    #[error("its address is not one of HTTP")]
    Address,
    #[error("{0}")]
    Request(RequestFault),
    #[error("it does not say where to log in")]
    NoLogin,
    #[error(
        "its authorization server does not support PKCE (S256), without which another program could take the login"
    )]
    NoPkce,
    #[error("its authorization server {0} registers no clients by itself")]
    NoRegistration(String),
    #[error("its authorization server names itself otherwise, which may be an attack")]
    Issuer,
    #[error("its authorization server is {0}, and not the one that gave the client its id")]
    OtherIssuer(String),
    #[error(
        "the address of its login page has parts that only co may set, or that could mislead you"
    )]
    Page,
    #[error("the address of its login page is too long")]
    LongPage,
    /// The answer of the browser is not the answer to this login.
    #[error("that address does not belong to this login: it has another state, or no code")]
    State,
    #[error("its authorization server gives a token of another kind")]
    TokenKind,
    #[error("its authorization server gave no token")]
    NoToken,
    #[error("its authorization server refused: {0}")]
    Refused(String),
    #[error("what it says about its login is wrong: {0}")]
    Metadata(String),
    #[error("the kept login cannot be read or written: {0}")]
    Store(String),
}

impl LoginFault {
    /// Returns the fault of an error. `request` is the last fault of a request.
    pub(super) fn of(error: &AuthError, request: Option<RequestFault>) -> Self {
        if let Some(fault) = request {
            return Self::Request(fault);
        }
        let words = bounded(&error.to_string());
        match error {
            AuthError::PkceUnsupported => Self::NoPkce,
            AuthError::NoAuthorizationSupport => Self::NoLogin,
            AuthError::AuthorizationServerMismatch { .. }
            | AuthError::AuthorizationServerMissingIssuer { .. } => Self::Issuer,
            AuthError::DiscoveryRequestFailed { source, .. } => {
                Self::Metadata(bounded(&last_cause(source.as_ref())))
            }
            AuthError::MetadataError(_)
            | AuthError::UrlError(_)
            | AuthError::AuthorizationServersUnavailable { .. }
            | AuthError::ProtectedResourceMetadataInvalid { .. } => Self::Metadata(words),
            AuthError::CredentialStoreError(why) => Self::Store(bounded(why)),
            // An answer that cannot be read may have a token.
            AuthError::TokenExchangeFailed(why) | AuthError::TokenRefreshFailed(why)
                if !why.starts_with(REFUSAL) =>
            {
                Self::NoToken
            }
            _ => Self::Refused(words),
        }
    }
}

/// The start of an error about an answer that is an error of OAuth.
const REFUSAL: &str = "Server returned error response";

fn last_cause(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

/// Returns a part of a text that a server may have written.
pub(super) fn bounded(text: &str) -> String {
    let mut text = text.to_owned();
    cut(&mut text, LONGEST_WORDS);
    text
}
