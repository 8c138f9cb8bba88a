//! The person's actions in a chat that no other part of the chat handles: most slash commands, `!` lines and drafts.

pub mod agent;
pub mod command;
pub(super) mod commit;
pub(super) mod commit_message;
pub(super) mod drafts;
pub(super) mod kept_chats;
pub mod model;
pub(super) mod plan;
pub(super) mod rule_list;
pub mod run_editor;
pub(super) mod sandbox;
pub(super) mod typed_commands;
pub mod wants_terminal;
