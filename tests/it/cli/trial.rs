//! `co-nvim exec --try` as a person uses it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use co_exec::{CommandSpec, Program, Streams, TerminalSize};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::trial_scene::{Scene, said, text, wait};
use crate::exec::Bench;
use crate::support::{BACKEND, DEADLINE, proc};

const LINES: &str = "printf '%s\\n' 1 2 3 > a; mkdir d; echo b > d/b";
const DIFF: &str = "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n";

#[test]
fn a_trial_prints_the_difference_and_changes_nothing() {
    let scene = Scene::new(LINES);
    let before = scene.files();
    let done = scene.exec(&["sed -i s/2/two/ a; cat a; exit 7"]);
    assert_eq!(text(&done.stdout), format!("1\ntwo\n3\n{DIFF}"));
    assert_eq!(
        (said(&done), done.status.code()),
        (vec!["[1 file dropped]".to_owned()], Some(7))
    );
    assert_eq!(scene.files(), before);
    // Nothing is left of it.
    assert_eq!(scene.layers().len(), 0);
    let done = scene.exec(&["cat a"]);
    assert_eq!(
        (text(&done.stdout), said(&done)),
        ("1\n2\n3\n".to_owned(), Vec::new())
    );
    let done = scene.command(BACKEND).arg("doctor").output().unwrap();
    let told = text(&done.stdout);
    assert!(told.contains("ok    trials: "), "{told}");
}

#[test]
fn a_mode_that_new_files_rarely_have_is_named() {
    let scene = Scene::new(LINES);
    let done = scene.exec(&[
        "--drop",
        "umask 022; mkdir -m 777 pub; echo x > pub/f; mkdir -m 700 lone; echo y > m; chmod 600 m; mkdir usual",
    ]);
    let told = text(&done.stdout);
    for mode in [
        "mode of pub: 777\n",
        "new directory: lone\nmode of lone: 700\n",
        "mode of m: 600\n",
    ] {
        assert!(told.contains(mode), "{told}");
    }
    assert_eq!(told.matches("mode of").count(), 3, "{told}");
}

#[test]
fn a_trial_is_kept_if_the_person_says_so() {
    let scene = Scene::new(LINES);
    let done = scene.exec(&[
        "--keep",
        "sed -i s/2/two/ a; rm -r d; mkdir -p e/f; touch g; chmod 755 g; ln -s a l",
    ]);
    let expected = "--- a/d/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\nnew directory: e/f\nnew empty file: g\nmode of g: 755\nnew link: l\n\
                    --- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+link to a\n";
    assert_eq!(text(&done.stdout), format!("{DIFF}{expected}"));
    assert_eq!(
        (said(&done), done.status.code()),
        (vec!["[kept]".to_owned()], Some(0))
    );
    scene.bash("grep -q two a; test ! -e d -a -d e/f -a -x g; test $(readlink l) = a");
}

#[test]
fn what_cannot_be_kept_is_named_with_a_status_of_its_own() {
    let scene =
        Scene::new("echo '*.o' > .gitignore; git init -q; echo SECRET=x > .env; echo 1 > a");
    let line = "mkfifo pipe; echo 2 > a; echo 33 > b.o; git config a.b c; mv a '\x1b[31m'";
    let named = [
        "co-nvim: pipe cannot be kept: it is a FIFO",
        "co-nvim: changes in .git are dropped: .git/config changed",
        "co-nvim: 1 ignored file (3 bytes) is dropped",
    ];
    let done = scene.exec(&[line]);
    assert_eq!(said(&done), [&named[..], &["[2 files dropped]"]].concat());
    assert_eq!(done.status.code(), Some(0));
    let done = scene.exec(&["--keep", line]);
    assert_eq!(said(&done), [&named[..], &["[kept in part]"]].concat());
    assert_eq!(done.status.code(), Some(123));
    assert!(
        text(&done.stdout).contains("+++ \"b/\\033[31m\""),
        "{done:?}"
    );
    // Else nobody would notice that a commit is lost.
    assert_eq!(
        scene.exec(&["--keep", "git config a.b c"]).status.code(),
        Some(123)
    );
    scene.bash("test ! -e pipe -a ! -e b.o -a ! -e a -a -e $'\\x1b[31m'; ! git config a.b");
}

