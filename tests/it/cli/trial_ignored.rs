//! The ignored files of trials, which later trials see.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::trial_commands::run;
use super::trial_scene::{Scene, kill};
use crate::support::runner::Runner;

/// A crate with a test that fails if `src/lib.rs` does not say 2.
const CRATE: &str = r#"
mkdir src
printf '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n' > Cargo.toml
printf 'pub fn two() -> i32 { 2 }\n#[test]\nfn works() { assert_eq!(two(), 2) }\n' > src/lib.rs
printf '/target\nCargo.lock\n' > .gitignore
git init -q
"#;

const TEST: &str = "cargo test --offline 2>&1";

/// Runs a command as a trial. Returns its exit status, its output, and what became of its ignored files.
fn try_command(scene: &Scene, args: &[&str], command: &str) -> (Value, String, Value) {
    let (status, output, trial) = run(scene, &[&["--try"], args].concat(), command);
    let output = output.as_str().unwrap().to_owned();
    (status, output, trial["ignored"]["stay"].clone())
}

/// Checks that the next trial of the tests compiles the crate or not, and that they succeed or not.
#[track_caller]
fn check_tests(scene: &Scene, compiles: bool, succeeds: bool) {
    let (status, output, stay) = try_command(scene, &[], TEST);
    assert_eq!(output.contains("Compiling"), compiles, "{output}");
    assert_eq!(status == 0, succeeds, "{output}");
    assert_eq!(stay, true);
}

#[test]
fn the_second_test_of_a_crate_compiles_what_changed() {
    let scene = Scene::new(CRATE);
    let before = scene.files();
    check_tests(&scene, true, true);
    check_tests(&scene, false, true);
    assert_eq!(scene.files(), before);
    // What is dropped leaves no result that is newer than the source.
    let broken = format!("sed -i 's/{{ 2 }}/{{ 3 }}/' src/lib.rs && {TEST}");
    let (status, output, stay) = try_command(&scene, &[], &broken);
    assert!(status != 0 && output.contains("Compiling"), "{output}");
    assert_eq!(stay, false);
    check_tests(&scene, false, true);
    // What is kept is compiled again.
    let (_, _, stay) = try_command(&scene, &["--keep"], &broken);
    assert_eq!(stay, true);
    check_tests(&scene, true, false);
    check_tests(&scene, false, false);
    // A command that is no trial counts too.
    scene.bash("sed -i 's/{ 3 }/{ 2 }/' src/lib.rs");
    let real = run(&scene, &["--backend", "subprocess"], TEST);
    assert_eq!(real.0, 0, "{}", real.1);
    check_tests(&scene, false, true);
}

#[test]
fn what_later_trials_see_is_told() {
    let scene = Scene::new("echo '*.o' > .gitignore; echo 1 > a");
    let said = |args: &[&str]| String::from_utf8(scene.exec(args).stderr).unwrap();
    let told = said(&["echo 2 > b.o"]);
    assert!(told.contains("co-nvim: 1 ignored file (2 bytes) stays for later trials only\n"));
    let told = said(&["--keep", "echo 3 > b.o; echo 3 > c.o; echo 2 > a"]);
    assert!(
        told.contains("2 ignored files (4 bytes) stay for later trials only, if all else is kept")
    );
    // It may be unfinished.
    let told = said(&["echo 4 > b.o; kill -9 $$"]);
    assert!(
        told.contains("1 ignored file (2 bytes) is dropped\n"),
        "{told}"
    );
    // It lacked the network in the middle of its work, as `npm ci` does after it has removed the packages.
    let told = said(&["rm b.o; echo getaddrinfo EAI_AGAIN example.com; exit 1"]);
    assert!(
        told.contains("1 ignored file (0 bytes) is dropped\n"),
        "{told}"
    );
    assert!(said(&["exit $(cat b.o)"]).starts_with("[exit 3"));
}

#[test]
fn rules_that_a_trial_makes_hide_nothing() {
    let places = [
        ".gitignore",
        "src/.gitignore",
        "src/.ignore",
        "src/.rgignore",
    ];
    for runner in Runner::all() {
        let script = "git init -q; mkdir src; echo '*.o' > .gitignore; echo 1 > src/a.py";
        let scene = Scene::of(runner, script);
        let before = scene.files();
        let mut plant = "echo evil > src/conftest.py; echo '*' > .git/info/exclude; git config core.excludesFile $PWD/x; echo '*' > x".to_owned();
        for place in places {
            plant.push_str(&format!("; echo '*' > {place}"));
        }
        let (_, _, trial) = run(&scene, &["--try"], &plant);
        let changes = trial["changes"].as_array().unwrap().iter();
        let changed: Vec<&str> = changes.map(|it| it["path"].as_str().unwrap()).collect();
        for path in places.iter().chain(&["src/conftest.py", "x"]) {
            assert!(changed.contains(path), "{runner:?}, {path}: {trial}");
        }
        assert_eq!(scene.files(), before, "{runner:?}");
        // Nothing of it is there for a later trial, whose new files are kept.
        let look = "test ! -e src/conftest.py && test ! -e src/.gitignore && test ! -e x && echo new > src/new";
        let done = scene.keep(look);
        assert!(done.status.success(), "{runner:?}: {done:?}");
        scene.bash("test $(cat src/new) = new");
    }
}

