//! The HTTP proxy of one command. It asks a [`Decider`] about each host, and counts the bytes of each connection.
//!
//! The caller passes a listening socket that only the command can connect to, such as one in a network namespace. After a host is
//! allowed, the proxy itself resolves the host's name, and connects to the address that it has checked. It never decrypts data.
//!
//! - [`Proxy`]: accepts connections, with limits. Dropping it ends all connections.
//! - [`Target`]: a host and a port that a command asks for.
//! - `client_stream`: the connection of a client, which can be watched for its end.
//! - `requests`: CONNECT requests and plain HTTP requests.
//! - `hello`: the first message of TLS, which must name the host of the CONNECT.
//! - `route`: from an allowed target to a connection; `address` has the addresses that are not on the internet.
//! - `traffic`: the targets that the command reached or that were refused.
//!
//! The crate knows no command, no rule and no question.

mod address;
mod client_stream;
mod context;
mod hello;
mod outer;
mod ports;
mod proxy;
mod refusal;
mod requests;
mod route;
mod setup;
mod target;
#[cfg(test)]
mod tests;
mod traffic;
mod tunnel;

pub use outer::OuterProxy;
pub use proxy::Proxy;
pub use setup::{
    Decider, ForwardedPort, Permission, ProxyLimits, ProxySetup, Resolver, SystemResolver,
};
pub use target::{Host, Target, TargetError};
pub use traffic::TargetTraffic;
