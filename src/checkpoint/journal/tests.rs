use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::buffers::OpenBuffers;
use crate::checkpoint::tests::{Scene, finish, journals, with_repository};
use crate::checkpoint::{Checkpoints, Undo};

/// The number of files of the changes that are kept.
const FILES: usize = 24;

/// Returns a workspace, and changes of all kinds that were made in it and taken back.
fn scene() -> (Scene, Vec<Change>) {
    let scene = Scene::new();
    for number in 0..FILES {
        scene.write(
            &format!("{number}"),
            &format!("{number} before\n").repeat(200),
        );
        scene.write(&format!("old{number}/file"), "before\n");
        symlink("before", scene.at(&format!("link{number}"))).unwrap();
    }
    let found = scene.call(|| {
        for number in 0..FILES {
            scene.write(
                &format!("{number}"),
                &format!("{number} after\n").repeat(200),
            );
            scene.write(&format!("new{number}/file"), "after\n");
            fs::remove_file(scene.at(&format!("link{number}"))).unwrap();
            symlink("after", scene.at(&format!("link{number}"))).unwrap();
            fs::remove_dir_all(scene.at(&format!("old{number}"))).unwrap();
            match number % 3 {
                0 => scene.write(&format!("old{number}"), "after\n"),
                1 => symlink("after", scene.at(&format!("old{number}"))).unwrap(),
                _ => {}
            }
        }
    });
    scene.take_back(&found.changes);
    (scene, found.changes)
}

fn keep(scene: &Scene, checkpoints: &Checkpoints, changes: &[Change]) -> Vec<(PathBuf, String)> {
    let store = checkpoints.store().unwrap();
    let (root, open) = (scene.at("").canonicalize().unwrap(), OpenBuffers::new());
    let undo = Undo::making(changes, &root, &store, &open);
    assert_eq!(undo.kept, []);
    let done = checkpoints.make(undo, &root, ChangeCause::Undo);
    done.unwrap().failed
}

/// Keeps the changes of the scene.
#[test]
fn child_that_is_killed() {
    let Some(scene) = Scene::of_parent() else {
        return;
    };
    let changes = scene.checkpoints.records("chat").remove(0).changes;
    eprintln!("keeps");
    assert_eq!(keep(&scene, &scene.checkpoints, &changes), []);
    eprintln!("kept");
}

/// Starts a child that keeps the changes of the scene, and kills it after `wait`. Returns whether it had kept all.
fn killed_after(scene: &Scene, wait: std::time::Duration) -> bool {
    use std::io::{BufRead, BufReader};
    let mut child = scene.spawn("checkpoint::journal::tests::child_that_is_killed");
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(lines.any(|line| line == "keeps"));
    while journals(&scene.top) == 0 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    // The moment of the kill, not a time in which something must be done.
    std::thread::sleep(wait);
    child.kill().unwrap();
    child.wait().unwrap();
    lines.any(|line| line == "kept")
}

#[test]
fn a_keep_that_is_killed_is_finished_or_dropped_at_the_next_start() {
    let (scene, changes) = scene();
    let record = Record {
        changes: changes.clone(),
        ..Record::new(0, ChangeCause::Undo, &scene.at(""))
    };
    scene.checkpoints.append("chat", &record).unwrap();
    let before = scene.everything();
    assert_eq!(keep(&scene, &scene.checkpoints, &changes), []);
    let after = scene.everything();
    scene.take_back(&changes);
    assert_eq!(scene.everything(), before);
    let (mut finished, mut wait) = (0, std::time::Duration::ZERO);
    for _ in 0..30 {
        let complete = killed_after(&scene, wait);
        let left = scene.everything();
        let states = [&before, &after];
        for (path, file) in left.iter().filter(|(path, _)| !is_temporary(path)) {
            let known = states.iter().any(|state| state.get(path) == Some(file));
            assert!(
                known || scene.at(path.to_str().unwrap()).is_dir(),
                "{} is neither old nor new",
                path.display()
            );
        }
        let found = finish(&scene.top);
        let now = scene.everything();
        match &found[..] {
            [] => assert!(now == before && !complete || now == after, "no journal"),
            [it] if it.dropped => assert_eq!(now, before),
            [it] => {
                assert_eq!((&it.failed, &it.by), (&Vec::new(), &ChangeCause::Undo));
                assert_eq!(now, after);
                finished += 1;
            }
            more => panic!("{more:?}"),
        }
        assert_eq!(journals(&scene.top), 0);
        // The kill comes later each time, until the child is done before.
        wait = match complete {
            true => std::time::Duration::ZERO,
            false => wait + std::time::Duration::from_micros(700),
        };
        if now == after {
            scene.take_back(&changes);
        }
    }
    assert!(finished > 0, "no kill came between two changes");
}

fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name.starts_with(UNFINISHED)
}

