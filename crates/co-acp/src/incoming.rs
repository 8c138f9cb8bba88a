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
        /// The parts of the update that this version of the protocol does not know, such as a new state, as JSON.
        unread: Vec<String>,
    },
    /// The agent asks for permission. It waits for
    /// [`AgentConnection::answer_permission`](crate::AgentConnection::answer_permission).
    Permission {
        id: RequestId,
        request: Box<RequestPermissionRequest>,
    },
    /// The agent asks the person something. It waits for
    /// [`AgentConnection::answer_elicitation`](crate::AgentConnection::answer_elicitation).
    Elicitation {
        id: RequestId,
        request: Box<CreateElicitationRequest>,
    },
    /// The agent says that the person has finished an elicitation at an address on the web.
    ElicitationCompleted(ElicitationId),
    /// The agent takes a question back.
    Withdrawn(RequestId),
    /// The answer to a request of the client.
    Answer {
        number: RequestNumber,
        answer: Result<AgentAnswer, AgentError>,
    },
    /// A message that this client does not know, as JSON. If it was a request, the agent was told that there is no such method.
    Unknown { method: String, text: String },
    /// A line that is no message: the start of a line that is too long, an answer to no request, or anything else.
    Garbage { start: String, length: usize },
    /// The agent closed its output. Nothing more comes.
    Ended,
}

/// A successful answer, by the method of the request.
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
    /// The agent has ended its turn about a prompt.
    Prompted(PromptResponse),
}
