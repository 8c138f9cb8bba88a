use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::checkpoint::{By, CallChanges, Checkpoints, Record, Workspace};
use crate::tool::judge::{Judge, JudgeConfig};

/// A workspace with checkpoints.
struct Scene {
    /// The directory above the workspace.
    top: PathBuf,
    _dir: Option<TempDir>,
    checkpoints: Arc<Checkpoints>,
    workspace: Arc<Workspace>,
}

impl Scene {
    fn new() -> Self {
        let dir = TempDir::with_prefix("co-checkpoint-").unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let scene = Self::of(dir.path());
        Self {
            _dir: Some(dir),
            ..scene
        }
    }

    /// Uses a workspace that is there.
    fn of(top: &Path) -> Self {
        let root = top.canonicalize().unwrap();
        let (judge, _) = Judge::new(JudgeConfig {
            workspace: root.join("work"),
            home: root.clone(),
            path: "/usr/bin:/bin".into(),
            settings: co_policy::PolicySettings::default(),
            saved: Vec::new(),
            own: vec![root.join("state")],
        });
        let checkpoints = Arc::new(Checkpoints::new(root.join("state/checkpoints")));
        let workspace = checkpoints.workspace(&Arc::new(judge)).unwrap();
        Self {
            top: root,
            _dir: None,
            checkpoints,
            workspace,
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.top.join("work").join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    /// Returns the changes of a command.
    fn call(&self, command: impl FnOnce()) -> CallChanges {
        self.workspace.prepare();
        assert_eq!(self.workspace.missing(), None);
        let window = self.workspace.begin().unwrap();
        command();
        window.end()
    }

    fn undo(&self, changes: &[Change]) -> Undo {
        Undo::of(changes.iter(), self.workspace.root(), &self.workspace.store)
    }

    /// Takes changes back. Returns the changes of that, and the files that are left alone.
    fn take_back(&self, changes: &[Change]) -> (Vec<Change>, Vec<String>) {
        let undo = self.undo(changes);
        let kept = undo
            .kept
            .iter()
            .chain([])
            .map(|(path, _)| path.display().to_string());
        let kept = kept.collect();
        let done = undo.apply(self.workspace.root(), &self.workspace.store);
        assert_eq!(done.failed, []);
        (done.changes, kept)
    }

    /// Returns the kind, the mode and the bytes of everything in the workspace.
    fn everything(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut todo = vec![self.at("")];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                let bytes = match meta.file_type() {
                    kind if kind.is_dir() => Vec::new(),
                    kind if kind.is_symlink() => fs::read_link(&path)
                        .unwrap()
                        .into_os_string()
                        .into_encoded_bytes(),
                    _ => fs::read(&path).unwrap(),
                };
                if meta.is_dir() {
                    todo.push(path.clone());
                }
                found.insert(path, (meta.mode(), bytes));
            }
        }
        found
    }
}

fn paths(changes: &[Change]) -> Vec<&str> {
    changes.iter().map(|it| it.path.to_str().unwrap()).collect()
}

#[test]
fn a_command_is_taken_back_and_that_too() {
    let scene = Scene::new();
    scene.write("a", "one\ntwo\n");
    scene.write("gone", "x");
    let before = scene.everything();
    let found = scene.call(|| {
        scene.write("a", "one\n2\n");
        scene.write("deep/new", "n");
        fs::remove_file(scene.at("gone")).unwrap();
    });
    assert_eq!(paths(&found.changes), ["a", "gone", "deep", "deep/new"]);
    let after = scene.everything();
    let undo = scene.undo(&found.changes);
    let diff = undo.diff(&scene.workspace.store);
    assert!(
        diff.contains("--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-2\n+two\n"),
        "{diff}"
    );
    assert!(diff.contains("--- a/deep/new\n+++ /dev/null\n"), "{diff}");
    assert_eq!(scene.everything(), after, "a plan changes nothing");
    let (undone, kept) = scene.take_back(&found.changes);
    assert_eq!(kept, [""; 0]);
    assert_eq!(scene.everything(), before);
    assert_eq!(
        scene.undo(&found.changes),
        Undo::default(),
        "it is done already"
    );
    scene.take_back(&undone);
    assert_eq!(scene.everything(), after);
}

