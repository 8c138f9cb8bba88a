//! Changes of files that another program tells before it makes them.

use super::EditRefused;
use super::proposal::{Proposal, creation, replacement};
use super::source::{EditPlace, EditableText};
use crate::buffers::OpenBuffers;
use co_edit::{FileText, hunks};

/// A text that another program will put in the place of another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedText {
    /// A text that the file has once, or the whole text of the file; none if the program does not tell it.
    pub before: Option<String>,
    pub after: String,
}

/// Returns the change of a file on the disk that replaces texts, each in the result of the one before it. Changes nothing.
///
/// It blocks on files: call it from `spawn_blocking`.
///
/// # Errors
/// The file cannot be read, or it does not have a text exactly once.
pub fn propose_announced(
    place: &EditPlace,
    texts: &[AnnouncedText],
) -> Result<Proposal, EditRefused> {
    let Some(old) = EditableText::of(place, &OpenBuffers::default())? else {
        return match texts {
            [AnnouncedText { before, after }] if before.as_ref().is_none_or(String::is_empty) => {
                let new = FileText::decode(after.as_bytes());
                creation(place, new.map_err(|error| place.refuse(error))?)
            }
            _ => Err(place.refuse("it does not exist")),
        };
    };
    let mut text = old.text.as_str().to_owned();
    for announced in texts {
        text = announced
            .applied(&text)
            .ok_or_else(|| place.refuse("it does not have the old text exactly once"))?;
    }
    let mut new = old.text.clone();
    new.apply_hunks(&hunks(old.text.as_str(), &text));
    replacement(place, old, new, Vec::new())
}

impl AnnouncedText {
    /// Returns a text with this change; none if the text does not have the old text exactly once.
    fn applied(&self, text: &str) -> Option<String> {
        let [before, after] = [self.before.as_deref().unwrap_or_default(), &self.after]
            .map(|it| it.replace("\r\n", "\n"));
        match text.matches(&before).take(2).count() {
            _ if before.is_empty() => Some(after),
            1 => Some(text.replacen(&before, &after, 1)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_replaced_where_it_stands_once() {
        let applied = |text: &str, before: Option<&str>| {
            let announced = AnnouncedText {
                before: before.map(str::to_owned),
                after: "new\r\n".to_owned(),
            };
            announced.applied(text)
        };
        assert_eq!(
            applied("a\nb\nc\n", Some("b\r\n")).as_deref(),
            Some("a\nnew\nc\n")
        );
        assert_eq!(applied("b\nb\n", Some("b\n")), None);
        assert_eq!(applied("a\n", Some("b\n")), None);
        // The whole text.
        assert_eq!(applied("a\n", None).as_deref(), Some("new\n"));
        assert_eq!(applied("a\n", Some("")).as_deref(), Some("new\n"));
    }
}
