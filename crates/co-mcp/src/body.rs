//! Reads the body of an HTTP response within a bound.

use reqwest::Response;

/// Reads the body of a response. Returns `None` if the body is longer than `most` bytes.
///
/// # Errors
/// The connection broke.
pub(crate) async fn body(mut answer: Response, most: usize) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if chunk.len() > most - body.len() {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}
