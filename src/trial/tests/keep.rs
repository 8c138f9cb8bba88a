//! The changes of trials, kept and dropped.

use proptest::prelude::*;

use super::Scene;
use crate::buffers::OpenBuffers;
use crate::checkpoint::{Change, ChangeCause, Undo, UndoResult};
use crate::test_tree::{self, Tree};
use co_llm::transcript::Decision;

impl Scene {
    /// Returns the kind, the mode and the bytes of everything in the workspace.
    fn everything(&self) -> Tree {
        test_tree::read(&self.root())
    }

    fn plan(&self, changes: &[Change]) -> Undo {
        let store = self.checkpoints.store().unwrap();
        Undo::making(changes, &self.root(), &store, &OpenBuffers::new())
    }

    /// Keeps changes. Returns the paths that were left alone, with the reasons.
    fn keep(&self, changes: &[Change]) -> Vec<String> {
        let plan = self.plan(changes);
        let left = plan.kept.clone();
        let by = ChangeCause::Call {
            what: "make".to_owned(),
            decision: Decision::Approved,
            command: false,
        };
        let done: UndoResult = self.checkpoints.make(plan, &self.root(), by).unwrap();
        let left = left.into_iter().chain(done.failed);
        left.map(|(path, why)| format!("{}: {why}", path.display()))
            .collect()
    }
}

/// Checks that a trial that is kept does what the script does without a trial, and that one that is dropped does nothing.
fn check(before: &str, script: &str) {
    let (tried, ran) = (Scene::new(before), Scene::new(before));
    let layer = tried.layer();
    let start = tried.everything();
    assert_eq!(start, ran.everything());
    if !tried.try_in(&layer, script) {
        return;
    }
    ran.run(script);
    let found = tried.read(&layer);
    assert_eq!(found.not_kept, [], "{script}");
    assert!(found.git.is_empty(), "{script}");
    assert_eq!(tried.everything(), start, "{script}");
    assert_eq!(tried.keep(&found.changes), [""; 0], "{script}");
    assert_eq!(tried.everything(), ran.everything(), "{script}");
    assert!(
        !tried
            .top
            .join("checkpoints/keeps")
            .read_dir()
            .unwrap()
            .any(|_| true)
    );
    // It is taken back as other changes are.
    let store = tried.checkpoints.store().unwrap();
    let undo = Undo::of(
        found.changes.iter(),
        &tried.root(),
        &store,
        &OpenBuffers::new(),
    );
    assert_eq!(undo.kept, []);
    let done = (tried.checkpoints).make(undo, &tried.root(), ChangeCause::Undo);
    assert_eq!(done.unwrap().failed, []);
    assert_eq!(tried.everything(), start, "{script}");
}

#[test]
fn a_kept_trial_does_what_the_command_does() {
    check(
        "echo 1 > a; mkdir d; echo 1 > d/b",
        "echo 2 > a; rm -r d; mkdir -p e/f; echo 3 > e/f/c; chmod 750 e/f e/f/c",
    );
    check(
        "mkdir d; echo 1 > d/a; chmod 555 d",
        "chmod 755 d; echo 2 > d/b; rm d/a; chmod 500 d",
    );
    check(
        "mkdir d; echo 1 > d/a; chmod 444 d/a; chmod 555 d",
        "chmod -R u+w d; rm -r d; echo 1 > d",
    );
    check(
        "echo 1 > a; chmod 444 a",
        "chmod 644 a; echo 2 > a; chmod 444 a",
    );
    check(
        "ln -s x a; echo 1 > b; ln -s y c",
        "rm a; echo 1 > a; ln -sf z b; ln -sfn w c",
    );
    check("mkdir d; echo 1 > d/a", "mv d/a .; rmdir d; ln -s a d");
    check("ln -s x d", "rm d; mkdir d; umask 077; echo 1 > d/a");
    check(
        "",
        "umask 0; echo 1 > a; mkdir d; umask 077; echo 1 > b; mkdir e",
    );
}

#[test]
fn what_the_person_does_after_the_trial_is_merged() {
    let lines = "printf '%s\\n' 1 2 3 4 5 6 7 8 9 > a";
    let scene = Scene::new(&format!("{lines}; cp a b; cp a c; cp a d"));
    let layer = scene.layer();
    if !scene.try_in(&layer, "sed -i s/2/two/ a b; rm c; chmod 755 d; touch new") {
        return;
    }
    let changes = scene.read(&layer).changes;
    scene.run(
        "sed -i s/8/eight/ a; sed -i s/2/zwei/ b; echo x >> c; sed -i s/8/eight/ d; echo x > new",
    );
    let why = "it was changed later, in the same place";
    let left = ["b", "c", "new"].map(|name| format!("{name}: {why}"));
    assert_eq!(scene.keep(&changes), left);
    scene.run("printf '%s\\n' 1 two 3 4 5 6 7 eight 9 | cmp a; grep -q zwei b; grep -q x c; grep -q x new; test -x d; grep -q eight d");
}

