//! Writes the prompt of a turn in the form of the protocol.

use super::parts::TurnParts;
use super::past::sent_text;
use crate::agent::AgentProcess;
use crate::chat::turn::Halt;
use crate::checkpoint::{CurrentFile, named};
use co_acp::schema::{ContentBlock, ImageContent};
use co_llm::transcript::Item;
use co_text::one_line;

/// Returns the items of a transcript after the end of the last turn.
pub(in crate::chat) fn since_last_turn(items: &[Item]) -> Vec<Item> {
    let last = items.iter().rposition(|it| matches!(it, Item::End { .. }));
    items[last.map_or(0, |at| at + 1)..].to_vec()
}

impl TurnParts {
    /// Adds a note to the prompt about files that the agent changed, and that somebody else has changed since. Leaves out the
    /// files that the agent's process `process` has been told about already.
    pub(super) async fn tell_changed(
        &self,
        changed: &[CurrentFile],
        process: Option<&AgentProcess>,
        prompt: &mut Vec<Item>,
    ) -> Result<(), Halt> {
        let is_new = |it: &&CurrentFile| process.is_none_or(|process| !process.told.contains(it));
        let new = changed.iter().filter(is_new);
        let new: Vec<_> = new.map(|(path, _)| path.display().to_string()).collect();
        if new.is_empty() {
            return Ok(());
        }
        let names = self.redacted(&one_line(&named(new))).await.0;
        let text = format!(
            "Not you, but somebody else has changed these files since your last change of them: {names}. Read them again before you change them."
        );
        self.chat.tell_model(text.clone(), true).await?;
        prompt.push(Item::Note { text, once: true });
        Ok(())
    }

    /// Returns the prompt in the form of the protocol. Tells the person which images the agent does not accept.
    pub(super) async fn prompt_blocks(
        &self,
        items: &[Item],
        takes_images: bool,
    ) -> Result<Vec<ContentBlock>, Halt> {
        let mut blocks = Vec::new();
        let mut left_out = Vec::new();
        for item in items {
            let (text, context) = match item {
                Item::User { text, context, .. } => (text, context),
                // Such as what the person took back.
                Item::Note { text, .. } => {
                    blocks.push(ContentBlock::from(format!("<note>\n{text}\n</note>")));
                    continue;
                }
                _ => continue,
            };
            blocks.push(ContentBlock::from(sent_text(text)));
            for piece in context {
                match &piece.image {
                    Some(image) if takes_images => {
                        let image = ImageContent::new(image.data.clone(), image.media_type.clone());
                        blocks.push(ContentBlock::Image(image));
                    }
                    Some(_) => left_out.push(piece.name.as_str()),
                    None => {
                        let (name, text) = (piece.name.replace('"', "'"), &piece.text);
                        let text = format!("<context name=\"{name}\">\n{text}\n</context>");
                        blocks.push(ContentBlock::from(text));
                    }
                }
            }
        }
        if !left_out.is_empty() {
            let name = &self.spec.name;
            let text = format!("left out: {}; {name} takes no images", left_out.join(", "));
            self.chat.note(&text).await?;
        }
        Ok(blocks)
    }
}
