//! Trials on full disks, and several at once.

use std::fs;
use std::path::Path;

use super::state::may_mount;
use super::trial_scene::{Scene, said};

const FULL: &str = "No space left on device (os error 28)";

/// Returns the sentence about a directory of co's that cannot be written.
fn unwritable(dir: &Path, why: &str) -> String {
    let dir = dir.display();
    format!(
        "cannot write in {dir}: {why}; check who owns it, and that its disk has room and is mounted for writing"
    )
}

/// Returns what these lines of shell print, each of which tries a command and prints its exit status. `mounted` is a line that
/// mounts file systems before, with the state directory in `$STATE` and the backend in `$CO`.
fn print(scene: &Scene, mounted: &str, lines: &str) -> String {
    let state = scene.state();
    fs::create_dir_all(&state).unwrap();
    let script =
        format!("{mounted} || exit 9; cd \"$PWD\"; exec 2>&1; {lines}; find . -name '.co-*'");
    let mut command = scene.command("unshare");
    command.args(["--map-root-user", "--mount", "bash", "-c", &script]);
    let command = command
        .env("STATE", &state)
        .env("CO", crate::support::BACKEND);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let all = String::from_utf8(done.stdout).unwrap();
    let lines = all.lines().filter(|line| !line.contains(", after "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_full_state_directory_changes_nothing() {
    if !may_mount() {
        return;
    }
    let scene = Scene::new("echo one > a.txt");
    let lines = "\"$CO\" exec --try --keep 'echo two > a.txt; head -c 9M /dev/zero > big'; echo $?; cat a.txt; ls; \
                 \"$CO\" exec --try --keep 'echo two > a.txt'; echo $?; cat a.txt";
    let printed = print(
        &scene,
        "mount -t tmpfs -o mode=0700,size=4m none \"$STATE\"",
        lines,
    );
    let told = unwritable(&scene.state().join("checkpoints"), FULL);
    let expected = format!(
        "head: error writing 'standard output': No space left on device\n\
         co-nvim: the changes of the command cannot be read: {told}\n\
         123\none\na.txt\n\
         --- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n[kept]\n0\ntwo\n"
    );
    assert_eq!(printed, expected);
}

#[test]
fn a_state_directory_without_inodes_changes_nothing() {
    if !may_mount() {
        return;
    }
    for inodes in [2, 6, 9, 12] {
        let scene = Scene::new("echo one > a.txt");
        let mounted = format!("mount -t tmpfs -o mode=0700,nr_inodes={inodes} none \"$STATE\"");
        let lines = "\"$CO\" exec --try --keep 'touch b c d e f g h i j k && rm a.txt' >/dev/null; test $? != 0; echo $?; ls";
        let printed = print(&scene, &mounted, lines);
        assert!(printed.contains("No space left on device"), "{printed}");
        assert!(printed.ends_with("\n0\na.txt\n"), "{inodes}: {printed}");
    }
}

#[test]
fn a_journal_that_cannot_be_written_keeps_nothing() {
    if !may_mount() {
        return;
    }
    // What is in a directory there is no journal.
    let mounted = "keeps=\"$STATE/checkpoints/keeps\"; mkdir -pm 700 \"$keeps\" && mount -t tmpfs -o mode=0700,size=4k none \"$keeps\" && \
                   mkdir \"$keeps/full\" && head -c 4k /dev/zero > \"$keeps/full/file\"";
    let read_only = format!("{mounted} && mount -o remount,bind,ro \"$keeps\"");
    for (mounted, why) in [
        (mounted, FULL),
        (&read_only, "Read-only file system (os error 30)"),
    ] {
        let scene = Scene::new("echo one > a; echo one > b");
        let told = unwritable(&scene.state().join("checkpoints/keeps"), why);
        let lines = "\"$CO\" exec --try --keep 'echo two > a; echo two > b' >/dev/null; echo $?; cat a b; find \"$keeps\" -type f -size -4k; \
                     \"$CO\" exec --try --keep --json 'echo two > a' | python3 -c 'import json, sys; it = json.load(sys.stdin)[\"trial\"]; \
                     print(len(it[\"changes\"]), it[\"kept\"], it[\"error\"])'; cat a";
        assert_eq!(
            print(&scene, mounted, lines),
            format!("co-nvim: nothing is kept: {told}\n123\none\none\n1 False {told}\none\n")
        );
    }
}

#[test]
fn a_full_workspace_takes_what_fits() {
    if !may_mount() {
        return;
    }
    let scene = Scene::new("true");
    let mounted = "mount -t tmpfs -o size=1m none . && cd . && echo one > a.txt";
    let lines = "\"$CO\" exec --try --keep 'echo two > a.txt; head -c 2M /dev/zero > big' >/dev/null; echo $?; cat a.txt; ls";
    assert_eq!(
        print(&scene, mounted, lines),
        "co-nvim: big cannot be kept: No space left on device (os error 28)\n[kept in part]\n123\ntwo\na.txt\n"
    );
}

#[test]
fn of_two_trials_at_once_the_first_keeps_what_both_changed() {
    let scene = Scene::new("echo one > a; echo wait > flag1; echo wait > flag2");
    let start = |number: usize| {
        let line = format!(
            "echo {number} > a; echo {number} > own{number}; touch made{number}; while grep -q wait flag{number}; do sleep 0.05; done"
        );
        let child = scene.start(&["--keep", &line]);
        scene.wait_for(&format!("made{number}"));
        child
    };
    let trials = [1, 2].map(start);
    let [first, second] = [1, 2].map(|number| scene.workspace.join(format!("flag{number}")));
    let mut ended = trials
        .into_iter()
        .zip([first, second])
        .map(|(child, flag)| {
            fs::write(flag, "go\n").unwrap();
            child.wait_with_output().unwrap()
        });
    let (first, second) = (ended.next().unwrap(), ended.next().unwrap());
    assert_eq!(said(&first), ["[kept]"]);
    let why = "it changed in the workspace while the command ran";
    let refused = format!("co-nvim: a cannot be kept: {why}");
    assert_eq!(said(&second), [refused.as_str(), "[kept in part]"]);
    assert_eq!(second.status.code(), Some(123));
    scene.bash("grep -q 1 a; grep -q 1 own1; grep -q 2 own2");
}
