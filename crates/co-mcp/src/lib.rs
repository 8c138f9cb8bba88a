//! Both sides of the Model Context Protocol (MCP) over any pair of pipes, or over HTTP as a client.
//!
//! A [`ServerConnection`] is the connection to one tool server. The crate `rmcp` implements both versions of the protocol. This
//! crate limits the size of the server's messages, and turns them into plain texts and values.
//!
//! - `connection`: the handshake, the list of tools, the calls.
//! - `offers`: the resources and prompts of a server.
//! - `transport`: the messages of both directions, and the answers to the server's requests.
//! - `pipes`: the lines of a pair of pipes.
//! - `http`: the requests and streams of a server over HTTP.
//! - `login`: the login at a server over HTTP, by OAuth.
//! - `challenge`: the words of a server about the login that it wants.
//! - `answer`: the result of a call as texts.
//! - `call_events`: the progress of a call, and the server's questions to the person.
//! - `server`: the server's side: a [`ToolOffer`] whose tools one client calls.
//!
//! The crate knows no chat, no process and no confinement, and trusts nothing that a server says about itself.

mod answer;
mod body;
mod call_events;
mod challenge;
mod connection;
mod http;
mod http_fault;
mod login;
mod offers;
mod pipes;
mod server;
#[cfg(test)]
mod tests;
mod transport;

pub use answer::{AnswerPart, ToolAnswer};
pub use call_events::{
    CallEvents, CallListener, CallProgress, QuestionReply, ServerQuestion, call_events,
};
pub use challenge::Challenge;
pub use connection::{CallError, ClientName, MOST_TOOLS, OpenError, ServerConnection, ServerTool};
pub use http::HttpEndpoint;
pub use http_fault::HttpFault;
pub use login::{
    HostAccess, KeptLogin, LoginClient, LoginFault, LoginRequest, LoginStore, OpenLogin,
    RedirectListener, ServerLogin, is_scope,
};
pub use offers::{ArgumentOf, OpenArgument, ServerOffers, ServerPrompt, ServerResource};
pub use reqwest::Client;
pub use server::{ClientCall, ToolOffer, ToolReply, ToolWork, serve};

/// Shortens a text to at most `most` bytes without cutting a character.
fn cut(text: &mut String, most: usize) {
    let mut ends = (0..=text.len().min(most)).rev();
    let end = ends.find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or(0));
}
