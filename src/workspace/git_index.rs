//! Reads the index of git. git rewrites the index when the times of files have changed, even for a read-only command.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use co_exec::beneath::Dir;
use co_exec::repository;

/// The number of bytes of an entry before its object id: times, device, inode, mode, owner and size.
const STAT: usize = 40;
/// The byte range of the mode in an entry.
const MODE: Range<usize> = 24..28;
/// The flag of an entry whose file git assumes to be unchanged.
const ASSUME_VALID: u16 = 0x8000;
/// The flag of an entry that is followed by more flags.
const EXTENDED: u16 = 0x4000;
/// The flag bits that contain the stage.
const STAGE: u16 = 0x3000;
/// The largest number of bytes of an index that is read. It is enough for about two million files.
pub(crate) const MOST_INDEX: u64 = 256 << 20;

/// The possible numbers of bytes of an object id.
const HASHES: [usize; 2] = [20, 32];

/// The largest number of bytes of all paths, for each byte of an index. In version 4, a path omits the prefix that it shares with
/// the path before it.
const MOST_PATHS: usize = 8;

/// The files that an index lists, without git's cached metadata of the files on disk.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    /// The paths of all entries, joined without separators.
    paths: Vec<u8>,
    /// The object ids of all entries, joined without separators.
    objects: Vec<u8>,
    /// The entries, sorted by path.
    entries: Vec<Entry>,
    /// The extensions that change the meaning of the list, such as the extension of a split index.
    extensions: Vec<u8>,
    /// The name of the shared index in hexadecimal digits; none if the index is not split.
    shared: Option<String>,
}

/// An entry of the index. After a conflict, a path has several entries.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    /// The byte range of the entry's path in `Index::paths`.
    path: Range<usize>,
    mode: u32,
    /// The flags that change the meaning of the entry, including its stage.
    flags: (u16, u16),
}

/// The files that the index of a workspace lists. The index is read when it is first needed. If it is too large, the list is
/// empty.
pub(crate) struct IndexedFiles<'a> {
    root: &'a Path,
    indexes: OnceCell<Vec<Index>>,
}

impl<'a> IndexedFiles<'a> {
    pub(crate) fn of(root: &'a Path) -> Self {
        Self {
            root,
            indexes: OnceCell::new(),
        }
    }

    /// Returns true if git tracks the file at a path, or a file below this path. The path is relative to the workspace.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let indexes = self.indexes.get_or_init(|| read(self.root));
        let path = path.as_os_str().as_encoded_bytes();
        indexes.iter().any(|index| index.lists(path))
    }
}

/// Reads the index of a workspace, and its shared index if it is split. Returns an empty list if the index is too large or has an
/// unknown format.
pub(crate) fn read(root: &Path) -> Vec<Index> {
    let dir = match repository::find(root) {
        Ok(Some(dirs)) => dirs.own,
        Ok(None) => return Vec::new(),
        // Only its index is read, and what that lists is hidden less.
        Err(_) => root.join(".git"),
    };
    let Ok(dir) = dir.canonicalize().and_then(|dir| Dir::open(&dir)) else {
        return Vec::new();
    };
    let read = |name: &str| {
        let bytes = dir.read(name, MOST_INDEX).ok()?;
        HASHES.iter().find_map(|hash| Index::parse(&bytes, *hash))
    };
    let own = read("index");
    let shared = own.as_ref().and_then(Index::shared);
    let shared = shared.and_then(|name| read(&format!("sharedindex.{name}")));
    own.into_iter().chain(shared).collect()
}

