//! The messages of an agent.

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, ElicitationId, Error as AgentError, InitializeResponse,
    ListSessionsResponse, LoadSessionResponse, NewSessionResponse, PromptResponse, RequestId,
    RequestPermissionRequest, ResumeSessionResponse, SessionConfigOption, SessionNotification,
};

/// The number of a request of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestNumber(pub(crate) i64);

/// A message of the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// Something happened in a session.
    Update {
        update: Box<SessionNotification>,
        /// As JSON, the parts of the update that are unknown in this version of the protocol, such as a new state.
        unread: Vec<String>,
    },
    /// The agent asks for permission. The agent waits for
    /// [`AgentConnection::answer_permission`](crate::AgentConnection::answer_permission).
    Permission {
        id: RequestId,
        request: Box<RequestPermissionRequest>,
    },
    /// The agent asks the person a question. The agent waits for
    /// [`AgentConnection::answer_elicitation`](crate::AgentConnection::answer_elicitation).
    Elicitation {
        id: RequestId,
        request: Box<CreateElicitationRequest>,
    },
    /// The agent reports that the person has finished an elicitation on a web page.
    ElicitationCompleted(ElicitationId),
    /// The agent withdraws a question.
    Withdrawn(RequestId),
    /// The answer to a request of the client.
    Answer {
        number: RequestNumber,
        answer: Result<AgentAnswer, AgentError>,
    },
    /// A message that this client does not know, as JSON. If the message was a request, the client has answered it with "method
    /// not found".
    Unknown { method: String, text: String },
    /// A line that is not a message, such as the start of a line that is too long, or an answer to a request that was never sent.
    Garbage { start: String, length: usize },
    /// The agent closed its output. Nothing more comes.
    Ended,
}

/// A successful answer to a request of the client. Each variant belongs to one method.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentAnswer {
    Initialized(Box<InitializeResponse>),
    Authenticated,
    Sessions(Box<ListSessionsResponse>),
    Session(Box<NewSessionResponse>),
    Loaded(Box<LoadSessionResponse>),
    Resumed(Box<ResumeSessionResponse>),
    ModeSet,
    /// All options of the session, with their values.
    OptionSet(Vec<SessionConfigOption>),
    /// The agent has ended its turn on a prompt.
    Prompted(PromptResponse),
}
