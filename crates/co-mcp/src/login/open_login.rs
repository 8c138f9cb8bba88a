//! One login: from the question to the server how to log in, to its tokens.

use std::collections::HashSet;
use std::sync::Arc;

use oauth2::TokenResponse;
use oauth2::basic::BasicTokenType;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource,
    CredentialStore, InMemoryCredentialStore, OAuthClientConfig,
};

use super::fault::{LoginFault, bounded};
use super::requests::LoginRequests;
use super::{HostAccess, KeptLogin};
use crate::challenge::Challenge;

/// The client that asks for a login.
#[derive(Clone, Default)]
pub struct LoginClient {
    /// The name that the login page shows, if the client registers itself.
    pub name: String,
    /// The id that the authorization server has given the person for the client. Without it, the client registers itself.
    pub id: Option<String>,
    pub secret: Option<String>,
    /// The name of the authorization server that gave the id. Another one gets neither the id nor the secret.
    pub issuer: Option<String>,
    /// The rights to ask for. If there are none, the server says which.
    pub scopes: Vec<String>,
}

/// The request for a login at a server.
pub struct LoginRequest<'a> {
    /// The address of the tool server.
    pub server: &'a str,
    /// The server's own words about the login, if it has refused a request.
    pub challenge: Option<&'a Challenge>,
    pub client: LoginClient,
    /// An earlier login. Its rights are asked for again, if the authorization server is the same.
    pub earlier: Option<&'a KeptLogin>,
    /// The address to which the browser comes back.
    pub redirect: &'a str,
    pub access: Arc<dyn HostAccess>,
}

/// A login that waits for the person's browser.
pub struct OpenLogin {
    manager: AuthorizationManager,
    requests: Arc<LoginRequests>,
    credentials: InMemoryCredentialStore,
    server: String,
    metadata: AuthorizationMetadata,
    client: OAuthClientConfig,
    resource: String,
    scopes: Vec<String>,
    state: String,
    page: Url,
}

impl OpenLogin {
    /// Asks a server how to log in, and registers the client. Each of its requests has a time-out.
    ///
    /// # Errors
    /// There is no login there, or one that is not safe.
    pub async fn begin(request: LoginRequest<'_>) -> Result<Self, LoginFault> {
        let server = Url::parse(request.server).map_err(|_| LoginFault::Address)?;
        let requests = LoginRequests::new(Arc::clone(&request.access), server.clone());
        // The token goes there with each request.
        let allowed = requests.client(&server).await;
        allowed.map_err(LoginFault::Request)?;
        let requests = Arc::new(requests);
        let fault = |error: &AuthError| LoginFault::of(error, requests.take_fault());
        // This address is also in the address of the login page, and a query may have a key.
        let mut named = server.clone();
        named.set_query(None);
        named.set_fragment(None);
        let begun = AuthorizationManager::new_with_oauth_http_client(
            named.as_str(),
            Arc::clone(&requests) as Arc<_>,
        );
        let mut manager = begun.await.map_err(|it| fault(&it))?;
        let credentials = InMemoryCredentialStore::new();
        manager.set_credential_store(credentials.clone());
        let challenge = request.challenge.map(Challenge::header);
        let found = manager.resolve_metadata_from_challenge(challenge).await;
        let found = found.map_err(|it| fault(&it))?;
        if found.source == AuthorizationMetadataSource::LegacyEndpointFallback {
            return Err(LoginFault::NoLogin);
        }
        let metadata = found.metadata;
        check(&metadata, requests.last_found().as_ref())?;
        let issuer = metadata.issuer.as_deref().unwrap_or_default();
        let is_other = |it: &String| it.trim_end_matches('/') != issuer.trim_end_matches('/');
        if request.client.issuer.as_ref().is_some_and(is_other) {
            return Err(LoginFault::OtherIssuer(bounded(issuer)));
        }
        manager.set_metadata(metadata.clone());
        let mut scopes = request.client.scopes.clone();
        if scopes.is_empty() {
            scopes = manager.select_initial_scopes(&[]).await;
            let earlier = request.earlier.filter(|it| it.issuer() == issuer);
            scopes.extend_from_slice(earlier.map_or(&[], KeptLogin::scopes));
        }
        let mut seen = HashSet::new();
        scopes.retain(|it| is_scope(it) && seen.insert(it.clone()));
        let wanted: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let client = match &request.client.id {
            Some(id) => {
                let client = OAuthClientConfig::new(id, request.redirect);
                match &request.client.secret {
                    Some(secret) => client.with_client_secret(secret),
                    None => client,
                }
            }
            None if metadata.registration_endpoint.is_none() => {
                return Err(LoginFault::NoRegistration(bounded(issuer)));
            }
            None => {
                let (name, redirect) = (&request.client.name, request.redirect);
                let registered = manager.register_client(name, redirect, &wanted).await;
                registered.map_err(|it| fault(&it))?
            }
        };
        let configured = manager.configure_client(client.clone());
        configured.map_err(|it| fault(&it))?;
        let page = manager.get_authorization_url(&wanted).await;
        let page = page.map_err(|it| fault(&it))?;
        let page = Url::parse(&page).map_err(|_| LoginFault::Page)?;
        if page.as_str().len() > LONGEST_PAGE {
            return Err(LoginFault::LongPage);
        }
        if !is_plain(&page) || only(&page, "scope").unwrap_or_default() != scopes.join(" ") {
            return Err(LoginFault::Page);
        }
        let part = |name: &str| only(&page, name).unwrap_or_default();
        let (state, resource) = (part("state"), part("resource"));
        // The browser goes only where co would.
        let allowed = requests.client(&page).await;
        allowed.map_err(LoginFault::Request)?;
        Ok(Self {
            manager,
            credentials,
            server: request.server.to_owned(),
            metadata,
            client,
            resource,
            scopes,
            state,
            page,
            requests,
        })
    }

