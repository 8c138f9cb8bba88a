//! `co-nvim exec`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::{BACKEND, Bench, TERMINAL, alive, eventually};
use crate::support::output_of;

fn exec(args: &[&str]) -> Output {
    let state = tempfile::tempdir().expect("a directory");
    Command::new(BACKEND)
        .arg("exec")
        .args(args)
        .env("XDG_STATE_HOME", state.path())
        .output()
        .expect("the backend runs")
}

fn json(args: &[&str]) -> Value {
    let output = exec(&[&["--json"], args].concat());
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[test]
fn json_tells_all_of_it() {
    let value = json(&["echo hi; sleep 3401 & exit 3"]);
    let pid = value["background_pids"][0].as_i64().unwrap();
    assert!(!alive(i32::try_from(pid).unwrap()));
    assert_eq!(value["background"][0]["name"], "sleep 3401");
    assert!(value["output"].as_str().unwrap().starts_with("hi\n"));
    for (key, expected) in [
        ("exit", Value::from(3)),
        ("signal", Value::Null),
        ("timed_out", false.into()),
        ("cancelled", false.into()),
        ("flooded", false.into()),
        ("bytes", 3.into()),
        ("lines", 1.into()),
        ("spill", Value::Null),
        ("level", "none".into()),
        ("nothing_found", false.into()),
        ("ok", false.into()),
    ] {
        assert_eq!(value[key], expected, "{key}");
    }
    assert!(value["wall_ms"].as_u64().unwrap() < 10_000);
}

#[test]
fn no_descriptor_is_inherited() {
    let state = tempfile::tempdir().unwrap();
    let output = Command::new("bash")
        .args([
            "-c",
            "exec 7</etc/passwd 8>/dev/null; exec \"$0\" exec 'ls /proc/self/fd'",
            BACKEND,
        ])
        .env("XDG_STATE_HOME", state.path())
        .output()
        .unwrap();
    // Three streams, and the directory that ls reads.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n1\n2\n3\n");
}

#[test]
fn nothing_of_the_backends_own_environment_or_input_passes() {
    let state = tempfile::tempdir().unwrap();
    let mut command = Command::new(BACKEND);
    command.args(["exec", "env; echo read $(cat)."]);
    command.env("XDG_STATE_HOME", state.path());
    command.env("MADE_UP_SECRET", "s");
    command.env("NVIM", "/run/nvim.sock");
    // As the editor's next message would be.
    let output = output_of(&mut command, b"stolen\n");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.ends_with("\nread .\n"), "{text}");
    assert!(
        !text.contains("MADE_UP_SECRET=") && !text.contains("NVIM="),
        "{text}"
    );
}

#[tokio::test]
async fn a_terminal_of_the_backends_own_is_out_of_reach() {
    let state = tempfile::tempdir().unwrap();
    let command = format!(
        "true </dev/tty && XDG_STATE_HOME={} exec {BACKEND} exec 'true </dev/tty'",
        state.path().display()
    );
    let bench = Bench::new();
    let outcome = bench.start_on(&command, TERMINAL).await.outcome().await;
    assert_eq!(outcome.exit, Some(1), "{}", outcome.output);
    assert!(
        outcome.output.contains("[exit 1, after "),
        "{}",
        outcome.output
    );
}

