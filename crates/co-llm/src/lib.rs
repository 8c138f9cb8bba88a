//! Sends a conversation to a language model and streams its answer.
//!
//! [`make_provider()`] returns a [`Provider`]; its method `stream` sends a [`ModelRequest`] and returns [`Delta`]s.
//! [`transcript`] has the items of a conversation. This crate does not know Neovim, files of chats, what tools do, or approval.

mod answer;
mod choice;
mod effort;
mod family;
mod fault;
mod key;
mod listed_model;
mod new_provider;
mod price;
mod printed_secret;
mod provider;
pub mod provider_table;
mod remote;
mod request;
pub mod retry;
#[cfg(any(test, feature = "scripted"))]
pub mod scripted;
mod server_memory;
mod settings;
pub mod transcript;

pub use answer::AnswerBuilder;
pub use effort::{Effort, UnknownEffort};
pub use fault::Fault;
pub use new_provider::{
    ProviderPreview, STALL_TIMEOUT, known_keys, make_provider, make_provider_with, preview_provider,
};
pub use price::{Price, Prices};
pub use printed_secret::printed_secret;
pub use provider::{Delta, Deltas, Provider, Stop, bounded};
pub use remote::http_client;
pub use request::{ModelRequest, ToolSpec};
pub use reqwest::Url;
pub use server_memory::ServerMemory;
pub use settings::ProviderSettings;
