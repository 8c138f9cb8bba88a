//! The progress and the questions of a server while a call of one of its tools runs.

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ProgressNotificationParam, ProgressToken,
};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};

use crate::cut;

/// The most bytes of a server's words about its progress.
const LONGEST_WORDS: usize = 200;

/// The questions of a call that wait. A server that asks for more at once gets a no.
const WAITING_QUESTIONS: usize = 1;

/// The progress of a call. A server may say anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallProgress {
    /// The part that is done, from 0 to 1.
    pub done: Option<f64>,
    /// The server's own words, at most 200 bytes.
    pub words: String,
}

/// A question of a server to the person: a form. Dropping it tells the server that nobody answers.
#[derive(Debug)]
pub struct ServerQuestion {
    pub message: String,
    /// The JSON schema of an object, whose properties are the fields.
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

/// The receivers of a server's progress and questions during one call.
#[derive(Debug)]
pub struct CallEvents {
    pub progress: watch::Receiver<CallProgress>,
    pub questions: mpsc::Receiver<ServerQuestion>,
}

/// Sends a server's progress and questions during one call.
#[derive(Debug, Clone)]
pub struct CallListener {
    progress: watch::Sender<CallProgress>,
    questions: mpsc::Sender<ServerQuestion>,
}

/// A call whose events have a listener.
pub(crate) struct FollowedCall {
    pub(crate) token: ProgressToken,
    pub(crate) listener: CallListener,
}

/// Returns the two ends for one call.
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

    /// Puts a question, unless another one waits. Returns its reply; none if it cannot be put.
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
