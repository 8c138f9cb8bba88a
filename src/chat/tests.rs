//! Whole chats against a scripted model: a real executor, a real judge, a throwaway repository.

/// Makes a closure that returns the value from each thing that matches the pattern, and `None` from every other thing.
macro_rules! pick {
    ($pattern:pat $(if $guard:expr)? => $value:expr) => {
        |it| match it {
            $pattern $(if $guard)? => Some($value),
            _ => None,
        }
    };
}

mod asking;
mod calls;
mod cancel;
mod changes;
mod chat;
mod checkpoints;
mod checks;
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
mod observed;
mod order;
mod parts;
mod plan;
mod planning;
mod prompt_files;
mod questions;
mod queue;
mod refusals;
mod resumed;
mod retry;
mod review;
mod rules;
mod scouts;
mod secrets;
mod settings;
mod skills;
mod steering;
mod talk;
mod tools;
mod typed_commands;
