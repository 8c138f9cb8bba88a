//! Reads the lines of a stream, each within a limit.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// The most bytes that are kept of a line that is too long.
const KEPT: usize = 200;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AgentLine {
    Whole(Vec<u8>),
    /// The stream ended within this line.
    Partial(Vec<u8>),
    /// The start of a line that is longer than the limit, and the length of the line.
    TooLong {
        start: Vec<u8>,
        length: usize,
    },
}

/// The lines of a stream.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    stream: R,
    limit: usize,
    /// The bytes that were read. It grows to the limit at most, and by two chunks.
    buffer: Vec<u8>,
    /// The bytes at the start of `buffer` that were returned. They are removed before the next read, all at once.
    returned: usize,
    /// The bytes at the start of `buffer` that were returned or have no line break.
    searched: usize,
    /// The length so far of a line that is too long. `buffer` has its start.
    skipped: Option<usize>,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(stream: R, limit: usize) -> Self {
        Self {
            stream,
            limit,
            buffer: Vec::new(),
            returned: 0,
            searched: 0,
            skipped: None,
            ended: false,
        }
    }

    /// Returns the next line; none at the end. If the future is dropped, no byte is lost.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub(crate) async fn next(&mut self) -> io::Result<Option<AgentLine>> {
        loop {
            if let Some(line) = self.take() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(self.rest());
            }
            self.buffer.drain(..self.returned);
            self.searched -= std::mem::take(&mut self.returned);
            self.buffer.reserve(CHUNK);
            let mut chunk = (&mut self.stream).take(CHUNK as u64);
            self.ended = chunk.read_buf(&mut self.buffer).await? == 0;
        }
    }

    /// Takes the first whole line out of the buffer. Keeps only the start of one that is too long.
    fn take(&mut self) -> Option<AgentLine> {
        let start = self.returned;
        let end = memchr::memchr(b'\n', &self.buffer[self.searched..]);
        let end = end.map(|at| self.searched + at);
        let upto = end.unwrap_or(self.buffer.len());
        let length = upto - start;
        let is_too_long = self.skipped.is_some() || length > self.limit;
        let Some(end) = end else {
            if is_too_long {
                let more = self
                    .skipped
                    .map_or(length, |skipped| skipped + length - KEPT);
                self.skipped = Some(more);
                self.buffer.truncate(start + KEPT);
            }
            self.searched = self.buffer.len();
            return None;
        };
        (self.returned, self.searched) = (end + 1, end + 1);
        let line = &self.buffer[start..end];
        Some(match is_too_long {
            true => AgentLine::TooLong {
                start: line[..KEPT].to_vec(),
                length: (self.skipped.take()).map_or(length, |skipped| skipped + length - KEPT),
            },
            false => AgentLine::Whole(line.to_vec()),
        })
    }

    /// Returns the rest of the buffer at the end of the stream.
    fn rest(&mut self) -> Option<AgentLine> {
        let rest = self.buffer.split_off(self.returned);
        self.buffer.clear();
        (self.returned, self.searched) = (0, 0);
        match self.skipped.take() {
            Some(length) => Some(AgentLine::TooLong {
                start: rest,
                length,
            }),
            None => (!rest.is_empty()).then_some(AgentLine::Partial(rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    use super::*;

    const LIMIT: usize = 300;

    /// Returns the lines of a text that comes in pieces of this size.
    async fn lines(text: &[u8], piece: usize) -> Vec<AgentLine> {
        let (mut write, read) = tokio::io::duplex(64);
        let text = text.to_vec();
        let writer = tokio::spawn(async move {
            for piece in text.chunks(piece) {
                write.write_all(piece).await.unwrap();
            }
        });
        let mut reader = LineReader::new(read, LIMIT);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            assert!(reader.buffer.capacity() <= 4 * (CHUNK + LIMIT));
            lines.push(line);
        }
        writer.await.unwrap();
        lines
    }

    fn expected(text: &[u8]) -> Vec<AgentLine> {
        let mut parts: Vec<_> = text.split(|byte| *byte == b'\n').collect();
        let last = parts.pop().unwrap_or_default();
        let too_long = |part: &[u8]| {
            (part.len() > LIMIT).then(|| AgentLine::TooLong {
                start: part[..KEPT].to_vec(),
                length: part.len(),
            })
        };
        let whole = parts.iter();
        let whole = whole.map(|it| too_long(it).unwrap_or_else(|| AgentLine::Whole(it.to_vec())));
        let mut lines: Vec<_> = whole.collect();
        if !last.is_empty() {
            lines.push(too_long(last).unwrap_or_else(|| AgentLine::Partial(last.to_vec())));
        }
        lines
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn they_are_the_same_however_they_come(
            lengths in proptest::collection::vec(0usize..700, 0..6),
            piece in 1usize..900,
            ends in any::<bool>(),
        ) {
            let parts: Vec<_> = lengths.iter().enumerate().map(|(at, length)| vec![b'a' + at as u8; *length]).collect();
            let mut text = parts.join(&b'\n');
            if ends {
                text.push(b'\n');
            }
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let read = runtime.block_on(lines(&text, piece));
            prop_assert_eq!(read, expected(&text));
        }
    }

    #[tokio::test]
    async fn a_dropped_wait_loses_nothing() {
        let (mut write, read) = tokio::io::duplex(64);
        let mut reader = LineReader::new(read, LIMIT);
        write.write_all(b"fir").await.unwrap();
        for _ in 0..3 {
            tokio::select! {
                biased;
                _ = reader.next() => panic!("there is no line yet"),
                () = std::future::ready(()) => {}
            }
        }
        write.write_all(b"st\n").await.unwrap();
        let line = reader.next().await.unwrap();
        assert_eq!(line, Some(AgentLine::Whole(b"first".to_vec())));
    }
}
