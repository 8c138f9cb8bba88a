//! The ignore rules of git, for the directories of a walk and for single paths.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};

use co_exec::beneath::{self, Dir};

/// The ignore files of each directory. The rules of an earlier file have precedence.
pub(crate) const RULES: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];

/// The largest number of bytes of an ignore file. A larger file is not read.
pub(crate) const MOST_BYTES: u64 = 4 << 20;

/// The ignore rules that apply in a directory: its own rules, and the rules of the directories above.
#[derive(Debug, Clone, Default)]
pub(crate) struct IgnoreRules(Option<Arc<DirRules>>);

#[derive(Debug)]
struct DirRules {
    /// The rules of the directory's ignore files, in the order of [`RULES`].
    own: [Gitignore; RULES.len()],
    above: IgnoreRules,
    /// The person's global ignore rules of git, which have the lowest precedence.
    global: Option<GlobalRules>,
}

#[derive(Debug)]
struct GlobalRules {
    rules: Gitignore,
    /// The file that contains the rules.
    path: Option<PathBuf>,
}

impl IgnoreRules {
    /// Reads the person's ignore rules, and the rules of the directories above `root`. `root` must be a canonical path.
    pub(crate) fn above(root: &Path) -> Self {
        let (global, _faults) = GitignoreBuilder::new(root).build_global();
        let none = || Gitignore::empty();
        let person = Self(Some(Arc::new(DirRules {
            own: [none(), none(), none()],
            above: Self(None),
            global: Some(GlobalRules {
                rules: global,
                path: gitconfig_excludes_path(),
            }),
        })));
        let mut above: Vec<_> = root.ancestors().skip(1).collect();
        above.reverse();
        above.iter().fold(person, |rules, dir| {
            rules.below(dir, |name| text(&dir.join(name)))
        })
    }

    /// Returns the ignore files outside `root` that apply to it, or that would apply if they existed.
    pub(crate) fn files_outside(root: &Path) -> Vec<PathBuf> {
        let above = root.ancestors().skip(1);
        let above = above.flat_map(|dir| RULES.iter().map(|name| dir.join(name)));
        above.chain(gitconfig_excludes_path()).collect()
    }

    /// Returns the rules that apply in the directory `dir`. `text` returns the content of an ignore file in it; see [`RULES`].
    pub(crate) fn below(&self, dir: &Path, mut text: impl FnMut(&Path) -> Option<Vec<u8>>) -> Self {
        let own = RULES.map(|name| text(Path::new(name)));
        if own.iter().all(Option::is_none) {
            return self.clone();
        }
        Self(Some(Arc::new(DirRules {
            own: own.map(|text| text.map_or_else(Gitignore::empty, |text| matcher(dir, &text))),
            above: self.clone(),
            global: None,
        })))
    }

    /// Returns true if these rules ignore a path in their directory.
    pub(crate) fn ignore(&self, path: &Path, is_dir: bool) -> bool {
        let chain = || self.chain();
        let found = |rules: &Gitignore| match rules.matched(path, is_dir) {
            Match::None => None,
            it => Some(it.is_ignore()),
        };
        // One kind of file after the other, each from this directory upwards.
        (0..RULES.len())
            .find_map(|kind| chain().find_map(|dir| found(&dir.own[kind])))
            .or_else(|| self.global().and_then(|global| found(&global.rules)))
            .unwrap_or(false)
    }

    /// Returns true if a path is the path of an ignore file: in any directory, or the person's global ignore file.
    pub(crate) fn is_file_of_rules(&self, path: &Path) -> bool {
        let of_person = || self.global().and_then(|global| global.path.as_deref());
        RULES.iter().any(|name| path.ends_with(name)) || of_person() == Some(path)
    }

    fn global(&self) -> Option<&GlobalRules> {
        self.chain().find_map(|dir| dir.global.as_ref())
    }

    /// Returns the directories with rules, from this directory upwards.
    fn chain(&self) -> impl Iterator<Item = &DirRules> {
        std::iter::successors(self.0.as_deref(), |it| it.above.0.as_deref())
    }
}

