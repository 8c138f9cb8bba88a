//! Programs work without file watches and locks; locks work on writable files.

use super::hostile::python;
use super::scene::{Scene, stdout};

#[test]
fn without_watches_programs_look_at_files_by_themselves() {
    let scene = Scene::new(None);
    // Writing the last line ends `tail`, because its pipe is closed.
    let line = "echo one > log; exec 3< <(tail -f log 2> /dev/null); read -r a <&3; \
                echo two >> log; read -r b <&3; exec 3<&-; echo three >> log; echo \"$a $b\"";
    let done = scene.bash(&scene.workspace(), line);
    assert_eq!(stdout(&done), "one two\n", "{done:?}");
}

#[test]
fn node_says_that_there_are_no_watches_and_can_still_poll() {
    let scene = Scene::new(None);
    if scene.plain("node").arg("--version").output().is_err() {
        return;
    }
    let line = "const fs = require('fs'); \
                try { fs.watch('.'); } catch (error) { console.log(error.code); } \
                fs.watchFile('one.txt', { interval: 10 }, () => { console.log('changed'); process.exit(); }); \
                setInterval(() => fs.appendFileSync('one.txt', 'more'), 20);";
    let done = scene.run(&scene.workspace(), &["node", "-e", line]);
    assert_eq!(stdout(&done), "ENOSYS\nchanged\n", "{done:?}");
}

#[test]
fn locks_work_where_files_may_be_written() {
    let scene = Scene::new(None);
    let line = "import fcntl; file = open('one.txt', 'r+'); \
                fcntl.flock(file, fcntl.LOCK_EX); fcntl.lockf(file, fcntl.LOCK_EX); print('locked')";
    let done = scene.run(&scene.workspace(), &[python(), "-c", line]);
    assert_eq!(stdout(&done), "locked\n", "{done:?}");
    let done = scene.run(&scene.read_only(), &[python(), "-c", line]);
    assert!(stdout(&done).is_empty(), "{done:?}");
}

#[test]
fn cargo_reads_where_it_cannot_lock() {
    let scene = Scene::new(None);
    let manifest = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n[lib]\npath = \"one.txt\"\n";
    std::fs::write(scene.ws.join("Cargo.toml"), manifest).unwrap();
    let made = scene.bash(&scene.workspace(), "cargo generate-lockfile --offline");
    assert!(made.status.success(), "{made:?}");
    let done = scene.bash(&scene.read_only(), "cargo tree --offline");
    assert!(stdout(&done).starts_with("tiny v0.1.0"), "{done:?}");
}
