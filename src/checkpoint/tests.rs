//! Checkpoints of a real directory: which changes belong to a call, and what is copied.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{
    CallChanges, Change, ChangeCause, Checkpoints, InterruptedKeep, Record, Undo, UndoResult,
    Workspace,
};
use crate::buffers::OpenBuffers;
use crate::test_tree::{self, Tree};
use crate::workspace::edits::PlannedEdit;
use crate::workspace::judge::{Judge, JudgeConfig};
use co_edit::FileText;
use co_llm::transcript::Decision;

/// The variable with the directory of a scene, for a child that is killed.
const CHILD: &str = "CO_TEST_UNTIL_KILLED";

/// The longest wait for something that must happen.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);

/// A workspace with checkpoints.
pub(super) struct Scene {
    /// The directory above the workspace.
    pub(super) top: PathBuf,
    _dir: Option<TempDir>,
    pub(super) checkpoints: Arc<Checkpoints>,
    pub(super) workspace: Arc<Workspace>,
}

impl Scene {
    pub(super) fn new() -> Self {
        let dir = TempDir::with_prefix("co-checkpoint-").unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let scene = Self::of(dir.path());
        Self {
            _dir: Some(dir),
            ..scene
        }
    }

    /// Uses a workspace that is there.
    pub(super) fn of(top: &Path) -> Self {
        let root = top.canonicalize().unwrap();
        let (judge, _) = Judge::new(JudgeConfig {
            workspace: root.join("work"),
            home: root.clone(),
            path: "/usr/bin:/bin".into(),
            settings: co_policy::PolicySettings::default(),
            saved: Default::default(),
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

    /// Starts a process of this program that runs one test with this scene. It writes that test's words to standard error.
    pub(super) fn spawn(&self, test: &str) -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(CHILD, &self.top)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Returns the scene of the test that started this process with [`Self::spawn`]; none in another process.
    pub(super) fn of_parent() -> Option<Self> {
        std::env::var_os(CHILD).map(|dir| Self::of(Path::new(&dir)))
    }

    pub(super) fn at(&self, path: &str) -> PathBuf {
        self.top.join("work").join(path)
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    /// Returns the changes of a command.
    pub(super) fn call(&self, command: impl FnOnce()) -> CallChanges {
        self.workspace.prepare();
        assert_eq!(self.workspace.missing(), None);
        let checkpoint = self.workspace.begin().unwrap();
        command();
        checkpoint.end()
    }

    pub(super) fn undo(&self, changes: &[Change]) -> Undo {
        self.undo_with(changes, &OpenBuffers::default())
    }

    pub(super) fn undo_with(&self, changes: &[Change], open: &OpenBuffers) -> Undo {
        let store = &self.workspace.store;
        Undo::of(changes.iter(), self.workspace.root(), store, open)
    }

    /// Takes changes back. Returns the changes of that, and the files that are left alone.
    pub(super) fn take_back(&self, changes: &[Change]) -> (Vec<Change>, Vec<String>) {
        let undo = self.undo(changes);
        let kept = undo.kept.iter().map(|(path, _)| path.display().to_string());
        let kept = kept.collect();
        let done = self.make(undo);
        assert_eq!(done.failed, []);
        (done.changes, kept)
    }

    pub(super) fn make(&self, undo: Undo) -> UndoResult {
        let root = self.workspace.root();
        self.checkpoints
            .make(undo, root, ChangeCause::Undo)
            .unwrap()
    }

    /// Returns the kind, the mode and the bytes of everything in the workspace.
    pub(super) fn everything(&self) -> Tree {
        test_tree::read(&self.at(""))
    }
}

/// Returns a record as an older version of co wrote it, which kept a commit too.
pub(super) fn with_repository(record: &str) -> String {
    let mut record: serde_json::Value = serde_json::from_str(record).unwrap();
    record["repository"] = serde_json::json!({
        "git": "/usr/bin/git",
        "change": { "refs": [{ "name": "refs/heads/main", "before": null, "after": "1".repeat(40) }] },
        "packs": ["2".repeat(64)],
    });
    record.to_string()
}

/// Returns the number of keeps that were begun and not ended, in the scene at `top`.
pub(super) fn journals(top: &Path) -> usize {
    fs::read_dir(top.join("state/checkpoints/keeps")).map_or(0, Iterator::count)
}

/// Finishes the changes that a killed process began in the scene at `top`. A process that starts during another test has each
/// lock of this process until it runs its program, so this may take several attempts.
pub(super) fn finish(top: &Path) -> Vec<InterruptedKeep> {
    let began = Instant::now();
    let mut found = Vec::new();
    loop {
        found.extend(Checkpoints::new(top.join("state/checkpoints")).finish());
        if journals(top) == 0 {
            return found;
        }
        assert!(began.elapsed() < DEADLINE, "a journal stays");
        std::thread::yield_now();
    }
}

pub(super) fn paths(changes: &[Change]) -> Vec<&str> {
    changes.iter().map(|it| it.path.to_str().unwrap()).collect()
}

#[test]
fn a_snapshot_that_was_forgotten_is_taken_again() {
    let scene = Scene::new();
    scene.write("a", "1");
    assert!(!scene.workspace.is_ready());
    scene.call(|| ());
    scene.workspace.forget_unused(Duration::from_secs(3600));
    assert!(scene.workspace.is_ready());
    scene.workspace.forget_unused(Duration::ZERO);
    assert!(!scene.workspace.is_ready());
    scene.write("b", "1");
    // A command may start before the next turn prepares one.
    let checkpoint = scene.workspace.begin().unwrap();
    scene.workspace.forget_unused(Duration::ZERO);
    scene.write("a", "2");
    let changes = checkpoint.end().changes;
    let paths: Vec<_> = changes.iter().map(|it| it.path.clone()).collect();
    assert_eq!(paths, [PathBuf::from("a")]);
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
fn caches_are_no_changes_unless_git_tracks_them() {
    let scene = Scene::new();
    scene.write("data/__pycache__/deep/tracked", "1");
    scene.write("old/.ruff_cache/x", "1");
    let git = |args: &[&str]| {
        let done = Command::new("git")
            .args(args)
            .current_dir(scene.at(""))
            .status();
        assert!(done.unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["add", "-f", "data"]);
    let found = scene.call(|| {
        scene.write("pkg/a", "1");
        for name in ["pkg/__pycache__/x", ".pytest_cache/v/x", ".mypy_cache/3/x"] {
            scene.write(name, "1");
        }
        scene.write("data/__pycache__/deep/tracked", "2");
        scene.write("data/__pycache__/deep/beside", "2");
        fs::remove_dir_all(scene.at("old/.ruff_cache")).unwrap();
        scene.write(".ruff_cache", "a file");
    });
    let inside = ["beside", "tracked"].map(|it| format!("data/__pycache__/deep/{it}"));
    let mut changed = paths(&found.changes);
    changed.sort_unstable();
    assert_eq!(
        changed,
        [".ruff_cache", &inside[0], &inside[1], "pkg", "pkg/a"]
    );
}

#[test]
fn an_edit_is_taken_back_with_the_directories_that_it_made() {
    let scene = Scene::new();
    scene.write("a", "1");
    let before = scene.everything();
    let edit = scene.workspace.before_edit(&[scene.at("deep/er/new")]);
    scene.write("deep/er/new", "co");
    let found = scene.workspace.after_edit(edit.unwrap());
    scene.take_back(&found.changes);
    assert_eq!(scene.everything(), before);
}

/// The changes that an edit would make.
fn planned(scene: &Scene, files: &[&str], edit: &PlannedEdit) -> Vec<Change> {
    let files: Vec<_> = files.iter().map(|it| scene.at(it)).collect();
    let before = scene.workspace.before_edit(&files).unwrap();
    scene.workspace.planned(before, edit).changes
}

#[test]
fn a_plan_is_taken_back_however_far_the_edit_came() {
    let scene = Scene::new();
    scene.write("old", "1\n");
    fs::write(scene.at("dos"), b"\xe4\r\n2\r\n").unwrap();
    let before = scene.everything();
    let make = PlannedEdit::Create(b"co\n".to_vec());
    let plans = [
        planned(&scene, &["deep/er/new"], &make),
        planned(&scene, &["old"], &PlannedEdit::Delete),
        planned(&scene, &["old", "there/moved"], &PlannedEdit::Move),
        planned(
            &scene,
            &["dos"],
            &PlannedEdit::Text {
                old: Box::new(FileText::decode(b"\xe4\n2\n").unwrap()),
                new: Box::new(FileText::decode(b"\xe4\ntwo\n").unwrap()),
            },
        ),
        planned(
            &scene,
            &["dos"],
            &PlannedEdit::Text {
                old: Box::new(FileText::of_buffer("\u{434}\n2\n".as_bytes(), "cp1251").unwrap()),
                new: Box::new(
                    FileText::of_buffer("\u{434}\n\u{434}\n".as_bytes(), "cp1251").unwrap(),
                ),
            },
        ),
    ];
    let at = |path: &str| scene.at(path);
    let steps: [&[&dyn Fn()]; 5] = [
        &[&|| fs::create_dir_all(at("deep/er")).unwrap(), &|| {
            scene.write("deep/er/new", "co\n");
            fs::set_permissions(at("deep/er/new"), Permissions::from_mode(0o600)).unwrap();
        }],
        &[&|| fs::remove_file(at("old")).unwrap()],
        &[&|| fs::create_dir_all(at("there")).unwrap(), &|| {
            fs::rename(at("old"), at("there/moved")).unwrap()
        }],
        &[&|| fs::write(at("dos"), b"\xe4\r\ntwo\r\n").unwrap()],
        &[&|| fs::write(at("dos"), b"\xe4\r\n\xe4\r\n").unwrap()],
    ];
    for (plan, steps) in plans.iter().zip(steps) {
        for count in 0..=steps.len() {
            steps[..count].iter().for_each(|step| step());
            let (_, kept) = scene.take_back(plan);
            assert_eq!(kept, [""; 0], "{plan:?}");
            assert_eq!(scene.everything(), before, "{plan:?} after {count} steps");
        }
    }
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
fn chats_of_two_backends_do_not_take_each_others_changes_back() {
    let scene = Scene::new();
    let other = Scene::of(&scene.top);
    scene.write("both", "0");
    scene.workspace.prepare();
    let first = scene.workspace.begin().unwrap();
    let second = other.call(|| {
        other.write("b/x", "second");
        other.write("both", "second");
    });
    assert_eq!(paths(&second.changes), ["both", "b", "b/x"]);
    let by = ChangeCause::command("sh".to_owned(), Decision::AutoConfirm);
    let record = Record::new(0, by, other.workspace.root());
    let record = second.in_record(record);
    other.checkpoints.append("second", &record).unwrap();
    scene.write("a/x", "first");
    scene.write("both", "first");
    let found = first.end();
    assert_eq!(paths(&found.changes), ["both", "a", "a/x"]);
    assert_eq!(found.unclear, [Path::new("b"), Path::new("b/x")]);
    // Later, the files are free again.
    let found = scene.call(|| scene.write("b/x", "first"));
    assert_eq!(paths(&found.changes), ["b/x"]);
    assert_eq!(found.unclear, [""; 0].map(Path::new));
}

#[test]
fn a_job_has_what_changes_while_no_command_runs() {
    let scene = Scene::new();
    scene.workspace.prepare();
    let job = scene.workspace.begin_job().unwrap();
    scene.write("job", "1");
    let call = scene.call(|| scene.write("call", "1"));
    assert_eq!(paths(&call.changes), ["call"]);
    scene.checkpoints.saved(&scene.at("saved"));
    scene.write("saved", "mine");
    scene.checkpoints.divide();
    let run = scene.checkpoints.person_runs();
    scene.write("run", "mine");
    run.end();
    scene.write("last", "1");
    let job = job.end();
    assert_eq!(paths(&job.changes), ["job", "last"]);
    assert_eq!(job.unclear, [Path::new("run")]);
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
fn a_gitignore_that_is_a_link_has_no_rules() {
    let scene = Scene::new();
    scene.write("conf/ig", "hid\n");
    scene.write("one/hid/f", "before");
    symlink("conf/ig", scene.at(".gitignore")).unwrap();
    let found = scene.call(|| scene.write("conf/ig", "other\n"));
    assert_eq!(paths(&found.changes), ["conf/ig"]);
    let found = scene.call(|| scene.write("one/hid/f", "after"));
    assert_eq!(paths(&found.changes), ["one/hid/f"]);
    scene.take_back(&found.changes);
    assert_eq!(scene.read("one/hid/f"), "before");
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

/// Takes changes back and brings them again, until it is killed.
#[test]
fn child_that_is_killed() {
    let Some(scene) = Scene::of_parent() else {
        return;
    };
    let mut changes = scene.checkpoints.records("chat").remove(0).changes;
    loop {
        changes = scene.take_back(&changes).0;
        eprintln!("taken back");
    }
}

#[test]
fn a_backend_that_is_killed_leaves_whole_files() {
    use std::io::{BufRead, BufReader};
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
        changes: found.changes.clone(),
        ..Record::new(0, ChangeCause::Undo, &scene.at(""))
    };
    scene.checkpoints.append("chat", &record).unwrap();
    for rounds in 1..5 {
        let mut child = scene.spawn("checkpoint::tests::child_that_is_killed");
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

/// Returns whether a file is a temporary one of a killed backend.
fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name.starts_with(".co-edit-")
}

#[test]
fn a_record_of_an_older_version_with_a_commit_is_read() {
    let scene = Scene::new();
    scene.write("a", "1\n");
    let found = scene.call(|| scene.write("a", "2\n"));
    let record = Record {
        changes: found.changes.clone(),
        ..Record::new(0, ChangeCause::Undo, &scene.at(""))
    };
    let text = serde_json::to_string(&record).unwrap();
    let old: Record = serde_json::from_str(&with_repository(&text)).unwrap();
    assert!(old.of_git);
    assert_eq!(old.changes, found.changes);
    // A copy in another chat says so too.
    let copied: Record = serde_json::from_str(&serde_json::to_string(&old).unwrap()).unwrap();
    assert_eq!(copied, old);
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
}