impl Index {
    /// Parses an index with object ids of `hash` bytes. Returns `None` if the index has another format.
    pub(crate) fn parse(index: &[u8], hash: usize) -> Option<Self> {
        let header = index.get(..12)?;
        let (version, count) = (number(&header[4..8])?, number(&header[8..12])?);
        if &header[..4] != b"DIRC" || !(2..=4).contains(&version) {
            return None;
        }
        let mut found = Self::default();
        let mut rest = &index[12..];
        let mut last = 0..0;
        let mut room = index.len().saturating_mul(MOST_PATHS);
        for _ in 0..count {
            let end = STAT + hash + 2;
            let mode = number(rest.get(MODE)?)?;
            let object = rest.get(STAT..STAT + hash)?;
            let flags = short(rest.get(STAT + hash..end)?)?;
            let (more, name) = match version > 2 && flags & EXTENDED != 0 {
                true => (short(rest.get(end..end + 2)?)?, end + 2),
                false => (0, end),
            };
            let (shared, digits) = match version {
                4 => prefix(last.len(), rest.get(name..)?)?,
                _ => (0, 0),
            };
            let text = rest.get(name + digits..)?;
            let length = text.iter().position(|byte| *byte == 0)?;
            room = room.checked_sub(shared + length)?;
            let start = found.paths.len();
            found
                .paths
                .extend_from_within(last.start..last.start + shared);
            found.paths.extend_from_slice(&text[..length]);
            let path = start..found.paths.len();
            if found.paths[path.clone()] < found.paths[last] {
                // Git refuses it too.
                return None;
            }
            last = path.clone();
            found.objects.extend_from_slice(object);
            found.entries.push(Entry {
                path,
                mode,
                flags: (flags & (ASSUME_VALID | STAGE), more),
            });
            let length = name + digits + length;
            let size = match version {
                4 => length + 1,
                _ => length / 8 * 8 + 8,
            };
            rest = rest.get(size..)?;
        }
        while rest.len() > hash {
            let size = 8 + usize::try_from(number(rest.get(4..8)?)?).ok()?;
            let extension = rest.get(..size)?;
            if let Some(link) = extension.strip_prefix(b"link") {
                found.shared = link.get(4..4 + hash).map(hexadecimal);
            }
            // Git may leave out those with a capital letter.
            if !extension[0].is_ascii_uppercase() {
                found.extensions.extend_from_slice(extension);
            }
            rest = &rest[size..];
        }
        (rest.len() == hash).then_some(found)
    }

    /// Returns true if two indexes list the same files with the same objects. The length of the object ids need not be known.
    pub(crate) fn are_same(one: &[u8], other: &[u8]) -> bool {
        HASHES.iter().any(|hash| {
            let one = Self::parse(one, *hash);
            one.is_some() && one == Self::parse(other, *hash)
        })
    }

    /// Returns the name of the shared index; none if the index is not split.
    fn shared(&self) -> Option<&str> {
        self.shared.as_deref()
    }

