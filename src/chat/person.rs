//! The things that the person does in a chat: slash commands, `!` lines, rules and answers.

pub mod agent;
pub mod command;
mod commit;
pub(super) mod commit_message;
mod drafts;
mod kept_chats;
pub mod model;
mod plan;
pub mod questions;
mod rule_list;
pub mod run_editor;
mod slash_commands;
pub(super) mod typed_commands;
pub mod wants_terminal;
