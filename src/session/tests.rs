//! Whole sessions against a scripted model: a real executor, a real judge, a throwaway repository.

mod asks;
mod calls;
mod cancel;
mod chat;
mod commands;
mod compact;
mod faults;
mod guards;
mod idle;
mod instructions;
mod job_ends;
mod jobs;
mod kept;
mod looks;
mod order;
mod queue;
mod retry;
mod secrets;
mod settings;
mod standing;
mod talk;
mod typed;
