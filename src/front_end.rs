//! The front end of a chat for Neovim: makes markdown of the chat's events and sends it.
//!
//! It owns the words and the layout. Another front end implements [`crate::chat::events::FrontEnd`] too; chats know only
//! that trait.

mod call;
mod fault;
mod fence;
mod markdown;
mod neovim;
mod parts;

pub use neovim::make;
