//! A long chat is resumed in parts, the last one first.

use super::chat::{Chat, says};
use crate::chat::Msg;
use crate::protocol::{TextPart, ToEditor};

/// The most bytes of the text of a part. A longer one would delay keys.
const MOST: usize = 64 << 10;

impl Chat {
    /// Asks for the part above and returns it.
    async fn earlier(&mut self, above: usize) -> TextPart {
        self.send(Msg::EarlierText { above });
        self.until(pick!(ToEditor::Earlier { part, .. } => part.clone()))
            .await
    }
}

#[tokio::test]
async fn no_part_of_a_long_chat_is_long_and_all_make_the_text() {
    let long = "A line of the answer.\n".repeat(20_000) + "The end.";
    let mut chat = Chat::new([says("One."), says(&long)]);
    for prompt in ["first", "second"] {
        assert_eq!(chat.turn(prompt).await, "done");
    }
    let shown = chat.screen();
    let id = chat.id();
    chat.again().await;
    chat.command("resume", &id);
    let end = chat
        .until(pick!(ToEditor::Replace { part, .. } => part.clone()))
        .await;
    assert!(end.text.ends_with("The end.") && end.answer.is_none());
    let mut parts = vec![end];
    while let above @ 1.. = parts.last().unwrap().above {
        // A request about another text gets no answer.
        chat.send(Msg::EarlierText { above: above + 1 });
        parts.push(chat.earlier(above).await);
    }
    assert!(parts.iter().all(|part| part.text.len() <= MOST));
    let messages: usize = parts.iter().map(|part| part.messages.len()).sum();
    assert_eq!(messages, 4);
    let answers = parts.iter().filter(|part| part.answer.is_some());
    assert_eq!(answers.count(), 1);
    let text: String = parts.iter().rev().map(|part| part.text.as_str()).collect();
    assert!(text == shown, "the parts differ from what was shown");
    // Nothing is left.
    chat.send(Msg::EarlierText { above: 0 });
    chat.command_works("rename", "long", "renamed").await;
    let earlier = |message: &&ToEditor| matches!(message, ToEditor::Earlier { .. });
    assert_eq!(chat.seen.iter().filter(earlier).count(), parts.len() - 1);
}