    /// Returns the paths of the listed files, relative to the work tree.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let paths = self.entries.iter().map(|it| self.path(it));
        // A split index has entries without a name for those that it replaces in the shared one.
        let named = paths.filter(|path| !path.is_empty());
        named.map(|path| Path::new(OsStr::from_bytes(path)))
    }

    /// Returns true if the index lists the file at a path, or a file below this path.
    pub(crate) fn lists(&self, path: &[u8]) -> bool {
        let below = [path, b"/"].concat();
        self.first_from(path) == Some(path)
            || self
                .first_from(&below)
                .is_some_and(|it| it.starts_with(&below))
    }

    /// Returns the first listed path that does not sort before `path`.
    fn first_from(&self, path: &[u8]) -> Option<&[u8]> {
        let before = self.entries.partition_point(|it| self.path(it) < path);
        self.entries.get(before).map(|it| self.path(it))
    }

    fn path(&self, entry: &Entry) -> &[u8] {
        &self.paths[entry.path.clone()]
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn short(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

/// Parses the number before a name in version 4, which is the number of bytes to remove from the previous name. Returns the
/// number of bytes that remain of `length` bytes, and the number of bytes of the parsed number.
fn prefix(length: usize, text: &[u8]) -> Option<(usize, usize)> {
    let mut cut = 0_usize;
    for (at, byte) in text.iter().enumerate() {
        cut = cut
            .checked_mul(128)?
            .checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some((length.checked_sub(cut)?, at + 1));
        }
        cut = cut.checked_add(1)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn git(dir: &Path, args: &[&str]) {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        let done = git
            .args(args)
            .current_dir(dir)
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        let done = done.output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    }

    #[test]
    fn a_small_index_with_long_paths_is_refused() {
        let entry = |cut: u8, name: &[u8]| {
            let mut entry = [0; STAT + 20 + 2].to_vec();
            entry.push(cut);
            entry.extend_from_slice(name);
            entry.push(0);
            entry
        };
        let index = |entries: u32, length: usize| {
            let mut index = [&b"DIRC"[..], &4_u32.to_be_bytes(), &entries.to_be_bytes()].concat();
            index.extend(entry(0, &vec![b'a'; length]));
            for _ in 1..entries {
                index.extend(entry(1, b"a"));
            }
            index.extend([0; 20]);
            Index::parse(&index, 20)
        };
        assert!(index(1000, 200).is_some());
        assert!(index(1000, 10_000).is_none());
    }

    #[test]
    fn an_index_out_of_order_is_refused() {
        let index = |names: [u8; 2]| {
            let mut index = [&b"DIRC"[..], &2_u32.to_be_bytes(), &2_u32.to_be_bytes()].concat();
            for name in names {
                let start = index.len();
                index.extend([0; STAT + 20 + 2]);
                index.extend([name, 0]);
                index.resize(start + (STAT + 20 + 3) / 8 * 8 + 8, 0);
            }
            index.extend([0; 20]);
            Index::parse(&index, 20)
        };
        let found = index(*b"ab").unwrap();
        assert!(found.lists(b"a") && found.lists(b"b") && !found.lists(b"c"));
        assert!(index(*b"ba").is_none());
    }

    #[test]
    fn the_index_is_read_without_git_also_if_it_is_split_and_the_configuration_a_fifo() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        git(dir, &["init", "-q"]);
        fs::write(dir.join("one"), "1").unwrap();
        git(dir, &["add", "one"]);
        git(dir, &["update-index", "--split-index"]);
        fs::write(dir.join("two"), "2").unwrap();
        git(dir, &["add", "two"]);
        fs::remove_file(dir.join(".git/config")).unwrap();
        nix::unistd::mkfifo(&dir.join(".git/config"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let indexes = read(dir);
        let mut paths: Vec<_> = indexes.iter().flat_map(Index::paths).collect();
        paths.sort();
        paths.dedup();
        assert_eq!(paths, [Path::new("one"), Path::new("two")]);
    }

    #[test]
    fn a_refreshed_index_is_the_same_and_a_changed_one_is_not() {
        for (format, version) in [("sha1", "2"), ("sha1", "4"), ("sha256", "3")] {
            let dir = tempfile::tempdir().unwrap();
            let dir = dir.path();
            let index = || fs::read(dir.join(".git/index")).unwrap();
            git(dir, &["init", "-q", "--object-format", format]);
            for number in 0..20 {
                fs::create_dir_all(dir.join("d")).unwrap();
                fs::write(dir.join(format!("d/file{}", "x".repeat(number))), "1").unwrap();
            }
            git(dir, &["add", "."]);
            git(dir, &["update-index", "--index-version", version]);
            git(dir, &["commit", "-q", "-m", "1"]);
            let before = index();
            for path in ["d/file", "d/filex"] {
                let file = fs::File::options()
                    .write(true)
                    .open(dir.join(path))
                    .unwrap();
                file.set_modified(std::time::SystemTime::UNIX_EPOCH)
                    .unwrap();
            }
            git(dir, &["status"]);
            assert_ne!(index(), before, "git did not refresh it");
            assert!(Index::are_same(&index(), &before), "{format} {version}");
            for args in [
                &["mv", "d/file", "d/moved"][..],
                &["rm", "-q", "--cached", "d/filex"],
                &["update-index", "--chmod=+x", "d/filexx"],
                &["update-index", "--skip-worktree", "d/filexxx"],
            ] {
                let before = index();
                git(dir, args);
                assert!(!Index::are_same(&index(), &before), "{args:?}");
            }
            assert!(!Index::are_same(&before[..before.len() - 1], &before));
            assert!(!Index::are_same(b"", b""));
        }
    }
}