#[test]
fn orphans_are_reaped_while_a_command_runs() {
    let value = json(&["for i in 1 2 3 4 5; do (setsid true &); done
        while grep -qs '^State:.Z' $(sed 's,[0-9][0-9]*,/proc/&/status,g' /proc/$PPID/task/*/children); do sleep 0.05; done
        echo reaped"]);
    assert_eq!(value["output"], "reaped\n", "{value}");
}

#[test]
fn exits_as_the_command_did() {
    for (args, code) in [
        (&["exit 42"][..], 42),
        (&["kill -9 $$"], 137),
        (&["--timeout", "1", "sleep 30"], 124),
        (&["--timeout", "0", "true"], 125),
        (&["--cwd", "/nonexistent", "true"], 125),
        (&["--", "test", "-t", "1"], 1),
        (&["--input", "text", "test \"$(cat)\" = text"], 0),
    ] {
        assert_eq!(exec(args).status.code(), Some(code), "{args:?}");
    }
}

#[test]
fn output_is_streamed() {
    let output = exec(&["echo one; echo two; printf three"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "one\ntwo\nthree\n");
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("[exit 0, after "));
}

#[test]
fn names_that_are_not_utf8_are_told() {
    let root = tempfile::tempdir().unwrap();
    let odd = root.path().join(OsStr::from_bytes(b"\xff"));
    let mut command = Command::new(BACKEND);
    command.args(["exec", "--json", "true"]);
    let output = command.env("XDG_STATE_HOME", &odd).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("set XDG_STATE_HOME to one that is"), "{told}");

    std::fs::create_dir_all(odd.join(".git")).unwrap();
    let mut command = Command::new(BACKEND);
    command.args(["exec", "--json", "--backend", "landlock", "touch .envrc"]);
    command.env("XDG_STATE_HOME", root.path()).current_dir(&odd);
    let output = command.output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let appeared = told["appeared"][0].as_str();
    assert!(
        appeared.is_none_or(|it| it.ends_with("\u{fffd}/.envrc")),
        "{told}"
    );
}

#[tokio::test]
async fn a_command_ends_in_time_also_where_nobody_reads_what_is_shown() {
    for (seconds, signal, code) in [("3", None, 124), ("30", Some("-TERM"), 143)] {
        let state = tempfile::tempdir().unwrap();
        let line = "x".repeat(500);
        let mut child = Command::new(BACKEND)
            .args(["exec", "--timeout", seconds, "--cwd"])
            .arg(state.path())
            // Not `yes`: that would be ended as a flood.
            .arg(format!("echo $$ >pid; while echo {line}; do :; done"))
            .env("XDG_STATE_HOME", state.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let waiting = || rustix::io::ioctl_fionread(&stdout).unwrap();
        eventually("it is shown", || waiting() > 32_000).await;
        if let Some(signal) = signal {
            let pid = child.id().to_string();
            Command::new("kill").args([signal, &pid]).status().unwrap();
        }
        let pid = std::fs::read_to_string(state.path().join("pid")).unwrap();
        let pid = pid.trim().parse().unwrap();
        eventually("it has ended", || !alive(pid)).await;
        child.stdout = Some(stdout);
        let output = tokio::task::spawn_blocking(|| child.wait_with_output())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert!(output.stdout.ends_with(b"x\n"));
    }
}

#[tokio::test]
async fn where_nobody_reads_on_another_signal_ends_it() {
    let state = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut child = Command::new(BACKEND)
        .args(["exec", "--timeout", "30"])
        .arg(format!("exec yes {}", "x".repeat(31)))
        .env("XDG_STATE_HOME", state.path())
        .stdout(writer.try_clone().unwrap())
        .stderr(writer)
        .spawn()
        .unwrap();
    let waiting = || rustix::io::ioctl_fionread(&reader).unwrap();
    eventually("it is shown", || waiting() > 60_000).await;
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    eventually("it has ended", || {
        // The first one cancels; those right after it are taken for the same one.
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        child.try_wait().unwrap().is_some()
    })
    .await;
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn output_that_could_not_be_written_is_told() {
    let state = tempfile::tempdir().unwrap();
    let to = |out: &str, command: &str, json: &[&str]| {
        let mut bash = Command::new("bash");
        let line = format!("exec \"$0\" exec \"$@\" >{out}");
        bash.args(["-c", &line, BACKEND]).args(json).arg(command);
        let done = bash.env("XDG_STATE_HOME", state.path()).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    for json in [&[][..], &["--json"]] {
        let (code, said) = to("/dev/full", "echo hi", json);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("could not be written"), "{said}");
        assert_eq!(to("/dev/full", "echo hi; exit 3", json).0, Some(3));
        // Nobody wants it.
        let (code, said) = to("&-", "echo hi", json);
        assert_eq!(code, Some(0), "{said}");
        assert!(!said.contains("could not be written"), "{said}");
    }
    // Nobody reads any more.
    let line = "\"$0\" exec 'seq 100000; exit 7' | head -n 1; exit ${PIPESTATUS[0]}";
    let mut bash = Command::new("bash");
    bash.args(["-c", line, BACKEND])
        .env("XDG_STATE_HOME", state.path());
    let done = bash.output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(7), "{said}");
    assert!(!said.contains("could not be written"), "{said}");
}

#[test]
fn a_home_that_is_no_absolute_path_is_refused() {
    let here = tempfile::tempdir().unwrap();
    let output = Command::new(BACKEND)
        .args(["exec", "--json", r"printf 'a\0b'"])
        .current_dir(here.path())
        .env("HOME", "rel")
        .env_remove("XDG_STATE_HOME")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("set HOME to an absolute path"), "{told}");
    assert!(std::fs::read_dir(here.path()).unwrap().next().is_none());
}
