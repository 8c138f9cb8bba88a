use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;
use crate::checkpoint::tests::{DEADLINE, Scene};

/// The changes that other processes make. `@` is a random path.
const CHANGES: [&str; 24] = [
    "echo x > @",
    "echo y > @",
    "echo x > @/f",
    "mkdir -p @",
    "mkdir -p @/src/deep && echo 1 > @/src/deep/f",
    "mv @ @",
    "mv -T @ @",
    "rm -rf @",
    "ln -sfn @ @",
    "ln -f @/f @",
    "ln -f .env @",
    "chmod 700 @",
    "chmod 644 @",
    "touch -d 2001-01-01 @",
    "printf 'b\\n*.log\\n' > @/.gitignore",
    "printf '!b\\n' > @/.ignore",
    "rm -f @/.gitignore @/.ignore",
    "mkdir -p .git/info && echo d > .git/info/exclude",
    "mkdir -p @/__pycache__ && echo x > @/__pycache__/m.pyc",
    "git add -f . 2>/dev/null",
    "git init -q @",
    "echo x > @/new && mv @/new @",
    "for i in {1..1000}; do echo $i > @/n$i.log; done",
    "rm -rf @ && mkdir @ && echo x > @/plain",
];

const PLACES: [&str; 12] = [
    "a", "b", "a/b", "a/c", "b/d", ".env", "a/.env", "secrets", "a/b/c", "d", "a/f", "a-b",
];

/// Returns the files of a snapshot, without their times.
fn files(snapshot: &Snapshot) -> BTreeMap<String, Entry> {
    let nodes = snapshot.nodes.iter();
    nodes.map(|(path, node)| (path, node.entry)).collect()
}

fn sorted(mut found: Differences) -> Differences {
    found
        .changes
        .sort_by(|one, other| one.path.cmp(&other.path));
    found.not_created.sort();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn an_updated_snapshot_is_like_one_that_is_taken_anew(
        is_watched in any::<bool>(),
        steps in proptest::collection::vec(
            proptest::collection::vec((0..CHANGES.len(), 0..PLACES.len(), 0..PLACES.len()), 1..4),
            1..8,
        ),
    ) {
        let scene = Scene::new();
        scene.write(".env", "KEY=x");
        scene.write("a/f", "x");
        let judge = Arc::clone(&scene.workspace.judge);
        let (root, store) = (judge.root().to_owned(), scene.checkpoints.store().unwrap());
        let run = |script: &str| {
            let mut bash = Command::new("bash");
            let bash = bash.args(["-c", script]).current_dir(&root).stdin(Stdio::null());
            bash.output().unwrap();
        };
        run("git init -q");
        let late = Instant::now() + DEADLINE;
        while is_watched && judge.changes(None).mark.is_none() {
            judge.watch();
            prop_assert!(Instant::now() < late, "no watcher started");
            std::thread::yield_now();
        }
        let dir = Dir::open(&root).unwrap();
        let mut mark = judge.changes(None).mark;
        let source = || SnapshotSource::new(&judge, &dir, &store);
        let mut snapshot = Snapshot::default().again(source()).unwrap();
        for step in steps {
            let lines = step.iter().map(|(change, one, other)| {
                CHANGES[*change].replacen('@', PLACES[*one], 1).replace('@', PLACES[*other])
            });
            let script = lines.collect::<Vec<_>>().join("\n");
            run(&script);
            let changes = judge.changes(mark.as_ref());
            mark = changes.mark;
            let anew = Snapshot::default().again(source()).unwrap();
            let expected = sorted(snapshot.changes(&anew, &dir));
            let dirs = match is_watched {
                true => changes.dirs,
                false => snapshot.changed(&source()),
            };
            match dirs.and_then(|dirs| snapshot.update(&source(), &dirs)) {
                Some(found) => {
                    prop_assert_eq!(files(&snapshot), files(&anew), "{}", script);
                    let found = sorted(found);
                    prop_assert_eq!(found.changes, expected.changes, "{}", script);
                    prop_assert_eq!(found.not_created, expected.not_created, "{}", script);
                    prop_assert_eq!(snapshot.bytes, anew.bytes);
                }
                None => snapshot = anew,
            }
        }
    }
}

#[test]
fn a_change_of_a_file_is_found_without_a_walk() {
    let scene = Scene::new();
    for number in 0..20 {
        scene.write(&format!("dir{number}/inner/file"), "x");
    }
    let judge = Arc::clone(&scene.workspace.judge);
    let store = scene.checkpoints.store().unwrap();
    let dir = Dir::open(judge.root()).unwrap();
    let source = || SnapshotSource::new(&judge, &dir, &store);
    let mut snapshot = Snapshot::default().again(source()).unwrap();
    scene.write("dir3/inner/file", "y");
    scene.write("dir4/inner/file", "y");
    fs::create_dir(judge.root().join("dir3/inner/new")).unwrap();
    let changed = HashSet::from([judge.root().join("dir3/inner").into()]);
    let found = snapshot.update(&source(), &changed).unwrap();
    let paths: Vec<_> = found
        .changes
        .iter()
        .map(|it| it.path.to_str().unwrap())
        .collect();
    // Nothing else was looked at.
    assert_eq!(paths, ["dir3/inner/file", "dir3/inner/new"]);
    scene.write("dir3/.gitignore", "inner");
    let changed = HashSet::from([judge.root().join("dir3").into()]);
    assert!(snapshot.update(&source(), &changed).is_none());
}
