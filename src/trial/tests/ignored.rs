//! The ignored files that trials leave for later ones.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Scene, is_allowed, lines, wait_for};
use crate::trial::{IgnoredFilesFate, Layer};
use co_exec::Confinement;
use co_exec::sandbox::Removals;

/// A project whose results are ignored. Each step of a build adds a line to `log`.
const PROJECT: &str = r"
printf 'out/\nlog\n*.o\n' > .gitignore
echo one > a; echo two > b
printf 'out/all: out/a out/b\n\tcat $^ > $@; echo all >> log\nout/%%: %%\n\tmkdir -p out; cp $< $@; echo $* >> log\n' > Makefile
";

impl Scene {
    /// Runs a script as a trial, which leaves its ignored files. Returns its layer; none if no overlay can be mounted here.
    #[track_caller]
    fn leave(&self, script: &str) -> Option<Layer> {
        let layer = self.layer();
        if !self.try_in(&layer, script) {
            return None;
        }
        let mut found = self.read(&layer);
        assert!(found.only_ignored(), "{script}: {found:?}");
        layer.release();
        found.leave_ignored(&layer, &self.root(), is_allowed);
        assert_eq!(found.ignored.fate, IgnoredFilesFate::Stay, "{script}");
        Some(layer)
    }

    /// Runs scripts as trials, one after the other. A script that begins with `!` runs for real.
    #[track_caller]
    fn check(made: &str, scripts: &[&str]) {
        let scene = Self::new(made);
        for script in scripts {
            match script.strip_prefix('!') {
                Some(script) => scene.run(script),
                None => drop(scene.leave(script)),
            }
        }
    }

    /// Returns the directory of the ignored files.
    fn left(&self) -> PathBuf {
        let all = self.top.join("layers/ignored");
        let mut tops = fs::read_dir(all).unwrap().flatten();
        let mut tops = tops.by_ref().map(|it| it.path().join("files"));
        tops.find(|it| it.exists()).unwrap()
    }
}

#[test]
fn the_second_build_makes_what_changed() {
    Scene::check(
        PROJECT,
        &[
            "test ! -e out; make; test \"$(cat log | xargs)\" = 'a b all'",
            "make -q; make; test \"$(cat log | xargs)\" = 'a b all'; cat out/all",
            "!test ! -e out; echo three > b",
            "make; test \"$(cat log | xargs)\" = 'a b all b all'; test \"$(xargs < out/all)\" = 'one three'",
            "rm -r out; test ! -e out/all",
            "test ! -e out/all; make",
        ],
    );
}

#[test]
fn what_a_dropped_trial_made_is_not_left() {
    let scene = Scene::new(PROJECT);
    let layer = scene.layer();
    if !scene.try_in(&layer, "echo other > a; make") {
        return;
    }
    assert_eq!(
        lines(&scene.read(&layer)),
        ["a: 644 > 644", "4 ignored of 28 bytes"]
    );
    drop(layer);
    scene.leave("test ! -e out; make; test \"$(xargs < out/all)\" = 'one two'");
}

#[test]
fn what_a_trial_made_that_nobody_waits_for_is_not_left() {
    let scene = Scene::new(PROJECT);
    let layer = scene.layer();
    if !scene.try_in(&layer, "make") {
        return;
    }
    let mut found = scene.read(&layer);
    layer.given_up.cancel();
    found.leave_ignored(&layer, &scene.root(), is_allowed);
    assert_eq!(found.ignored.fate, IgnoredFilesFate::Dropped);
    drop(layer);
    scene.leave("test ! -e out; make");
}

