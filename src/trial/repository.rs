//! Reads the changes of the workspace's repository. Git lists and packs them inside a trial over the same layer, so nothing that
//! the command left is trusted: names are checked, and objects are named by their contents.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::layer::Layer;
use super::tree::{self, Kind, Node, Tree};
use crate::blocking::blocking;
use crate::checkpoint::{KeptRepository, RepositoryChanges, Store};
use crate::git::{
    Head, HeadChange, Index, MOST_INDEX, ObjectName, PathChange, REF_FORMAT, RefChange, RefTarget,
    Refs, Repository, RepositoryChange, STASH, STASH_LOG, StashChange, StashEntry, message,
    object_lines, objects, parse_refs,
};
use co_exec::{Caller, CommandSpec, Confinement, Environment, Executor, GIT_ENVIRONMENT, Program};

/// The directory in `.git` of the layer for what git prints. If the command has made it, co reads
/// none of the changes of `.git`.
const PRINTED: &str = "co-trial";

/// Lists the refs, and packs the objects of refs and of standard input.
const SCRIPT: &str = r#"set -e
mkdir ".git/$co_printed"
"$co_git" for-each-ref "$co_format" > ".git/$co_printed/refs"
"$co_git" pack-objects -q --revs --all --stdout > ".git/$co_printed/pack""#;

/// The longest time of the script.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The most bytes of the list of refs.
const MOST_REFS: u64 = 16 << 20;
/// The most bytes of the new objects.
const MOST_OBJECTS: u64 = 100 << 20;

/// The place of a trial whose changes are read.
#[derive(Clone)]
pub struct TrialPlace {
    pub layer: Arc<Layer>,
    /// The real path of the workspace.
    pub root: PathBuf,
    /// The person's git, if there is one.
    pub git: Option<PathBuf>,
    pub store: Arc<Store>,
}

/// The state of the workspace's repository, and the changes of a trial that need no git to read.
struct Before {
    repository: Repository,
    refs: Refs,
    head: HeadChange,
    index: Vec<PathChange>,
    /// The stash as it was, and the one of the trial if that has changed it.
    stash: (Vec<StashEntry>, Option<Vec<StashEntry>>),
}

/// Reads the changes of the workspace's repository; none if there are none.
///
/// # Errors
/// They cannot be kept: a clause.
pub(super) async fn read(
    executor: &Executor,
    place: &TrialPlace,
) -> Result<Option<RepositoryChanges>, String> {
    let git = place.git.clone().ok_or("there is no git")?;
    let (root, layer) = (place.root.clone(), Arc::clone(&place.layer));
    let opened = git.clone();
    let before = blocking(move || Before::read(Repository::open(&opened, &root)?, &layer, &root));
    let before = before.await?;
    let running = executor.start(before.command(&git, place));
    let running = running.await.map_err(|error| error.to_string())?;
    let outcome = running.outcome().await;
    if !outcome.ok() {
        return Err(format!("git cannot read it: {}", message(&outcome.output)));
    }
    let place = place.clone();
    blocking(move || before.finish(&place)).await
}

impl Before {
    /// Reads the repository, and the files of the layer that need no git.
    fn read(repository: Repository, layer: &Layer, root: &Path) -> Result<Self, String> {
        let refs = repository.refs()?;
        let trees = Trees::open(layer, root).map_err(unreadable)?;
        let head = trees.head()?;
        let index = trees.index(&repository)?;
        let stash = (repository.stash()?, trees.stash()?);
        Ok(Self {
            repository,
            refs,
            head,
            index,
            stash,
        })
    }

