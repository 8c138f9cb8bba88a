//! Reads the lines of a stream, each of bounded size.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The largest length of a line, in bytes. A message may have an image, or the old and the new text of a large file.
pub const LONGEST_LINE: usize = 8 << 20;

/// The largest number of bytes of memory that a line may take when it is parsed.
pub const LARGEST_LINE: u64 = 48 << 20;

/// The approximate number of bytes that a JSON value takes in memory besides its text. For example, the two bytes `[]` in a
/// message take this much memory.
const VALUE_BYTES: u64 = 72;

/// The number of bytes that one read asks for.
const CHUNK: usize = 64 << 10;

/// The number of bytes that are kept of a line that is too large.
const KEPT: usize = 200;

/// A line without its line break.
#[derive(Debug, PartialEq, Eq)]
pub enum BoundedLine {
    Whole(Vec<u8>),
    /// The line at the end of a stream that does not end with a line break.
    Partial(Vec<u8>),
    /// A line that is too long, or has too many JSON values. `start` is the start of the line; `length` is the length of the
    /// whole line in bytes.
    TooLarge {
        start: Vec<u8>,
        length: usize,
    },
}

/// Reads a stream line by line.
#[derive(Debug)]
pub struct LineReader<R> {
    stream: R,
    limit: usize,
    /// The bytes that were read and not removed yet. The buffer has at most the size of the longest line and two chunks.
    buffer: Vec<u8>,
    /// The number of bytes at the start of `buffer` that were already returned as lines. The next read removes them.
    returned: usize,
    /// The number of bytes at the start of `buffer` that were returned or searched for a line break.
    searched: usize,
    /// The length so far of a line that is too long. `buffer` has only the start of this line.
    skipped: Option<usize>,
    /// True if a line that is too long ends the stream.
    stops: bool,
    ended: bool,
    taken: u64,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(stream: R) -> Self {
        Self {
            stream,
            limit: LONGEST_LINE,
            buffer: Vec::new(),
            returned: 0,
            searched: 0,
            skipped: None,
            stops: false,
            ended: false,
            taken: 0,
        }
    }

    /// Makes the reader end the stream as soon as a line is too long.
    #[must_use]
    pub fn stopping(self) -> Self {
        Self {
            stops: true,
            ..self
        }
    }

    /// Returns roughly how many bytes of memory all lines so far take, if each of them is parsed as JSON.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the next line, or `None` at the end of the stream. If the future is dropped, no byte is lost.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub async fn next(&mut self) -> io::Result<Option<BoundedLine>> {
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

    /// Takes the first complete line out of the buffer. Keeps only the start of a line that is too long.
    fn take(&mut self) -> Option<BoundedLine> {
        let start = self.returned;
        let end = memchr::memchr(b'\n', &self.buffer[self.searched..]);
        let end = end.map(|at| self.searched + at);
        let upto = end.unwrap_or(self.buffer.len());
        let length = upto - start;
        let is_too_long = self.skipped.is_some() || length > self.limit;
        let Some(end) = end else {
            if is_too_long && self.stops {
                let kept = self.buffer[start..start + KEPT].to_vec();
                (self.buffer, self.returned, self.searched) = (Vec::new(), 0, 0);
                self.ended = true;
                return Some(self.too_large(kept, length));
            }
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
        if is_too_long {
            let length = (self.skipped.take()).map_or(length, |skipped| skipped + length - KEPT);
            let kept = self.buffer[start..start + KEPT].to_vec();
            return Some(self.too_large(kept, length));
        }
        let line = self.buffer[start..end].to_vec();
        Some(self.counted(line, BoundedLine::Whole))
    }

    /// Returns the rest of the buffer at the end of the stream as the last line.
    fn rest(&mut self) -> Option<BoundedLine> {
        let rest = self.buffer.split_off(self.returned);
        self.buffer.clear();
        (self.returned, self.searched) = (0, 0);
        match self.skipped.take() {
            Some(length) => Some(self.too_large(rest, length)),
            None => (!rest.is_empty()).then(|| self.counted(rest, BoundedLine::Partial)),
        }
    }

    /// Counts the memory that a line takes when it is parsed. If the line takes too much memory, returns only the start of the
    /// line.
    fn counted(&mut self, line: Vec<u8>, kind: fn(Vec<u8>) -> BoundedLine) -> BoundedLine {
        let memory = json_memory(&line);
        if memory > LARGEST_LINE {
            let length = line.len();
            return self.too_large(line[..KEPT].to_vec(), length);
        }
        self.taken += memory;
        kind(line)
    }

    fn too_large(&mut self, start: Vec<u8>, length: usize) -> BoundedLine {
        self.taken += length as u64;
        BoundedLine::TooLarge { start, length }
    }
}

/// Returns roughly how many bytes of memory a line of JSON takes when it is parsed.
pub fn json_memory(line: &[u8]) -> u64 {
    let (mut values, mut in_text, mut escaped) = (1, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    line.len() as u64 + values * VALUE_BYTES
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    use super::*;

    const LIMIT: usize = 300;

    fn limited<R: AsyncRead + Unpin>(stream: R) -> LineReader<R> {
        let limit = LIMIT;
        LineReader {
            limit,
            ..LineReader::new(stream)
        }
    }

    /// Returns the lines of a text that comes in pieces of this size.
    async fn lines(text: &[u8], piece: usize) -> Vec<BoundedLine> {
        let (mut write, read) = tokio::io::duplex(64);
        let text = text.to_vec();
        let writer = tokio::spawn(async move {
            for piece in text.chunks(piece) {
                write.write_all(piece).await.unwrap();
            }
        });
        let mut reader = limited(read);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            assert!(reader.buffer.capacity() <= 4 * (CHUNK + LIMIT));
            lines.push(line);
        }
        writer.await.unwrap();
        lines
    }

    fn expected(text: &[u8]) -> Vec<BoundedLine> {
        let mut parts: Vec<_> = text.split(|byte| *byte == b'\n').collect();
        let last = parts.pop().unwrap_or_default();
        let too_long = |part: &[u8]| {
            (part.len() > LIMIT).then(|| BoundedLine::TooLarge {
                start: part[..KEPT].to_vec(),
                length: part.len(),
            })
        };
        let whole = parts.iter();
        let whole = whole.map(|it| too_long(it).unwrap_or_else(|| BoundedLine::Whole(it.to_vec())));
        let mut lines: Vec<_> = whole.collect();
        if !last.is_empty() {
            lines.push(too_long(last).unwrap_or_else(|| BoundedLine::Partial(last.to_vec())));
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
        let mut reader = limited(read);
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
        assert_eq!(line, Some(BoundedLine::Whole(b"first".to_vec())));
    }

    #[tokio::test]
    async fn a_line_of_too_many_values_is_not_handed_on_and_a_text_of_commas_is() {
        let many = format!("[{}]", "[],".repeat(1 << 20));
        let text = format!("\"{}\"", "[],\\\"".repeat(1 << 20));
        let both = format!("{many}\n{text}\n");
        let mut reader = LineReader::new(both.as_bytes());
        let first = reader.next().await.unwrap();
        let start = many.as_bytes()[..KEPT].to_vec();
        let length = many.len();
        assert_eq!(first, Some(BoundedLine::TooLarge { start, length }));
        let second = reader.next().await.unwrap();
        assert_eq!(second, Some(BoundedLine::Whole(text.clone().into_bytes())));
        assert_eq!(reader.taken(), (length + text.len()) as u64 + VALUE_BYTES);
    }
}
