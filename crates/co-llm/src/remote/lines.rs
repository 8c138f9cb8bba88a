//! Splits the bytes of an answer into lines, in linear time.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;

use super::error::malformed;
use super::request_info::RequestInfo;
use crate::fault::Fault;

/// The longest line in bytes. A call that writes a file has the whole file on one line.
const MAX_LINE: usize = 32 << 20;

/// Reads the lines of an answer. A line ends with LF, CR LF or CR.
pub(super) struct Lines {
    pieces: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    buffer: Vec<u8>,
    /// The index in `buffer` after the last returned line.
    start: usize,
    /// The index in `buffer` from which the search for the end of a line goes on.
    searched: usize,
    /// True if the last line ended with CR. A LF directly after this CR belongs to the same line break.
    after_cr: bool,
    closed: bool,
}

impl Lines {
    pub(super) fn new(response: reqwest::Response) -> Self {
        let pieces = response
            .bytes_stream()
            .map(|piece| piece.map(|piece| piece.to_vec()));
        Self::of(pieces.boxed())
    }

    fn of(pieces: BoxStream<'static, reqwest::Result<Vec<u8>>>) -> Self {
        Self {
            pieces,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            after_cr: false,
            closed: false,
        }
    }

    /// Returns the next line, or `None` at the end of the answer. The last line needs no line break.
    pub(super) async fn next(
        &mut self,
        info: &RequestInfo,
        patience: Duration,
    ) -> Result<Option<String>, Fault> {
        loop {
            if let Some(line) = self.whole_line() {
                return text(line, false).map(Some);
            }
            if self.closed {
                let rest = self.buffer.split_off(self.start);
                self.buffer.clear();
                (self.start, self.searched) = (0, 0);
                return match rest.is_empty() {
                    true => Ok(None),
                    false => text(rest, true).map(Some),
                };
            }
            if self.buffer.len() - self.start > MAX_LINE {
                let most = MAX_LINE >> 20;
                return Err(malformed(&format!(
                    "a line of it is longer than {most} MiB"
                )));
            }
            match tokio::time::timeout(patience, self.pieces.next()).await {
                Ok(Some(Ok(piece))) => self.add(piece),
                Ok(Some(Err(error))) => return Err(info.network(&error)),
                Ok(None) => self.closed = true,
                Err(_) => return Err(Fault::Stalled(info.stall)),
            }
        }
    }

    fn add(&mut self, piece: Vec<u8>) {
        // Lines that were returned are dropped here and not one by one: that would move the rest each time.
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend(piece);
    }

    fn whole_line(&mut self) -> Option<Vec<u8>> {
        if self.after_cr && self.start < self.buffer.len() {
            self.after_cr = false;
            if self.buffer[self.start] == b'\n' {
                self.start += 1;
                self.searched = self.searched.max(self.start);
            }
        }
        let fresh = &self.buffer[self.searched..];
        let Some(at) = fresh.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + at;
        self.after_cr = self.buffer[end] == b'\r';
        let line = self.buffer[self.start..end].to_vec();
        self.start = end + 1;
        self.searched = self.start;
        Some(line)
    }
}

/// Returns a line as text. `cut` is true if the answer ended within the line, perhaps in the middle of a character.
fn text(line: Vec<u8>, cut: bool) -> Result<String, Fault> {
    String::from_utf8(line).map_err(|error| match error.utf8_error().error_len() {
        None if cut => Fault::Cut,
        _ => malformed("it is not UTF-8"),
    })
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;
    use crate::remote::request_info::test_info;

    async fn read(pieces: Vec<Vec<u8>>) -> Result<Vec<String>, Fault> {
        let mut lines = Lines::of(stream::iter(pieces.into_iter().map(Ok)).boxed());
        let info = test_info(crate::provider_table::Protocol::OpenAi);
        let mut read = Vec::new();
        while let Some(line) = lines.next(&info, info.stall).await? {
            read.push(line);
        }
        Ok(read)
    }

    #[tokio::test]
    async fn ends_of_lines_in_any_style_at_any_cut() {
        let text = "a\nb\r\nc\rd\n\ne\r\n\r\nf".as_bytes();
        let expected = ["a", "b", "c", "d", "", "e", "", "f"];
        for at in 0..=text.len() {
            let (head, tail) = text.split_at(at);
            let read = read(vec![head.to_vec(), tail.to_vec()]).await.unwrap();
            assert_eq!(read, expected, "cut at {at}");
        }
    }

    #[tokio::test]
    async fn half_a_character_is_a_cut_and_a_wrong_one_is_not() {
        assert_eq!(read(vec![b"a\n\xc3".to_vec()]).await, Err(Fault::Cut));
        let wrong = read(vec![b"\xff\xfe\n".to_vec()]).await;
        assert!(matches!(wrong, Err(Fault::Malformed { .. })), "{wrong:?}");
    }

    #[tokio::test]
    async fn a_long_line_takes_time_linear_in_its_length() {
        const PIECE: usize = 4096;
        let time = async |pieces: usize| {
            let mut all = vec![vec![b'x'; PIECE]; pieces];
            all.push(b"\n".to_vec());
            let began = std::time::Instant::now();
            let read = read(all).await.unwrap();
            assert_eq!(read[0].len(), pieces * PIECE);
            began.elapsed()
        };
        // 20 MB in small pieces. With a search or a copy of the whole line for each piece it takes minutes.
        let long = time(5000).await;
        assert!(long < Duration::from_secs(10), "{long:?}");
    }
}
