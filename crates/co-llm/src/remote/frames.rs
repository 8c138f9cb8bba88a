//! Splits an answer into frames, which are server-sent events or lines of JSON.

use std::time::Duration;

use super::lines::Lines;
use super::request_info::RequestInfo;
use crate::fault::Fault;

/// The way in which a protocol separates frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Server-sent events: the `data` lines before an empty line are one frame.
    Events,
    /// JSON lines: each line is one frame.
    Lines,
}

/// The frames of an answer.
pub(super) struct Frames {
    lines: Lines,
    framing: Framing,
    /// True after a line with content was received.
    begun: bool,
    /// True if the answer is a single JSON value, because the server does not stream.
    document: bool,
}

impl Frames {
    pub(super) fn new(response: reqwest::Response, framing: Framing) -> Self {
        Self {
            lines: Lines::new(response),
            framing,
            begun: false,
            document: false,
        }
    }

    /// Returns the data of the next frame, or `None` at the end of the answer.
    ///
    /// The last frame needs no empty line after it. Comments and the fields `event`, `id` and `retry` are skipped, because each
    /// protocol repeats the name of the event in the data.
    pub(super) async fn next(
        &mut self,
        info: &RequestInfo,
        patience: Duration,
    ) -> Result<Option<String>, Fault> {
        let mut data: Option<String> = None;
        loop {
            let Some(line) = self.lines.next(info, patience).await? else {
                return Ok(data);
            };
            if !self.begun {
                let start = line.trim_start();
                if start.starts_with('<') {
                    return Err(info.page());
                }
                self.document = self.framing == Framing::Events && start.starts_with('{');
                self.begun = !start.is_empty();
            }
            if self.document {
                data.get_or_insert_default().push_str(&line);
                continue;
            }
            if self.framing == Framing::Lines {
                match line.trim().is_empty() {
                    true => continue,
                    false => return Ok(Some(line)),
                }
            }
            if line.is_empty() {
                match data {
                    Some(_) => return Ok(data),
                    None => continue,
                }
            }
            let Some(value) = line.strip_prefix("data:") else {
                continue;
            };
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            }
        }
    }
}