    /// Returns the command that prints the rest into the layer.
    fn command(&self, git: &Path, place: &TrialPlace) -> CommandSpec {
        let staged = self.staged();
        let stashed = self.stash.1.iter().flatten().map(|it| &it.object);
        let stdin = [
            object_lines(staged.iter().chain(stashed)),
            // What comes after it is there already.
            b"--not\n".to_vec(),
            object_lines(objects(&self.refs)),
        ]
        .concat();
        let variables = GIT_ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let own = [
            ("co_git", git.display().to_string()),
            ("co_format", REF_FORMAT.to_owned()),
            ("co_printed", PRINTED.to_owned()),
            ("GIT_NO_REPLACE_OBJECTS", "1".to_owned()),
        ];
        CommandSpec {
            program: Program::Shell(SCRIPT.to_owned()),
            cwd: place.root.clone(),
            caller: Caller::Agent,
            stdin: Some(stdin),
            timeout: TIMEOUT,
            confinement: Confinement::Trial {
                workspace: place.root.clone(),
                layer: place.layer.path(),
                ignored: None,
                caches: None,
            },
            environment: Environment::Executor,
            extra_env: (own
                .map(|(name, value)| (name.to_owned(), value))
                .into_iter())
            .chain(variables)
            .collect(),
        }
    }

    /// Returns the contents that the index has now and had not before.
    fn staged(&self) -> Vec<ObjectName> {
        let change = RepositoryChange {
            index: self.index.clone(),
            ..RepositoryChange::default()
        };
        change.staged().into_iter().cloned().collect()
    }

    /// Reads what git printed. The new objects go to a directory of the layer first, where git checks and describes them.
    fn finish(self, place: &TrialPlace) -> Result<Option<RepositoryChanges>, String> {
        let trees = Trees::open(&place.layer, &place.root).map_err(unreadable)?;
        let refs = parse_refs(&trees.printed("refs", MOST_REFS)?)?;
        let stash = trees.stash_change(self.stash, (&self.refs, &refs))?;
        let change = RepositoryChange {
            refs: RefChange::between(&self.refs, &refs)?,
            head: Some(self.head),
            stash,
            index: self.index,
        };
        if change.is_empty() {
            return Ok(None);
        }
        trees.check_unchanged(&change)?;
        self.repository.check_head(&change)?;
        let pack = trees.printed("pack", MOST_OBJECTS)?;
        let objects = place.layer.scratch("objects").map_err(unreadable)?;
        let repository = self.repository.with_objects(objects);
        repository.import(&pack)?;
        repository.check_objects(&change)?;
        let index = place.layer.scratch("index").map_err(unreadable)?;
        let lines = repository.describe(&change, &index.join("index"))?;
        let pack = place.store.put(&pack).map_err(unreadable)?;
        let git = place.git.clone().unwrap_or_default();
        let kept = KeptRepository {
            git,
            change,
            packs: vec![pack],
        };
        Ok(Some(RepositoryChanges { kept, lines }))
    }
}

/// The files of the layer and of the workspace.
struct Trees {
    layer: Tree,
    workspace: Tree,
    start: tree::Time,
    /// The index that the trial started with; none if there was none.
    old_index: Vec<u8>,
    old_head: Vec<u8>,
}

impl Trees {
    fn open(layer: &Layer, root: &Path) -> io::Result<Self> {
        Ok(Self {
            layer: Tree::open(&layer.upper())?,
            workspace: Tree::open(root)?,
            start: layer.start(),
            old_index: layer.old("index")?,
            old_head: layer.old("HEAD")?,
        })
    }

    /// Returns what git printed into the layer.
    fn printed(&self, name: &str, most: u64) -> Result<Vec<u8>, String> {
        let dir = Path::new(".git").join(PRINTED);
        let dir = self.layer.dir(&dir).map_err(unreadable)?;
        let dir = dir.ok_or("git printed nothing")?;
        tree::bytes(&dir, OsStr::new(name), most).map_err(unreadable)
    }

    /// Returns a file that the layer has; none if the trial did not change it.
    fn changed(&self, path: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
        let path = Path::new(path);
        let Some(dir) = self.layer.parent(path).map_err(unreadable)? else {
            return Ok(None);
        };
        let name = path.file_name().unwrap_or_default();
        match Node::of(&dir, name).map_err(unreadable)? {
            None => Ok(None),
            Some(node) if node.kind == Kind::File => {
                tree::bytes(&dir, name, most).map(Some).map_err(unreadable)
            }
            Some(_) => Err(format!("{} is no file", path.display())),
        }
    }

