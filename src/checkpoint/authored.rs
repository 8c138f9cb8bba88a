//! A value, such as the name of a file, that several chats change one after the other.

use co_edit::EditBy;

/// A value with the changes of chats that their person has not accepted.
///
/// Each chat has a base: the value without its own changes. A change of one chat covers the earlier ones of others, which come
/// back if it is taken back.
#[derive(Debug, Clone)]
pub(super) struct AuthoredValue<T> {
    /// The value without all these changes.
    base: T,
    /// The chats and the values that they set.
    changes: Vec<(usize, T)>,
}

impl<T: Clone + PartialEq> AuthoredValue<T> {
    pub(super) fn new(base: T) -> Self {
        Self {
            base,
            changes: Vec::new(),
        }
    }

    /// Returns a value that one chat has changed.
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

    /// Returns whether the value is a change of a chat.
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

    /// Makes the value the person's, if it is the accepted value and a change of the chat.
    pub(super) fn accept(&mut self, chat: usize, accepted: &T) {
        if self.now() == accepted && self.is_by(chat) {
            *self = Self::new(accepted.clone());
        }
    }
}
