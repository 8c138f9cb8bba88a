//! The progress reports and the questions of a server during a tool call.

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ProgressNotificationParam, ProgressToken,
};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};

use crate::cut;

/// The largest length of a progress message, in bytes.
const LONGEST_WORDS: usize = 200;

/// The capacity of the queue of questions. If a server asks another question while one waits, the new question is declined.
const WAITING_QUESTIONS: usize = 1;

/// The progress of a call, as the server reports it. The server's report may be wrong.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallProgress {
    /// The finished share of the work, from 0 to 1.
    pub done: Option<f64>,
    /// The progress message of the server, at most 200 bytes.
    pub words: String,
}

/// A question from a server to the person: a form to fill in. Dropping it tells the server that nobody answers.
#[derive(Debug)]
pub struct ServerQuestion {
    pub message: String,
    /// The JSON schema of the answer, an object. Each property is a field of the form.
    pub schema: Value,
    reply: oneshot::Sender<QuestionReply>,
}

/// The reply to a question of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionReply {
    Accept(Map<String, Value>),
    Decline,
    Cancel,
}

/// Receives a server's progress reports and questions during one call.
#[derive(Debug)]
pub struct CallEvents {
    pub progress: watch::Receiver<CallProgress>,
    pub questions: mpsc::Receiver<ServerQuestion>,
}

/// Sends a server's progress reports and questions during one call to [`CallEvents`].
#[derive(Debug, Clone)]
pub struct CallListener {
    progress: watch::Sender<CallProgress>,
    questions: mpsc::Sender<ServerQuestion>,
}

/// An open call with a listener for its events.
pub(crate) struct FollowedCall {
    pub(crate) token: ProgressToken,
    pub(crate) listener: CallListener,
}

/// Makes the sender and the receiver of the events of one call.
pub fn call_events() -> (CallListener, CallEvents) {
    let (progress, told) = watch::channel(CallProgress::default());
    let (questions, asked) = mpsc::channel(WAITING_QUESTIONS);
    let listener = CallListener {
        progress,
        questions,
    };
    let events = CallEvents {
        progress: told,
        questions: asked,
    };
    (listener, events)
}

impl CallListener {
    pub(crate) fn progressed(&self, told: ProgressNotificationParam) {
        self.progress.send_replace(CallProgress::new(told));
    }

    /// Sends a question to the person, unless another one waits. Returns the receiver of the reply, or `None` if the question
    /// cannot be sent.
    pub(crate) fn ask(
        &self,
        asked: &ElicitRequestParams,
    ) -> Option<oneshot::Receiver<QuestionReply>> {
        let ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } = asked
        else {
            return None;
        };
        let (reply, answer) = oneshot::channel();
        let question = ServerQuestion {
            message: message.clone(),
            schema: serde_json::to_value(requested_schema).ok()?,
            reply,
        };
        self.questions.try_send(question).ok()?;
        Some(answer)
    }
}

impl ServerQuestion {
    /// Answers the question.
    pub fn answer(self, reply: QuestionReply) {
        // It fails if the call has ended.
        self.reply.send(reply).ok();
    }
}

impl QuestionReply {
    pub(crate) fn into_result(self) -> ElicitResult {
        match self {
            Self::Accept(content) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(content.into())
            }
            Self::Decline => ElicitResult::new(ElicitationAction::Decline),
            Self::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        }
    }
}

impl CallProgress {
    fn new(told: ProgressNotificationParam) -> Self {
        let done = told.total.map(|total| told.progress / total);
        let mut words = told.message.unwrap_or_default();
        cut(&mut words, LONGEST_WORDS);
        Self {
            done: done.filter(|it| (0.0..=1.0).contains(it)),
            words,
        }
    }
}
