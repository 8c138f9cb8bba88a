//! The words of a server over HTTP about the login that it wants.

use std::fmt;

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// The most bytes of a challenge.
const LONGEST: usize = 4_000;

/// A challenge of the kind `Bearer`. Nothing shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Challenge(String);

impl Challenge {
    /// Returns the challenge in the headers of an answer: at best one that says where the server tells more.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let all = headers.get_all(WWW_AUTHENTICATE).iter();
        let texts = all.filter_map(|it| it.to_str().ok());
        let of_bearer = |it: &&str| {
            let kind = it.split([' ', ',']).next().unwrap_or_default();
            it.len() <= LONGEST && kind.eq_ignore_ascii_case("bearer")
        };
        let mut found: Vec<&str> = texts.filter(of_bearer).collect();
        found.sort_by_key(|it| !it.contains("resource_metadata"));
        found.first().map(|it| Self((*it).to_owned()))
    }

    /// Returns true if the server wants a login with more rights.
    pub(crate) fn wants_scope(&self) -> bool {
        self.0.contains("insufficient_scope")
    }

    /// Returns the text of the header.
    pub(crate) fn header(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Challenge")
    }
}
