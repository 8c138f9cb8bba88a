//! Providers: against a server that sends what the six kinds send and breaks off wherever it can, and
//! against a real model.

mod adapt;
mod addresses;
mod answers;
mod bounds;
mod cuts;
mod dialects;
mod faults;
mod images;
mod long_chat;
pub(crate) mod mock;
mod requests;
pub(crate) mod strict;
mod tls;
pub(crate) mod wire;
