//! Harmless commands give the same confined as not; builds and commits work where writes are asked.

use std::fs;

use super::hostile::python;
use super::scene::{SOMEBODY, Scene, am_root, older, stdout};

/// Lines whose output, errors and exit must be the same at the read-only level. `policy::looks` has those of programs
/// that look.
const SAME: &[&str] = &[
    "cat < one.txt | tr a-z A-Z",
    "head -n 1 one.txt; tail -n 1 one.txt",
    "cat absent",
    "id -un; groups",
    "getent passwd root",
    "echo $HOME $LANG; echo ~",
    "printf '%s\\n' *",
    "diff <(sort one.txt) <(sort -r one.txt)",
    "cat <(echo a) <(echo b)",
    "tee /dev/null < one.txt",
    "echo x > /dev/null; echo y 2> /dev/null",
    "cat /dev/stdin < one.txt",
    "cat <<< here",
    "head -c 8 /dev/urandom | wc -c",
    "cat /proc/self/comm; cat /proc/loadavg | wc -w",
    "ulimit -n",
    "nice -n 5 true; echo $?",
    "timeout 10 echo in time",
    "{ timeout -s KILL 0.1 sleep 20; } 2> /dev/null; echo $?",
    "(sleep 20 & kill %1; wait; echo ended)",
    "trap 'echo caught' USR1; kill -USR1 $$; echo on",
    "seq 3 | while read n; do echo $((n * 2)); done",
    "perl -e 'print 6 * 7, \"\\n\"'",
    "gzip -c one.txt | gunzip",
    "ls /usr | head -n 3; ls /etc/hosts",
    "mkdir -p \"$TMPDIR/a\" && echo x > \"$TMPDIR/a/b\" && cat \"$TMPDIR/a/b\" && rm -r \"$TMPDIR/a\"",
    "f=$(mktemp); echo kept > $f; cat $f; rm $f",
    "stty -a",
    "exit 3",
    "kill -TERM $$",
    "no-such-program",
];

/// Lines for programs that a machine may be without.
const SAME_IF_THERE: &[(&str, &str)] = &[
    (
        "node",
        "node -e 'console.log(require(\"fs\").readdirSync(\".\").length, 6 * 7)'",
    ),
    (
        "node",
        "node -e 'require(\"child_process\").execSync(\"cat one.txt\", { stdio: \"inherit\" })'",
    ),
    ("man", "man ls; git commit --help"),
    (
        "python3",
        "python3 -c 'import json, os, sys; print(json.load(open(\"data.json\")), len(os.listdir()))'",
    ),
];

/// Runs each line by a bash of its own, all in one confinement, and compares what came of it.
fn same(scene: &Scene, lines: &[&str]) {
    let script: String = lines
        .iter()
        .map(|line| {
            format!(
                "printf '\\0'; bash --noprofile --norc -c {} 2>&1; echo \"exit $?\"\n",
                quoted(line)
            )
        })
        .collect();
    let bash = ["bash", "--noprofile", "--norc", "-c", &script];
    let free = stdout(&scene.free(&bash).output().unwrap());
    let confined = scene.run(&scene.read_only(), &bash);
    let told = stdout(&confined);
    assert_eq!(free.matches('\0').count(), lines.len());
    let both = free.split('\0').skip(1).zip(told.split('\0').skip(1));
    for ((free, confined), line) in both.zip(lines) {
        assert_eq!(free, confined, "{line}");
    }
    assert_eq!(free, told, "{confined:?}");
}

/// A word of bash.
fn quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', r"'\''"))
}

fn there(scene: &Scene, program: &str) -> bool {
    let look = format!("command -v {program} > /dev/null");
    scene
        .plain("bash")
        .args(["-c", &look])
        .status()
        .unwrap()
        .success()
}

#[test]
fn harmless_commands_give_the_same_inside() {
    let scene = Scene::new(None);
    let installed = SAME_IF_THERE
        .iter()
        .filter(|(program, _)| there(&scene, program));
    let lines: Vec<_> = SAME
        .iter()
        .copied()
        .chain(installed.map(|(_, line)| *line))
        .collect();
    same(&scene, &lines);
}

#[test]
fn harmless_commands_give_the_same_to_an_ordinary_user() {
    if !am_root() {
        return;
    }
    let scene = Scene::new(Some(SOMEBODY));
    scene.hand_over();
    let python = format!("{} -c 'print(6 * 7)'", python());
    let lines = [
        "git status",
        "git log -p",
        "ls -l",
        "id -u",
        "cat <(echo a)",
        "sed -n 1p one.txt",
        &python,
    ];
    same(&scene, &lines);
}

#[test]
fn older_landlocks_let_the_same_through() {
    for abi in older([1, 5]) {
        let scene = Scene::new(None).with_abi(abi);
        let lines = [
            "git status --short",
            "git log -p | wc -l",
            "find . -name '*.txt' | xargs wc -l",
            "cat <(sort one.txt)",
            "timeout 10 echo in time",
            "python3 -c 'print(6 * 7)'",
            "f=$(mktemp); echo kept > $f; cat $f",
        ];
        same(&scene, &lines);
    }
}

#[test]
fn processes_are_seen_but_not_into() {
    let scene = Scene::new(None);
    let seen = stdout(&scene.bash(&scene.read_only(), "ps -o pid=,comm= -p $$,1"));
    assert!(seen.contains("ps"), "{seen}");
    assert!(
        seen.lines().any(|line| line.trim().starts_with("1 ")),
        "{seen}"
    );
}

#[test]
fn building_works_in_the_workspace() {
    let scene = Scene::new(None);
    let level = scene.workspace();
    fs::create_dir(scene.ws.join("src")).unwrap();
    fs::write(
        scene.ws.join("src/main.rs"),
        "fn main() { println!(\"built\"); }\n",
    )
    .unwrap();
    let manifest =
        "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(scene.ws.join("Cargo.toml"), manifest).unwrap();
    let done = scene.bash(&level, "cargo build --offline -q && target/debug/tiny");
    assert_eq!(stdout(&done), "built\n", "{done:?}");

    let line = format!(
        "{} -m venv --without-pip env && env/bin/python -c 'print(1)'",
        python()
    );
    let done = scene.bash(&level, &line);
    assert_eq!(stdout(&done), "1\n", "{done:?}");

    if there(&scene, "npm") {
        let package =
            r#"{"name": "t", "version": "1.0.0", "scripts": {"test": "node -e 'console.log(9)'"}}"#;
        fs::write(scene.ws.join("package.json"), package).unwrap();
        let done = scene.bash(&level, "npm test --silent");
        assert_eq!(stdout(&done), "9\n", "{done:?}");
    }
}
