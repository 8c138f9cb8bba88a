//! The requests of a login: each within bounds, and only to where the tool server's own requests may go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::{Response, Url};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};

use super::{HostAccess, is_loopback, is_unproxied};
use crate::body::body;

/// The longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The largest number of bytes of an answer.
const LONGEST_ANSWER: usize = 128 << 10;

/// The largest number of requests of one login. A usual one makes five; each authorization server that a tool server names takes four.
const MOST_REQUESTS: usize = 40;

/// The reason why a request of a login has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    #[error("the login would go to {0}, which is not https: co sends no secret there")]
    NotEncrypted(String),
    #[error(
        "the login would go to {0}, a host of this machine, on which the tool server does not run"
    )]
    Loopback(String),
    #[error("{0}")]
    Denied(String),
    #[error("{0} cannot be reached for the login")]
    Unreachable(String),
    #[error("{0} gives no answer for the login in time")]
    Late(String),
    #[error("{0} gives an answer for the login that is too long")]
    TooLarge(String),
    #[error("the login takes more than {MOST_REQUESTS} requests")]
    TooMany,
}

/// Makes the requests of a login at a server.
pub(super) struct LoginRequests {
    access: Arc<dyn HostAccess>,
    server: Url,
    /// The number of requests so far.
    count: AtomicUsize,
    /// The address of the last document that was found.
    last_found: Mutex<Option<Url>>,
    last_fault: Mutex<Option<RequestFault>>,
}

impl LoginRequests {
    pub(super) fn new(access: Arc<dyn HostAccess>, server: Url) -> Self {
        Self {
            access,
            server,
            count: AtomicUsize::new(0),
            last_found: Mutex::default(),
            last_fault: Mutex::default(),
        }
    }

    /// Returns the last fault, and forgets it.
    pub(super) fn take_fault(&self) -> Option<RequestFault> {
        self.last_fault.lock().take()
    }

    /// Returns the address of the last document that was found.
    pub(super) fn last_found(&self) -> Option<Url> {
        self.last_found.lock().clone()
    }

    /// Returns the client for an address.
    ///
    /// # Errors
    /// A login may not go there.
    pub(super) async fn client(&self, url: &Url) -> Result<reqwest::Client, RequestFault> {
        let host = || url.host_str().unwrap_or_default().to_owned();
        if is_loopback(url) && !is_loopback(&self.server) {
            return Err(RequestFault::Loopback(host()));
        }
        if url.scheme() != "https" && !(url.scheme() == "http" && is_unproxied(url)) {
            return Err(RequestFault::NotEncrypted(host()));
        }
        let client = self.access.client(url).await;
        client.map_err(RequestFault::Denied)
    }

    async fn send(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, RequestFault> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        let unreachable = || RequestFault::Unreachable(host.clone());
        if self.count.fetch_add(1, Ordering::Relaxed) >= MOST_REQUESTS {
            return Err(RequestFault::TooMany);
        }
        let request = reqwest::Request::try_from(request).map_err(|_| unreachable())?;
        let found = (request.method() == reqwest::Method::GET).then(|| request.url().clone());
        let client = self.client(request.url()).await?;
        let answer = async {
            let answer = client.execute(request).await.map_err(|_| unreachable())?;
            let (status, headers) = (answer.status(), answer.headers().clone());
            let body = read(answer, &host).await?;
            let mut answer = http::Response::new(body);
            *answer.status_mut() = status;
            *answer.headers_mut() = headers;
            if let Some(found) = found.filter(|_| status.is_success()) {
                *self.last_found.lock() = Some(found);
            }
            Ok(answer)
        };
        let answer = tokio::time::timeout(TIMEOUT, answer).await;
        answer.unwrap_or_else(|_| Err(RequestFault::Late(host.clone())))
    }
}

async fn read(answer: Response, host: &str) -> Result<Vec<u8>, RequestFault> {
    let body = body(answer, LONGEST_ANSWER).await;
    let body = body.map_err(|_| RequestFault::Unreachable(host.to_owned()))?;
    body.ok_or_else(|| RequestFault::TooLarge(host.to_owned()))
}

impl OAuthHttpClient for LoginRequests {
    /// Sends a request. No redirect is followed here, whatever the request says; within one host, discovery follows some itself.
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            self.send(request.request).await.map_err(|fault| {
                *self.last_fault.lock() = Some(fault.clone());
                fault.into()
            })
        })
    }
}