#[test]
fn what_was_written_last_is_seen() {
    let made = "printf 'out/\\n*.o\\n' > .gitignore; mkdir -p out/d src; for f in a b c d/e; do echo 1 > out/$f; done";
    Scene::check(
        made,
        &[
            "echo 2 > out/a; rm out/b; echo 2 > out/new; rm -r out/d; echo 2 > src/x.o",
            "test \"$(cat out/a out/new src/x.o | xargs)\" = '2 2 2'; test ! -e out/b; test ! -e out/d",
            "!echo 3 > out/a; echo 3 > out/b; echo 3 > out/new; touch out/d/e; chmod 700 src; touch -d 2001-01-01 src",
            "test \"$(cat out/a out/b out/new out/c | xargs)\" = '3 3 3 1'; test -e out/d/e; test -e src/x.o",
            "test \"$(stat -c '%a %y' src | cut -c -14)\" = '700 2001-01-01'; rm out/a out/new",
            "test ! -e out/a; test ! -e out/new",
            // A directory in place of another, and of a file.
            "rm -r out/d out/c; mkdir out/d out/c; echo 4 > out/d/f; test \"$(ls out/d)\" = f",
            "test \"$(ls out/d)\" = f; test -d out/c",
            "!echo 5 > out/d/g; rm out/d/e",
            "test \"$(ls out/d | xargs)\" = 'f g'",
            "rm -r out; echo file > out",
            "!rm -r out",
            "test ! -e out || test -f out",
        ],
    );
}

#[test]
fn a_directory_that_is_gone_does_not_come_back() {
    Scene::check(
        "echo '*.o' > .gitignore; mkdir -p src/deep",
        &[
            "echo 1 > src/deep/x.o",
            "test -e src/deep/x.o",
            "!rmdir src/deep",
            "test ! -e src/deep; test -d src",
            "!mkdir src/deep",
            "test ! -e src/deep/x.o",
        ],
    );
}

#[test]
fn what_is_not_ignored_any_more_is_removed() {
    Scene::check(
        "echo '*.o' > .gitignore; echo 1 > a.o",
        &[
            "echo 2 > a.o; echo 2 > b.o",
            "test \"$(cat a.o b.o | xargs)\" = '2 2'",
            "!echo '!a.o' >> .gitignore",
            "test \"$(cat a.o b.o | xargs)\" = '1 2'",
        ],
    );
}

#[test]
fn what_git_tracks_is_that_of_the_workspace() {
    Scene::check(
        "echo out/ > .gitignore; mkdir out; echo 1 > out/a; git init -q",
        &[
            "echo 2 > out/a; echo 2 > out/b",
            "test \"$(cat out/a out/b | xargs)\" = '2 2'",
            "!git add -f out/a",
            "test \"$(cat out/a out/b | xargs)\" = '1 2'; rm out/b; echo 4 > out/c",
            "test \"$(ls out | xargs)\" = 'a c'",
        ],
    );
}

#[test]
fn what_git_tracks_is_known_in_unusual_repositories() {
    for unusual in [
        "git update-index --split-index",
        "mkdir -p .git/objects/info; mkdir ../other; git init -q --bare ../other; \
         readlink -f ../other/objects > .git/objects/info/alternates",
    ] {
        let made = format!(
            "echo '*.o' > .gitignore; echo 1 > a.o; echo 1 > b; git init -q; git add -f a.o b; {unusual}"
        );
        super::check(
            &made,
            "echo 2 > a.o; echo 2 > b.o",
            &["a.o: 644 > 644", "1 ignored of 2 bytes"],
        );
    }
}

#[test]
fn rules_that_are_kept_do_not_decide_what_the_same_trial_leaves() {
    let scene = Scene::new("echo '*.o' > .gitignore; mkdir src");
    let layer = scene.layer();
    let script = "echo '*' > src/.gitignore; echo 1 > src/conftest.py; echo 1 > src/a.o";
    if !scene.try_in(&layer, script) {
        return;
    }
    let mut found = scene.read(&layer);
    assert_eq!(
        lines(&found),
        [
            "src/.gitignore: - > 644",
            "src/conftest.py: - > 644",
            "1 ignored of 2 bytes"
        ]
    );
    // As a keep makes these changes.
    scene.run("echo '*' > src/.gitignore; echo 1 > src/conftest.py");
    found.leave_ignored(&layer, &scene.root(), is_allowed);
    assert_eq!(found.ignored.fate, IgnoredFilesFate::Stay);
    assert!(!scene.left().join("src/conftest.py").exists());
    assert!(scene.left().join("src/a.o").exists());
}

