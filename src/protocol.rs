//! The messages between Lua and the backend.
//!
//! Lua sends `vim.rpcnotify(channel, 'co', message)`, one map with a `type`; the backend answers with
//! batches of such maps, handed to `require('co.handlers').receive(messages)` in order. Neither side blocks to wait for
//! the other. `docs/PROTOCOL.md` describes each message.

mod change;
mod from_editor;
mod to_editor;

pub use self::change::*;
pub use self::from_editor::*;
pub use self::to_editor::*;

/// The version of the protocol, which changes with the meaning of a message. Each side refuses another version.
pub const PROTOCOL: u32 = 31;
