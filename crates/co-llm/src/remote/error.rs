//! Turns errors of HTTP and of servers into faults.

use std::error::Error as _;

use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::overflow;
use super::proxy;
use super::request_info::RequestInfo;
use super::retry_after::retry_after;
use crate::fault::Fault;
use co_text::shorten_chars;

/// The largest number of characters that are kept of a server's error message.
const MAX_BODY_CHARS: usize = 600;
/// The largest number of faults that an error message names, if a server sends a list of faults.
const MAX_SENTENCES: usize = 3;

impl RequestInfo {
    /// Returns the fault for a frame that is not JSON.
    pub(super) fn unreadable(error: &serde_json::Error) -> Fault {
        match error.is_eof() {
            true => Fault::Cut,
            false => malformed(&error.to_string()),
        }
    }

    /// Returns the fault for an error that the server sent within its answer.
    pub(super) fn event(&self, body: &Value) -> Fault {
        // Anthropic sends {"type":"error","error":{"type","message"}}, the others send the inner object.
        let error = body.get("error").filter(|e| e.is_object()).unwrap_or(body);
        let fields = ["type", "code", "status", "error_type"];
        let words = fields.iter().filter_map(|key| error.get(key)?.as_str());
        let words: Vec<&str> = words.collect();
        let numbers = ["code", "status"].iter().filter_map(|key| error.get(key));
        let mut statuses = numbers.filter_map(status_of_number);
        let status = statuses.next().unwrap_or_else(|| {
            words
                .iter()
                .find_map(|word| status_of_name(word))
                .unwrap_or(500)
        });
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.http(status, &body.to_string(), &HeaderMap::new())
    }

    /// Returns the fault for a failure of the connection.
    pub(super) fn network(&self, error: &reqwest::Error) -> Fault {
        if error.is_timeout() && !error.is_connect() {
            return Fault::Stalled(self.stall);
        }
        // The connection was refused, or closed before the answer began.
        if error.is_connect() || error.is_request() {
            if is_tls(error) {
                return Fault::Tls {
                    url: self.url.clone(),
                    cause: last_cause(error),
                };
            }
            if self.guessed && error.is_connect() {
                return Fault::NoProvider;
            }
            let is_set = |name: &str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
            let cause = last_cause(error);
            return Fault::Unreachable {
                url: self.url.clone(),
                // The proxy may be what does not answer.
                cause: match proxy::variable(&self.url, is_set) {
                    Some(variable) => format!("{cause}; {variable} names a proxy"),
                    None => cause,
                },
            };
        }
        if error.is_builder() {
            return malformed(&last_cause(error));
        }
        Fault::Cut
    }