#[test]
fn later_work_of_the_person_stays() {
    let scene = Scene::new();
    for name in ["merged", "same place", "deleted", "latin1"] {
        scene.write(name, "1\n2\n3\n4\n5\n");
    }
    fs::write(scene.at("latin1"), b"\xe4\r\n2\r\n3\r\n4\r\n").unwrap();
    let found = scene.call(|| {
        for name in ["merged", "same place", "deleted"] {
            scene.write(name, "1\nCO\n3\n4\n5\n");
        }
        scene.write("made", "co\n");
        scene.write("dir/made", "co\n");
        fs::write(scene.at("latin1"), b"\xe4\r\nCO\r\n3\r\n4\r\n").unwrap();
    });
    scene.write("merged", "1\nCO\n3\n4\nmine\n");
    scene.write("same place", "1\nmine\n3\n4\n5\n");
    fs::remove_file(scene.at("deleted")).unwrap();
    scene.write("made", "co\nmine\n");
    scene.write("dir/mine", "mine\n");
    fs::write(scene.at("latin1"), b"\xe4\r\nCO\r\n3\r\n\xf6\r\n").unwrap();
    let (_, kept) = scene.take_back(&found.changes);
    assert_eq!(kept, ["deleted", "made", "same place"]);
    assert_eq!(scene.read("merged"), "1\n2\n3\n4\nmine\n");
    assert_eq!(scene.read("same place"), "1\nmine\n3\n4\n5\n");
    assert!(!scene.at("deleted").exists());
    assert_eq!(scene.read("made"), "co\nmine\n");
    assert_eq!(scene.read("dir/mine"), "mine\n");
    assert!(!scene.at("dir/made").exists());
    assert_eq!(
        fs::read(scene.at("latin1")).unwrap(),
        b"\xe4\r\n2\r\n3\r\n\xf6\r\n"
    );
}

#[test]
fn what_the_person_did_between_and_during_calls_stays() {
    let scene = Scene::new();
    for name in ["between", "saved", "run", "edited", "co"] {
        scene.write(name, "1\n");
    }
    let mut all = scene.call(|| scene.write("co", "2\n"));
    scene.write("between", "mine\n");
    let edit = scene.workspace.before_edit(&[scene.at("edited")]);
    let second = scene.call(|| {
        scene.write("co", "3\n");
        scene.checkpoints.saved(&scene.at("saved"));
        scene.write("saved", "mine\n");
        scene.checkpoints.divide();
        let run = scene.checkpoints.person_runs();
        scene.write("run", "mine\n");
        run.end();
        scene.write("after", "co\n");
        let edit = scene.workspace.before_edit(&[scene.at("edited")]).unwrap();
        scene.write("edited", "another chat\n");
        let edit = scene.workspace.after_edit(edit);
        assert_eq!(paths(&edit.changes), ["edited"]);
    });
    drop(edit);
    assert_eq!(paths(&second.changes), ["co", "after"]);
    let unclear: Vec<_> = second
        .unclear
        .iter()
        .map(|it| it.to_str().unwrap())
        .collect();
    assert_eq!(unclear, ["saved", "run", "edited"]);
    all.changes.extend(second.changes);
    scene.take_back(&all.changes);
    assert_eq!(scene.read("co"), "1\n");
    assert!(!scene.at("after").exists());
    for name in ["between", "saved", "run"] {
        assert_eq!(scene.read(name), "mine\n", "{name}");
    }
    assert_eq!(scene.read("edited"), "another chat\n");
}

#[test]
fn two_chats_do_not_take_each_others_changes_back() {
    let scene = Scene::new();
    scene.workspace.prepare();
    let first = scene.workspace.begin().unwrap();
    scene.write("first", "1");
    let second = scene.workspace.begin().unwrap();
    scene.write("either", "1");
    let first = first.end();
    scene.write("second", "1");
    let second = second.end();
    assert_eq!(paths(&first.changes), ["first"]);
    assert_eq!(paths(&second.changes), ["second"]);
    assert_eq!(first.unclear, [Path::new("either")]);
    assert_eq!(second.unclear, [Path::new("either")]);
}

