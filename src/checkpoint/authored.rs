//! A value that several chats change one after the other, such as the name of a file.

use co_edit::EditBy;

/// A value, and the changes that chats have made to it. The person has not accepted these changes yet.
///
/// The base of a chat is the value without the changes of this chat. A change of one chat hides the earlier changes of other
/// chats. If the change is taken back, the earlier changes become visible again.
#[derive(Debug, Clone)]
pub(super) struct AuthoredValue<T> {
    /// The value before the first of the recorded changes.
    base: T,
    /// The recorded changes, from the first to the last. Each has the number of a chat, and the value that the chat set.
    changes: Vec<(usize, T)>,
}

impl<T: Clone + PartialEq> AuthoredValue<T> {
    pub(super) fn new(base: T) -> Self {
        Self {
            base,
            changes: Vec::new(),
        }
    }

    /// Returns a value that the chat `chat` has changed from `base` to `now`.
    pub(super) fn changed(base: T, chat: usize, now: T) -> Self {
        let changes = if base == now {
            Vec::new()
        } else {
            vec![(chat, now)]
        };
        Self { base, changes }
    }

    pub(super) fn now(&self) -> &T {
        self.changes.last().map_or(&self.base, |(_, value)| value)
    }

    /// Returns the value without the changes of a chat.
    pub(super) fn base(&self, chat: usize) -> &T {
        let mut others = self.changes.iter().rev().filter(|(by, _)| *by != chat);
        others.next().map_or(&self.base, |(_, value)| value)
    }

    /// Returns true if a change of this chat determines the value.
    pub(super) fn is_by(&self, chat: usize) -> bool {
        self.base(chat) != self.now()
    }

    pub(super) fn set(&mut self, value: T, by: EditBy) {
        if value == *self.now() {
            return;
        }
        match by {
            EditBy::Owner => *self = Self::new(value),
            // It is as it was without the chat.
            EditBy::Author(mark) if *self.base(mark.author) == value => {
                while self.changes.pop_if(|it| it.0 == mark.author).is_some() {}
            }
            EditBy::Author(mark) => self.changes.push((mark.author, value)),
            EditBy::TakingBack(chat) => {
                let is_of_chat = |it: &mut (usize, T)| it.0 == chat;
                while value != *self.now() && self.changes.pop_if(is_of_chat).is_some() {}
                if value != *self.now() {
                    *self = Self::new(value);
                }
            }
        }
    }

    /// Forgets all changes, so that `accepted` becomes the base of all chats. Does so only if `accepted` is the current value and
    /// a change of `chat` determines it.
    pub(super) fn accept(&mut self, chat: usize, accepted: &T) {
        if self.now() == accepted && self.is_by(chat) {
            *self = Self::new(accepted.clone());
        }
    }
}