    /// Returns the fault for a response with an error status.
    pub(super) fn http(&self, status: StatusCode, body: &str, headers: &HeaderMap) -> Fault {
        let provider = self.title.clone();
        let content_type = headers
            .get(reqwest::header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let code = status.as_u16();
        let words = self.error_text(body);
        match code {
            // A redirect to a login page or to another address is no answer.
            300..=399 => self.page(),
            400.. if overflow::is_named(body) => Fault::Overflow { body: words },
            413 => Fault::TooLarge {
                provider,
                // A gateway that limits the bytes of a request says so with a page.
                body: if is_page(content_type, body) {
                    String::new()
                } else {
                    words
                },
            },
            400..=499 if is_page(content_type, body) => self.page(),
            _ if code == 402 || (code < 500 && is_used_up(body)) => Fault::QuotaUsedUp {
                provider,
                status: code,
                body: words,
            },
            429 => Fault::RateLimited {
                provider,
                retry_after: retry_after(headers, body),
            },
            408 | 425 | 500.. => Fault::Server {
                provider,
                status: code,
                retry_after: retry_after(headers, body),
                // The page of a gateway says nothing.
                explained: serde_json::from_str::<Value>(body)
                    .is_ok_and(|body| body.is_object() || body.is_array()),
                body: if is_page(content_type, body) {
                    String::new()
                } else {
                    words
                },
            },
            401 => self.bad_key(code, words),
            400 if is_bad_key(body) => self.bad_key(code, words),
            403 => Fault::Forbidden {
                provider,
                status: code,
                body: words,
            },
            400 if is_unverified(body) => Fault::Forbidden {
                provider,
                status: code,
                body: words,
            },
            404 => Fault::NotFound {
                provider,
                model: self.model.clone(),
                body: words,
                near: Vec::new(),
            },
            _ => Fault::BadRequest {
                provider,
                body: words,
            },
        }
    }

    fn bad_key(&self, status: u16, body: String) -> Fault {
        let provider = self.title.clone();
        match self.key_source.clone() {
            Some(source_name) => Fault::Unauthorized {
                provider,
                status,
                source_name,
                body,
            },
            None => Fault::NoKey {
                provider,
                variable: self.key_variable.clone(),
            },
        }
    }

    /// Returns the error message in a response body. Keys that the message repeats are removed.
    fn error_text(&self, body: &str) -> String {
        let sentence = serde_json::from_str::<Value>(body)
            .ok()
            .and_then(|body| passed_on(&body).or_else(|| sentence(&body)))
            .unwrap_or_else(|| body.trim().to_owned());
        let keys = self.keys.iter().filter(|key| key.len() > 3);
        shorten(&keys.fold(sentence, |told, key| told.replace(key.as_str(), "[key]")))
    }
}

/// Returns the innermost cause of an error, which is the most specific one.
pub(super) fn last_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if error.source().is_none() {
        return "the request failed".to_owned();
    }
    shorten(&cause.to_string())
}

pub(super) fn malformed(detail: &str) -> Fault {
    Fault::Malformed {
        detail: shorten(detail),
    }
}

fn shorten(text: &str) -> String {
    shorten_chars(text, MAX_BODY_CHARS)
}

/// Returns the message of an error. For a list of faults, the message names the position of each fault in the request, but
/// repeats nothing else of the request.
fn sentence(error: &Value) -> Option<String> {
    match error {
        Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        // Gemini wraps its error in a list.
        Value::Array(errors) => {
            let errors = errors.iter().filter_map(sentence);
            let told = errors.take(MAX_SENTENCES).collect::<Vec<_>>().join("; ");
            Some(told).filter(|told| !told.is_empty())
        }
        Value::Object(fields) => {
            let object = fields.get("error").filter(|it| it.is_object());
            let named = ["message", "error", "detail", "errors", "msg"];
            let named = named.iter().filter_map(|name| fields.get(*name));
            let told = object.into_iter().chain(named).find_map(sentence)?;
            // FastAPI: {"loc": ["body", "messages", 2, "content"], "msg": "...", "input": "..."}
            let place = fields.get("loc").and_then(Value::as_array).map(|place| {
                let part = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
                place.iter().map(part).collect::<Vec<_>>().join(".")
            });
            Some(match place {
                Some(place) => format!("{place}: {told}"),
                None => told,
            })
        }
        _ => None,
    }
}

/// Returns the error message of the server behind a gateway. OpenRouter's own message says only that this server refused the
/// request.
fn passed_on(body: &Value) -> Option<String> {
    let raw = body.pointer("/error/metadata/raw")?;
    let inner = raw.as_str().and_then(|raw| serde_json::from_str(raw).ok());
    inner
        .as_ref()
        .and_then(sentence)
        .or_else(|| sentence(raw))
        .filter(|words| !words.is_empty())
}

fn is_page(content_type: &str, body: &str) -> bool {
    let head = body
        .trim_start()
        .get(..9)
        .unwrap_or_default()
        .to_ascii_lowercase();
    content_type.starts_with("text/html")
        || head.starts_with("<!doctype")
        || head.starts_with("<html")
}

/// Returns the HTTP status in a field of an error. The field is a number, or a text with digits.
fn status_of_number(number: &Value) -> Option<u16> {
    let status = match number {
        Value::String(digits) => digits.parse().ok()?,
        number => u16::try_from(number.as_u64()?).ok()?,
    };
    (400..600).contains(&status).then_some(status)
}