#[test]
fn the_list_is_printed_as_json() {
    let scene = Scene::new(LINES);
    let said = |args: &[&str]| -> Value {
        let done = scene.exec(&[&["--json"], args].concat());
        serde_json::from_slice(&done.stdout).unwrap()
    };
    let line = "sed -i s/2/two/ a; chmod 600 d/b; mkfifo p";
    let dropped = said(&[line]);
    let trial = &dropped["trial"];
    assert_eq!(
        (&dropped["exit"], &dropped["level"]),
        (&0.into(), &"trial".into())
    );
    assert_eq!(
        (&trial["kept"], &trial["changes"][0]["diff"]),
        (&false.into(), &DIFF.into())
    );
    let modes = [
        &trial["changes"][1]["before"]["mode"],
        &trial["changes"][1]["after"]["mode"],
    ];
    assert_eq!(modes, ["644", "600"]);
    assert_eq!(trial["not_kept"][0]["why"], "it is a FIFO");
    scene.bash("grep -q 2 a");
    let kept = said(&["--keep", line]);
    assert_eq!(kept["trial"]["kept"], true);
    scene.bash("grep -q two a; test $(stat -c %a d/b) = 600");
}

#[test]
fn tmp_is_private() {
    let scene = Scene::new_in(
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        &format!("git init -q; {LINES}"),
    );
    if ["/tmp", "/var/tmp"]
        .iter()
        .any(|it| scene.workspace.starts_with(it))
    {
        eprintln!("skipped: the build directory is a temporary one");
        return;
    }
    let own = TempDir::with_prefix("co-try-").unwrap();
    let before = scene.files();
    // ed has its copy of the file in /tmp, also if TMPDIR is elsewhere.
    let line = "echo x > /tmp/new; mkdir -p /var/tmp/d; ls -A /tmp $TMPDIR; printf '1d\\nw\\nq\\n' | ed -s a; cat a";
    let done = scene.exec(&["--drop", line]);
    let listed = "/tmp:\nd\nnew\n\n/tmp:\nd\nnew\n2\n3\n";
    assert!(text(&done.stdout).starts_with(listed), "{done:?}");
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(own.path().exists() && !Path::new("/tmp/new").exists());
    assert_eq!(scene.files(), before);
}

#[test]
fn names_are_shown_so_that_no_two_look_the_same() {
    let scene = Scene::new(LINES);
    let line = r#"touch $'x\xff' $'x\xfe' $'a\eb' 'a\033b'; echo 1 > 'q"'"#;
    let done = scene.exec(&["--drop", line]);
    let shown = text(&done.stdout);
    for name in [r#""a\033b""#, r#""a\\033b""#] {
        assert!(
            shown.contains(&format!("new empty file: {name}\n")),
            "{shown}"
        );
    }
    assert!(shown.contains("+++ \"b/q\\\"\"\n"), "{shown}");
    let told = said(&done).join("\n");
    for name in [r#""x\377""#, r#""x\376""#] {
        assert!(told.contains(&format!("{name} cannot be kept")), "{told}");
    }
}

#[test]
fn a_secret_that_appears_is_in_no_json() {
    let scene = Scene::new("echo wait > flag; echo 1 > a");
    let line = "touch made; while grep -q wait flag; do sleep 0.05; done; echo hunter2 > a; cat a";
    let child = scene.start(&["--keep", "--json", line]);
    scene.wait_for("made");
    fs::write(scene.workspace.join(".env"), "PASSWORD=hunter2\n").unwrap();
    fs::write(scene.workspace.join("flag"), "go\n").unwrap();
    let done = child.wait_with_output().unwrap();
    let shown = text(&done.stdout);
    assert!(!shown.contains("hunter2"), "{shown}");
    let value: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(value["withheld"], true);
    assert_eq!(value["trial"]["changes"][0]["path"], "a");
    assert_eq!(value["trial"]["kept"], false);
    scene.bash("grep -q 1 a");
}

#[test]
fn a_difference_that_nobody_read_is_no_success_unless_it_is_kept() {
    let scene = Scene::new(LINES);
    let status = |args: &[&str]| {
        let mut child = scene.start(args);
        drop(child.stdout.take());
        child.wait().unwrap().code()
    };
    let line = "while read -r line; do echo $line; done < a; echo 4 >> a";
    assert_eq!(status(&["--drop", line]), Some(1));
    assert_eq!(status(&["--json", line]), Some(1));
    assert_eq!(status(&["cat a"]), Some(0));
    scene.bash("! grep 4 a");
    assert_eq!(status(&["--keep", line]), Some(0));
    scene.bash("grep -q 4 a");
}

