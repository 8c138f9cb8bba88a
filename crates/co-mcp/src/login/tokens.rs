//! The tokens of a connection: renewed before their end, or once after the server refused one.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, CredentialRefreshGuard, CredentialStore, OAuthClientConfig,
    StoredCredentials,
};
use tokio::sync::Mutex;

use super::fault::LoginFault;
use super::requests::LoginRequests;
use super::{KeptLogin, LoginStore, ServerLogin};

/// A token of less than this age that the server refuses is not renewed: the next one would be refused too.
const YOUNG: Duration = Duration::from_secs(10);

/// The tokens for the requests to one server.
pub(crate) struct Tokens {
    login: ServerLogin,
    server: Url,
    /// Requests that come at the same time renew a token once.
    renewing: Mutex<()>,
}

impl Tokens {
    pub(crate) fn new(login: ServerLogin, server: Url) -> Self {
        Self {
            login,
            server,
            renewing: Mutex::default(),
        }
    }

    /// Returns the token for a request, after a renewal if it ends soon. Without a login there is none.
    ///
    /// # Errors
    /// It cannot be read or renewed now.
    pub(crate) async fn token(&self) -> Result<Option<String>, LoginFault> {
        let _alone = self.renewing.lock().await;
        match self.kept().await? {
            Some(kept) => self.token_of(kept, WantedToken::Current).await,
            None => Ok(None),
        }
    }

    /// Returns another token in place of one that the server refused; `None` if the person must log in again.
    ///
    /// # Errors
    /// It cannot be renewed now.
    pub(crate) async fn instead_of(&self, refused: &str) -> Result<Option<String>, LoginFault> {
        let _alone = self.renewing.lock().await;
        let Some(kept) = self.kept().await? else {
            return Ok(None);
        };
        let Some((token, received)) = kept.access_token() else {
            return Ok(None);
        };
        // Another request or process has renewed it.
        if token != refused {
            return Ok(Some(token.to_owned()));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        if now.saturating_sub(received) < YOUNG.as_secs() {
            return Ok(None);
        }
        self.token_of(kept, WantedToken::Renewed).await
    }

    /// Returns the login at this server.
    async fn kept(&self) -> Result<Option<KeptLogin>, LoginFault> {
        let kept = self.login.store.load().await;
        let kept = kept.map_err(|error| LoginFault::Store(error.to_string()))?;
        let is_here = |it: &KeptLogin| Url::parse(&it.server).is_ok_and(|it| it == self.server);
        Ok(kept.filter(|it| it.has_token() && is_here(it)))
    }

    async fn token_of(
        &self,
        kept: KeptLogin,
        wanted: WantedToken,
    ) -> Result<Option<String>, LoginFault> {
        // The task goes on if nobody waits for it any more: the server may already have replaced the refresh token.
        let login = self.login.clone();
        let task = tokio::spawn(with_manager(login, self.server.clone(), kept, wanted));
        task.await.unwrap_or(Err(LoginFault::NoToken))
    }
}

/// Returns the token of a kept login, after a renewal if `wanted` asks for one. Returns `None` if the person must log in again.
async fn with_manager(
    login: ServerLogin,
    server: Url,
    kept: KeptLogin,
    wanted: WantedToken,
) -> Result<Option<String>, LoginFault> {
    let requests = Arc::new(LoginRequests::new(Arc::clone(&login.access), server));
    let worked = async {
        // The address of the manager stands for the resource in its requests.
        let mut manager = AuthorizationManager::new_with_oauth_http_client(
            kept.resource.as_str(),
            Arc::clone(&requests) as Arc<_>,
        )
        .await?;
        manager.set_metadata(kept.metadata.clone());
        // A renewal has no redirect.
        let client = OAuthClientConfig::new(&kept.client_id, &kept.resource);
        manager.configure_client(match &kept.client_secret {
            Some(secret) => client.with_client_secret(secret),
            None => client,
        })?;
        manager.set_credential_store(KeptCredentials {
            store: login.store,
            kept,
        });
        if wanted == WantedToken::Renewed {
            manager.refresh_token().await?;
        }
        manager.get_access_token().await
    };
    match worked.await {
        Ok(token) => Ok(Some(token)),
        Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => Ok(None),
        Err(error) => Err(LoginFault::of(&error, requests.take_fault())),
    }
}

/// The token that a caller needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WantedToken {
    /// The token that is kept, renewed if it ends soon.
    Current,
    Renewed,
}

/// The credentials of a kept login.
struct KeptCredentials {
    store: Arc<dyn LoginStore>,
    kept: KeptLogin,
}

fn failed(error: &std::io::Error) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for KeptCredentials {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let kept = self.store.load().await.map_err(|it| failed(&it))?;
        // A login by another process with another client is for its own connections.
        let is_same = |it: &KeptLogin| {
            let known = &self.kept;
            it.client_id == known.client_id
                && it.issuer() == known.issuer()
                && it.metadata.token_endpoint == known.metadata.token_endpoint
        };
        Ok(kept.filter(is_same).map(|it| it.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let login = KeptLogin {
            credentials,
            ..self.kept.clone()
        };
        self.store.save(&login).await.map_err(|it| failed(&it))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let mut credentials = self.kept.credentials.clone();
        credentials.token_response = None;
        self.save(credentials).await
    }

    async fn on_refresh_token_rejected(&self, _: &StoredCredentials) -> Result<(), AuthError> {
        self.clear().await
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let guard = self.store.lock().await.map_err(|it| failed(&it))?;
        Ok(Some(CredentialRefreshGuard::new(guard)))
    }
}
