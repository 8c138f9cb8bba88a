//! Stores copies of files. The name of each copy is the hash of its bytes.
//!
//! Several backends share the directory. Each backend appends to two files of its own: a pack with the bytes, and an index with a
//! line for each copy. The line is written after the bytes of the copy, so a killed backend leaves only complete copies.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};

use super::change::Blob;
use super::log;
use crate::paths::{self, private_dir};
use co_edit::{FileText, hunks};
use co_text::size_text;

/// The largest number of bytes of all copies together.
pub(super) const MAX_BYTES: u64 = 2 << 30;

/// The age at which co removes copies and records of changes.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The extension of a pack file.
const PACK: &str = "pack";
/// The extension of the index file of a pack.
const INDEX: &str = "index";

/// The store of copies. While it is open, no other backend removes copies.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    most: u64,
    copies: Mutex<Copies>,
    _lock: File,
}

#[derive(Debug, Default)]
struct Copies {
    places: HashMap<CopyKey, Place>,
    /// The names of the packs, without the extension.
    packs: Vec<Arc<str>>,
    /// The number of bytes of all packs together.
    used: u64,
    /// The pack to which this backend appends; none before its first copy.
    own: Option<Pack>,
}

/// The first half of a hash, which is enough to identify a copy.
type CopyKey = [u8; 16];

/// The place of a copy in a pack. Four bytes are enough for each number, because no pack is larger than [`MAX_BYTES`].
#[derive(Debug, Clone, Copy)]
struct Place {
    /// The index of the pack's name in the list of packs.
    pack: u32,
    at: u32,
    size: u32,
}

#[derive(Debug)]
struct Pack {
    name: Arc<str>,
    bytes: File,
    index: File,
    size: u64,
    /// The number of bytes of complete lines in the index. A failed write may leave more bytes; the next line overwrites them.
    index_size: u64,
}

impl Store {
    /// Opens the store in a directory, and makes the directory readable by its owner only. If no other backend uses the store,
    /// first removes the copies that are no longer needed. Does so only if the store has old copies or more than half of `most`
    /// bytes.
    ///
    /// # Errors
    /// The directory cannot be created or written.
    pub fn open(dir: &Path, most: u64) -> io::Result<Self> {
        private_dir(dir)?;
        let file = private(dir.join("lock")).map_err(|error| paths::Error::write(dir, error))?;
        let alone = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let mut copies = Copies::read(dir);
        if alone && (copies.used > most / 2 || packs(dir).any(|pack| is_old(&pack))) {
            copies = copies.pruned(dir, most / 2)?;
        }
        flock(&file, FlockOperation::LockShared)?;
        Ok(Self {
            dir: dir.to_owned(),
            most,
            copies: Mutex::new(copies),
            _lock: file,
        })
    }

    /// Returns the directory of the store.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Stores a copy of some bytes, and returns its name.
    ///
    /// # Errors
    /// The store is full, or cannot be written.
    pub fn put(&self, bytes: &[u8]) -> io::Result<Blob> {
        let blob = Blob::of(bytes);
        let mut copies = self.copies.lock();
        if copies.places.contains_key(&key(&blob)) {
            return Ok(blob);
        }
        let size = bytes.len() as u64;
        if copies.used + size > self.most {
            return Err(io::Error::other(format!(
                "co's checkpoints have {}, the most that they may have: restart all Neovims to drop old ones",
                size_text(self.most)
            )));
        }
        let appended = copies.append(&self.dir, &blob, bytes);
        appended.map_err(|error| paths::Error::write(&self.dir, error))?;
        Ok(blob)
    }

    /// Stores a copy of a text, with the encoding and the line breaks of `version`. `version` is a copy of another version of the
    /// same file. Returns the name of the new copy.
    ///
    /// # Errors
    /// The encoding cannot store the text, or the store is full, or cannot be read or written.
    pub fn put_like(&self, version: &Blob, text: &FileText) -> io::Result<Blob> {
        let file = text.decode_like(&self.get(version)?);
        let versions = [file.map_err(io::Error::other)?, text.clone()];
        let [mut file, text] = FileText::alike(versions);
        file.apply_hunks(&hunks(file.as_str(), text.as_str()));
        self.put(&file.encode().map_err(io::Error::other)?)
    }

    /// Returns the bytes of a copy.
    ///
    /// # Errors
    /// The copy no longer exists, or its bytes no longer have this hash.
    pub fn get(&self, blob: &Blob) -> io::Result<Vec<u8>> {
        let mut copies = self.copies.lock();
        if !copies.places.contains_key(&key(blob)) {
            // Another backend may have added it.
            copies.read_indexes(&self.dir);
        }
        copies.read_copy(&self.dir, blob)
    }
}

impl Copies {
    /// Returns the copies that the indexes of all packs list.
    fn read(dir: &Path) -> Self {
        let mut copies = Self::default();
        copies.read_indexes(dir);
        let sizes = packs(dir).map(|pack| pack.metadata().map_or(0, |meta| meta.len()));
        copies.used = sizes.sum();
        copies
    }

