//! The output file of one command: the whole output, or its first and its last part if it exceeds the limit.
//!
//! The first half of the limit is written to the file at once. The rest goes into a second file: a ring buffer, whose size is the
//! other half of the limit. At the end, the second file is appended to the first file. Until then, and after a crash, a line at
//! the end of the first file says that the rest is missing.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;

use crate::outcome::OutputGap;

/// The suffix of the second file, which contains the last part of the output while the command runs.
pub(super) const TAIL_SUFFIX: &str = "tail";

/// The length in bytes of the note between the first part and the last part. A shorter note is padded with spaces.
const MAX_NOTE_BYTES: usize = 120;
/// The most bytes by which a cut is moved so that it falls on the end of a line.
const MAX_CUT_SHIFT: u64 = 64 << 10;
/// The number of bytes of the second file to copy at a time.
const COPY_BYTES: usize = 1 << 20;

/// The output file of one command during writing.
pub(super) struct SpillFile {
    path: PathBuf,
    file: File,
    cap: u64,
    /// The size in bytes of the first part of the output.
    head: u64,
    /// The second file. `None` until the first part is full.
    ring: Option<Ring>,
    received: u64,
    newlines: u64,
    /// The number of newlines in the first part of the output.
    head_newlines: u64,
}

impl SpillFile {
    /// Creates the file with permissions for its owner only.
    pub(super) fn create(path: &Path, cap: u64) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        Ok(Self {
            file: open(path)?,
            path: path.to_owned(),
            cap,
            head: 0,
            ring: None,
            received: 0,
            newlines: 0,
            head_newlines: 0,
        })
    }

    /// Returns the number of bytes of the output that were passed to `write`.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.received += bytes.len() as u64;
        self.newlines += newlines(bytes);
        if let Some(ring) = &mut self.ring {
            return ring.write(bytes);
        }
        let room = clamped(self.cap / 2 - self.head);
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        self.file.write_all_at(first, self.head)?;
        self.head += first.len() as u64;
        if rest.is_empty() {
            return Ok(());
        }
        self.head_newlines = self.newlines - newlines(rest);
        self.begin_ring()?.write(rest)
    }

    /// Cuts the first part at the end of a line. Creates the second file, which begins with the bytes after the cut.
    fn begin_ring(&mut self) -> io::Result<&mut Ring> {
        let mut end = vec![0; clamped(reach(self.head))];
        let from = self.head - end.len() as u64;
        self.file.read_exact_at(&mut end, from)?;
        let line = memchr::memrchr(b'\n', &end).map(|at| at + 1);
        // Neither cut has a newline behind it, so the count of those stays right.
        let cut = line.unwrap_or_else(|| last_character(&end));
        self.head = from + cut as u64;
        let note = self.note("the command has not ended, or co was killed: the rest is missing")?;
        self.file.write_all_at(&note, self.head)?;
        self.file.set_len(self.head + MAX_NOTE_BYTES as u64)?;
        let ring = Ring::create(&tail_path(&self.path), self.cap - self.head)?;
        let ring = self.ring.insert(ring);
        ring.write(&end[cut..])?;
        Ok(ring)
    }

    /// Returns the note that follows the first part. Its length is always the same.
    fn note(&self, text: &str) -> io::Result<Vec<u8>> {
        let mut last = [b'\n'];
        if self.head > 0 {
            self.file.read_exact_at(&mut last, self.head - 1)?;
        }
        let start = if last == *b"\n" { "" } else { "\n" };
        let width = MAX_NOTE_BYTES - 1;
        Ok(format!("{:<width$}\n", format!("{start}[co: {text}]")).into_bytes())
    }

    /// Appends the last part to the first part. Returns the gap between the parts, if bytes are missing there.
    pub(super) fn finish(&mut self) -> io::Result<Option<OutputGap>> {
        let Some(ring) = self.ring.take() else {
            return Ok(None);
        };
        let gap = self.join(&ring)?;
        // It is empty now, and the next start removes it too.
        let _ = fs::remove_file(tail_path(&self.path));
        Ok(gap)
    }

    /// Copies the last part behind the first part. Replaces the note as the last step, so that the note is true until then.
    fn join(&self, ring: &Ring) -> io::Result<Option<OutputGap>> {
        let start = ring.start()?;
        if start == 0 {
            let mut first = vec![0; clamped(ring.written).min(MAX_NOTE_BYTES)];
            ring.read_exact(&mut first, 0)?;
            ring.copy(
                first.len() as u64,
                &self.file,
                self.head + first.len() as u64,
            )?;
            self.file.write_all_at(&first, self.head)?;
            self.file.set_len(self.received)?;
            return Ok(None);
        }
        let copied = ring.copy(start, &self.file, self.head + MAX_NOTE_BYTES as u64)?;
        let gap = OutputGap {
            bytes: start,
            lines: self.newlines - self.head_newlines - copied,
        };
        let note = self.note(&format!("left out here: {gap} of the output"))?;
        self.file.write_all_at(&note, self.head)?;
        Ok(Some(gap))
    }
}