/// Runs a line in each directory of caches.
fn in_caches(line: &str) -> String {
    format!(
        "for dir in $XDG_CACHE_HOME $GOCACHE $npm_config_cache $PIP_CACHE_DIR $UV_CACHE_DIR $PYTHONPYCACHEPREFIX $MYPY_CACHE_DIR \
         $RUFF_CACHE_DIR; do mkdir -p $dir; {line}; done"
    )
}

#[test]
fn caches_are_those_of_the_workspace() {
    let scene = Scene::new("");
    let has = |number: usize| {
        let done = scene.exec(&[&in_caches("cat $dir/x $dir/new 2>/dev/null")]);
        let expected = format!("{number}\n").repeat(8);
        assert_eq!(String::from_utf8(done.stdout).unwrap(), expected);
    };
    let write = |number: usize| in_caches(&format!("rm -f $dir/x; echo {number} > $dir/x"));
    // A trial that needs no answer is kept.
    scene.exec(&[&write(1)]);
    has(1);
    // What a dropped trial wrote goes too.
    scene.exec(&[
        "--drop",
        &format!("{}; echo 2 > a; echo 2 > $dir/new", write(2)),
    ]);
    has(1);
    scene.exec(&["--keep", &format!("{}; echo 3 > a", write(3))]);
    has(3);
    scene.exec(&[&in_caches("rm -r $dir/x; mkdir $dir/x; echo 4 > $dir/x/y")]);
    let done = scene.exec(&[&in_caches("cat $dir/x/y")]);
    assert_eq!(done.stdout, b"4\n".repeat(8), "{done:?}");
    let other = Scene::new("");
    let done = other.exec(&["ls -A $XDG_CACHE_HOME"]);
    assert_eq!(done.stdout, b"", "{done:?}");
}

#[test]
fn nothing_of_a_trial_whose_output_is_withheld_reaches_a_later_one() {
    let places = "$XDG_CACHE_HOME $GOCACHE $TMPDIR /tmp /var/tmp /dev/shm $PWD/out $HOME";
    let scene = Scene::new("echo out/ > .gitignore; mkdir out; echo wait > flag");
    for args in [&["--keep"][..], &["--drop"]] {
        fs::write(scene.workspace.join("flag"), "wait\n").unwrap();
        let line = format!(
            "touch made; while grep -q wait flag; do sleep 0.05; done; for dir in {places}; do mkdir -p $dir/d; cat .env > $dir/d/left; done"
        );
        let child = scene.start(&[args, &["--json", &line]].concat());
        scene.wait_for("made");
        fs::write(scene.workspace.join(".env"), "PASSWORD=hunter2\n").unwrap();
        fs::write(scene.workspace.join("flag"), "go\n").unwrap();
        let told: Value =
            serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(told["withheld"], true);
        fs::remove_file(scene.workspace.join(".env")).unwrap();
        let look = format!("for dir in {places}; do ls -R $dir; cat $dir/d/left; done 2>&1");
        let done = scene.exec(&[&look]);
        let told = String::from_utf8(done.stdout).unwrap();
        assert!(
            !told.contains("hunter2") && !told.contains("left\n"),
            "{told}"
        );
    }
}

/// Checks that a command, tried and kept, changes these paths, and nothing in caches.
#[track_caller]
fn check_caches(scene: &Scene, command: &str, paths: &[&str]) {
    let before = scene.files();
    let (_, output, trial) = run(scene, &["--try", "--keep"], command);
    let changes = trial["changes"].as_array().unwrap().iter();
    let changed: Vec<&str> = changes.map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(changed, paths, "{command}: {output} {trial}");
    assert_eq!(trial["ignored"]["files"], 0, "{trial}");
    let mut after = scene.files();
    after.retain(|path, file| before.get(path) != Some(file));
    let is_listed = |path: &PathBuf| paths.iter().any(|it| path.starts_with(it));
    assert!(after.keys().all(is_listed), "{command}: {after:?}");
}

