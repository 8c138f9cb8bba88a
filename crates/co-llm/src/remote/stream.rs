//! Turns the frames of an answer into a stream of deltas.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};

use super::answer::Answer;
use super::frame_reader::FrameReader;
use super::frames::Frames;
use super::protocol;
use super::request_info::RequestInfo;
use crate::fault::Fault;
use crate::provider::Delta;
use crate::request::ModelRequest;

/// The time-out for the frames after the finish reason. These frames have only the usage.
const LAST_FRAMES_TIMEOUT: Duration = Duration::from_secs(5);

struct AnswerStream {
    frames: Frames,
    reader: Box<dyn FrameReader>,
    answer: Answer,
}

/// Returns the stream of deltas in the response to a request.
pub(super) fn deltas(
    response: reqwest::Response,
    info: RequestInfo,
    request: &ModelRequest,
) -> BoxStream<'static, Result<Delta, Fault>> {
    let stream = AnswerStream {
        frames: Frames::new(response, protocol::framing(info.protocol)),
        reader: protocol::reader(info.protocol),
        answer: Answer::new(request, info),
    };
    stream::unfold(stream, |mut stream| async move {
        let delta = stream.next().await?;
        Some((delta, stream))
    })
    .boxed()
}

impl AnswerStream {
    async fn next(&mut self) -> Option<Result<Delta, Fault>> {
        loop {
            if let Some(delta) = self.answer.take() {
                return Some(delta);
            }
            if self.answer.ended() {
                return None;
            }
            if let Err(fault) = self.advance().await {
                self.answer.fail(fault);
            }
        }
    }

    /// Reads the next frame, or ends the answer.
    async fn advance(&mut self) -> Result<(), Fault> {
        let complete = self.answer.reason.is_some();
        let patience = match complete {
            true => LAST_FRAMES_TIMEOUT.min(self.answer.info.stall),
            false => self.answer.info.stall,
        };
        let next = self.frames.next(&self.answer.info, patience).await;
        match next {
            Ok(Some(data)) if is_done(&data) => self.finish(),
            Ok(Some(data)) => match serde_json::from_str(&data) {
                Ok(frame) => self.reader.frame(frame, &mut self.answer),
                Err(_) if complete => self.finish(),
                Err(error) => Err(RequestInfo::unreadable(&error)),
            },
            // A fault after the reason for the end loses nothing.
            Ok(None) | Err(_) if complete => self.finish(),
            Ok(None) => Err(Fault::Cut),
            Err(fault) => Err(fault),
        }
    }

    fn finish(&mut self) -> Result<(), Fault> {
        let reason = self.answer.reason.take().unwrap_or_default();
        self.reader.finish(&reason, &mut self.answer)
    }
}

/// Returns true for the frame that ends a stream in OpenAI's protocols. Some servers send it without a finish reason before it.
fn is_done(data: &str) -> bool {
    data.trim() == "[DONE]"
}