/// Returns the content of an ignore file. `path` is a canonical directory, followed by one of [`RULES`]. As in git, a symbolic
/// link in the place of a `.gitignore` has no rules. The same holds for an `.ignore`.
pub(crate) fn text(path: &Path) -> Option<Vec<u8>> {
    let (dir, name) = (path.parent()?, path.file_name()?);
    let bytes = match may_be_link(path) {
        true => beneath::read_resolved(path, MOST_BYTES),
        false => Dir::open(dir).and_then(|dir| dir.read(name, MOST_BYTES)),
    };
    bytes.ok()
}

/// Returns the metadata of an ignore file.
pub(super) fn metadata(path: &Path) -> io::Result<Metadata> {
    match may_be_link(path) {
        true => path.metadata(),
        false => path.symlink_metadata(),
    }
}

/// Returns true if an ignore file may be a symbolic link: git follows the link of an ignore file in its own directory.
fn may_be_link(path: &Path) -> bool {
    path.ends_with(RULES[2])
}

fn matcher(dir: &Path, text: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(dir);
    let lines = text.split(|byte| *byte == b'\n');
    // As in the walk, the file ends where it is no text.
    for (number, line) in lines
        .map_while(|line| str::from_utf8(line).ok())
        .enumerate()
    {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let line = match number {
            0 => line.trim_start_matches('\u{feff}'),
            _ => line,
        };
        // A line that is no pattern ignores nothing.
        let _faulty = builder.add_line(None::<PathBuf>, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use proptest::prelude::*;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::buffers::OpenBuffers;
    use crate::workspace::files::{Deadline, FileScope, Walk};

    const DIRS: [&str; 5] = ["", "a", "a/b", "a/b/c", "d"];
    const NAMES: [&str; 4] = ["x", "y.log", ".hidden", "b"];

    /// Returns the files below a directory that ripgrep would look at.
    fn walked(root: &Path) -> BTreeSet<PathBuf> {
        let mut walk = ignore::WalkBuilder::new(root);
        let walk = walk.hidden(false).require_git(false).follow_links(false);
        let is_git = |entry: &ignore::DirEntry| entry.file_name() == ".git";
        let walk = walk.filter_entry(move |entry| !is_git(entry)).build();
        walk.map(|it| it.unwrap().into_path()).collect()
    }

    /// Returns the files below a directory that a walk meets.
    fn not_ignored(root: &Path) -> BTreeSet<PathBuf> {
        let scope = FileScope {
            path: root.to_owned(),
            open: OpenBuffers::new(),
            editor: None,
            allowed: Arc::new(|path: &Path| !path.ends_with(".git")),
            bytes: 0,
            end: Deadline::new(CancellationToken::new()),
        };
        Walk::new(&scope, None).map(|it| it.path).collect()
    }

    fn rules() -> impl Strategy<Value = String> {
        let name = prop_oneof![
            Just("x"),
            Just("*.log"),
            Just("b/"),
            Just("b"),
            Just("/b"),
            Just("a/b"),
            Just("**/c"),
            Just("d/*"),
            Just(".hidden"),
            Just("work"),
            Just("work/d"),
            Just("*"),
            Just("c/y.log"),
            Just("[x"),
            Just("# x"),
            Just("b\r"),
        ];
        let line = (any::<bool>(), name).prop_map(|(not, name)| match not {
            true => format!("!{name}"),
            false => name.to_owned(),
        });
        proptest::collection::vec(line, 0..4).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn they_ignore_what_a_walk_ignores(
            above in rules(),
            files in proptest::collection::vec((0..DIRS.len(), 0..RULES.len(), rules()), 0..6),
        ) {
            let top = tempfile::tempdir().unwrap();
            let top = top.path().canonicalize().unwrap();
            let root = top.join("work");
            for dir in DIRS {
                fs::create_dir_all(root.join(dir)).unwrap();
            }
            for (dir, name) in DIRS.iter().flat_map(|dir| NAMES.map(|name| (dir, name))) {
                let _is_dir = fs::write(root.join(dir).join(name), "");
            }
            fs::write(top.join(".gitignore"), above).unwrap();
            for (dir, kind, text) in files {
                let path = root.join(DIRS[dir]).join(RULES[kind]);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            prop_assert_eq!(not_ignored(&root), walked(&root));
        }
    }
}
