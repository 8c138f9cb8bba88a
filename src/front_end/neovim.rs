//! Sends the events of a chat to Neovim.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::markdown::{self, Edit, MessageStart, Page, Piece};
use super::parts::TextParts;
use crate::chat::events::{ChatEvent, FrontEnd};
use crate::editor::{Editor, LiveOutput, Target};
use crate::error;
use crate::protocol::{NoticeLevel, ToEditor};
use crate::tool::event::CallEvent;
use co_exec::ScreenPatch;

/// Makes the front end for the chat with this number. If `full_calls` is true, it shows calls with all their lines.
pub fn make(editor: Editor, chat: u64, full_calls: bool) -> Arc<dyn FrontEnd> {
    Arc::new(NeovimChat {
        chat,
        editor,
        full_calls,
        screen: Mutex::new(ChatScreen {
            page: Page::new(full_calls),
            earlier: None,
            outputs: HashMap::new(),
        }),
    })
}

/// The front end of one chat.
struct NeovimChat {
    chat: u64,
    editor: Editor,
    full_calls: bool,
    /// The state of the chat's buffer. It is locked while an event is handled, because a command that the person typed ends
    /// outside the chat's task.
    screen: Mutex<ChatScreen>,
}

struct ChatScreen {
    page: Page,
    /// The earlier part of a resumed chat's text, which Neovim has not asked for yet.
    earlier: Option<TextParts>,
    /// The outputs that have not ended, by the number of their block.
    outputs: HashMap<u64, LiveOutput>,
}

impl FrontEnd for NeovimChat {
    fn show(&self, event: ChatEvent) {
        if let ChatEvent::Resumed { events, answered } = event {
            return self.replace(&events, answered);
        }
        let mut screen = self.screen.lock();
        let ChatScreen {
            page,
            earlier,
            outputs,
        } = &mut *screen;
        let chat = self.chat;
        for edit in page.add(&event) {
            match edit {
                Edit::Append(piece) => self.add(piece),
                Edit::SeparateAnswer => self.editor.tell(ToEditor::SeparateAnswer { chat }),
                Edit::Call(call, line) => self.editor.tell(ToEditor::Call { chat, call, line }),
            }
        }
        match event {
            ChatEvent::AnswerStarted => {
                self.add(page.heading());
                self.append(page.end_line());
                self.editor.tell(ToEditor::AnswerBegins { chat });
            }
            ChatEvent::AnswerDropped => {
                self.append(page.end_line());
                self.editor.tell(ToEditor::FoldAnswer { chat });
            }
            ChatEvent::Call(CallEvent::OutputStarted { block, screen }) => {
                let target = Target::Block { chat, block };
                outputs.insert(block, self.editor.show(target, screen));
            }
            ChatEvent::Call(CallEvent::OutputEnded { block }) => {
                if let Some(showing) = outputs.remove(&block) {
                    showing.finish(self.block(block, None));
                }
            }
            ChatEvent::Call(CallEvent::Output { block, text }) => {
                self.editor.tell(self.block(block, Some(whole(&text))));
            }
            ChatEvent::Thinking { block, from, lines }
            | ChatEvent::Call(CallEvent::OutputLines { block, from, lines }) => {
                let patch = ScreenPatch {
                    from,
                    lines,
                    ..ScreenPatch::default()
                };
                self.editor.tell(ToEditor::Block {
                    chat,
                    block,
                    patch: Some(patch),
                    done: false,
                });
            }
            ChatEvent::ThinkingEnded { block } => self.editor.tell(self.block(block, None)),
            ChatEvent::ProviderFailed(fault) => self.editor.tell(ToEditor::Notice {
                level: NoticeLevel::Error,
                message: error::text_of(&fault).plain(),
                answer: false,
            }),
            ChatEvent::EarlierTextWanted { above } => {
                // Another number means that the request is about a text that was replaced.
                if let Some(parts) = earlier.as_mut().filter(|parts| parts.left() == above) {
                    let part = parts.take_last();
                    if part.above == 0 {
                        *earlier = None;
                    }
                    self.editor.tell(ToEditor::Earlier { chat, part });
                }
            }
            _ => {}
        }
    }
}

impl NeovimChat {
    /// Replaces the text in Neovim by the last part of another transcript. Takes long if the transcript is long.
    fn replace(&self, events: &[ChatEvent], answered: bool) {
        let mut page = Page::new(self.full_calls);
        let mut retold = markdown::transcript(events, &mut page);
        retold.answer = retold.answer.filter(|_| answered);
        let mut parts = TextParts::new(retold);
        let part = parts.take_last();
        let mut screen = self.screen.lock();
        screen.page = page;
        screen.earlier = (part.above > 0).then_some(parts);
        let chat = self.chat;
        self.editor.tell(ToEditor::Replace { chat, part });
    }

    fn add(&self, piece: Piece) {
        let mut text = piece.text;
        if let Some(MessageStart { byte, at }) = piece.message {
            let message = text.split_off(byte);
            self.append(text);
            let chat = self.chat;
            self.editor.tell(ToEditor::MessageBegins { chat, at });
            text = message;
        }
        self.append(text);
    }

    fn append(&self, text: String) {
        let chat = self.chat;
        if !text.is_empty() {
            self.editor.tell(ToEditor::Append { chat, text });
        }
    }

    /// Returns the message that ends a block. `patch` is the last change of the block.
    fn block(&self, block: u64, patch: Option<ScreenPatch>) -> ToEditor {
        ToEditor::Block {
            chat: self.chat,
            block,
            patch,
            done: true,
        }
    }
}

/// Returns a patch that sets the whole text of a block.
fn whole(text: &str) -> ScreenPatch {
    ScreenPatch {
        lines: text.lines().map(str::to_owned).collect(),
        ..ScreenPatch::default()
    }
}
