//! Writes the output of each command to a file, on a thread of its own, and limits the size of the directory with these files.

mod file;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};

use self::file::SpillFile;
use crate::outcome::OutputGap;
use crate::output::capture::BLOCK_BYTES;
use crate::output::text::{Encoding, LineDecoder};

/// The most reads whose bytes may wait for the disk, 1 MiB together. If the queue is full, the reader waits, and so does the
/// command.
const QUEUE_CAPACITY: usize = 16;
/// The time-out for writing the rest of a small file. The time-out of a larger file is longer; see [`BYTES_PER_TIMEOUT`].
const DISK_TIMEOUT: Duration = Duration::from_secs(5);
/// The time-out for writing a file grows by [`DISK_TIMEOUT`] for each time that the file contains this number of bytes.
const BYTES_PER_TIMEOUT: u64 = 100 << 20;
/// The most bytes of text that are shown of an output file. A message to the editor may have at most 16 MiB.
const MOST_SHOWN: usize = 12 << 20;
const SUFFIX: &str = "out";
/// The suffixes of images from agents, which are kept in the same directory.
const IMAGES: [&str; 4] = ["gif", "jpg", "png", "webp"];

/// Returns the path of the output file of a command.
pub(crate) fn path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.{SUFFIX}"))
}

/// The output file of a command, after the output has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FinishedFile {
    pub(crate) path: PathBuf,
    /// The part of the output that the file leaves out.
    pub(crate) gap: Option<OutputGap>,
}

impl FinishedFile {
    /// Returns a sentence that says which part of the output the file has, and names the file.
    pub(crate) fn note(&self) -> String {
        let path = self.path.display();
        match self.gap {
            Some(gap) => format!("all but {gap} of its middle: {path}"),
            None => format!("all of it: {path}"),
        }
    }
}

/// Returns a sentence about the output file of a running command, which has printed `bytes` bytes so far.
pub(crate) fn note_so_far(path: &Path, bytes: u64, cap: u64) -> String {
    let path = path.display();
    if bytes > cap / 2 {
        format!("its beginning: {path}")
    } else {
        format!("all of it: {path}")
    }
}

/// A message to the thread that writes the file.
enum WriteMessage {
    Bytes(Vec<u8>),
    /// The output has ended. Contains the length of the whole output in bytes.
    End(u64),
}

/// Returns the first lines of an output file, as a screen shows them: at most `most` lines, of at most 12 MiB together.
///
/// # Errors
/// The file cannot be read.
pub fn shown_lines(path: &Path, most: usize) -> io::Result<Vec<String>> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; BLOCK_BYTES];
    let mut length = file.read(&mut bytes)?;
    let mut decoder = LineDecoder::new(Encoding::of(&bytes[..length]));
    let (mut lines, mut room) = (Vec::new(), MOST_SHOWN);
    while length > 0 {
        decoder.feed(&bytes[..length]);
        for line in decoder.take() {
            let Some(left) = room.checked_sub(line.text.len()) else {
                return Ok(lines);
            };
            if lines.len() == most {
                return Ok(lines);
            }
            room = left;
            lines.push(line.text);
        }
        length = file.read(&mut bytes)?;
    }
    Ok(lines)
}

/// An output file that a separate thread writes, so that a slow disk blocks nothing else.
#[derive(Debug)]
pub(crate) struct Spill {
    queue: mpsc::Sender<WriteMessage>,
    written: oneshot::Receiver<Option<FinishedFile>>,
    cap: u64,
}

impl Spill {
    /// Starts the thread, which creates a file of at most `cap` bytes in `dir`. `name` is the name of the file without its
    /// suffix.
    pub(crate) fn start(dir: &Path, name: &str, cap: u64) -> Self {
        let (queue, pieces) = mpsc::channel(QUEUE_CAPACITY);
        let path = path(dir, name);
        let (tell, written) = oneshot::channel();
        let thread = std::thread::Builder::new().name("spill".to_owned());
        // Without a thread, both channels close, and the end reports no file.
        let _ = thread.spawn(move || tell.send(write(path, cap, pieces)));
        Self {
            queue,
            written,
            cap,
        }
    }

    /// Queues the next bytes of the output.
    pub(crate) async fn write(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            // This fails if the file could not be written, which the end reports.
            let _ = self.queue.send(WriteMessage::Bytes(bytes)).await;
        }
    }

    /// Waits, with a time-out, until the file of an output of `total` bytes is written.
    ///
    /// Returns `None` if the file could not be written, or if it lacks a part of the output.
    pub(crate) async fn finish(self, total: u64) -> Option<FinishedFile> {
        let Self {
            queue,
            written,
            cap,
        } = self;
        let all = async {
            let _ = queue.send(WriteMessage::End(total)).await;
            written.await.ok().flatten()
        };
        let tail = u32::try_from(total.min(cap) / BYTES_PER_TIMEOUT).unwrap_or(u32::MAX);
        let timeout = DISK_TIMEOUT.saturating_mul(tail.saturating_add(1));
        tokio::time::timeout(timeout, all).await.ok().flatten()
    }
}

fn write(
    path: PathBuf,
    cap: u64,
    mut pieces: mpsc::Receiver<WriteMessage>,
) -> Option<FinishedFile> {
    let failed = |error: io::Error| {
        tracing::warn!(path = %path.display(), %error, "cannot keep a command's output");
    };
    let mut file = SpillFile::create(&path, cap).map_err(failed).ok()?;
    let mut all = || loop {
        match pieces.blocking_recv() {
            Some(WriteMessage::Bytes(bytes)) => file.write(&bytes)?,
            Some(WriteMessage::End(total)) if total == file.received() => return file.finish(),
            Some(WriteMessage::End(_)) => return Err(io::Error::other("its end came too late")),
            // No caller waits any more.
            None => return file.finish(),
        }
    };
    match all() {
        Ok(gap) => Some(FinishedFile { path, gap }),
        Err(error) => {
            failed(error);
            // An incomplete file is useless, and the disk may be full.
            file::remove(&path);
            None
        }
    }
}

/// Removes the files of `dir` that are older than `age`. Then removes the oldest files until the rest has at most `total` bytes.
pub(crate) fn prune(dir: &Path, age: Duration, total: u64) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    let ours = |path: &Path| {
        path.extension().is_some_and(|it| {
            it == SUFFIX || it == file::TAIL_SUFFIX || IMAGES.iter().any(|image| it == *image)
        })
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter(|entry| ours(&entry.path()))
        .filter_map(|entry| {
            let facts = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((facts.modified().ok()?, facts.len(), entry.path()))
        })
        .collect();
    files.sort_unstable_by(|one, other| other.cmp(one));
    let now = SystemTime::now();
    let mut kept = 0_u64;
    for (changed, size, path) in files {
        let old = now.duration_since(changed).is_ok_and(|it| it > age);
        kept = kept.saturating_add(size);
        if old || kept > total {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests;
