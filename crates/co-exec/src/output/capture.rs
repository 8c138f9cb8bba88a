//! A bounded record of an output stream: its first bytes, its last lines, and exact counts of bytes and lines.
//!
//! Each read goes directly into a block, and blocks are reused. So even a flood costs only one copy out of the pipe and one count
//! of newlines. This module decodes nothing.

use std::collections::VecDeque;
use std::io;

use crate::output::binary;
use crate::output::text::Encoding;

/// The size of a block in bytes, which is also the most bytes of one read: the capacity of a pipe.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
/// The size of the first block in bytes. Most commands print less than this.
const FIRST_BLOCK_BYTES: usize = 4 << 10;
/// The least number of bytes to keep of the beginning of the stream, for a model.
pub(crate) const MIN_HEAD_BYTES: usize = 16 << 10;
/// The least number of bytes to keep of the end of the stream, for a model.
pub(crate) const MIN_TAIL_BYTES: usize = 48 << 10;
/// The most bytes to keep of the end of the stream, however long its lines are.
const MAX_TAIL_BYTES: usize = 4 << 20;
/// The number of bytes at the start that decide whether a stream is binary.
const BINARY_CHECK_BYTES: usize = 4 << 10;

/// The numbers of bytes to keep of the beginning and of the end of the stream, for a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HeadAndTailSizes {
    pub(crate) head: usize,
    pub(crate) tail: usize,
}

impl HeadAndTailSizes {
    /// Returns the sizes for a model that reads at most `max` bytes.
    pub(crate) fn of(max: usize) -> Self {
        Self {
            head: (max / 5).max(MIN_HEAD_BYTES),
            tail: max.clamp(MIN_TAIL_BYTES, MAX_TAIL_BYTES - BLOCK_BYTES),
        }
    }

    pub(crate) fn sum(self) -> usize {
        self.head + self.tail
    }
}

/// A bounded record of a stream.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    share: HeadAndTailSizes,
    head: Vec<u8>,
    blocks: VecDeque<OutputBlock>,
    /// The memory of a dropped block, which the next block reuses.
    spare: Option<Box<[u8]>>,
    /// The number of lines to keep at the end of the stream.
    keep: u64,
    /// The number of bytes of the stream before the first block.
    dropped: u64,
    /// The number of newlines in the stream before the first block.
    dropped_lines: u64,
    /// True if the first block begins inside a line.
    dropped_inside: bool,
    bytes: u64,
    newlines: u64,
    ends_in_newline: bool,
}

#[derive(Debug)]
struct OutputBlock {
    data: Box<[u8]>,
    len: usize,
    newlines: u64,
}

impl OutputBlock {
    fn bytes(&self) -> &[u8] {
        &self.data[..self.len]
    }

    fn full(&self) -> bool {
        self.len == self.data.len()
    }
}

/// The kept beginning and the kept end of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HeadAndTail {
    pub(crate) head: Vec<u8>,
    /// The end of the stream. It follows `head` directly if nothing is missing. Otherwise it begins at the start of a line, if
    /// possible.
    pub(crate) tail: Vec<u8>,
    pub(crate) bytes: u64,
    pub(crate) lines: u64,
    pub(crate) binary: bool,
    pub(crate) encoding: Encoding,
}

impl HeadAndTail {
    /// Returns true if nothing is missing between the head and the tail.
    pub(crate) fn is_whole(&self) -> bool {
        (self.head.len() + self.tail.len()) as u64 == self.bytes
    }
}

impl Capture {
    /// Creates a record that keeps the last `keep` lines, and enough bytes for a model that reads at most `max` bytes.
    pub(crate) fn new(keep: usize, max: usize) -> Self {
        Self {
            share: HeadAndTailSizes::of(max),
            keep: keep as u64,
            ends_in_newline: true,
            ..Self::default()
        }
    }

