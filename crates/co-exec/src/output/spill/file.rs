//! The output file of one command: all of it, or the first and the last part if it exceeds the limit.
//!
//! The first half of the limit goes into the file as it comes. The rest goes into a second file, which is used as a
//! ring of the other half and appended at the end. Until then, and after a crash, a line at the end of the first half
//! says that the rest is missing.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;

use crate::outcome::OutputGap;

/// Ends the name of the file that holds the last part while a command prints.
pub(super) const TAIL_SUFFIX: &str = "tail";

/// The bytes of the line between the two parts.
const MAX_NOTE_BYTES: usize = 120;
/// The most bytes by which a cut is moved to the end of a line.
const MAX_CUT_SHIFT: u64 = 64 << 10;
/// The bytes that are copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// The output file of one command, while it is written.
pub(super) struct SpillFile {
    path: PathBuf,
    file: File,
    cap: u64,
    /// The size of the first part.
    head: u64,
    /// The second file, once the first part is full.
    ring: Option<Ring>,
    received: u64,
    newlines: u64,
    /// The bytes in the first part.
    head_newlines: u64,
}

impl SpillFile {
    /// Creates the file, readable for its owner only.
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

    /// Returns the number of bytes written to it.
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

    /// Ends the first part at the end of a line, and begins the second file with the rest.
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

    /// Returns the line after the first part. It always has the same length.
    fn note(&self, text: &str) -> io::Result<Vec<u8>> {
        let mut last = [b'\n'];
        if self.head > 0 {
            self.file.read_exact_at(&mut last, self.head - 1)?;
        }
        let start = if last == *b"\n" { "" } else { "\n" };
        let width = MAX_NOTE_BYTES - 1;
        Ok(format!("{:<width$}\n", format!("{start}[co: {text}]")).into_bytes())
    }

    /// Appends the last part to the first. Returns the missing part between them, if there is one.
    pub(super) fn finish(&mut self) -> io::Result<Option<OutputGap>> {
        let Some(ring) = self.ring.take() else {
            return Ok(None);
        };
        let gap = self.join(&ring)?;
        // It is empty now, and the next start removes it too.
        let _ = fs::remove_file(tail_path(&self.path));
        Ok(gap)
    }

    /// Overwrites the note with the final bytes. This is the last step, so the note is true until then.
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

/// Removes the file at `path` and its second file.
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

    /// Returns the start of the kept bytes. If earlier bytes are gone, that is the start of a line or at least of a
    /// character.
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

    /// Reads the bytes from position `from` on, counted from the first byte of the stream.
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

    /// Copies the bytes from `from` on to position `to` of a file, and frees its own disk space meanwhile. Returns
    /// the number of newlines in them.
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

    /// Frees disk space. If the file system cannot do that, both copies exist for a moment.
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

/// Returns the name of the second file.
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

/// Returns the most bytes by which a cut in a part of this size may be moved: at least a character.
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

/// Returns the number of bytes at the start that belong to an incomplete UTF-8 character.
fn first_character(bytes: &[u8]) -> u64 {
    let rest = bytes.iter().take(3);
    rest.take_while(|byte| **byte & 0xc0 == 0x80).count() as u64
}

/// Returns the length of the UTF-8 character that begins with `lead`.
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