    /// Returns whether a file of the workspace changed since the trial began.
    fn is_new(&self, path: &str) -> Result<bool, String> {
        let node = self.workspace.node(Path::new(path)).map_err(unreadable)?;
        Ok(node.is_some_and(|it| !it.changed.is_before(self.start)))
    }

    fn head(&self) -> Result<HeadChange, String> {
        let parse = |text: &[u8]| Head::parse(text).ok_or("HEAD has an unusual form");
        let before = parse(&self.old_head)?;
        let after = match self.changed(".git/HEAD", MOST_REFS)? {
            Some(text) => parse(&text)?,
            None => before.clone(),
        };
        Ok(HeadChange { before, after })
    }

    fn index(&self, repository: &Repository) -> Result<Vec<PathChange>, String> {
        let Some(after) = self.changed(".git/index", MOST_INDEX)? else {
            return Ok(Vec::new());
        };
        let now = repository.index_bytes()?;
        let before = &self.old_index;
        if Index::are_same(before, &after) {
            return Ok(Vec::new());
        }
        if *before != now && !Index::are_same(before, &now) {
            return Err("the index has changed meanwhile".to_owned());
        }
        let size = repository.hash_size()?;
        let parse = |bytes: &[u8]| match bytes {
            [] => Ok(Index::default()),
            bytes => Index::parse(bytes, size).ok_or("the index has an unknown form"),
        };
        parse(before)?.changes(&parse(&after)?)
    }

    /// Returns the entries of the stash that the trial left; none if it did not change them.
    fn stash(&self) -> Result<Option<Vec<StashEntry>>, String> {
        let path = format!(".git/{STASH_LOG}");
        let node = self.layer.node(Path::new(&path)).map_err(unreadable)?;
        if node.is_some_and(|it| it.kind == Kind::Whiteout) {
            return Ok(Some(Vec::new()));
        }
        match self.changed(&path, MOST_REFS)? {
            None => Ok(None),
            Some(log) => match StashEntry::parse_log(&log) {
                None => Err("the stash has an unknown form".to_owned()),
                entries => Ok(entries),
            },
        }
    }

    /// Returns the change of the stash, whose ref must be that of its last entry.
    fn stash_change(
        &self,
        (before, after): (Vec<StashEntry>, Option<Vec<StashEntry>>),
        refs: (&Refs, &Refs),
    ) -> Result<Option<StashChange>, String> {
        let after = after.unwrap_or_else(|| before.clone());
        if before == after && refs.0.get(STASH) == refs.1.get(STASH) {
            return Ok(None);
        }
        let tip = |entries: &[StashEntry]| {
            let last = entries.last();
            last.map(|it| RefTarget::Object(it.object.clone()))
        };
        if refs.0.get(STASH) != tip(&before).as_ref() || refs.1.get(STASH) != tip(&after).as_ref() {
            return Err("the stash has an unusual form".to_owned());
        }
        let log = format!(".git/{STASH_LOG}");
        if self.is_new(&log)? || self.is_new(&format!(".git/{STASH}"))? {
            return Err("the stash has changed meanwhile".to_owned());
        }
        Ok(Some(StashChange { before, after }))
    }

    /// Checks that the refs of a change have not changed in the workspace since the trial began.
    fn check_unchanged(&self, change: &RepositoryChange) -> Result<(), String> {
        for it in &change.refs {
            let file = format!(".git/{}", it.name);
            let node = self.workspace.node(Path::new(&file)).map_err(unreadable)?;
            let place = match node {
                Some(_) => file.as_str(),
                None if it.before.is_some() => ".git/packed-refs",
                None => continue,
            };
            if self.is_new(place)? {
                return Err(format!("{} has changed meanwhile", it.shown()));
            }
        }
        Ok(())
    }
}

fn unreadable(error: io::Error) -> String {
    format!("it cannot be read: {error}")
}
