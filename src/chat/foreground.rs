//! The commands of chats that run in the foreground, for a person who is about to quit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::render;

/// The commands that run in the foreground of all chats, the oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Foreground {
    commands: Arc<Commands>,
}

type Commands = Mutex<Vec<Command>>;

#[derive(Debug)]
struct Command {
    id: u64,
    session: u64,
    name: String,
}

/// A command that runs, until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it says that the command has ended"]
pub(super) struct Running {
    id: u64,
    commands: Arc<Commands>,
}

impl Foreground {
    /// Adds a command of a chat; `id` is nobody else's.
    pub(super) fn add(&self, session: u64, id: u64, command: &str) -> Running {
        let name = co_policy::printable(&render::short(command));
        locked(&self.commands).push(Command { id, session, name });
        Running {
            id,
            commands: Arc::clone(&self.commands),
        }
    }

    /// Returns the first lines of a chat's commands.
    pub(super) fn of(&self, session: u64) -> Vec<String> {
        let commands = locked(&self.commands);
        let here = commands.iter().filter(|it| it.session == session);
        here.map(|it| it.name.clone()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        locked(&self.commands).retain(|it| it.id != self.id);
    }
}

fn locked(commands: &Commands) -> MutexGuard<'_, Vec<Command>> {
    commands.lock().unwrap_or_else(PoisonError::into_inner)
}
