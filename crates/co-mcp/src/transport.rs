//! Messages to and from a server, with limits, over any channel.
//!
//! This module drops messages that no part of the client waits for. The crate `rmcp` would start a task for each of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ClientRequest, ClientResult, ElicitRequestParams, ErrorCode, ErrorData,
    GetExtensions, GetMeta, JsonRpcMessage, ProgressNotificationParam, ProtocolVersion, RequestId,
    ServerNotification, ServerRequest, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::call_events::{CallListener, FollowedCall, QuestionReply};

/// The largest memory in bytes that messages may take between two answers. A server that sends more without being asked would
/// delay others.
const MOST_UNASKED: u64 = 64 << 20;

/// The largest number of replies to the server's requests that may wait to be sent. Further replies are dropped.
const MOST_REPLIES: usize = 64;

/// The capacity of the queue of the person's replies. Each call has at most one question at a time.
const WAITING_REPLIES: usize = 16;

/// The memory in bytes that messages have taken since the last answer. Clones share the same count.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnaskedMemory(Arc<AtomicU64>);

impl UnaskedMemory {
    /// Adds the memory of a message. Returns false if the server has now sent too much.
    pub(crate) fn add(&self, bytes: u64) -> bool {
        self.0.fetch_add(bytes, Ordering::Relaxed) + bytes <= MOST_UNASKED
    }

    fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// A request of the client that has no answer yet.
struct OpenRequest {
    id: RequestId,
    /// True if the request asks whether the server supports the newest version of the protocol.
    is_probe: bool,
    followed: Option<FollowedCall>,
}

/// Sends and receives the messages of one server, with limits.
pub(crate) struct BoundedTransport<C> {
    channel: C,
    /// The requests of the client that the server has not answered.
    open: Vec<OpenRequest>,
    unasked: UnaskedMemory,
    /// Has a permit for each further reply to the server that may wait to be sent.
    room: Arc<Semaphore>,
    /// Receives the replies of the person.
    replied: mpsc::Receiver<TxJsonRpcMessage<RoleClient>>,
    replies: mpsc::Sender<TxJsonRpcMessage<RoleClient>>,
    /// Receives the ids of requests that could not be sent.
    unsent_ids: mpsc::UnboundedReceiver<RequestId>,
    unsent: mpsc::UnboundedSender<RequestId>,
    /// A token that is cancelled when the channel has failed for good.
    failed: CancellationToken,
    /// Cancels the token `ended` on drop.
    _end: DropGuard,
}

impl<C: Transport<RoleClient>> BoundedTransport<C> {
    /// Makes a transport over a channel. Adds the memory of each message to `unasked`. The connection ends when `failed` is
    /// cancelled. At its end, the transport cancels `ended`.
    pub(crate) fn new(
        channel: C,
        unasked: UnaskedMemory,
        failed: CancellationToken,
        ended: CancellationToken,
    ) -> Self {
        let (replies, replied) = mpsc::channel(WAITING_REPLIES);
        let (unsent, unsent_ids) = mpsc::unbounded_channel();
        Self {
            channel,
            open: Vec::new(),
            unasked,
            room: Arc::new(Semaphore::new(MOST_REPLIES)),
            replied,
            unsent_ids,
            unsent,
            replies,
            failed,
            _end: ended.drop_guard(),
        }
    }

    /// Sends a reply to a request of the server. Drops the reply if too many replies wait to be sent. A failure to send needs no
    /// handling, because then the connection is broken.
    fn reply(&mut self, message: TxJsonRpcMessage<RoleClient>) {
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
            return;
        };
        let sent = self.channel.send(message);
        tokio::spawn(async move {
            sent.await.ok();
            drop(room);
        });
    }

    /// Remembers a request that now waits for its answer. Forgets a request when the client cancels it.
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
                    is_probe: matches!(request.request, ClientRequest::DiscoverRequest(_)),
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

    /// Passes a progress report on to the listener of its call.
    fn progressed(&self, told: &ProgressNotificationParam) {
        let followed = self.open.iter().filter_map(|it| it.followed.as_ref());
        for call in followed.filter(|it| it.token == told.progress_token) {
            call.listener.progressed(told.clone());
        }
    }

    /// Sends a question of the server to the person, through the most recent call that has a listener. Sends the reply when it
    /// comes.
    fn ask(&mut self, id: RequestId, asked: &ElicitRequestParams) {
        let message = |reply: QuestionReply| {
            JsonRpcMessage::response(ClientResult::ElicitResult(reply.into_result()), id)
        };
        let call = self.open.iter().rev().find_map(|it| it.followed.as_ref());
        match call.and_then(|it| it.listener.ask(asked)) {
            None => self.reply(message(QuestionReply::Decline)),
            Some(reply) => {
                let replies = self.replies.clone();
                tokio::spawn(async move {
                    let reply = reply.await.unwrap_or(QuestionReply::Cancel);
                    // It fails if the connection has ended.
                    replies.send(message(reply)).await.ok();
                });
            }
        }
    }

    /// Returns a message if the client waits for it. Answers requests of the server here.
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
                self.reply(answer);
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
        let OpenRequest { id, is_probe, .. } = self.open.swap_remove(at);
        self.unasked.clear();
        Some(match message {
            // Some servers of the old form answer every method, with an empty result.
            JsonRpcMessage::Response(it)
                if is_probe && !matches!(it.result, ServerResult::DiscoverResult(_)) =>
            {
                JsonRpcMessage::error(unknown_method(), Some(id))
            }
            JsonRpcMessage::Response(it) => JsonRpcMessage::response(it.result, id),
            JsonRpcMessage::Error(it) => JsonRpcMessage::error(legacy(it.error), Some(id)),
            other => other,
        })
    }
}

/// Replaces an error of a server that recognizes the newest version of the protocol but does not support it, by "method not
/// found". After this error, the client starts the old handshake.
fn legacy(error: ErrorData) -> ErrorData {
    let supported = error.data.as_ref().map(|it| it["supported"].as_array());
    let is_new = |it: &Value| *it == ProtocolVersion::V_2026_07_28.as_str();
    let speaks = supported.flatten().is_some_and(|it| it.iter().any(is_new));
    match error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION && !speaks {
        true => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, error.message, None),
        false => error,
    }
}

/// Returns the id of a message of the client if the message is a request.
pub(crate) fn request_id(message: &TxJsonRpcMessage<RoleClient>) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
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

impl<C: Transport<RoleClient>> Transport<RoleClient> for BoundedTransport<C> {
    type Error = C::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.follow(&message);
        let asked = request_id(&message);
        let (sent, unsent) = (self.channel.send(message), self.unsent.clone());
        async move {
            let sent = sent.await;
            if let (Err(_), Some(id)) = (&sent, asked) {
                // It fails if the connection has ended.
                unsent.send(id).ok();
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = tokio::select! {
                biased;
                () = self.failed.cancelled() => return None,
                Some(reply) = self.replied.recv() => {
                    self.reply(reply);
                    continue;
                }
                Some(id) = self.unsent_ids.recv() => {
                    self.open.retain(|it| it.id != id);
                    continue;
                }
                message = self.channel.receive() => message?,
            };
            if let Some(message) = self.wanted(message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.channel.close().await
    }
}