    /// Passes free space to `read`, adds the bytes that `read` writes into the space, and returns these bytes.
    pub(crate) fn fill(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<&[u8]> {
        if self.blocks.back().is_none_or(OutputBlock::full) {
            self.drop_blocks();
            let size = if self.bytes == 0 {
                FIRST_BLOCK_BYTES
            } else {
                BLOCK_BYTES
            };
            let data = self.spare.take();
            self.blocks.push_back(OutputBlock {
                data: data.unwrap_or_else(|| vec![0; size].into_boxed_slice()),
                len: 0,
                newlines: 0,
            });
        }
        let block = self
            .blocks
            .back_mut()
            .expect("a block was just made sure of");
        let start = block.len;
        let count = read(&mut block.data[start..])?;
        block.len += count;
        let fresh = &block.data[start..block.len];
        let newlines = memchr::memchr_iter(b'\n', fresh).count() as u64;
        block.newlines += newlines;
        self.newlines += newlines;
        self.bytes += count as u64;
        if let Some(last) = fresh.last() {
            self.ends_in_newline = *last == b'\n';
        }
        let room = self.share.head - self.head.len();
        self.head.extend_from_slice(&fresh[..room.min(count)]);
        Ok(fresh)
    }

    /// Drops blocks at the beginning that are no longer needed.
    fn drop_blocks(&mut self) {
        while self.blocks.len() > 1 {
            let held = self.blocks.len() * BLOCK_BYTES;
            let first = &self.blocks[0];
            let left = self.newlines - self.dropped_lines - first.newlines;
            // The tail and one full block, because the last block is still empty.
            let enough = left > self.keep && held - BLOCK_BYTES >= self.share.tail;
            if !enough && held < MAX_TAIL_BYTES {
                return;
            }
            if let Some(first) = self.blocks.pop_front() {
                self.dropped += first.len as u64;
                self.dropped_lines += first.newlines;
                self.dropped_inside = first.bytes().last() != Some(&b'\n');
                self.spare = (first.data.len() == BLOCK_BYTES).then_some(first.data);
            }
        }
    }

    pub(crate) fn share(&self) -> HeadAndTailSizes {
        self.share
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn newlines(&self) -> u64 {
        self.newlines
    }

    /// Returns the number of lines so far. An unfinished line counts as a line.
    pub(crate) fn lines(&self) -> u64 {
        self.newlines + u64::from(!self.ends_in_newline)
    }

    pub(crate) fn encoding(&self) -> Encoding {
        Encoding::of(&self.head)
    }

    /// Returns true if the stream counts as binary for a model: one NUL byte at the start is enough.
    pub(crate) fn binary(&self) -> bool {
        self.encoding() == Encoding::Utf8 && memchr::memchr(0, self.start()).is_some()
    }

    /// Returns true if a person cannot read the stream. Such a stream is also binary for a model.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.encoding() == Encoding::Utf8 && binary::is_unreadable(self.start())
    }

    fn start(&self) -> &[u8] {
        &self.head[..self.head.len().min(BINARY_CHECK_BYTES)]
    }

    /// Returns the bytes between the positions `at` and `end`, without the bytes that were dropped.
    pub(crate) fn range(&self, at: u64, end: u64) -> Vec<u8> {
        let mut found = Vec::new();
        let mut start = self.dropped;
        for block in &self.blocks {
            let len = block.len as u64;
            let from = at.clamp(start, start + len) - start;
            let to = end.clamp(start, start + len) - start;
            // Both are at most the length of a block.
            found
                .extend_from_slice(&block.bytes()[from as usize..(to as usize).max(from as usize)]);
            start += len;
        }
        found
    }

    /// Returns the position at which the last `lines` lines begin, but at most `most` bytes before the end. Also returns the
    /// number of newlines before that position.
    pub(crate) fn last_lines(&self, lines: u64, most: u64) -> (u64, u64) {
        let floor = self.bytes.saturating_sub(most).max(self.dropped);
        // The newline of the last line begins no other line.
        let mut wanted = lines + u64::from(self.ends_in_newline);
        let mut passed = 0;
        let mut end = self.bytes;
        for block in self.blocks.iter().rev() {
            let start = end - block.len as u64;
            let from = usize::try_from(floor.saturating_sub(start)).unwrap_or(usize::MAX);
            let bytes = block.bytes();
            for at in memchr::memrchr_iter(b'\n', bytes) {
                if at < from {
                    break;
                }
                wanted -= 1;
                if wanted == 0 {
                    return (self.align(start + at as u64 + 1), self.newlines - passed);
                }
                passed += 1;
            }
            end = start;
            if start <= floor {
                break;
            }
        }
        (self.align(floor), self.newlines - passed)
    }

    /// Returns whether a position is inside a line, not at its start.
    pub(crate) fn is_inside_line(&self, at: u64) -> bool {
        match self.encoding() {
            // A cut within UTF-16 text is not marked.
            Encoding::Utf16 { .. } => false,
            Encoding::Utf8 if at <= self.dropped => self.dropped_inside,
            Encoding::Utf8 => self.range(at - 1, at) != b"\n",
        }
    }

    /// Among the last `lines` lines, finds the first line that is completely kept. Returns its position and its number, counted
    /// from 0.
    pub(crate) fn first_of(&self, lines: u64) -> (u64, u64) {
        let (at, before) = self.last_lines(lines, u64::MAX);
        if at > self.align(self.dropped) || self.dropped == 0 {
            return (at, before);
        }
        // The kept part begins inside a line.
        let kept = self.range(at, self.bytes);
        match memchr::memchr(b'\n', &kept) {
            Some(end) if end + 1 < kept.len() => (self.align(at + end as u64 + 1), before + 1),
            _ => (at, before + 1),
        }
    }

    /// Returns `at`, rounded up to the start of a UTF-16 unit if the stream is UTF-16.
    fn align(&self, at: u64) -> u64 {
        match self.encoding() {
            Encoding::Utf16 { .. } => at.next_multiple_of(2).min(self.bytes),
            Encoding::Utf8 => at,
        }
    }

    /// Returns the kept beginning and end of the stream.
    pub(crate) fn head_and_tail(&self) -> HeadAndTail {
        let head = self.head.clone();
        let (bytes, binary) = (self.bytes, self.binary());
        let tail = if bytes <= self.share.sum() as u64 {
            self.range(head.len() as u64, bytes)
        } else {
            let start = bytes - self.share.tail as u64;
            let tail = self.range(start, bytes);
            let line = memchr::memchr(b'\n', &tail).map(|at| start + at as u64 + 1);
            let line = self.align(line.filter(|at| *at < bytes).unwrap_or(start));
            tail[(line - start) as usize..].to_vec()
        };
        HeadAndTail {
            head,
            tail,
            bytes,
            lines: self.lines(),
            binary,
            encoding: self.encoding(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(keep: usize, pieces: impl IntoIterator<Item = Vec<u8>>) -> Capture {
        let mut capture = Capture::new(keep, 0);
        for piece in pieces {
            let mut rest = piece.as_slice();
            while !rest.is_empty() {
                let read = |space: &mut [u8]| io::Read::read(&mut rest, space);
                capture.fill(read).unwrap();
            }
        }
        capture
    }

    #[test]
    fn a_short_stream_is_whole() {
        let it = capture(100, [b"one\n".to_vec(), b"two".to_vec()]);
        let ends = it.head_and_tail();
        assert_eq!(
            (ends.head.as_slice(), ends.tail.as_slice()),
            (&b"one\ntwo"[..], &b""[..])
        );
        assert!(ends.is_whole() && !ends.binary);
        assert_eq!((ends.bytes, ends.lines), (7, 2));
        assert_eq!(it.last_lines(1, 100), (4, 1));
        assert_eq!(it.last_lines(9, 100), (0, 0));
        assert_eq!(it.last_lines(9, 2), (5, 1));
        // As much as both ends hold.
        assert!(
            capture(100, [vec![b'\n'; MIN_HEAD_BYTES + MIN_TAIL_BYTES]])
                .head_and_tail()
                .is_whole()
        );
    }

    #[test]
    fn what_outgrows_the_first_block_is_whole_too() {
        let stream: Vec<u8> = (0..=250).cycle().take(3 * FIRST_BLOCK_BYTES).collect();
        let few = capture(9, [stream[..FIRST_BLOCK_BYTES - 1].to_vec()]);
        assert_eq!(
            (few.blocks.len(), few.blocks[0].data.len()),
            (1, FIRST_BLOCK_BYTES)
        );
        let more = capture(9, [stream.clone()]);
        assert_eq!(more.blocks.len(), 2);
        assert_eq!(more.range(0, u64::MAX), stream);
        // What is used again is of full size.
        let long = capture(0, (0..40).map(|_| vec![b'\n'; BLOCK_BYTES]));
        assert!(long.blocks.iter().all(|it| it.data.len() == BLOCK_BYTES));
        assert!(long.spare.is_none_or(|it| it.len() == BLOCK_BYTES));
    }

    #[test]
    fn a_long_stream_keeps_its_ends_and_counts() {
        let line = |n: u32| format!("line {n}\n").into_bytes();
        let it = capture(1_000, (0..500_000).map(line));
        let total: u64 = (0..500_000).map(|n| line(n).len() as u64).sum();
        assert_eq!((it.bytes(), it.lines()), (total, 500_000));
        let ends = it.head_and_tail();
        assert!(ends.head.starts_with(b"line 0\n") && ends.head.len() == MIN_HEAD_BYTES);
        assert!(ends.tail.ends_with(b"line 499999\n") && ends.tail.starts_with(b"line "));
        assert!(!ends.is_whole());
        assert!(it.blocks.len() <= 3, "{}", it.blocks.len());
        let (at, before) = it.last_lines(1_000, u64::MAX);
        assert_eq!(before, 499_000);
        assert!(it.range(at, total).starts_with(b"line 499000\n"));
    }

    #[test]
    fn a_line_that_begins_in_a_dropped_block_is_not_counted_on() {
        let stream = b"ab\n".repeat(5 * BLOCK_BYTES);
        // As many newlines as a block holds: what is left after a drop may begin inside of a line.
        for keep in BLOCK_BYTES / 3 - 1..=BLOCK_BYTES / 3 + 2 {
            let mut it = Capture::new(keep, 0);
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let read = |space: &mut [u8]| io::Read::read(&mut rest, space);
                it.fill(read).unwrap();
                // As at the end, which may come after any read.
                it.fill(|_| Ok(0)).unwrap();
                let lines = it.newlines().min(keep as u64);
                let (at, before) = it.last_lines(lines, u64::MAX);
                assert_eq!(at, before * 3, "{keep} at {}", it.bytes());
            }
        }
    }

    #[test]
    fn one_endless_line_stays_bounded() {
        let it = capture(1_000, (0..400).map(|_| vec![b'x'; BLOCK_BYTES]));
        assert!(it.blocks.len() * BLOCK_BYTES <= MAX_TAIL_BYTES + BLOCK_BYTES);
        assert_eq!((it.bytes(), it.lines()), (400 * BLOCK_BYTES as u64, 1));
        assert_eq!(it.head_and_tail().tail.len(), MIN_TAIL_BYTES);
    }

    #[test]
    fn nul_at_the_start_is_binary_unless_a_mark_says_utf16() {
        assert!(capture(9, [b"a\0b".to_vec()]).binary());
        assert!(!capture(9, [b"\xff\xfea\0".to_vec()]).binary());
        let mut late = vec![b'x'; BINARY_CHECK_BYTES];
        late.push(0);
        assert!(!capture(9, [late]).binary());
    }
}
