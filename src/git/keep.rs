//! Makes the changes of a repository. If it is killed, the repository is one that git accepts, and the changes can be made again.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::SystemTime;

use super::Repository;
use super::change::{HeadChange, PathChange, RepositoryChange};
use super::index::Index;
use super::names::{self, Head, ObjectName};
use super::stash::STASH;
use super::state::{LeftChange, check_index, object};

/// The most objects that become a file each, as after a commit. More become a pack.
const MOST_LOOSE_OBJECTS: u32 = 100;

/// The place of the number of objects in a pack.
const PACK_COUNT: std::ops::Range<usize> = 8..12;

/// Changes that can be made now.
#[derive(Debug)]
pub struct PreparedChange<'a> {
    repository: &'a Repository,
    left: LeftChange<'a>,
    index: Option<NewIndex<'a>>,
    unfinished: String,
}

/// An index beside that of the repository, which is locked.
#[derive(Debug)]
struct NewIndex<'a> {
    repository: &'a Repository,
    files: LockFiles,
}

/// The files of a process that changes the index. The start of their names belongs to this process alone.
#[derive(Debug)]
struct LockFiles {
    /// Git's lock of the index.
    lock: PathBuf,
    /// Another name of the same file. It tells whose lock it is.
    own: PathBuf,
    new: PathBuf,
    /// Git's lock of the new index.
    new_lock: PathBuf,
    new_stash: PathBuf,
}

impl Repository {
    /// Adds the objects of a pack. Their names are computed from their contents.
    ///
    /// # Errors
    /// It is no whole pack, or an object in it is broken.
    pub fn import(&self, pack: &[u8]) -> Result<(), String> {
        let count = pack.get(PACK_COUNT).and_then(|it| it.try_into().ok());
        let count = count.map(u32::from_be_bytes);
        let args = match count.ok_or("it is no pack")? {
            0 => return Ok(()),
            1..=MOST_LOOSE_OBJECTS => ["unpack-objects", "-q", "--strict"],
            _ => ["index-pack", "--stdin", "--strict"],
        };
        self.run(args, pack).map(drop)
    }

    /// Prepares to make a change whose objects are there. Parts that are made already stay. The names of files that are not
    /// whole yet begin with `unfinished`.
    ///
    /// # Errors
    /// The repository has changed in the same place: a clause.
    pub fn prepare<'a>(
        &'a self,
        change: &'a RepositoryChange,
        unfinished: &str,
    ) -> Result<PreparedChange<'a>, String> {
        self.check_objects(change)?;
        let index = match change.index.is_empty() {
            true => None,
            false => Some(self.new_index(&change.index, unfinished)?),
        };
        Ok(PreparedChange {
            repository: self,
            left: self.left(change)?,
            index,
            unfinished: unfinished.to_owned(),
        })
    }

    /// Locks the index, and makes a new one beside it.
    fn new_index(&self, changes: &[PathChange], unfinished: &str) -> Result<NewIndex<'_>, String> {
        let files = self.lock_files(unfinished);
        files.lock().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => "another git has locked the index".to_owned(),
            _ => format!("the index cannot be locked: {error}"),
        })?;
        let new = NewIndex {
            repository: self,
            files,
        };
        let own = self.index_bytes()?;
        let size = self.hash_size()?;
        check_index(&own, changes, size)?;
        self.write_index(&own, changes, &new.files.new, size)?;
        Ok(new)
    }

    /// Returns the bytes of the index; none if there is no index.
    pub fn index_bytes(&self) -> Result<Vec<u8>, String> {
        match fs::read(self.file("index")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read.map_err(|error| format!("the index cannot be read: {error}")),
        }
    }

    /// Writes an index with changes to another place. Git checks the paths.
    pub(super) fn write_index(
        &self,
        own: &[u8],
        changes: &[PathChange],
        to: &std::path::Path,
        hash_size: usize,
    ) -> Result<(), String> {
        let unwritten = |error: io::Error| format!("the index cannot be written: {error}");
        if !own.is_empty() {
            fs::write(to, own).map_err(unwritten)?;
            let mode = fs::metadata(self.file("index"))
                .map_err(unwritten)?
                .permissions();
            fs::set_permissions(to, mode).map_err(unwritten)?;
        }
        let mut input = Vec::new();
        // The removals first: a directory may take the place of a file.
        for change in changes {
            let zero = "0".repeat(2 * hash_size);
            input.extend_from_slice(format!("0 {zero}\t{}\0", change.path).as_bytes());
        }
        for change in changes {
            for file in &change.after {
                let line = format!(
                    "{:o} {} {}\t{}\0",
                    file.mode, file.object, file.stage, change.path
                );
                input.extend_from_slice(line.as_bytes());
            }
        }
        let args = ["update-index", "-z", "--index-info"];
        self.with_index(to.to_owned()).run(args, &input)?;
        // Git leaves paths out that it does not accept.
        let new = fs::read(to).map_err(unwritten)?;
        let new = Index::parse(&new, hash_size).ok_or("git wrote an unknown form of index")?;
        match changes.iter().find(|it| new.files(&it.path) != it.after) {
            Some(other) => {
                let path = co_policy::one_line(&other.path);
                Err(format!("git does not accept {path} in the index"))
            }
            None => Ok(()),
        }
    }

    fn lock_files(&self, unfinished: &str) -> LockFiles {
        LockFiles {
            lock: self.file("index.lock"),
            own: self.file(&format!("{unfinished}lock")),
            new: self.file(&format!("{unfinished}index")),
            new_lock: self.file(&format!("{unfinished}index.lock")),
            new_stash: self.file(&format!("{unfinished}stash")),
        }
    }

    /// Removes the files that a killed process left, and its lock of the index.
    pub fn remove_unfinished(&self, unfinished: &str) {
        self.lock_files(unfinished).remove();
    }

    /// Removes the locks of the changed refs that were made after `begin`. A git that was killed leaves them.
    pub fn remove_ref_locks(&self, change: &RepositoryChange, begin: SystemTime) {
        let refs = change.refs.iter().map(|it| it.name.as_str());
        for name in refs.chain(["HEAD", STASH, "packed-refs"]) {
            let lock = self.file(&format!("{name}.lock"));
            let made = fs::symlink_metadata(&lock).and_then(|it| it.modified());
            if made.is_ok_and(|made| made >= begin) {
                let _ = fs::remove_file(lock);
            }
        }
    }
}

