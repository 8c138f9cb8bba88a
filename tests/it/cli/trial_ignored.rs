//! The ignored files of trials, which later trials see.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::trial_commands::run;
use super::trial_scene::{Scene, kill};

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
fn caches_are_those_of_the_workspace() {
    let scene = Scene::new("");
    let each = "for dir in $XDG_CACHE_HOME $GOCACHE $npm_config_cache $PIP_CACHE_DIR $UV_CACHE_DIR; do mkdir -p $dir; ";
    let done = scene.exec(&[
        "--drop",
        &format!("{each} echo 1 > $dir/x; done; echo 2 > a"),
    ]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let done = scene.exec(&[&format!("{each} cat $dir/x; done")]);
    assert_eq!(done.stdout, b"1\n1\n1\n1\n1\n", "{done:?}");
    let other = Scene::new("");
    let done = other.exec(&["ls -A $XDG_CACHE_HOME"]);
    assert_eq!(done.stdout, b"", "{done:?}");
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
fn closed_directories_count_and_too_deep_ones_are_removed() {
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
    let done = scene.exec(&["ls -A out $XDG_CACHE_HOME"]);
    assert_eq!(done.status.code(), Some(2), "{done:?}");
}