    /// Reads the indexes of all packs.
    fn read_indexes(&mut self, dir: &Path) {
        for pack in packs(dir) {
            let name = pack.file_stem().unwrap_or_default().to_string_lossy();
            let number = self.number(&name);
            let index = fs::read_to_string(pack.with_extension(INDEX)).unwrap_or_default();
            for (blob, at, size) in index.lines().filter_map(line) {
                self.add(&blob, number, (at, size));
            }
        }
    }

    /// Returns the index of a pack's name in the list of packs. Adds the name if it is missing.
    fn number(&mut self, pack: &str) -> usize {
        let known = self.packs.iter().position(|name| **name == *pack);
        known.unwrap_or_else(|| {
            self.packs.push(pack.into());
            self.packs.len() - 1
        })
    }

    /// Adds a copy and its place.
    fn add(&mut self, blob: &Blob, pack: usize, (at, size): (u64, u64)) {
        let numbers = (pack.try_into(), at.try_into(), size.try_into());
        if let (Ok(pack), Ok(at), Ok(size)) = numbers {
            self.places.insert(key(blob), Place { pack, at, size });
        }
    }

    fn append(&mut self, dir: &Path, blob: &Blob, bytes: &[u8]) -> io::Result<()> {
        let own = match &mut self.own {
            Some(own) => own,
            none => none.insert(Pack::new(dir)?),
        };
        let size = bytes.len() as u64;
        let at = own.size;
        // Should a write fail in part, the next one does not overwrite it.
        own.size += size;
        self.used += size;
        own.bytes.write_all_at(bytes, at)?;
        // One write for each line.
        let line = format!("{at} {size} {blob}\n");
        own.index.write_all_at(line.as_bytes(), own.index_size)?;
        own.index_size += line.len() as u64;
        let name = Arc::clone(&own.name);
        let pack = self.number(&name);
        self.add(blob, pack, (at, size));
        Ok(())
    }

    fn read_copy(&self, dir: &Path, blob: &Blob) -> io::Result<Vec<u8>> {
        let gone = || io::Error::other("its copy is gone");
        let place = self.places.get(&key(blob)).ok_or_else(gone)?;
        let name = usize::try_from(place.pack).ok();
        let name = name.and_then(|at| self.packs.get(at)).ok_or_else(gone)?;
        let mut bytes = vec![0; usize::try_from(place.size).map_err(io::Error::other)?];
        match self.own.as_ref().filter(|own| own.name == *name) {
            Some(own) => own.bytes.read_exact_at(&mut bytes, place.at.into())?,
            None => File::open(dir.join(&**name).with_extension(PACK))?
                .read_exact_at(&mut bytes, place.at.into())?,
        }
        match Blob::of(&bytes) == *blob {
            true => Ok(bytes),
            false => Err(io::Error::other("its copy is damaged")),
        }
    }

    /// Moves the copies that records of chats refer to into one pack, and removes all other copies. If the remaining copies have
    /// more than `most` bytes, drops the records of the chats that have changed nothing for the longest time. Always drops old
    /// records.
    fn pruned(&self, dir: &Path, most: u64) -> io::Result<Self> {
        let mut pruned = Self::default();
        for log in log::newest_first(dir) {
            let blobs: HashSet<Blob> = log::blobs(&log).into_iter().collect();
            let new = blobs.iter();
            let new = new.filter(|it| !pruned.places.contains_key(&key(it)));
            let new: Vec<_> = new
                .filter_map(|it| Some((it, self.places.get(&key(it))?)))
                .collect();
            let size: u64 = new.iter().map(|(_, place)| u64::from(place.size)).sum();
            if pruned.used + size > most || is_old(&log) {
                fs::remove_file(&log)?;
                continue;
            }
            for (blob, _) in new {
                if let Ok(bytes) = self.read_copy(dir, blob) {
                    pruned.append(dir, blob, &bytes)?;
                }
            }
        }
        let own = pruned.own.as_ref().map(|own| &*own.name);
        for pack in packs(dir) {
            if pack.file_stem().and_then(|name| name.to_str()) != own {
                fs::remove_file(pack.with_extension(INDEX)).ok();
                fs::remove_file(pack)?;
            }
        }
        Ok(pruned)
    }
}

impl Pack {
    fn new(dir: &Path) -> io::Result<Self> {
        let name = format!("{:016x}", fastrand::u64(..));
        Ok(Self {
            bytes: private(dir.join(&name).with_extension(PACK))?,
            index: private(dir.join(&name).with_extension(INDEX))?,
            name: name.into(),
            size: 0,
            index_size: 0,
        })
    }
}

fn key(blob: &Blob) -> CopyKey {
    let hash = blob.bytes();
    std::array::from_fn(|at| hash[at])
}

/// Opens a file that only its owner can read. Creates the file if it is missing.
fn private(path: PathBuf) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true);
    options.truncate(false).mode(0o600).open(path)
}

fn is_old(path: &Path) -> bool {
    let changed = path.metadata().and_then(|meta| meta.modified());
    changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > MAX_AGE))
}

fn packs(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|it| it == PACK))
}

/// Parses a line of an index. Returns `None` if the line is not complete, so that the hash at its end is missing.
fn line(line: &str) -> Option<(Blob, u64, u64)> {
    let mut words = line.split(' ');
    let (at, size) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let blob = Blob::try_from(words.next()?.to_owned()).ok()?;
    Some((blob, at, size))
}

#[cfg(test)]
mod tests;
