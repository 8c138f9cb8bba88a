//! The lines of both directions, within bounds.
//!
//! Messages that no part of the client waits for stop here: the protocol's crate would start a task for each of them.

use std::io;
use std::pin::Pin;

use co_lines::{BoundedLine, LineReader, LineWriter};
use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ClientRequest, ClientResult, ElicitRequestParams, ErrorCode, ErrorData,
    GetExtensions, GetMeta, JsonRpcMessage, ProgressNotificationParam, RequestId,
    ServerNotification, ServerRequest,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call_events::{CallListener, FollowedCall, QuestionReply};

/// The most memory that lines may take between two answers. A server that sends so much unasked would keep others waiting.
const MOST_UNASKED: u64 = 64 << 20;

/// A request that waits for its answer.
struct OpenRequest {
    id: RequestId,
    followed: Option<FollowedCall>,
}

/// The messages to and from one server.
pub(crate) struct BoundedTransport {
    lines: LineReader<Pin<Box<dyn AsyncRead + Send>>>,
    /// Dropping it closes the standard input of the server.
    outgoing: Option<LineWriter>,
    /// The requests of the client that have no answer.
    open: Vec<OpenRequest>,
    /// The memory that lines had taken at the last answer.
    taken_before: u64,
    /// Cancels the token `ended` when it is dropped.
    end: DropGuard,
}

impl BoundedTransport {
    /// Makes a transport of the server's standard output and input. `ended` is cancelled when the connection has ended. Call it
    /// within a tokio runtime.
    pub(crate) fn new(
        output: impl AsyncRead + Send + 'static,
        input: impl AsyncWrite + Send + Unpin + 'static,
        ended: CancellationToken,
    ) -> Self {
        let output: Pin<Box<dyn AsyncRead + Send>> = Box::pin(output);
        Self {
            lines: LineReader::new(output).stopping(),
            outgoing: Some(LineWriter::new("server", input)),
            open: Vec::new(),
            taken_before: 0,
            end: ended.drop_guard(),
        }
    }

    /// Queues a message.
    fn put(&self, message: &TxJsonRpcMessage<RoleClient>) -> io::Result<()> {
        let line = line(message)?;
        let outgoing = self.outgoing.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        outgoing.queue().send(line).map_err(io::Error::other)
    }

    /// Remembers a request that waits for its answer from now on, and forgets a request that is cancelled.
    fn follow(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        match message {
            JsonRpcMessage::Request(request) => {
                // The handshake is a probe and, if that fails or takes too long, another one. A late answer to the first is
                // dropped.
                if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    self.open.clear();
                }
                let listener = request.request.extensions().get::<CallListener>();
                let token = request.request.get_meta().get_progress_token();
                let followed = token.zip(listener.cloned());
                self.open.push(OpenRequest {
                    id: request.id.clone(),
                    followed: followed.map(|(token, listener)| FollowedCall { token, listener }),
                });
            }
            JsonRpcMessage::Notification(sent) => {
                if let ClientNotification::CancelledNotification(cancelled) = &sent.notification {
                    let id = cancelled.params.request_id.as_ref();
                    self.open.retain(|it| Some(&it.id) != id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// Hands on the progress of a call that is followed.
    fn progressed(&self, told: &ProgressNotificationParam) {
        let followed = self.open.iter().filter_map(|it| it.followed.as_ref());
        for call in followed.filter(|it| it.token == told.progress_token) {
            call.listener.progressed(told.clone());
        }
    }

    /// Puts a question of the server to the person, by the call that began last, and sends the reply when it comes.
    fn ask(&self, id: RequestId, asked: &ElicitRequestParams) {
        let call = self.open.iter().rev().find_map(|it| it.followed.as_ref());
        let queue = self.outgoing.as_ref().map(|it| it.queue().clone());
        let send = move |reply: QuestionReply| {
            let result = ClientResult::ElicitResult(reply.into_result());
            let answer = JsonRpcMessage::response(result, id);
            // If the server reads no more, it does not wait for the answer either.
            queue.and_then(|queue| queue.send(line(&answer).ok()?).ok())
        };
        match call.and_then(|it| it.listener.ask(asked)) {
            None => {
                send(QuestionReply::Decline);
            }
            Some(reply) => {
                tokio::spawn(async move { send(reply.await.unwrap_or(QuestionReply::Cancel)) });
            }
        }
    }

    /// Returns a message if the client waits for it. A request of the server is answered here.
    fn wanted(
        &mut self,
        message: RxJsonRpcMessage<RoleClient>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        let answered = match &message {
            JsonRpcMessage::Request(request) => {
                let id = request.id.clone();
                let answer = match &request.request {
                    ServerRequest::PingRequest(_) => {
                        JsonRpcMessage::response(ClientResult::empty(()), id)
                    }
                    ServerRequest::ElicitRequest(asked) => {
                        self.ask(id, &asked.params);
                        return None;
                    }
                    _ => JsonRpcMessage::error(unknown_method(), Some(id)),
                };
                // If the server reads no more, it does not wait for the answer either.
                let _unread = self.put(&answer);
                return None;
            }
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::ProgressNotification(told) = &notification.notification {
                    self.progressed(&told.params);
                }
                return is_wanted(&notification.notification).then_some(message);
            }
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
        };
        // An error without an id answers the only request there is.
        let at = match answered {
            // A server may write the number as a text.
            Some(id) => {
                let id = id.to_string();
                self.open.iter().position(|it| it.id.to_string() == id)?
            }
            None if self.open.len() == 1 => 0,
            None => return None,
        };
        let OpenRequest { id, .. } = self.open.swap_remove(at);
        self.taken_before = self.lines.taken();
        Some(match message {
            JsonRpcMessage::Response(it) => JsonRpcMessage::response(it.result, id),
            JsonRpcMessage::Error(it) => JsonRpcMessage::error(it.error, Some(id)),
            other => other,
        })
    }
}

fn line(message: &TxJsonRpcMessage<RoleClient>) -> serde_json::Result<String> {
    serde_json::to_string(message)
}

fn unknown_method() -> ErrorData {
    ErrorData::new(
        ErrorCode::METHOD_NOT_FOUND,
        "the client offers no such request",
        None,
    )
}

fn is_wanted(notification: &ServerNotification) -> bool {
    matches!(
        notification,
        ServerNotification::ToolListChangedNotification(_)
            | ServerNotification::SubscriptionsAcknowledgedNotification(_)
    )
}

impl Transport<RoleClient> for BoundedTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.follow(&message);
        let sent = self.put(&message);
        if sent.is_err() {
            // Later calls would not reach the server either.
            self.end.token().cancel();
        }
        std::future::ready(sent)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            // A line that is too large or is no text ends the connection.
            let (BoundedLine::Whole(line) | BoundedLine::Partial(line)) =
                self.lines.next().await.ok()??
            else {
                return None;
            };
            let line = str::from_utf8(&line).ok()?;
            if self.lines.taken() - self.taken_before > MOST_UNASKED {
                return None;
            }
            // Programs print other lines too, such as a greeting.
            let Ok(message) = serde_json::from_str(line) else {
                continue;
            };
            if let Some(message) = self.wanted(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.outgoing = None;
        Ok(())
    }
}