/// Runs a trial on a terminal. Types `ahead` while the command prints "ready" and waits for the file `go`. Answers the question,
/// and returns all that was shown.
async fn ask(scene: &Scene, line: &str, ahead: Option<&str>, answer: &[u8]) -> String {
    let bench = Bench::with_launcher(|_| {});
    let argv = [BACKEND, "exec", "--try", line];
    let spec = CommandSpec {
        program: Program::Argv(argv.map(str::to_owned).to_vec()),
        cwd: scene.workspace.clone(),
        extra_env: vec![("HOME".to_owned(), scene.home.display().to_string())],
        ..bench.spec("")
    };
    let size = TerminalSize {
        columns: 90,
        rows: 30,
    };
    let running = bench
        .executor
        .start_on(spec, Streams::Terminal(size))
        .await
        .unwrap();
    let (feed, input, mut seen) = (running.feed(), running.input().unwrap(), String::new());
    let mut wait = async |text: &str| {
        let shown = async {
            while !seen.contains(text) {
                assert!(feed.changed().await, "{seen}");
                seen.push_str(&feed.take().unwrap_or_default());
            }
        };
        tokio::time::timeout(DEADLINE, shown).await.unwrap();
    };
    if let Some(typed) = ahead {
        wait("ready").await;
        input.write(format!("{typed}\r").into_bytes()).unwrap();
        wait(&format!("{typed}\r\n")).await;
        scene.bash("echo go > go");
    }
    wait("[y/N] ").await;
    input.write(answer.to_vec()).unwrap();
    let outcome = running.outcome().await;
    assert_eq!(outcome.exit, Some(0), "{}", outcome.output);
    outcome.output
}

#[tokio::test]
async fn on_a_terminal_it_asks() {
    for (answer, said, line) in [
        (&b"n\r"[..], "[1 file dropped]", "2"),
        (b"\r", "[1 file dropped]", "2"),
        (b"\x03", "[1 file dropped]", "2"),
        (b"\x04", "[1 file dropped]", "2"),
        (b"y\r", "[kept]", "two"),
    ] {
        let scene = Scene::new(LINES);
        let shown = ask(&scene, "sed -i s/2/two/ a", None, answer).await;
        assert!(
            shown.contains("keep 1 file? [y/N]") && shown.contains(said),
            "{answer:?}: {shown}"
        );
        scene.bash(&format!("grep -qx {line} a"));
    }
}

#[tokio::test]
async fn no_key_that_was_typed_ahead_answers() {
    let scene = Scene::new(&format!("{LINES}; echo > go"));
    let line = "echo ready; until grep -q go go; do sleep 0.02; done; sed -i s/2/two/ a";
    let shown = ask(&scene, line, Some("y"), b"n\r").await;
    assert!(shown.contains("[1 file dropped]"), "{shown}");
    scene.bash("grep -qx 2 a");
}

#[tokio::test]
async fn what_matters_is_named_right_above_the_question() {
    let scene = Scene::new(LINES);
    let line = "seq 9999 > a; chmod 755 a; rm d/b; ln -s /etc/passwd l; echo x > Makefile";
    let shown = ask(&scene, line, None, b"n\r").await;
    let facts = "runs Makefile: `Makefile`: a task runner runs it or its commands\n\
        link l: a new link to /etc/passwd, outside the workspace\n\
        mode a: mode 644 => 755\n\
        gone d/b: deleted\n\
        keep 4 files? [y/N]";
    assert!(shown.contains(facts), "{shown}");
}

#[test]
fn what_changes_meanwhile_is_left_alone() {
    let scene = Scene::new("echo 1 > a; echo 1 > b; echo wait > flag");
    let line = "echo 2 > a; echo 2 > b; touch made; while grep -q wait flag; do sleep 0.05; done";
    let child = scene.start(&["--keep", line]);
    scene.wait_for("made");
    fs::write(scene.workspace.join("a"), "mine\n").unwrap();
    fs::write(scene.workspace.join("flag"), "go\n").unwrap();
    let done = child.wait_with_output().unwrap();
    let why = "it changed in the workspace while the command ran";
    assert_eq!(
        said(&done),
        [
            format!("co-nvim: a cannot be kept: {why}"),
            "[kept in part]".to_owned()
        ]
    );
    assert_eq!(done.status.code(), Some(123));
    scene.bash("grep -q mine a; grep -q 2 b; test -e made");
}

#[test]
fn what_is_removed_meanwhile_does_not_come_back() {
    let scene = Scene::new("echo 1 > a; mkdir d; echo 1 > d/b");
    let child = scene.start_while(
        "sed -i s/1/2/ a d/b; echo 1 > new;",
        "rm -r a d; echo go > flag",
    );
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(123), "{done:?}");
    scene.bash("test ! -e a; test ! -e d; test -e new");
}

#[test]
fn a_command_that_is_killed_is_dropped() {
    let scene = Scene::new(LINES);
    let before = scene.files();
    let done = scene.exec(&["--keep", "--timeout", "1", "echo 1 > new; sleep 1000"]);
    assert_eq!(done.status.code(), Some(124));
    assert!(
        said(&done)
            .iter()
            .any(|line| line.contains("did not end by itself")),
        "{done:?}"
    );
    assert_eq!(scene.files(), before);
    let child = scene.start(&["--keep", "echo 1 > new; sleep 1000"]);
    scene.wait_for("new");
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(text(&done.stdout), "");
    assert_eq!(scene.files(), before);
}

