//! The login at a server over HTTP, by OAuth: discovery, registration, the page in the person's browser, and the tokens.
//!
//! The crate `rmcp` knows the protocol of OAuth. The code here decides which addresses a login may reach, keeps what they answer within
//! bounds, and listens for the browser. Nothing of it logs a token.

mod fault;
mod open_login;
mod redirect;
mod requests;
#[cfg(test)]
mod tests;
mod tokens;

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use oauth2::TokenResponse;
use reqwest::Url;
use rmcp::transport::auth::{AuthorizationMetadata, StoredCredentials};
use serde::{Deserialize, Serialize};

pub use fault::LoginFault;
pub use open_login::{LoginClient, LoginRequest, OpenLogin, is_scope};
pub use redirect::RedirectListener;
pub(crate) use tokens::Tokens;

/// Decides which hosts a login may reach.
#[async_trait]
pub trait HostAccess: Send + Sync {
    /// Returns a client for an address. It follows no redirect.
    ///
    /// # Errors
    /// The host may not be reached: a sentence.
    async fn client(&self, url: &Url) -> Result<reqwest::Client, String>;
}

/// Keeps the login at one server. Other processes may use the same store.
#[async_trait]
pub trait LoginStore: Send + Sync {
    /// Returns the login; `None` if there is none.
    async fn load(&self) -> io::Result<Option<KeptLogin>>;

    async fn save(&self, login: &KeptLogin) -> io::Result<()>;

    /// Returns a guard. Until it is dropped, no other guard of the same login is given.
    async fn lock(&self) -> io::Result<Box<dyn Send>>;
}

/// The login at a server that a connection uses.
#[derive(Clone)]
pub struct ServerLogin {
    pub store: Arc<dyn LoginStore>,
    pub access: Arc<dyn HostAccess>,
}

/// A login that has succeeded, as a file has it. Nothing shows it.
#[derive(Clone, Serialize, Deserialize)]
pub struct KeptLogin {
    /// The address of the tool server.
    server: String,
    /// The name of the server for its authorization server.
    resource: String,
    /// The metadata of the authorization server. A renewal goes to the same addresses as the login.
    metadata: AuthorizationMetadata,
    client_id: String,
    client_secret: Option<String>,
    credentials: StoredCredentials,
}

impl KeptLogin {
    /// Returns the address of the tool server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the name of the authorization server, which is an address.
    pub fn issuer(&self) -> &str {
        self.metadata.issuer.as_deref().unwrap_or_default()
    }

    /// Returns true if there is a token.
    pub fn has_token(&self) -> bool {
        self.credentials.token_response.is_some()
    }

    /// Returns the rights that the person gave.
    pub fn scopes(&self) -> &[String] {
        &self.credentials.granted_scopes
    }

    /// Returns the tokens and the other texts that nobody may read.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets: Vec<String> = self.client_secret.iter().cloned().collect();
        if let Some(tokens) = &self.credentials.token_response {
            secrets.push(tokens.access_token().secret().clone());
            secrets.extend(tokens.refresh_token().map(|it| it.secret().clone()));
            // The token of OpenID about the person.
            let about_person = tokens.extra_fields().0.get("id_token");
            secrets.extend(about_person.and_then(|it| it.as_str()).map(str::to_owned));
        }
        secrets
    }

    /// Returns the access token, and the seconds since the Unix epoch at which it came.
    fn access_token(&self) -> Option<(&str, u64)> {
        let tokens = self.credentials.token_response.as_ref()?;
        let received = self.credentials.token_received_at.unwrap_or_default();
        Some((tokens.access_token().secret().as_str(), received))
    }
}

/// Returns true if an address is one of this machine.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_matches(['[', ']']).trim_end_matches('.');
    let is_address = |it: std::net::IpAddr| it.to_canonical().is_loopback() || it.is_unspecified();
    bare == "localhost" || bare.ends_with(".localhost") || bare.parse().is_ok_and(is_address)
}

/// Returns true if requests to an address certainly stay on this machine. The resolver of the system may send other names below
/// `localhost` elsewhere, and so may a proxy.
fn is_unproxied(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse();
    host == "localhost" || address.is_ok_and(|it: std::net::IpAddr| it.is_loopback())
}