/// Returns the HTTP status that the providers document for the name of an error.
fn status_of_name(word: &str) -> Option<u16> {
    Some(match word {
        "billing_error" => 402,
        // `is_used_up` tells these from a rate limit.
        "insufficient_quota" | "billing_hard_limit_reached" | "billing_not_active" => 429,
        "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => 429,
        "overloaded_error" => 529,
        "api_error" | "server_error" | "internal_server_error" | "INTERNAL" => 500,
        "UNAVAILABLE" => 503,
        "authentication_error" | "invalid_api_key" | "UNAUTHENTICATED" => 401,
        "permission_error" | "PERMISSION_DENIED" => 403,
        "not_found_error" | "model_not_found" | "NOT_FOUND" => 404,
        "request_too_large" => 413,
        "invalid_request_error"
        | "context_length_exceeded"
        | "exceed_context_size_error"
        | "INVALID_ARGUMENT" => 400,
        _ => return status_of_unknown_name(word),
    })
}

/// Returns the HTTP status that an unknown name of an error suggests. Servers spell the names of refusals in many ways.
fn status_of_unknown_name(word: &str) -> Option<u16> {
    let word = word.to_lowercase().replace(['_', '-', ' '], "");
    let says = |parts: &[&str]| parts.iter().any(|part| word.contains(part));
    if says(&["invalid", "badrequest", "validation", "unprocessable"]) {
        Some(400)
    } else if says(&["ratelimit", "toomanyrequests"]) {
        Some(429)
    } else {
        None
    }
}

/// Returns true if the error means that the credit or the quota is used up.
fn is_used_up(body: &str) -> bool {
    const NAMES: [&str; 4] = [
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "billing_error",
    ];
    // Anthropic says so with a 400 that has no name of its own.
    is_named(body, &NAMES) || says(body, &["credit balance is too low"])
}

/// Returns true if a response with status 400 means that the key is wrong. Gemini and xAI do not send 401.
fn is_bad_key(body: &str) -> bool {
    const SENTENCES: [&str; 4] = [
        "api key not valid",
        "incorrect api key",
        "invalid api key",
        "api key expired",
    ];
    is_named(body, &["invalid_api_key"]) || says(body, &SENTENCES)
}

/// Returns true if the error means that the account must be verified first.
fn is_unverified(body: &str) -> bool {
    says(body, &["organization must be verified"])
}

/// Returns true if the code or the type of the error is in `names`.
fn is_named(body: &str, names: &[&str]) -> bool {
    let Ok(parsed) = serde_json::from_str::<Value>(body) else {
        return false;
    };
    // Gemini wraps its error in a list.
    let error = parsed.get(0).unwrap_or(&parsed);
    let error = error
        .get("error")
        .filter(|it| it.is_object())
        .unwrap_or(error);
    ["code", "type"]
        .iter()
        .filter_map(|key| error.get(key)?.as_str())
        .any(|name| names.contains(&name))
}

/// Returns true if the message of the error contains one of the phrases. The phrases are in lower case.
fn says(body: &str, phrases: &[&str]) -> bool {
    let Ok(body) = serde_json::from_str::<Value>(body) else {
        return false;
    };
    sentence(&body).is_some_and(|sentence| {
        let sentence = sentence.to_lowercase();
        phrases.iter().any(|phrase| sentence.contains(phrase))
    })
}

/// Returns true if the TLS handshake failed, for example because of a wrong certificate.
fn is_tls(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        cause = match error.downcast_ref::<std::io::Error>() {
            // The TLS library reports its errors like this.
            Some(error) if error.kind() == std::io::ErrorKind::InvalidData => return true,
            // Its source would leave out the error that it holds.
            Some(error) => error
                .get_ref()
                .map(|inner| -> &(dyn std::error::Error + 'static) { inner }),
            None => error.source(),
        };
    }
    false
}

#[cfg(test)]
mod tests;
