//! The messages from a turn to its chat.

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

/// The most messages of a turn that wait for the chat: a fast model sends pieces in bursts.
pub(in crate::chat) const MAX_WAITING_EVENTS: usize = 256;

/// A message of a turn to its chat.
pub(in crate::chat) enum TurnEvent {
    /// Asks to write an item. The reply is `Err` if it could not be written.
    Record(Item, oneshot::Sender<Result<(), ()>>),
    /// Asks to record the prompts that steer the turn: they go with the request that follows.
    TakeSteering,
    /// The person refused what an agent asks for, and said this instead.
    Steer(String),
    /// A piece of the model's answer.
    Text(String),
    Snapshot(oneshot::Sender<Snapshot>),
    /// An event for the front end.
    Show(ChatEvent),
    State(ChatState, String),
    /// A question to the person. A dropped reply is a denial.
    Question(Box<Question>, oneshot::Sender<Reply>),
    /// Withdraws a question.
    Withdraw(u64),
    /// A permission that the person gave with `always`.
    Allow(Allowance),
    /// Asks for the hosts that confined commands of the chat may reach.
    AllowedHosts(oneshot::Sender<Vec<AllowedHost>>),
    /// A request about jobs.
    Job(JobListRequest),
    Usage(Usage),
    /// The part of the model's window that the last request filled, in percent.
    WindowUsed(u64),
    /// The modes, options and commands of the chat's agent.
    AgentState(Box<SessionState>),
    /// The agent was logged in by this method.
    AgentLogin(AuthMethodId),
    /// The person logs in by this command in a terminal. The last prompt comes back to the person, because nobody answers it.
    LoginCommand(String),
    /// The agent gives the chat a title.
    Title(String),
    /// The agent has no plan any more.
    PlanRemoved,
}

/// The state of the chat before a request.
pub(in crate::chat) struct Snapshot {
    /// The transcript so far.
    pub items: Vec<Item>,
    /// The commands that failed in the read-only sandbox. Each of them needs approval from now on.
    pub failed_confined: Vec<String>,
}

/// The reason why a turn ends early.
pub(in crate::chat) enum Halt {
    Cancelled,
    Fault(Fault),
    Guarded,
    /// The transcript file cannot be written, so nothing more may happen.
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
