//! Updates a survey for the directories that have changed, if the changes are irrelevant for secrets.

use super::*;

/// The most directory entries that an update reads. If there are more, a new walk is necessary.
const MAX_ENTRIES: usize = 20_000;

/// Names that mark a git directory.
const GIT_NAMES: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

impl Survey {
    /// Returns this survey, updated for the changed directories. Returns `None` if a walk must decide what is secret.
    pub(in super::super) fn patched(&self, changed: &HashSet<Arc<Path>>) -> Option<Self> {
        if !self.complete || !self.is_current_outside() {
            return None;
        }
        let mut changed: Vec<_> = changed.iter().collect();
        // A directory comes before those in it.
        changed.sort();
        let mut patch = Patch {
            root: Dir::open(&self.root).ok()?,
            survey: self.clone(),
            done: HashSet::new(),
            left: MAX_ENTRIES,
            buffer: vec![0; content::MAX_KEY_BYTES],
        };
        for dir in changed {
            patch.update(dir)?;
        }
        patch.survey.read.pack_many();
        patch.survey.content_checks.pack_many();
        Some(patch.survey)
    }

    /// Returns true if everything outside the watched directories is unchanged: directories outside the workspace, the targets of
    /// symbolic links, files with several hard links, and the private paths.
    pub(in super::super) fn is_current_outside(&self) -> bool {
        let outside = self.read_outside.iter();
        let dirs = outside.map(|(path, dir)| (path, dir.stamp));
        let files = self.hard_linked.iter();
        let files = files.filter_map(|path| Some((path, self.content_checks.get(path)?.stamp)));
        let mut all = dirs.chain(files);
        all.all(|(path, stamp)| stamp.is_some() && stamp == FileStamp::of(path))
            && self.followed.iter().all(FollowedLink::is_same)
            && self
                .private
                .iter()
                .all(|(path, stamp)| *stamp == FileStamp::of(path))
    }

    /// Returns whether a path may be secret, contain a secret, or be inside a secret directory.
    fn concerns(&self, path: &Path) -> bool {
        let lists = [
            &self.files,
            &self.within,
            &self.outside,
            &self.git_configs,
            &self.repositories,
            &self.git_links,
        ];
        let above = self.dirs.iter().chain(&self.with_source);
        above.clone().any(|dir| path.starts_with(dir))
            || lists
                .into_iter()
                .flatten()
                .chain(above)
                .any(|it| it.starts_with(path))
    }
}

impl FollowedLink {
    /// Follows a symbolic link.
    pub(super) fn of(path: &Path) -> Self {
        let target = path.canonicalize().ok();
        let stamp = target.as_deref().and_then(FileStamp::of);
        Self {
            path: path.to_owned(),
            target,
            inode: stamp.map(|it| it.inode()),
        }
    }

    /// Returns true if the link still leads to the same file.
    fn is_same(&self) -> bool {
        *self == Self::of(&self.path)
    }
}

struct Patch {
    root: Dir,
    survey: Survey,
    /// The new directories that were already added to the survey.
    done: HashSet<PathBuf>,
    left: usize,
    buffer: Vec<u8>,
}

impl Patch {
    /// Updates the survey for one changed directory. Returns `None` if a walk is necessary.
    fn update(&mut self, path: &Path) -> Option<()> {
        if self.done.contains(path) {
            return Some(());
        }
        let below = path.strip_prefix(&self.survey.root).ok()?;
        let Some(before) = self.survey.read.get(path) else {
            let is_gone = || matches!(self.root.node(below), Ok(None));
            return (is_in_git_store(below) || is_gone()).then_some(());
        };
        let in_secret = self.survey.dirs.iter().chain(&self.survey.with_source);
        if in_secret.clone().any(|dir| path.starts_with(dir)) {
            return None;
        }
        let old: HashMap<_, _> = before.entries.as_ref()?.iter().collect();
        let (dir, now) = self.read(path)?;
        let new: HashMap<_, _> = now.entries.as_ref()?.iter().collect();
        if now.keys != before.keys {
            return None;
        }
        for (name, kind) in &old {
            if !new.contains_key(name) {
                self.remove(&path.join(name), *kind)?;
            }
        }
        for (name, kind) in &new {
            let entry = path.join(name);
            self.check(&dir, &entry, *kind)?;
            match old.get(name) {
                Some(old) if old == kind => {}
                Some(_) => return None,
                None => self.add(&entry, *kind)?,
            }
        }
        self.survey.read.insert(path, now);
        Some(())
    }