#[test]
fn what_the_person_removes_after_the_trial_does_not_come_back() {
    let scene = Scene::new("mkdir d e; echo 1 > a; echo 1 > d/a");
    let layer = scene.layer();
    if !scene.try_in(
        &layer,
        "echo 2 > a; echo 2 > d/new; ln -s x e/new; mkdir -p e/d; touch f",
    ) {
        return;
    }
    let changes = scene.read(&layer).changes;
    scene.run("rm -r a d e");
    let left = [
        "a: it was changed later, in the same place",
        "e/new: its directory was removed",
        "e/d: its directory was removed",
        "d/new: its directory was removed",
    ];
    let mut found = scene.keep(&changes);
    found.sort_by_key(|it| left.iter().position(|left| left == it));
    assert_eq!(found, left);
    scene.run("test -e f; test ! -e a; test ! -e d; test ! -e e");
}

#[test]
fn nothing_is_kept_through_a_link() {
    let scene = Scene::new("mkdir d e; echo 1 > d/a");
    let layer = scene.layer();
    if !scene.try_in(&layer, "echo 2 > d/a; echo 1 > e/new; echo 1 > f") {
        return;
    }
    let changes = scene.read(&layer).changes;
    scene.run("mkdir ../outside; cp d/a ../outside; mv d d2; ln -s ../outside d; rmdir e; ln -s ../outside e");
    let left = scene.keep(&changes);
    assert_eq!(
        left,
        [
            "d/a: it was changed later, in the same place",
            "e/new: it or a directory above it is a link now"
        ]
    );
    scene.run("cat f; test $(cat ../outside/a) = 1; test ! -e ../outside/new");
}

/// One command of a random script.
fn command() -> impl Strategy<Value = String> {
    let name = || {
        prop_oneof![
            Just("a"),
            Just("b"),
            Just("d"),
            Just("d/a"),
            Just("d/e"),
            Just("d/e/a"),
            Just("d/e/b"),
            Just("f"),
            Just("f/a"),
        ]
    };
    let mode = prop_oneof![
        Just("644"),
        Just("600"),
        Just("755"),
        Just("444"),
        Just("400")
    ];
    let dir_mode = prop_oneof![Just("755"), Just("700"), Just("2750")];
    prop_oneof![
        4 => (name(), 0..3).prop_map(|(at, text)| format!("echo {text} > {at}")),
        2 => (name(), 0..3).prop_map(|(at, text)| format!("echo {text} >> {at}")),
        2 => (mode, name()).prop_map(|(mode, at)| format!("test -d {at} || chmod {mode} {at}")),
        1 => (dir_mode, name()).prop_map(|(mode, at)| format!("test ! -d {at} || chmod {mode} {at}")),
        1 => name().prop_map(|at| format!("rm -f {at}")),
        2 => name().prop_map(|at| format!("rm -rf {at}")),
        2 => name().prop_map(|at| format!("mkdir -p {at}")),
        1 => (name(), name()).prop_map(|(target, at)| format!("ln -sfn {target} {at}")),
        2 => (name(), name()).prop_map(|(from, to)| format!("mv -T {from} {to}")),
        1 => (name(), name()).prop_map(|(from, to)| format!("test -d {from} || cp -aT {from} {to}")),
    ]
}

fn script() -> impl Strategy<Value = String> {
    // They may fail, as commands do. No file is made through a link, which may lead out of the workspace.
    let lines = proptest::collection::vec(command(), 0..12);
    lines.prop_map(|lines| {
        lines
            .iter()
            .map(|line| format!("{line} 2> /dev/null || true\n"))
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_random_trial_does_what_its_commands_do(before in script(), during in script()) {
        check(&before, &during);
    }
}

#[test]
fn very_deep_directories_are_not_read() {
    let script = "umask 022; mkdir a out
        for top in a out; do (cd $top; for i in $(seq 300); do mkdir d; cd d; done; echo > x); done";
    let deep = |depth: usize| format!("a{}", "/d".repeat(depth));
    let made = (0..200).map(|depth| format!("{}: - > dir 755", deep(depth)));
    let stays = format!("{} stays: too many directories are above it", deep(200));
    let expected: Vec<_> = made.chain([stays]).collect();
    let expected: Vec<_> = expected.iter().map(String::as_str).collect();
    super::check("echo out/ > .gitignore", script, &expected);
}

#[test]
fn very_long_paths_are_not_kept() {
    let name = "d".repeat(240);
    let script = format!("umask 022; for i in $(seq 20); do mkdir {name}; cd -P {name}; done");
    let long = |depth: usize| vec![&*name; depth].join("/");
    let made = (1..13).map(|depth| format!("{}: - > dir 755", long(depth)));
    let stays = format!("{} stays: too many directories are above it", long(13));
    let expected: Vec<_> = made.chain([stays]).collect();
    let expected: Vec<_> = expected.iter().map(String::as_str).collect();
    super::check("true", &script, &expected);
}