/// Removes the file at `path` and the second file for it.
pub(super) fn remove(path: &Path) {
    for path in [&tail_path(path), path] {
        let _ = fs::remove_file(path);
    }
}

/// The last bytes of a stream, in a file of fixed size that is used as a ring.
struct Ring {
    file: File,
    size: u64,
    written: u64,
}

impl Ring {
    fn create(path: &Path, size: u64) -> io::Result<Self> {
        Ok(Self {
            file: open(path)?,
            size,
            written: 0,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let most = clamped(self.size);
        let skipped = bytes.len().saturating_sub(most);
        self.written += skipped as u64;
        let mut rest = &bytes[skipped..];
        while !rest.is_empty() {
            let at = self.written % self.size;
            let fits = rest.len().min(clamped(self.size - at));
            self.file.write_all_at(&rest[..fits], at)?;
            self.written += fits as u64;
            rest = &rest[fits..];
        }
        Ok(())
    }

    /// Returns the position from which the kept bytes are copied. If earlier bytes are lost, this is the start of a line, or at
    /// least of a character.
    fn start(&self) -> io::Result<u64> {
        let oldest = self.written.saturating_sub(self.size);
        if oldest == 0 {
            return Ok(0);
        }
        let mut begin = vec![0; clamped(reach(self.size))];
        self.read_exact(&mut begin, oldest)?;
        let line = memchr::memchr(b'\n', &begin).map(|at| at as u64 + 1);
        let line = line.filter(|at| oldest + at < self.written);
        Ok(oldest + line.unwrap_or_else(|| first_character(&begin)))
    }

    /// Reads bytes from the position `from` on. Positions count from the first byte of the stream.
    fn read_exact(&self, mut space: &mut [u8], mut from: u64) -> io::Result<()> {
        while !space.is_empty() {
            let at = from % self.size;
            let most = space.len().min(clamped(self.size - at));
            let (now, rest) = space.split_at_mut(most);
            self.file.read_exact_at(now, at)?;
            (space, from) = (rest, from + most as u64);
        }
        Ok(())
    }

    /// Copies the bytes from the position `from` on to the position `to` of a file. Frees the ring's own disk space in the
    /// process. Returns the number of copied newlines.
    fn copy(&self, mut from: u64, file: &File, mut to: u64) -> io::Result<u64> {
        let mut space = vec![0; COPY_BYTES];
        let mut copied = 0;
        while from < self.written {
            let len = clamped(self.written - from).min(COPY_BYTES);
            let bytes = &mut space[..len];
            self.read_exact(bytes, from)?;
            file.write_all_at(bytes, to)?;
            copied += newlines(bytes);
            self.free(from, len as u64);
            (from, to) = (from + len as u64, to + len as u64);
        }
        Ok(copied)
    }

    /// Frees the disk space of copied bytes. If the file system cannot do that, both copies take space until the ring is removed.
    fn free(&self, from: u64, len: u64) {
        let at = from % self.size;
        let first = len.min(self.size - at);
        for (at, len) in [(at, first), (0, len - first)] {
            if len > 0 {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let _ = rustix::fs::fallocate(&self.file, flags, at, len);
            }
        }
    }
}

/// Returns the path of the second file.
fn tail_path(path: &Path) -> PathBuf {
    path.with_extension(TAIL_SUFFIX)
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(path)
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

fn clamped(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns the most bytes by which a cut may be moved in a part of the file. `part` is the size of the part. The result is at
/// least the length of a character, if the part is that long.
fn reach(part: u64) -> u64 {
    (part / 8).clamp(4, MAX_CUT_SHIFT).min(part)
}

/// Returns the length of `bytes` without an incomplete UTF-8 character at the end.
fn last_character(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3)..bytes.len();
    let lead = last.rev().find(|at| bytes[*at] & 0xc0 != 0x80);
    match lead {
        Some(at) if bytes.len() - at < length(bytes[at]) => at,
        _ => bytes.len(),
    }
}

/// Returns the number of bytes at the start of `bytes` that belong to a UTF-8 character whose beginning is missing.
fn first_character(bytes: &[u8]) -> u64 {
    let rest = bytes.iter().take(3);
    rest.take_while(|byte| **byte & 0xc0 == 0x80).count() as u64
}

/// Returns the length of a UTF-8 character by its first byte `lead`.
fn length(lead: u8) -> usize {
    match lead {
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        0xf0.. => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
