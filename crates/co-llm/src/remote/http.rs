//! Sends requests and checks that a response begins without an error.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{RequestBuilder, Response, Url};
use serde_json::Value;

use super::error;
use super::proxy::is_local;
use super::request_info::RequestInfo;
use crate::fault::Fault;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The time after which an idle connection is closed. It is short, because an editor stays open for days but a turn lasts
/// minutes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// The time after which an idle connection to this machine is closed. Servers such as llama.cpp's close idle connections after
/// five seconds, which could happen just as the next request is sent.
const LOCAL_IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// The largest number of bytes that are read of an error body. The error message is at the start of the body.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Makes the HTTP client for a server at this address. The client follows no redirects. Making it takes tens of milliseconds,
/// because it reads the system's certificates.
///
/// # Errors
/// The system has no certificates.
pub fn client(base_url: &str) -> Result<reqwest::Client, Fault> {
    // reqwest brings no cryptography here: aws-lc, its usual one, would be a seventh of the program. It fails if an earlier
    // client has done it.
    let _again = rustls::crypto::ring::default_provider().install_default();
    let is_plain = base_url.starts_with("http://");
    if is_plain && is_local(base_url) {
        return build(base_url, false);
    }
    build(base_url, true).or_else(|fault| match is_plain {
        // No certificates are needed, unless the proxy asks for them, and a small system has none.
        true => build(base_url, false),
        false => Err(fault),
    })
}

/// Makes the HTTP client. If `trusts` is true, the client trusts the certificate authorities of the system; otherwise it trusts
/// no authority.
fn build(base_url: &str, trusts: bool) -> Result<reqwest::Client, Fault> {
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        // A redirect would take the key to another host.
        .redirect(reqwest::redirect::Policy::none());
    if is_local(base_url) {
        builder = builder.no_proxy().pool_idle_timeout(LOCAL_IDLE_TIMEOUT);
    }
    if !trusts {
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| Fault::NoCaCertificates {
        cause: error::last_cause(&error),
    })
}

/// Joins a path to the base address. `query` is added after the query of the base address.
pub(super) fn endpoint(base_url: &str, path: &str, query: Option<&str>) -> Result<Url, Fault> {
    let mut url = Url::parse(base_url).map_err(|error| Fault::Unreachable {
        url: base_url.to_owned(),
        cause: error.to_string(),
    })?;
    let whole = format!("{}{path}", url.path());
    url.set_path(&whole);
    let queries: Vec<&str> = url.query().into_iter().chain(query).collect();
    let query = queries.join("&");
    url.set_query((!query.is_empty()).then_some(query.as_str()));
    Ok(url)
}

/// Makes a header map. If a name occurs twice, the last header wins. Invalid headers are left out.
pub(super) fn headers(list: impl IntoIterator<Item = (String, String)>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        let name = HeaderName::try_from(name);
        if let (Ok(name), Ok(mut value)) = (name, HeaderValue::try_from(value)) {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    headers
}

/// Sends a request and returns the response as soon as its headers report success.
pub(super) async fn open(info: &RequestInfo, request: RequestBuilder) -> Result<Response, Fault> {
    let response = match tokio::time::timeout(info.stall, request.send()).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => return Err(info.network(&error)),
        Err(_) => return Err(Fault::Stalled(info.stall)),
    };
    let status = response.status();
    let headers = response.headers().clone();
    let page = headers
        .get(reqwest::header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    match status.is_success() {
        true if page => Err(info.page()),
        true => Ok(response),
        false => {
            let body = error_body(response, info.stall).await;
            Err(info.http(status, &body, &headers))
        }
    }
}

/// Sends a request and parses the response as JSON.
pub(super) async fn json(info: &RequestInfo, request: RequestBuilder) -> Result<Value, Fault> {
    let response = open(info, request).await?;
    let body = match tokio::time::timeout(info.stall, response.bytes()).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => return Err(info.network(&error)),
        Err(_) => return Err(Fault::Stalled(info.stall)),
    };
    if body.trim_ascii_start().starts_with(b"<") {
        return Err(info.page());
    }
    serde_json::from_slice(&body).map_err(|error| RequestInfo::unreadable(&error))
}

/// Reads the body of an error response: at most [`MAX_ERROR_BYTES`] bytes, and no longer than `limit`.
///
/// A failure while reading is ignored, because the status of the response is more important.
async fn error_body(mut response: Response, limit: Duration) -> String {
    let mut body = Vec::new();
    let read = async {
        while body.len() < MAX_ERROR_BYTES {
            match response.chunk().await {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) | Err(_) => break,
            }
        }
    };
    let _in_time = tokio::time::timeout(limit, read).await;
    body.truncate(MAX_ERROR_BYTES);
    String::from_utf8_lossy(&body).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_have_a_path_and_a_query() {
        let check = |base: &str, path: &str, query: Option<&str>, expected: &str| {
            let url = endpoint(base, path, query).unwrap();
            assert_eq!(url.as_str(), expected);
        };
        check("http://h/v1/", "models", None, "http://h/v1/models");
        check(
            "https://h/openai/v1/?api-version=preview",
            "chat/completions",
            None,
            "https://h/openai/v1/chat/completions?api-version=preview",
        );
        check(
            "https://h/p/?a=1",
            "models/m:streamGenerateContent",
            Some("alt=sse"),
            "https://h/p/models/m:streamGenerateContent?a=1&alt=sse",
        );
    }

    #[test]
    fn the_last_header_with_a_name_counts() {
        let list = [
            ("x-api-key", "ours"),
            ("X-Api-Key", "theirs"),
            ("a\nb", "c"),
        ];
        let headers = headers(list.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(headers.len(), 1);
        assert_eq!(headers["x-api-key"], "theirs");
    }
}