#[test]
fn caches_of_tools_are_neither_asked_about_nor_kept() {
    for git in ["git init -q; git add .", ":"] {
        let scene = Scene::new(&format!("mkdir pkg; echo 'x = 1' > pkg/a.py; {git}"));
        check_caches(
            &scene,
            "/usr/bin/python3 -c 'import pkg.a; print(pkg.a.x)'",
            &[],
        );
        let make = "mkdir -p pkg/__pycache__ .pytest_cache/v .mypy_cache/3.11 .ruff_cache a/.hypothesis; \
                    for d in pkg/__pycache__ .pytest_cache/v .mypy_cache/3.11 .ruff_cache a/.hypothesis; do echo x > $d/x; done";
        check_caches(&scene, make, &["a"]);
        check_caches(
            &scene,
            &format!("{make}; echo 'x = 2' > pkg/a.py"),
            &["pkg/a.py"],
        );
        // Later trials do not see them either.
        check_caches(
            &scene,
            "ls -d pkg/__pycache__ .ruff_cache && touch seen",
            &[],
        );
        // Those that are there stay as they are.
        scene.bash(
            "mkdir pkg/__pycache__ .ruff_cache; echo 1 > pkg/__pycache__/a; echo 1 > .ruff_cache/a",
        );
        check_caches(
            &scene,
            "echo 2 > pkg/__pycache__/a; rm -r .ruff_cache; mkdir .ruff_cache",
            &[],
        );
        check_caches(&scene, "rm -r pkg/__pycache__ .ruff_cache", &[]);
        // Only directories are caches.
        check_caches(
            &scene,
            "echo x > .mypy_cache; ln -s pkg a/__pycache__",
            &[".mypy_cache", "a/__pycache__"],
        );
    }
}

/// Python takes such a file for the program, whatever the source says.
#[test]
fn no_program_in_a_cache_runs_later() {
    let scene = Scene::new("mkdir pkg; echo 'x = 1' > pkg/a.py");
    let show = "env -u PYTHONPYCACHEPREFIX /usr/bin/python3 -B -c 'import pkg.a; print(pkg.a.x)'";
    let plant = format!(
        "echo 'x = 2' > $TMPDIR/a.py; env -u PYTHONPYCACHEPREFIX /usr/bin/python3 -c 'import importlib.util, os, py_compile as p
p.compile(os.environ[\"TMPDIR\"] + \"/a.py\", importlib.util.cache_from_source(\"pkg/a.py\"),
          invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)'; {show}"
    );
    let (_, output, trial) = run(&scene, &["--try", "--keep"], &plant);
    assert_eq!(output, "2\n", "{trial}");
    assert_eq!(trial["changes"].as_array().unwrap().len(), 0, "{trial}");
    assert_eq!(run(&scene, &["--try", "--keep"], show).1, "1\n");
    scene.bash(&format!("test $({show}) = 1"));
}

#[test]
fn what_git_tracks_in_a_cache_is_a_change() {
    let scene = Scene::new(
        "mkdir -p data/__pycache__/deep; echo 1 > data/__pycache__/deep/a; git init -q; git add -f .",
    );
    let change = "echo 2 > data/__pycache__/deep/a; echo 1 > data/__pycache__/b";
    check_caches(
        &scene,
        change,
        &["data/__pycache__/b", "data/__pycache__/deep/a"],
    );
}

/// Returns the directory of a workspace's ignored files.
fn left(scene: &Scene) -> PathBuf {
    let mut all = fs::read_dir(scene.state().join("trials/ignored"))
        .unwrap()
        .flatten();
    let dir = all.find(|it| !it.file_name().to_string_lossy().starts_with("co-tmp-"));
    dir.unwrap().path()
}

#[test]
fn files_of_a_move_that_is_killed_are_all_there_or_none() {
    let scene = Scene::new("echo out/ > .gitignore");
    scene.exec(&["mkdir out; touch out/old"]);
    let moving = left(&scene).join("moving");
    let mut interrupted = 0;
    for round in 1..=6 {
        let make = format!("mkdir -p out; for f in $(seq 3000); do echo {round} > out/$f; done");
        let mut child = scene.start(&[&make]);
        while child.try_wait().unwrap().is_none() {
            if moving.exists() {
                kill(&mut child);
                interrupted += u32::from(moving.exists());
                break;
            }
        }
        let check =
            "test ! -e out || cat out/[0-9]* | sort -u | wc -l; ls out 2> /dev/null | wc -l";
        let done = scene.exec(&[check]);
        let told = String::from_utf8(done.stdout).unwrap();
        assert!(
            ["0\n", "1\n3000\n", "1\n3001\n"].contains(&told.as_str()),
            "{told}"
        );
    }
    assert!(interrupted > 0, "no move was interrupted");
}

#[test]
fn closed_directories_count_and_too_deep_ones_do_not_stay() {
    let scene = Scene::new("echo out/ > .gitignore");
    for dir in ["out", "$XDG_CACHE_HOME/out"] {
        let fill = format!("mkdir {dir}; head -c 2000000 /dev/zero > {dir}/big; chmod 0 {dir}");
        assert!(scene.exec(&[&fill]).status.success());
    }
    let size = fs::read_to_string(left(&scene).join("size")).unwrap();
    assert!(size.parse::<u64>().unwrap() > 4_000_000, "{size}");
    let deep = "cd $XDG_CACHE_HOME; for i in $(seq 300); do mkdir d; cd d; done; echo > x";
    let done = scene.exec(&[deep]);
    assert!(done.status.success(), "{done:?}");
    let count = "cd $XDG_CACHE_HOME; n=0; while cd d 2>/dev/null; do n=$((n + 1)); done; echo $n";
    let done = scene.exec(&[count]);
    assert_eq!(done.stdout, b"200\n", "{done:?}");
}