#[test]
fn rules_that_an_earlier_trial_left_are_removed() {
    let scene = Scene::new("echo out/ > .gitignore; mkdir src");
    if scene.leave("mkdir out; touch out/a").is_none() {
        return;
    }
    // As an older version of co left them.
    let src = scene.left().join("src");
    fs::create_dir(&src).unwrap();
    fs::write(src.join(".gitignore"), "*").unwrap();
    fs::write(src.join("conftest.py"), "").unwrap();
    scene.leave("test ! -e src/conftest.py; test ! -e src/.gitignore; test -e out/a");
}

#[test]
fn a_move_that_takes_too_long_leaves_nothing() {
    let scene = Scene::new("echo out/ > .gitignore");
    let layer = scene.layer();
    if !scene.try_in(&layer, "mkdir out; touch out/a") {
        return;
    }
    let mut found = scene.read(&layer);
    *layer.time_left.lock() = Duration::ZERO;
    found.leave_ignored(&layer, &scene.root(), is_allowed);
    assert_eq!(found.ignored.fate, IgnoredFilesFate::Dropped);
    drop(layer);
    scene.leave("test ! -e out; mkdir out");
}

#[test]
fn secrets_devices_and_setuid_programs_do_not_stay() {
    let scene = Scene::new("printf 'out/\\n.env\\n' > .gitignore; mkdir out");
    let script = "cd out; mkdir -p d/.git; echo 1 > d/.git/a; echo 1 > .env; echo 1 > id_rsa; mkfifo pipe; \
                  touch s plain; chmod u+s s; ln -s .env link; echo 1 > ../.env";
    if scene.leave(script).is_none() {
        return;
    }
    let mut names: Vec<_> = fs::read_dir(scene.left().join("out"))
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["d", "link", "plain"]);
    assert!(!scene.left().join(".env").exists());
    assert_eq!(fs::read_dir(scene.left().join("out/d")).unwrap().count(), 0);
}

#[test]
fn times_modes_and_links_stay() {
    let scene = Scene::new("echo out/ > .gitignore");
    let script = "umask 022; mkdir -p out/d/closed; echo 1 > out/d/a; ln out/d/a out/b; touch -d 2002-02-02 out/d/a; \
                  chmod 500 out/d/closed; touch -d 2001-01-01 out/d; touch -d 2003-03-03 out";
    if scene.leave(script).is_none() {
        return;
    }
    scene.leave("test out/d/a -ef out/b; touch out/new");
    let out = scene.left().join("out");
    let year = |name: &str| out.join(name).metadata().unwrap().mtime() / 31_557_600 + 1970;
    assert_eq!([year("d/a"), year("d")], [2002, 2001]);
    assert_eq!(
        out.join("d/a").metadata().unwrap().ino(),
        out.join("b").metadata().unwrap().ino()
    );
    let mode = |name: &str| out.join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("d/closed"), mode("d")], [0o500, 0o755]);
    scene.leave("chmod 700 out/d/closed; touch out/d/closed/x; chmod 0 out/d/closed");
    scene.leave("test \"$(stat -c %a out/d/closed)\" = 0");
}

#[test]
fn closed_directories_of_the_workspace_stay_closed() {
    Scene::check(
        "echo out/ > .gitignore; mkdir -p out/d; touch out/d/x",
        &[
            "chmod 0 out/d; touch out/new",
            "test \"$(stat -c %a out/d)\" = 0; test -e out/new; chmod 700 out/d; ls out/d/x",
        ],
    );
}

#[test]
fn a_trial_beside_another_one_moves_nothing() {
    let scene = Scene::new("echo out/ > .gitignore");
    if scene.leave("mkdir out; echo 1 > out/a").is_none() {
        return;
    }
    let (one, other) = (scene.layer(), scene.layer());
    scene.try_in(&one, "echo 2 > out/a");
    scene.try_in(&other, "echo 3 > out/a");
    let mut found = scene.read(&one);
    found.leave_ignored(&one, &scene.root(), is_allowed);
    assert_eq!(found.ignored.fate, IgnoredFilesFate::Dropped);
    let mut found = scene.read(&other);
    found.leave_ignored(&other, &scene.root(), is_allowed);
    assert_eq!(found.ignored.fate, IgnoredFilesFate::Stay);
    scene.leave("test $(cat out/a) = 3");
}

