//! The texts of files that a model has read. co refuses an edit if the file has changed since the model read it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use co_edit::{Names, hash, hunks, unified};

/// The largest number of bytes of all kept texts.
const MAX_KEPT_BYTES: usize = 8 << 20;
/// The largest number of bytes of a diff that a refusal shows.
const LONGEST_DIFF: usize = 4 << 10;

/// The texts that the model of a chat has read. Clones share the same texts.
#[derive(Clone, Default)]
pub struct SeenTexts(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    /// The last texts, each after its hash. The oldest text comes first.
    texts: VecDeque<(String, String)>,
    bytes: usize,
    /// Maps the hash of each text that the model changed to the hash of the changed text.
    changed: HashMap<String, String>,
}

impl SeenTexts {
    /// Keeps a text that the model has read, and returns the hash of the text.
    pub fn add(&self, text: String) -> String {
        let hash = hash(&text);
        self.with(|seen| {
            if seen.texts.iter().any(|(known, _)| *known == hash) {
                return;
            }
            seen.bytes += text.len();
            seen.texts.push_back((hash.clone(), text));
            while seen.bytes > MAX_KEPT_BYTES
                && let Some((_, oldest)) = seen.texts.pop_front()
            {
                seen.bytes -= oldest.len();
            }
        });
        hash
    }

    /// Records that a change by the model turned the text with the hash `before` into the text with the hash `after`.
    pub fn changed(&self, before: String, after: String) {
        self.with(|seen| {
            // A change that takes back another one must not make a circle.
            seen.changed.remove(&after);
            seen.changed.insert(before, after);
        });
    }

    /// Checks that only the model has changed a file since the file had the text with the hash `given`. `current` is the current
    /// text of the file.
    ///
    /// # Errors
    /// Somebody else has changed the file. The message shows the changes.
    pub fn check(&self, path: &str, given: &str, current: &str) -> Result<(), String> {
        let now = hash(current);
        self.with(|seen| {
            let mut known = given;
            while known != now
                && let Some(next) = seen.changed.get(known)
            {
                known = next;
            }
            if known == now {
                return Ok(());
            }
            let old = seen.texts.iter().find(|(hash, _)| hash == known);
            let names = Names {
                old: Some(path),
                new: Some(path),
            };
            let diff = old.map(|(_, old)| unified(old, &hunks(old, current), names));
            Err(match diff.filter(|diff| diff.len() <= LONGEST_DIFF) {
                Some(diff) => format!(
                    "it has changed since you read it. Its hash is now {now}; this is what changed:\n{diff}"
                ),
                None => format!("it no longer has the hash {given}: read it again"),
            })
        })
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Seen) -> T) -> T {
        use_it(&mut self.0.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_someone_else_changed_is_refused_with_what_changed() {
        let seen = SeenTexts::default();
        let read = seen.add("one\ntwo\n".to_owned());
        assert_eq!(seen.check("f", &read, "one\ntwo\n"), Ok(()));
        let why = seen.check("f", &read, "one\n2\n").unwrap_err();
        assert!(why.contains("-two\n+2\n"), "{why}");
        let why = seen.check("f", "0123", "one\n2\n").unwrap_err();
        assert_eq!(why, "it no longer has the hash 0123: read it again");
    }

    #[test]
    fn the_models_own_changes_are_followed() {
        let seen = SeenTexts::default();
        let texts = ["a\n", "b\n", "a\n", "c\n"];
        let read = seen.add(texts[0].to_owned());
        for pair in texts.windows(2) {
            seen.changed(hash(pair[0]), hash(pair[1]));
            assert_eq!(seen.check("f", &read, pair[1]), Ok(()));
        }
        assert!(seen.check("f", &read, "b\n").is_err());
    }

    #[test]
    fn old_texts_are_dropped() {
        let seen = SeenTexts::default();
        let first = seen.add("x".repeat(MAX_KEPT_BYTES - 1));
        seen.add("y".repeat(2));
        let why = seen.check("f", &first, "z").unwrap_err();
        assert!(why.contains("read it again"), "{why}");
    }
}
