//! The file of one command's output: all of it up to a cap, else its first and its last part.
//!
//! The first half of the cap goes into the file as it comes. The rest goes round and round in a second file of the other
//! half, which is appended to the first when the output has ended. Until then, and after a crash, a line at the end of
//! the first half says that the rest is missing.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;

use crate::outcome::Gap;

/// Bytes of the line between the two parts.
const NOTE: usize = 120;
/// The most bytes from the middle to the end of a line at which the file is cut.
const REACH: u64 = 64 << 10;
/// Bytes that are copied at a time.
const STEP: usize = 1 << 20;

/// The output of one command on disk, while it is written.
pub(super) struct SpillFile {
    path: PathBuf,
    file: File,
    cap: u64,
    /// Bytes of the first part.
    head: u64,
    /// The second file, once the first part is full.
    ring: Option<Ring>,
    received: u64,
    newlines: u64,
    /// In the first part.
    head_newlines: u64,
}

impl SpillFile {
    /// Creates the file, for its owner alone.
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

    /// Returns how many bytes of output it was given.
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

    /// HeadAndTail the first part where a line ends, and begins the second file with what follows that.
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
        self.file.set_len(self.head + NOTE as u64)?;
        let ring = Ring::create(&tail_path(&self.path), self.cap - self.head)?;
        let ring = self.ring.insert(ring);
        ring.write(&end[cut..])?;
        Ok(ring)
    }

    /// Returns the line that stands behind the first part, always of the same length.
    fn note(&self, text: &str) -> io::Result<Vec<u8>> {
        let mut last = [b'\n'];
        if self.head > 0 {
            self.file.read_exact_at(&mut last, self.head - 1)?;
        }
        let start = if last == *b"\n" { "" } else { "\n" };
        let width = NOTE - 1;
        Ok(format!("{:<width$}\n", format!("{start}[co: {text}]")).into_bytes())
    }

    /// Appends the last part to the first; returns what is missing between them, if anything is.
    pub(super) fn finish(&mut self) -> io::Result<Option<Gap>> {
        let Some(ring) = self.ring.take() else {
            return Ok(None);
        };
        let gap = self.join(&ring)?;
        // It is empty by now, and the next start of a backend removes it too.
        let _ = fs::remove_file(tail_path(&self.path));
        Ok(gap)
    }

    /// Writes what stands in the place of the note last: until then the note is true.
    fn join(&self, ring: &Ring) -> io::Result<Option<Gap>> {
        let start = ring.start()?;
        if start == 0 {
            let mut first = vec![0; clamped(ring.written).min(NOTE)];
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
        let copied = ring.copy(start, &self.file, self.head + NOTE as u64)?;
        let gap = Gap {
            bytes: start,
            lines: self.newlines - self.head_newlines - copied,
        };
        let note = self.note(&format!("left out here: {gap} of the output"))?;
        self.file.write_all_at(&note, self.head)?;
        Ok(Some(gap))
    }
}

/// Removes what was written to `path` and beside it.
pub(super) fn remove(path: &Path) {
    for path in [&tail_path(path), path] {
        let _ = fs::remove_file(path);
    }
}

/// The last bytes of a stream, in a file of their size.
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

    /// Returns where what is kept begins: with a line, or at least a character, if bytes before it are gone.
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

    /// Reads the bytes from `from` on, counted from the first that was ever written.
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

    /// Copies what begins at `from` to the place `to` of a file, and gives its own room back on the way; returns how many
    /// newlines that were.
    fn copy(&self, mut from: u64, file: &File, mut to: u64) -> io::Result<u64> {
        let mut space = vec![0; STEP];
        let mut copied = 0;
        while from < self.written {
            let len = clamped(self.written - from).min(STEP);
            let bytes = &mut space[..len];
            self.read_exact(bytes, from)?;
            file.write_all_at(bytes, to)?;
            copied += newlines(bytes);
            self.free(from, len as u64);
            (from, to) = (from + len as u64, to + len as u64);
        }
        Ok(copied)
    }

    /// Gives disk space back. A file system that cannot do that has both copies for a moment.
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
    path.with_extension(super::TAIL)
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

/// Returns how far a cut may be moved in a part of that size: enough for a character.
fn reach(part: u64) -> u64 {
    (part / 8).clamp(4, REACH).min(part)
}

/// Returns where `bytes` end less a UTF-8 character whose end is missing.
fn last_character(bytes: &[u8]) -> usize {
    let last = bytes.len().saturating_sub(3)..bytes.len();
    let lead = last.rev().find(|at| bytes[*at] & 0xc0 != 0x80);
    match lead {
        Some(at) if bytes.len() - at < length(bytes[at]) => at,
        _ => bytes.len(),
    }
}

/// Returns how many bytes of a UTF-8 character `bytes` begin with whose start is missing.
fn first_character(bytes: &[u8]) -> u64 {
    let rest = bytes.iter().take(3);
    rest.take_while(|byte| **byte & 0xc0 == 0x80).count() as u64
}

/// Returns how long the UTF-8 character is that begins with `lead`.
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
