//! Reads the server-sent events of a response, each of bounded size.

use std::io;
use std::pin::Pin;

use co_lines::{BoundedLine, LARGEST_LINE, LONGEST_LINE, LineReader, json_memory};
use futures::TryStreamExt;
use reqwest::Response;
use sse_stream::Sse;
use tokio::io::AsyncRead;
use tokio_util::io::StreamReader;

use super::shared::SharedState;
use crate::http_fault::HttpFault;

/// The shortest and the longest time in milliseconds that a server may set for the pause before its stream is reopened.
const PAUSES: [u64; 2] = [500, 60_000];

/// The longest event id that is kept, in bytes.
const LONGEST_ID: usize = 1_000;

/// The number of bytes that is added to the size of each line, because many short lines cost work too.
const LINE_BYTES: u64 = 64;

/// The server-sent events of one response.
pub(super) struct Events {
    shared: SharedState,
    lines: LineReader<Pin<Box<dyn AsyncRead + Send>>>,
}

impl Events {
    pub(super) fn new(shared: SharedState, answer: Response) -> Self {
        let bytes = answer.bytes_stream().map_err(io::Error::other);
        let stream: Pin<Box<dyn AsyncRead + Send>> = Box::pin(StreamReader::new(bytes));
        Self {
            shared,
            lines: LineReader::new(stream).stopping(),
        }
    }

    /// Returns the next event, or `None` at the end of the response. An event that is cut off at the end is dropped.
    ///
    /// # Errors
    /// The connection broke, or the server sent too much. Too much data ends the connection.
    pub(super) async fn next(&mut self) -> Result<Option<Sse>, HttpFault> {
        let (mut event, mut is_empty) = (Sse::default(), true);
        loop {
            let line = match self.lines.next().await {
                Ok(Some(BoundedLine::Whole(line))) => line,
                Ok(Some(BoundedLine::TooLarge { .. })) => {
                    return Err(self.shared.end(HttpFault::TooLarge));
                }
                Ok(Some(BoundedLine::Partial(_)) | None) => return Ok(None),
                Err(_) => return Err(HttpFault::Broken),
            };
            self.shared.count(line.len() as u64 + LINE_BYTES)?;
            let line = String::from_utf8_lossy(&line);
            let line = line.strip_suffix('\r').unwrap_or(&line);
            if line.is_empty() && is_empty {
                continue;
            }
            if line.is_empty() {
                let memory = event
                    .data
                    .as_ref()
                    .map_or(0, |it| json_memory(it.as_bytes()));
                if memory > LARGEST_LINE {
                    return Err(self.shared.end(HttpFault::TooLarge));
                }
                self.shared.count(memory)?;
                return Ok(Some(event));
            }
            is_empty = false;
            self.take(&mut event, line)?;
        }
    }

    /// Adds a line to an event. Ignores unknown fields and comments.
    fn take(&self, event: &mut Sse, line: &str) -> Result<(), HttpFault> {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                let data = event.data.get_or_insert_default();
                if data.len() + value.len() > LONGEST_LINE {
                    return Err(self.shared.end(HttpFault::TooLarge));
                }
                if !data.is_empty() {
                    data.push('\n');
                }
                data.push_str(value);
            }
            "event" => event.event = Some(value.to_owned()),
            "id" if value.len() <= LONGEST_ID && !value.contains('\0') => {
                event.id = Some(value.to_owned());
            }
            "retry" => {
                let [least, most] = PAUSES;
                event.retry = value.parse().ok().map(|it: u64| it.clamp(least, most));
            }
            _ => {}
        }
        Ok(())
    }
}