impl PreparedChange<'_> {
    /// Makes the changes. `why` is for git's log of the refs.
    ///
    /// # Errors
    /// Git refuses: a clause. Some of the changes may be made; [`Repository::made`] tells which.
    pub fn make(self, why: &str) -> Result<(), String> {
        let LeftChange { refs, head, stash } = self.left;
        let repository = self.repository;
        let mut input = Vec::new();
        for it in &refs {
            input.extend(transaction(&it.name, it.before.as_ref(), it.after.as_ref()));
        }
        if let Some(stash) = stash {
            let now = repository.refs()?;
            let now = object(now.get(STASH)).unwrap_or(None);
            let (before, after) = stash.tips();
            if now != after {
                input.extend(transaction(STASH, before, after));
            }
        }
        if !input.is_empty() {
            // One transaction: all or none.
            let args = ["update-ref", "--no-deref", "-m", why, "--stdin", "-z"];
            repository.run(args, &input)?;
        }
        // If one of these fails, the others are still made, because the person said yes to each.
        let stash = stash.filter(|it| !it.after.is_empty());
        let done = [
            head.map(|it| repository.move_head(it)),
            stash.map(|it| repository.write_stash_log(&it.after, &self.unfinished)),
            self.index.map(NewIndex::put),
        ];
        let failed: Vec<_> = done.into_iter().flatten().filter_map(Result::err).collect();
        match failed.is_empty() {
            true => Ok(()),
            false => Err(failed.join("; ")),
        }
    }
}

impl Repository {
    fn move_head(&self, change: &HeadChange) -> Result<(), String> {
        if self.head()? != change.before {
            return Err("HEAD has changed meanwhile".to_owned());
        }
        let word = |head: &Head| match head {
            Head::Branch(name) => names::short(name).to_owned(),
            Head::Detached(object) => object.to_string(),
        };
        // `git switch -` reads this.
        let why = format!(
            "checkout: moving from {} to {}",
            word(&change.before),
            word(&change.after)
        );
        match &change.after {
            Head::Branch(name) => self.run(["symbolic-ref", "-m", &why, "HEAD", name], b""),
            Head::Detached(object) => {
                let args = [
                    "update-ref",
                    "--no-deref",
                    "-m",
                    &why,
                    "HEAD",
                    object.as_str(),
                ];
                self.run(args, b"")
            }
        }
        .map(drop)
    }
}

impl NewIndex<'_> {
    /// Puts the new index into the place of the old one.
    fn put(self) -> Result<(), String> {
        let moved = fs::rename(&self.files.new, self.repository.file("index"));
        moved.map_err(|error| format!("the index cannot be written: {error}"))
    }
}

impl Drop for NewIndex<'_> {
    fn drop(&mut self) {
        self.files.remove();
    }
}

impl LockFiles {
    /// Takes the lock.
    fn lock(&self) -> io::Result<()> {
        File::create_new(&self.own)?;
        let locked = fs::hard_link(&self.own, &self.lock);
        if locked.is_err() {
            fs::remove_file(&self.own)?;
        }
        locked
    }

    /// Removes all of them, and git's lock if it is the one of this process.
    fn remove(&self) {
        let facts = |path: &PathBuf| path.symlink_metadata().map(|it| (it.dev(), it.ino())).ok();
        let mut left = vec![&self.new, &self.new_lock, &self.new_stash];
        if facts(&self.own).is_some_and(|own| facts(&self.lock) == Some(own)) {
            left.push(&self.lock);
        }
        left.push(&self.own);
        for path in left {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%error, path = %path.display(), "a file of git was not removed");
                }
                _ => {}
            }
        }
    }
}

/// Returns the line of a transaction that changes a ref, if it has its old value.
fn transaction(name: &str, before: Option<&ObjectName>, after: Option<&ObjectName>) -> Vec<u8> {
    let line = match (before, after) {
        (Some(old), Some(new)) => format!("update {name}\0{new}\0{old}\0"),
        (None, Some(new)) => format!("update {name}\0{new}\0{}\0", new.zero()),
        (Some(old), None) => format!("delete {name}\0{old}\0"),
        (None, None) => String::new(),
    };
    line.into_bytes()
}
