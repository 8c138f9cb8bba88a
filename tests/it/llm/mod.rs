//! Providers: against a server that sends what the five kinds send and breaks off wherever it can, and
//! against a real model.

mod answers;
mod bounds;
mod cuts;
mod faults;
mod idle;
pub(crate) mod mock;
mod model;
mod requests;
pub(crate) mod server;
pub(crate) mod wire;