#[test]
fn ignored_and_secret_files_are_not_copied_and_not_deleted() {
    let scene = Scene::new();
    scene.write(".gitignore", "build\n");
    for name in ["build/out", ".env"] {
        scene.write(name, "secret");
    }
    scene.write("a", "before");
    scene.write("key", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n");
    let found = scene.call(|| {
        scene.write("build/out", "new secret");
        scene.write(".env", "new secret");
        scene.write("a", "after");
    });
    assert_eq!(paths(&found.changes), ["a"]);
    // From now on `a` is ignored, which does not delete it.
    let found = scene.call(|| scene.write(".gitignore", "build\na\n"));
    assert_eq!(paths(&found.changes), [".gitignore"]);
    let store = scene.top.join("state/checkpoints");
    let pack = |path: &Path| path.extension().is_some_and(|it| it == "pack");
    let files = fs::read_dir(store).unwrap().map(|it| it.unwrap().path());
    let packs: Vec<_> = files
        .filter(|it| pack(it))
        .map(|it| fs::read_to_string(it).unwrap())
        .collect();
    assert_eq!(packs, ["build\nbeforeafterbuild\na\n"]);
}

#[test]
fn a_file_that_was_ignored_is_not_deleted_by_an_undo() {
    let scene = Scene::new();
    scene.write(".gitignore", "*.log\n");
    scene.write("mine.log", "mine");
    let born = scene.at("mine.log").metadata().unwrap().created();
    // A file system tells the time of a file's birth by a coarse clock.
    while born
        .as_ref()
        .is_ok_and(|born| born.elapsed().unwrap_or_default().as_millis() < 50)
    {
        std::thread::yield_now();
    }
    let found = scene.call(|| {
        scene.write(".gitignore", "\n");
        scene.write("co", "co");
    });
    if born.is_ok() {
        assert_eq!(paths(&found.changes), [".gitignore", "co"]);
        assert_eq!(found.unclear, [Path::new("mine.log")]);
        scene.take_back(&found.changes);
        assert_eq!(scene.read("mine.log"), "mine");
    }
}

#[test]
fn nothing_is_written_through_a_link() {
    let scene = Scene::new();
    scene.write("src/a", "before");
    let outside = scene.top.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "mine").unwrap();
    let before = scene.everything();
    let found = scene.call(|| {
        fs::remove_dir_all(scene.at("src")).unwrap();
        symlink(&outside, scene.at("src")).unwrap();
    });
    scene.take_back(&found.changes);
    assert_eq!(scene.everything(), before);
    // The person makes a link of it later.
    let found = scene.call(|| scene.write("src/a", "after"));
    fs::remove_dir_all(scene.at("src")).unwrap();
    symlink(&outside, scene.at("src")).unwrap();
    let (_, kept) = scene.take_back(&found.changes);
    assert_eq!(kept, ["src/a"]);
    assert_eq!(fs::read_to_string(outside.join("a")).unwrap(), "mine");
}

#[test]
fn a_file_that_changes_after_the_question_is_left_alone() {
    let scene = Scene::new();
    scene.write("a", "before");
    scene.write("b", "before");
    let found = scene.call(|| {
        scene.write("a", "after");
        scene.write("b", "after");
    });
    let undo = scene.undo(&found.changes);
    scene.write("a", "mine");
    let done = undo.apply(scene.workspace.root(), &scene.workspace.store);
    assert_eq!(paths(&done.changes), ["b"]);
    assert_eq!(done.failed.len(), 1);
    assert_eq!(scene.read("a"), "mine");
    assert_eq!(scene.read("b"), "before");
}

#[test]
fn a_copy_that_is_lost_or_damaged_is_named() {
    let scene = Scene::new();
    scene.write("lost", "lost before\n1\n");
    let found = scene.call(|| scene.write("lost", "after\n1\n"));
    for entry in fs::read_dir(scene.top.join("state/checkpoints")).unwrap() {
        fs::write(entry.unwrap().path(), "").unwrap();
    }
    let undo = scene.undo(&found.changes);
    let done = undo.apply(scene.workspace.root(), &scene.workspace.store);
    assert_eq!(done.failed.len(), 1, "{done:?}");
    assert_eq!(scene.read("lost"), "after\n1\n");
}

/// The directory of the scene, for the child of the next test.
const CHILD: &str = "CO_TEST_UNDO_UNTIL_KILLED";

/// Takes changes back and brings them again, until it is killed.
#[test]
fn child_that_is_killed() {
    let Some(dir) = std::env::var_os(CHILD) else {
        return;
    };
    let scene = Scene::of(Path::new(&dir));
    let mut changes = scene.checkpoints.records("chat").remove(0).changes;
    loop {
        changes = scene.take_back(&changes).0;
        eprintln!("taken back");
    }
}