    /// Returns the address of the login page.
    pub fn page(&self) -> &str {
        self.page.as_str()
    }

    /// Returns the host of the login page, with its port if the address names one.
    pub fn host(&self) -> String {
        host_and_port(&self.page)
    }

    /// Returns the host that gives the tokens, with its port if the address names one.
    pub fn token_host(&self) -> String {
        let endpoint = Url::parse(&self.metadata.token_endpoint);
        endpoint
            .as_ref()
            .map_or_else(|_| String::new(), host_and_port)
    }

    /// Returns the rights that co asks for. If there are none, the authorization server decides.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the text by which the answer of the browser belongs to this login.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Takes the address at which the browser ended, and asks for the tokens. After [`LoginFault::State`], another address may
    /// follow.
    ///
    /// # Errors
    /// The address belongs to another login, or the person or the server refused.
    pub async fn finish(&self, ended_at: &str) -> Result<KeptLogin, LoginFault> {
        let url = Url::parse(ended_at.trim()).map_err(|_| LoginFault::State)?;
        let part = |name: &str| only(&url, name);
        if part("state").as_deref() != Some(self.state.as_str()) {
            return Err(LoginFault::State);
        }
        if let Some(error) = part("error") {
            let about = part("error_description").map(|it| format!(": {it}"));
            let words = format!("{error}{}", about.unwrap_or_default());
            return Err(LoginFault::Refused(bounded(&words)));
        }
        let code = part("code").ok_or(LoginFault::State)?;
        let fault = |error: &AuthError| LoginFault::of(error, self.requests.take_fault());
        let issuer = part("iss");
        let exchanged = self
            .manager
            .exchange_code_for_token_with_issuer(&code, &self.state, issuer.as_deref())
            .await;
        let tokens = exchanged.map_err(|it| fault(&it))?;
        if *tokens.token_type() != BasicTokenType::Bearer {
            return Err(LoginFault::TokenKind);
        }
        let credentials = self.credentials.load().await.map_err(|it| fault(&it))?;
        Ok(KeptLogin {
            server: self.server.clone(),
            resource: self.resource.clone(),
            metadata: self.metadata.clone(),
            client_id: self.client.client_id.clone(),
            client_secret: self.client.client_secret.clone(),
            credentials: credentials.ok_or(LoginFault::NoToken)?,
        })
    }
}

/// The largest number of bytes of the address of a login page.
const LONGEST_PAGE: usize = 8 << 10;

/// Query parameters that the address of a login page must not have, because they would replace parameters that co adds, or ask for
/// rights beside the scopes (RFC 9396, OpenID Connect Core 5.5).
const REPLACING: [&str; 5] = [
    "request",
    "request_uri",
    "response_mode",
    "authorization_details",
    "claims",
];

/// Returns true if a text is a scope of OAuth (RFC 6749, section 3.3).
pub fn is_scope(text: &str) -> bool {
    let is_allowed = |it: char| it.is_ascii_graphic() && !matches!(it, '"' | '\\');
    !text.is_empty() && text.chars().all(is_allowed)
}

fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Returns the value of a parameter of an address. An address that has the parameter twice says nothing.
fn only(url: &Url, name: &str) -> Option<String> {
    let mut parts = url.query_pairs().filter(|(key, _)| key == name);
    let value = parts.next().map(|(_, value)| value.into_owned());
    value.filter(|_| parts.next().is_none())
}

/// Returns true if the login page gets the parameters of co, and no parameter that its server has put beside them to replace one. A
/// login in the address would look like its host.
fn is_plain(page: &Url) -> bool {
    let mut seen = HashSet::new();
    let mut parts = page.query_pairs();
    let has_login = !page.username().is_empty() || page.password().is_some();
    !has_login && parts.all(|(key, _)| !REPLACING.contains(&&*key) && seen.insert(key))
}

/// Refuses an authorization server whose name is not that of the host which says so, or that does not support PKCE. One that does
/// not speak of PKCE has none.
fn check(metadata: &AuthorizationMetadata, found_at: Option<&Url>) -> Result<(), LoginFault> {
    let issuer = metadata.issuer.as_deref();
    let issuer = issuer.and_then(|it| Url::parse(it).ok());
    if issuer.is_none_or(|it| found_at.is_none_or(|at| at.origin() != it.origin())) {
        return Err(LoginFault::Issuer);
    }
    let methods = metadata.code_challenge_methods_supported.as_deref();
    match methods.is_some_and(|it| it.iter().any(|it| it == "S256")) {
        true => Ok(()),
        false => Err(LoginFault::NoPkce),
    }
}
