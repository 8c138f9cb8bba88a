//! Whole chats against a scripted model: a real executor, a real judge, a throwaway repository.

mod calls;
mod cancel;
mod changes;
mod chat;
mod checkpoints;
mod commands;
mod compact;
mod edits;
mod faults;
mod file_calls;
mod framed;
mod idle;
mod instructions;
mod job_ends;
mod jobs;
mod kept;
mod loop_limits;
mod order;
mod questions;
mod queue;
mod retry;
mod rules;
mod secrets;
mod settings;
mod talk;
mod typed_commands;
