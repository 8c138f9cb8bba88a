//! The client's side of the Agent Client Protocol (ACP), version 1, over any pair of pipes.
//!
//! An [`AgentConnection`] sends requests to one agent, and [`AgentConnection::next`] returns the agent's messages in the order in
//! which the agent wrote them: updates, questions, and the answers to requests. Nothing runs between two calls of `next`, so an
//! agent blocks on its full pipe if nobody calls `next`.
//!
//! - `connection`: the requests of both directions, and the list of unanswered requests.
//! - [`Incoming`]: a message of the agent. A message that cannot be read is kept with its text.
//!
//! The crate knows no chat, no process and no confinement. The types of the messages are those of the protocol's own crate,
//! [`schema`].

mod connection;
mod incoming;
#[cfg(test)]
mod tests;

pub use agent_client_protocol_schema::{MaybeUndefined, v1 as schema};

pub use co_lines::SendError;
pub use connection::{AgentConnection, ClientName, SessionSetup};
pub use incoming::{AgentAnswer, Incoming, RequestNumber};
