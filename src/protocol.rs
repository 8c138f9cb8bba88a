//! The messages between Lua and the backend.
//!
//! Lua sends each message with `vim.rpcnotify(channel, 'co', message)`. A message is a map with a `type`. The backend sends
//! batches of such maps, and Neovim passes each batch to `require('co.handlers').receive(messages)` in order. Neither side blocks
//! while it waits for an answer. `docs/PROTOCOL.md` describes each message.

mod change;
mod from_editor;
mod to_editor;

pub use self::change::*;
pub use self::from_editor::*;
pub use self::to_editor::*;

/// The version of the protocol. It changes when the meaning of a message changes. Each side refuses any other version.
pub const PROTOCOL: u32 = 31;