#[test]
fn a_backend_that_is_killed_leaves_whole_files() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let scene = Scene::new();
    let text = |number: u32, state: &str| format!("{number} {state}\n").repeat(10_000);
    for number in 0..30 {
        scene.write(&format!("{number}"), &text(number, "before"));
    }
    let before = scene.everything();
    let found = scene.call(|| {
        for number in 0..30 {
            scene.write(&format!("{number}"), &text(number, "after"));
        }
        scene.write("dir/made", "co");
    });
    let record = Record {
        turn: 0,
        by: By::Undo,
        workspace: scene.at(""),
        changes: found.changes.clone(),
        unclear: Vec::new(),
        unknown: None,
    };
    scene.checkpoints.append("chat", &record).unwrap();
    for rounds in 1..5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "checkpoint::undo::tests::child_that_is_killed",
                "--nocapture",
            ])
            .env(CHILD, &scene.top)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let taken_back = lines
            .map(Result::unwrap)
            .filter(|line| line == "taken back");
        assert_eq!(taken_back.take(rounds).count(), rounds);
        child.kill().unwrap();
        child.wait().unwrap();
        for number in 0..30 {
            let now = scene.read(&format!("{number}"));
            let whole = [text(number, "before"), text(number, "after")].contains(&now);
            assert!(whole, "{number} is {} bytes", now.len());
        }
        let (_, kept) = scene.take_back(&found.changes);
        assert_eq!(kept, [""; 0]);
        let left = scene.everything();
        let left = left.into_iter().filter(|(path, _)| !is_temporary(path));
        assert_eq!(left.collect::<BTreeMap<_, _>>(), before);
    }
}

/// Returns whether a file is one that a killed backend has not put in its place.
fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name.starts_with(".co-edit-")
}

/// One change of a random file.
#[derive(Debug, Clone)]
enum Act {
    Write(usize, String),
    Mode(usize, u32),
    Remove(usize),
    Link(usize),
    Dir(usize),
    Rename(usize, usize),
}

const NAMES: [&str; 7] = ["a", "b", "d/a", "d/b", "d/e/a", "f/a", "f"];

fn act() -> impl Strategy<Value = Act> {
    let name = || 0..NAMES.len();
    prop_oneof![
        4 => (name(), "[ab\n\\x00-\\xff]{0,20}").prop_map(|(at, text)| Act::Write(at, text)),
        1 => (name(), prop_oneof![Just(0o600), Just(0o755), Just(0o444)]).prop_map(|(at, mode)| Act::Mode(at, mode)),
        1 => name().prop_map(Act::Remove),
        1 => name().prop_map(Act::Link),
        1 => name().prop_map(Act::Dir),
        1 => (name(), name()).prop_map(|(from, to)| Act::Rename(from, to)),
    ]
}

/// Does something. It may fail, as commands do.
fn perform(scene: &Scene, act: &Act) {
    let at = |index: &usize| scene.at(NAMES[*index]);
    let _done = match act {
        Act::Write(path, text) => {
            let made = fs::create_dir_all(at(path).parent().unwrap());
            made.and_then(|()| fs::write(at(path), text))
        }
        Act::Mode(path, mode) => match at(path).is_file() {
            true => set_mode(&at(path), *mode),
            false => Ok(()),
        },
        Act::Remove(path) => fs::remove_file(at(path)).or_else(|_| fs::remove_dir_all(at(path))),
        Act::Link(path) => symlink("a", at(path)),
        Act::Dir(path) => fs::create_dir_all(at(path)),
        Act::Rename(from, to) => fs::rename(at(from), at(to)),
    };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_byte_and_mode_comes_back(
        first in proptest::collection::vec(act(), 0..10),
        calls in proptest::collection::vec(proptest::collection::vec(act(), 0..6), 1..4),
    ) {
        let scene = Scene::new();
        first.iter().for_each(|it| perform(&scene, it));
        let before = scene.everything();
        let mut changes = Vec::new();
        for acts in &calls {
            let found = scene.call(|| acts.iter().for_each(|it| perform(&scene, it)));
            prop_assert_eq!((&found.unclear, &found.unknown), (&Vec::new(), &None));
            changes.extend(found.changes);
        }
        let after = scene.everything();
        let (undone, kept) = scene.take_back(&changes);
        prop_assert_eq!(kept, Vec::<String>::new());
        prop_assert_eq!(scene.everything(), before);
        scene.take_back(&undone);
        prop_assert_eq!(scene.everything(), after);
    }
}
