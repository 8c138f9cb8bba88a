//! The HTTP proxy of one command. It asks a [`Decider`] about each host, and counts the bytes.
//!
//! The caller gives the proxy a listening socket that only the command reaches, such as one in a network namespace. The proxy
//! resolves names itself, after the host was allowed, and connects to the address that it checked. It never decrypts.
//!
//! - [`Proxy`]: accepts connections, within limits; dropping it ends all of them.
//! - [`Target`]: a host and a port that a command asks for.
//! - `client_stream`: the connection of a client, and whether the client has left.
//! - `requests`: CONNECT, and requests of plain HTTP.
//! - `hello`: the first message of TLS, which must name the host of the CONNECT.
//! - `route`: from an allowed target to a connection; `address` has the addresses that are not on the internet.
//! - `traffic`: the targets that were reached or refused.
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
