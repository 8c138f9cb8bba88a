//! The front end of a chat for Neovim: converts the chat's events into markdown and sends it.
//!
//! It decides the wording and the layout. All front ends implement [`crate::chat::events::FrontEnd`], and chats know only this
//! trait.

mod call;
mod fault;
mod fence;
mod markdown;
mod neovim;
mod parts;

pub use neovim::make;
