//! The commands that run in the foreground of chats. co shows them to a person who quits Neovim.

use std::sync::Arc;

use parking_lot::Mutex;

use co_text::short_command;

/// The foreground commands of all chats. The oldest command comes first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Foreground {
    entries: Arc<Entries>,
}

type Entries = Mutex<Vec<ForegroundEntry>>;

#[derive(Debug)]
struct ForegroundEntry {
    id: u64,
    chat: u64,
    name: String,
}

/// Keeps a command in the list until this value is dropped.
#[derive(Debug)]
#[must_use = "dropping it says that the command has ended"]
pub(crate) struct ForegroundGuard {
    id: u64,
    entries: Arc<Entries>,
}

impl Foreground {
    /// Adds a command of a chat to the list. `id` must be unique.
    pub(crate) fn add(&self, chat: u64, id: u64, command: &str) -> ForegroundGuard {
        let name = co_text::printable(&short_command(command));
        self.entries.lock().push(ForegroundEntry { id, chat, name });
        ForegroundGuard {
            id,
            entries: Arc::clone(&self.entries),
        }
    }

    /// Returns the first line of each command of a chat.
    pub(crate) fn of(&self, chat: u64) -> Vec<String> {
        let entries = self.entries.lock();
        let here = entries.iter().filter(|it| it.chat == chat);
        here.map(|it| it.name.clone()).collect()
    }
}

impl Drop for ForegroundGuard {
    fn drop(&mut self) {
        self.entries.lock().retain(|it| it.id != self.id);
    }
}