/// Rules of ignored files that make co read slowly.
pub(crate) const SLOW_RULES: &str =
    "for i in $(seq 5000); do echo \"*a$i*/**/b*c$i\"; done > .gitignore";
/// Makes many files, the last one being `m/20000`.
pub(crate) const MANY_FILES: &str = "mkdir m; for i in $(seq 20000); do : > m/$i; done";

#[test]
fn a_signal_ends_a_slow_look_at_what_a_trial_changed() {
    let scene = Scene::new(&format!("{SLOW_RULES}; echo 1 > a"));
    let before = scene.files();
    let line = format!("echo 2 > a; {MANY_FILES}");
    let child = scene.start(&["--keep", "--json", &line]);
    let watchdog = i32::try_from(child.id()).unwrap();
    scene.wait_for("m/20000");
    let backend = proc::children(watchdog)[0];
    // The command has ended, and co looks at its files.
    wait("the command goes on", || proc::children(backend).is_empty());
    let pid = nix::unistd::Pid::from_raw(watchdog);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let began = Instant::now();
    let done = child.wait_with_output().unwrap();
    // Without the signal, co looks for 10 s at the most.
    assert!(
        began.elapsed() < Duration::from_secs(9),
        "{:?}",
        began.elapsed()
    );
    let told: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        (&told["cancelled"], &told["exit"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(
        (done.status.code(), &told["trial"]),
        (Some(130), &Value::Null)
    );
    assert_eq!(scene.files(), before);
}

/// Makes the state of a process that was killed while it kept the second one of two links in a workspace.
pub(crate) fn interrupt_keep(state: &Path, workspace: &Path) {
    let keeps = state.join("checkpoints/keeps");
    fs::create_dir_all(&keeps).unwrap();
    let link = |name: &str| {
        let after = json!({ "kind": "link", "target": "a" });
        json!({ "path": name, "before": null, "after": after })
    };
    let decision = json!({ "decision": "approved" });
    let record = json!({
        "turn": 0,
        "by": { "call": { "what": "make links", "decision": decision, "command": true } },
        "workspace": workspace,
        "changes": [link("first"), link("second")],
        "planned": true,
    });
    fs::write(keeps.join("0.jsonl"), record.to_string()).unwrap();
    std::os::unix::fs::symlink("a", workspace.join("first")).unwrap();
}

#[test]
fn the_next_trial_removes_and_finishes_what_a_killed_one_left() {
    let scene = Scene::new(LINES);
    let before = scene.files();
    let mut child = scene.start(&[
        "--keep",
        "echo 1 > new; mkdir -p x/y; chmod 0 x/y x; sleep 1000",
    ]);
    scene.wait_for("x");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(scene.files(), before);
    let [left] = &scene.layers()[..] else {
        panic!("the layer is gone");
    };
    let dir = fs::File::open(left).unwrap();
    wait("the backend lives on", || {
        rustix::fs::flock(&dir, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_ok()
    });
    drop(dir);
    interrupt_keep(&scene.state(), &scene.workspace);
    let done = scene.exec(&["true"]);
    let place = scene.workspace.display();
    let told = format!(
        "co-nvim: co was killed while it kept what `make links` changed in {place}: the rest, 1 file, is changed now"
    );
    assert_eq!(said(&done), [told]);
    scene.bash("test $(readlink second) = a");
    wait("the layer is still there", || {
        let removed = scene.layers().is_empty();
        if !removed {
            scene.exec(&["true"]);
        }
        removed
    });
}

#[test]
fn a_system_without_trials_is_told() {
    let scene = Scene::new(LINES);
    let config = scene.home.join(".config/co-nvim");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "sandbox_namespaces = false\n").unwrap();
    let done = scene.exec(&["touch new"]);
    assert_eq!(done.status.code(), Some(125));
    let [why] = &said(&done)[..] else {
        panic!("{done:?}");
    };
    assert!(
        why.contains("commands cannot run as trials here: sandbox_namespaces is off"),
        "{why}"
    );
    assert!(!scene.workspace.join("new").exists());
    let closed = Scene::new("");
    fs::create_dir_all(closed.state()).unwrap();
    fs::write(closed.state().join("trials"), "").unwrap();
    let done = closed.exec(&["touch new"]);
    assert_eq!(
        (done.status.code(), said(&done).len()),
        (Some(125), 1),
        "{done:?}"
    );
}