    /// Reads a directory. Returns `None` if it cannot be read completely.
    fn read(&mut self, path: &Path) -> Option<(Dir, Directory)> {
        let below = path.strip_prefix(&self.survey.root).ok()?;
        if path.as_os_str().len() >= MAX_PATH_BYTES {
            return None;
        }
        let dir = self.root.dir(below).ok()?;
        // Before it is read: it may change meanwhile.
        let stamp = dir.itself().ok()?.stamp;
        let stamp = Some(stamp).filter(FileStamp::is_settled);
        let mut entries = Vec::new();
        for entry in dir.list().ok()? {
            self.left = self.left.checked_sub(1)?;
            entries.push(entry.ok()?);
        }
        let entries: Listing = entries.into_iter().collect();
        let read = Directory {
            stamp,
            keys: find_keys((path, below), &dir, &entries, &mut self.buffer),
            entries: Some(entries),
        };
        Some((dir, read))
    }

    /// Checks an entry that exists now. Returns `None` if the entry may be a secret, or if it was one and no longer is.
    fn check(&mut self, dir: &Dir, path: &Path, kind: FileType) -> Option<()> {
        if kind.is_dir() {
            return Some(());
        }
        let name = path.file_name()?;
        // It may be another name of a secret file, or of a symbolic link to one.
        if dir.node(name).ok()??.names > 1 {
            return None;
        }
        if kind.is_file() && content::decides(&name.to_string_lossy()) {
            let before = self.survey.content_checks.get(path);
            let was_secret = before.as_ref().is_some_and(|it| it.secret);
            let check = ContentCheck::of(dir, path, before.as_ref());
            if check.secret != was_secret {
                return None;
            }
            self.survey.note_check(path, check);
        }
        Some(())
    }

    /// Adds a new entry. Returns `None` if it may be relevant for secrets.
    fn add(&mut self, path: &Path, kind: FileType) -> Option<()> {
        self.is_ordinary(path, kind).then_some(())?;
        if kind.is_symlink() && !self.is_generated(path) {
            self.survey.links.insert(path.to_owned());
        }
        if !kind.is_dir() {
            return Some(());
        }
        let (dir, read) = self.read(path)?;
        if !read.keys.is_empty() {
            return None;
        }
        for (name, kind) in read.entries.as_ref()?.iter() {
            let entry = path.join(name);
            self.check(&dir, &entry, kind)?;
            self.add(&entry, kind)?;
        }
        self.done.insert(path.to_owned());
        self.survey.read.insert(path, read);
        Some(())
    }

    /// Removes an entry that no longer exists, and everything below it. Returns `None` if it may have been relevant for secrets.
    fn remove(&mut self, path: &Path, kind: FileType) -> Option<()> {
        let ordinary = self.is_ordinary(path, kind) && !self.survey.concerns(path);
        ordinary.then_some(())?;
        self.survey.content_checks.remove(path);
        self.survey.hard_linked.retain(|it| !it.starts_with(path));
        self.survey.links.retain(|it| !it.starts_with(path));
        if kind.is_dir() {
            self.survey.read.remove_tree(path);
            self.survey.content_checks.remove_tree(path);
        }
        Some(())
    }

    /// Returns true if the parent of a path is a directory of generated files or is inside one.
    fn is_generated(&self, path: &Path) -> bool {
        let below = path.parent().map(|dir| dir.strip_prefix(&self.survey.root));
        !below.is_some_and(|below| below.is_ok_and(|below| !is_generated(below)))
    }

    /// Returns true if the name of an entry suggests neither a secret nor a git directory.
    fn is_ordinary(&self, path: &Path, kind: FileType) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let config = || GIT_CONFIGS.contains(&&*name) && path.parent().is_some_and(is_of_git);
        let secret = || names::is_secret(&name) || kind.is_fifo();
        !(GIT_NAMES.contains(&&*name) || name == ".git" || config() || secret())
    }
}

/// Returns whether a path, relative to its workspace, is in a part of a git directory that no survey reads.
pub(super) fn is_in_git_store(below: &Path) -> bool {
    let mut parts = below.iter().skip_while(|part| *part != ".git");
    parts.any(|part| GIT_STORES.iter().any(|store| part == *store))
}
