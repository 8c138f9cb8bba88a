//! The things that the person does in a chat and that no other part of it keeps: most slash commands, `!` lines and drafts.

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
