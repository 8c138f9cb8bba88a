//! The raw output of a run, for a terminal.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::output::reader::SharedOutput;

/// The most unread bytes that are shown completely. More unread bytes are a flood, of which only the end is shown.
const FLOOD_BYTES: u64 = 256 << 10;
/// The number of bytes that are shown of a flood.
const SHOWN_FLOOD_BYTES: u64 = 32 << 10;
/// Ends an escape sequence that was cut, and resets all colours and styles.
const RESET: &str = "\x18\x1b[m";

/// The output of a run, with its escape sequences. If the reader of the feed falls behind a flood, the feed skips to the end of
/// the unread output, and puts a note there with the number of skipped bytes.
#[derive(Debug)]
pub struct Feed {
    shared: Arc<SharedOutput>,
    view: Mutex<FeedState>,
}

#[derive(Debug, Default)]
struct FeedState {
    at: u64,
    /// The first bytes of an incomplete character at the end of the output.
    partial: Vec<u8>,
}

impl Feed {
    pub(crate) fn new(shared: Arc<SharedOutput>) -> Self {
        Self {
            shared,
            view: Mutex::default(),
        }
    }

    /// Waits until [`take`](Self::take) has something to return. Returns false if the run has ended and `take` has returned
    /// everything.
    pub async fn changed(&self) -> bool {
        let pending = |_over| {
            let at = self.view.lock().at;
            self.shared.capture().bytes() > at
        };
        self.shared.until(pending).await
    }

    /// Returns the output since the last call, with invalid UTF-8 replaced. Returns `None` if there is no new output.
    pub fn take(&self) -> Option<String> {
        let mut view = self.view.lock();
        let (fresh, skipped) = {
            let capture = self.shared.capture();
            let end = capture.bytes();
            let flood = end - view.at > FLOOD_BYTES;
            let from = if flood {
                end - SHOWN_FLOOD_BYTES
            } else {
                view.at
            };
            let skipped = from - view.at;
            view.at = end;
            (capture.range(from, end), skipped)
        };
        if fresh.is_empty() {
            return None;
        }
        let mut text = String::new();
        if skipped > 0 {
            view.partial.clear();
            text.push_str(&format!("{RESET}\r\n… {skipped} bytes are not shown …\r\n"));
        }
        decode(&mut view.partial, &fresh, &mut text);
        (!text.is_empty()).then_some(text)
    }
}

/// Appends the text of `fresh` to `text`. Keeps the bytes of an incomplete character at the end of `fresh` in `partial`.
fn decode(partial: &mut Vec<u8>, fresh: &[u8], text: &mut String) {
    partial.extend_from_slice(fresh);
    let bytes = std::mem::take(partial);
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        let invalid = chunk.invalid();
        let last = chunks.peek().is_none();
        let unfinished = std::str::from_utf8(invalid).is_err_and(|it| it.error_len().is_none());
        if last && unfinished {
            partial.extend_from_slice(invalid);
        } else if !invalid.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_flood_begins_anew_and_says_what_is_not_there() {
        let shared = Arc::new(SharedOutput::new(100, 0));
        let feed = Feed::new(Arc::clone(&shared));
        let print = |mut bytes: &[u8]| {
            while !bytes.is_empty() {
                let read = |space: &mut [u8]| std::io::Read::read(&mut bytes, space);
                shared.capture().fill(read).unwrap();
            }
        };
        print(b"a\xe6");
        assert_eq!(feed.take().unwrap(), "a");
        print(&vec![b'x'; FLOOD_BYTES as usize + 1]);
        let note = format!(
            "{RESET}\r\n… {} bytes are not shown …\r\n",
            FLOOD_BYTES + 1 - SHOWN_FLOOD_BYTES
        );
        assert_eq!(
            feed.take().unwrap(),
            note + &"x".repeat(SHOWN_FLOOD_BYTES as usize)
        );
        print(&vec![b'x'; FLOOD_BYTES as usize]);
        assert_eq!(feed.take().unwrap().len() as u64, FLOOD_BYTES);
    }

    #[test]
    fn characters_that_come_in_pieces_are_whole() {
        let (mut partial, mut text) = (Vec::new(), String::new());
        for piece in ["ab漢字\x1b[1m".as_bytes(), b"\xff\xe6"] {
            for byte in piece {
                decode(&mut partial, &[*byte], &mut text);
            }
        }
        assert_eq!(text, "ab漢字\x1b[1m\u{fffd}");
        assert_eq!(partial, [0xe6]);
        decode(&mut partial, b"x", &mut text);
        assert_eq!(text, "ab漢字\x1b[1m\u{fffd}\u{fffd}x");
    }
}
