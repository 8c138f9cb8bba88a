//! The backend of co, an agent and a shell for Neovim.
//!
//! A module may use only modules below it in this table, and the crates `co_acp`, `co_mcp`, `co_llm`, `co_exec`, `co_proxy`,
//! `co_policy`, `co_edit` and `co_text`:
//!
//! | module | content |
//! |---|---|
//! | [`cli`] | the command line: `co-nvim`, `exec`, `check`, `edit`, `doctor`, `mcp` |
//! | [`app`] | the backend of one Neovim: handshake, settings, message routing |
//! | [`front_end`] | markdown and messages for Neovim, made from the events of a chat |
//! | [`run`] | the person's own commands (`:Co!`) |
//! | [`chat`] | one conversation: turns, steps, calls, questions, jobs |
//! | [`agent`] | other agents: their presets, and the confined process of an agent |
//! | [`tool`] | the tools of the model |
//! | [`services`] | the services that all chats and runs share: the executor, the settings, the store, the judges |
//! | [`trial`] | commands that run over a layer above the workspace, and their changes |
//! | [`checkpoint`] | the files before and after each call, to take changes back |
//! | [`mcp`] | tool servers: their processes and connections, which chats share |
//! | [`network`] | the hosts that a command may connect to, by a rule or an answer of the person |
//! | [`workspace`] | one workspace: facts and verdicts of the policy, and how its files are read and changed |
//! | [`nvim`] | the connection to Neovim |
//! | [`buffers`] | the texts of Neovim's buffers, and questions about the editor |
//! | [`editor`] | the queue of messages to Neovim |
//! | [`protocol`] | the messages between Lua and the backend |
//! | [`error`] | error texts for a person |
//! | [`store`] | transcripts on disk |
//! | [`trust`] | answers about trust in files, on disk |
//! | [`audit`] | the audit file |
//! | [`logging`] | the log |
//! | [`config`] | the settings |
//! | [`paths`] | the directories of co's files |
//!
//! The private modules `shared_file` and `rotation` write files that several backends share. `blocking` runs work that waits for
//! files. `cancellable` waits for a command, with cancellation. `program_places` finds the directories that a program needs.

pub mod agent;
pub mod app;
pub mod audit;
mod blocking;
pub mod buffers;
mod cancellable;
pub mod chat;
pub mod checkpoint;
pub mod cli;
pub mod config;
pub mod editor;
pub mod error;
pub mod front_end;
pub mod logging;
pub mod mcp;
pub mod network;
pub mod nvim;
pub mod paths;
mod program_places;
pub mod protocol;
mod rotation;
pub mod run;
pub mod services;
mod shared_file;
pub mod store;
#[cfg(test)]
mod test_tree;
pub mod tool;
pub mod trial;
pub mod trust;
pub mod workspace;