/// Notes changes as a process that is killed before it makes them.
fn begin(scene: &Scene, changes: &[Change]) {
    let record = Record {
        planned: true,
        changes: changes.to_owned(),
        ..Record::new(0, ChangeCause::Undo, &scene.at(""))
    };
    let journal = Journal::begin(&scene.top.join("state/checkpoints"), &record);
    drop(journal.unwrap());
}

#[test]
fn what_the_person_changed_since_the_kill_stays() {
    let scene = Scene::new();
    for name in ["done", "mine", "gone", "left"] {
        scene.write(name, "before\n");
    }
    let found = scene.call(|| {
        for name in ["done", "mine", "gone", "left", "new/file"] {
            scene.write(name, "after\n");
        }
    });
    scene.take_back(&found.changes);
    begin(&scene, &found.changes);
    scene.write("done", "after\n");
    scene.write("mine", "mine\n");
    fs::remove_file(scene.at("gone")).unwrap();
    let [found] = &finish(&scene.top)[..] else {
        panic!("nothing was finished");
    };
    let failed: Vec<_> = found
        .failed
        .iter()
        .map(|(path, _)| path.to_str().unwrap())
        .collect();
    assert_eq!((found.finished, &failed[..]), (2, &["gone", "mine"][..]));
    let texts = ["done", "mine", "left", "new/file"].map(|name| scene.read(name));
    assert_eq!(texts, ["after\n", "mine\n", "after\n", "after\n"]);
    assert!(!scene.at("gone").exists());
}

#[test]
fn what_an_older_version_was_changing_in_git_is_named() {
    let (scene, changes) = scene();
    begin(&scene, &changes);
    let journals = keeps(&scene.top.join("state/checkpoints"));
    let [journal] = &fs::read_dir(journals).unwrap().collect::<Vec<_>>()[..] else {
        panic!("there is another journal");
    };
    let path = journal.as_ref().unwrap().path();
    fs::write(&path, with_repository(&fs::read_to_string(&path).unwrap())).unwrap();
    let [found] = &finish(&scene.top)[..] else {
        panic!("nothing was finished");
    };
    assert!(found.dropped);
    let told = found.to_string();
    assert!(
        told.contains("nothing was changed; .git is left alone"),
        "{told}"
    );
}

#[test]
fn what_a_living_process_keeps_is_left_to_it() {
    let scene = Scene::new();
    let found = scene.call(|| scene.write("new", "after\n"));
    scene.take_back(&found.changes);
    let record = Record {
        planned: true,
        changes: found.changes,
        ..Record::new(0, ChangeCause::Undo, &scene.at(""))
    };
    let dir = scene.top.join("state/checkpoints");
    let journal = Journal::begin(&dir, &record).unwrap();
    assert_eq!(scene.checkpoints.finish(), []);
    drop(journal);
    let dropped: Vec<_> = finish(&scene.top).iter().map(|it| it.dropped).collect();
    assert_eq!(dropped, [true]);
    assert_eq!(scene.checkpoints.finish(), []);
    assert_eq!(scene.everything(), BTreeMap::new());
    // A part of a journal was written before anything was changed.
    fs::write(keeps(&dir).join("0.jsonl"), "{\"turn\":").unwrap();
    fs::write(keeps(&dir).join("1.new"), "{\"turn\":").unwrap();
    assert_eq!(scene.checkpoints.finish(), []);
    assert_eq!(journals(&scene.top), 0);
}

#[test]
fn nothing_is_kept_in_a_directory_that_a_link_replaced() {
    let (scene, changes) = scene();
    let root = scene.at("").canonicalize().unwrap();
    let store = scene.checkpoints.store().unwrap();
    let undo = Undo::making(&changes, &root, &store, &OpenBuffers::new());
    begin(&scene, &changes);
    let (moved, outside) = (scene.top.join("moved"), scene.top.join("outside"));
    fs::rename(&root, &moved).unwrap();
    fs::create_dir(&outside).unwrap();
    symlink(&outside, &root).unwrap();
    assert!(
        scene
            .checkpoints
            .make(undo, &root, ChangeCause::Undo)
            .is_err()
    );
    assert_eq!(scene.checkpoints.finish(), []);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(journals(&scene.top), 1, "it waits for the workspace");
}

#[test]
fn the_copies_of_a_journal_stay_in_the_store() {
    let scene = Scene::new();
    scene.write("a", "before\n");
    let found = scene.call(|| {
        scene.write("a", "after\n");
        scene.write("b", "after\n");
    });
    scene.take_back(&found.changes);
    scene.call(|| scene.write("c", &"x".repeat(1_000)));
    begin(&scene, &found.changes);
    scene.write("a", "after\n");
    let dir = scene.top.join("state/checkpoints");
    let top = scene.top.clone();
    // Another backend that is alone drops what nothing needs.
    drop(scene.workspace);
    drop(scene.checkpoints);
    drop(Store::open(&dir, 200).unwrap());
    assert_eq!(finish(&top).iter().map(|it| it.finished).sum::<usize>(), 1);
    assert_eq!(fs::read_to_string(top.join("work/b")).unwrap(), "after\n");
}
