//! The messages that a turn sends to its chat.

use tokio::sync::oneshot;

use super::super::events::ChatEvent;
use crate::agent::SessionState;
use crate::protocol::{ChatState, Question};
use crate::tool::context;
use crate::tool::job_list::JobListRequest;
use crate::tool::permissions::{Allowance, AllowedHost, Reply};
use co_acp::schema::AuthMethodId;
use co_llm::Fault;
use co_llm::transcript::{Item, Usage};

/// The capacity of the channel from a turn to its chat. A fast model sends many pieces at once.
pub(in crate::chat) const MAX_WAITING_EVENTS: usize = 256;

/// A message that a turn sends to its chat.
pub(in crate::chat) enum TurnEvent {
    /// Asks the chat to write an item. The reply is `Err` if the item could not be written.
    Record(Item, oneshot::Sender<Result<(), ()>>),
    /// Asks the chat to record the prompts that steer the turn. They go with the next request.
    TakeSteering,
    /// The person refused a request of the agent, and wrote this text for the agent instead.
    Steer(String),
    /// A piece of the model's answer.
    Text(String),
    Snapshot(oneshot::Sender<Snapshot>),
    /// An event for the front end.
    Show(ChatEvent),
    State(ChatState, String),
    /// A question to the person. If the chat drops the sender of the reply, the answer is a denial.
    Question(Box<Question>, oneshot::Sender<Reply>),
    /// Withdraws a question.
    Withdraw(u64),
    /// A permission that the person gave with the answer `always`.
    Allow(Allowance),
    /// Asks for the hosts that confined commands of the chat may contact.
    AllowedHosts(oneshot::Sender<Vec<AllowedHost>>),
    /// A request about the jobs of the chat.
    Job(JobListRequest),
    Usage(Usage),
    /// The percentage of the model's context window that the last request filled.
    WindowUsed(u64),
    /// The modes, options and commands that the chat's agent reported.
    AgentState(Box<SessionState>),
    /// The agent has logged in with this method.
    AgentLogin(AuthMethodId),
    /// The person must log in with this command in a terminal. The last prompt goes back to the person, because the agent does
    /// not answer it.
    LoginCommand(String),
    /// The title that the agent gives the chat.
    Title(String),
    /// The agent has removed its plan.
    PlanRemoved,
}

/// The state of the chat before a request.
pub(in crate::chat) struct Snapshot {
    /// The transcript so far.
    pub items: Vec<Item>,
    /// The commands that failed in the read-only confinement. Each of these commands needs approval from now on.
    pub failed_confined: Vec<String>,
}

/// The reason why a turn ends before its goal.
pub(in crate::chat) enum Halt {
    Cancelled,
    Fault(Fault),
    Guarded,
    /// The transcript file cannot be written, so the turn must do nothing more.
    Unrecorded,
}

impl From<context::CallHalt> for Halt {
    fn from(halt: context::CallHalt) -> Self {
        match halt {
            context::CallHalt::Cancelled => Self::Cancelled,
            context::CallHalt::Unrecorded => Self::Unrecorded,
        }
    }
}
