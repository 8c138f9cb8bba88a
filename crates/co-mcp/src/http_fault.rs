//! The reasons why a server over HTTP gives no answer.

use crate::challenge::Challenge;
use crate::login::LoginFault;
use co_lines::LONGEST_LINE;

/// The reason why a server over HTTP gives no answer. It contains no text of the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpFault {
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("the connection broke before the end of its answer")]
    Broken,
    /// With its words about the login, if it is one by OAuth.
    #[error("it wants a login (HTTP 401)")]
    Unauthorized(Option<Challenge>),
    #[error("it wants a login with more rights (HTTP 403)")]
    Scope(Challenge),
    /// Its text does not say why, because an authorization server may have written that.
    #[error("its login cannot be renewed now")]
    Login(#[from] LoginFault),
    #[error("it refuses access (HTTP 403)")]
    Forbidden,
    #[error("it answered with HTTP {0}")]
    Status(u16),
    #[error("it redirects to another host, to which co sends nothing")]
    Redirect,
    /// The server redirects with a status that may change the method of the request.
    #[error("it moved to another path of its host")]
    Moved,
    #[error("it redirects again and again")]
    Rounds,
    #[error("its answer is neither JSON nor a stream of events")]
    ContentType,
    #[error("its answer is no message of the protocol")]
    Unreadable,
    #[error("it sent a message of more than {} MiB or of too many values", LONGEST_LINE >> 20)]
    TooLarge,
    #[error("it sent too much that nobody asked for")]
    TooMuch,
    #[error("its session ended, and it did not begin another one")]
    Session,
    #[error("its url is not an address of HTTP")]
    Address,
    #[error("HTTP cannot send its header {0}")]
    Header(String),
}

impl HttpFault {
    /// Returns the challenge of a server that wants a login: `Some(None)` if the server does not say how to log in. Returns `None`
    /// if the fault is about something else.
    pub fn wanted_login(&self) -> Option<Option<&Challenge>> {
        match self {
            Self::Unauthorized(challenge) => Some(challenge.as_ref()),
            Self::Scope(challenge) => Some(Some(challenge)),
            _ => None,
        }
    }
}