#[test]
fn a_trial_does_without_what_it_cannot_clean() {
    let scene = Scene::new("echo out/ > .gitignore; mkdir out; echo 1 > out/a");
    if scene.leave("echo 2 > out/a").is_none() {
        return;
    }
    let running = scene.layer();
    scene.run("echo 3 > out/a");
    let other = scene.layer();
    scene.try_in(&other, "test $(cat out/a) = 3");
    drop(running);
    scene.leave("test $(cat out/a) = 3; echo 4 > out/a");
    scene.leave("test $(cat out/a) = 4");
}

#[test]
fn what_is_half_moved_is_removed() {
    let scene = Scene::new("echo out/ > .gitignore");
    if scene.leave("mkdir out; echo 1 > out/a").is_none() {
        return;
    }
    fs::write(scene.left().with_file_name("moving"), "").unwrap();
    scene.leave("test ! -e out; mkdir out; echo 2 > out/a");
    scene.leave("test $(cat out/a) = 2");
}

/// Leaves files of a workspace, and waits until they are measured.
fn leave_bytes(layers: &Path, root: &Path, most: u64) {
    let removals = Removals::default();
    let layer = Layer::new(layers, root, Some(most), &removals).unwrap();
    let Confinement::Trial { caches, .. } = layer.confinement(root) else {
        panic!("no trial");
    };
    fs::write(caches.unwrap().join("a"), vec![1; 1 << 20]).unwrap();
    drop(layer);
    wait_for(&removals);
}

#[test]
fn the_oldest_are_removed_first_and_those_in_use_stay() {
    let dir = tempfile::tempdir().unwrap();
    let root = |name: &str| {
        let root = dir.path().join(name);
        fs::create_dir_all(&root).unwrap();
        root
    };
    let (layers, most) = (dir.path().join("layers"), (5 << 20) / 2);
    let has = |layer: &Layer| {
        let Confinement::Trial { caches, .. } = layer.confinement(dir.path()) else {
            panic!("no trial");
        };
        caches.unwrap().join("a").exists()
    };
    let removals = Removals::default();
    let open = |name: &str| Layer::new(&layers, &root(name), None, &removals).unwrap();
    leave_bytes(&layers, &root("one"), most);
    let held = open("one");
    for name in ["two", "three"] {
        leave_bytes(&layers, &root(name), most);
    }
    assert_eq!(
        ["one", "two", "three"].map(|it| has(&open(it))),
        [true, false, true]
    );
    let cleared = Layer::clear(&layers, &removals).unwrap();
    assert_eq!(cleared.in_use, 1);
    assert!((1 << 20..2 << 20).contains(&cleared.bytes), "{cleared:?}");
    assert_eq!(["one", "three"].map(|it| has(&open(it))), [true, false]);
    drop(held);
    Layer::clear(&layers, &removals).unwrap();
    assert!(!has(&open("one")));
    wait_for(&removals);
}

#[test]
fn the_files_that_stay_as_they_were_are_named() {
    let scene = Scene::new(
        "printf 'out/\\n*.o\\n' > .gitignore; mkdir -p out/deep; echo 1 > out/deep/x; echo 1 > b.o",
    );
    let check = |script: &str, files: usize, expected: Option<&str>| {
        let layer = scene.layer();
        if scene.try_in(&layer, script) {
            let found = scene.read(&layer).ignored;
            assert_eq!(found.files, files, "{script}");
            assert_eq!(found.unchanged().as_deref(), expected, "{script}");
        }
    };
    check("echo 1 > tracked", 0, None);
    check("rm -rf out", 1, Some("your out/ is as it was"));
    check("rm -rf out; mkdir out", 1, Some("your out/ is as it was"));
    check("echo 2 > out/deep/x", 1, Some("your out/ is as it was"));
    check(
        "rm b.o; echo 2 > a.o; echo 2 > out/y",
        3,
        Some("your a.o, b.o and out/ are as they were"),
    );
    check(
        "for i in 1 2 3 4 5; do echo 1 > $i.o; done",
        5,
        Some("your 1.o, 2.o, 3.o and 2 more are as they were"),
    );
}
