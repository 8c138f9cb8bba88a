//! The outcomes of plain commands.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use co_exec::{Caller, CommandSpec, Confinement, Error, Program, Streams};

use super::{Bench, TERMINAL};

async fn check(command: &str, output: &str, exit: i32) {
    let outcome = Bench::new().run(command).await;
    assert_eq!(outcome.output, output, "{command}");
    assert_eq!(outcome.exit, Some(exit), "{command}");
}

#[tokio::test]
async fn output_is_exact() {
    check("echo hello", "hello\n", 0).await;
    check("true", "", 0).await;
    check("printf hi", "hi", 0).await;
    check("echo err >&2; echo ok", "err\nok\n", 0).await;
    check("[[ abc == a* ]] && echo bash", "bash\n", 0).await;
    check("printf '10%%\\r\\346\\274\\242\\033[K\\n'", "漢\n", 0).await;
}

#[tokio::test]
async fn exits_and_signals_are_told() {
    let bench = Bench::new();
    let outcome = bench.run("ls /nonexistent").await;
    assert_eq!(outcome.exit, Some(2));
    assert!(outcome.output.contains("/nonexistent") && outcome.output.ends_with("[exit 2]\n"));
    assert!(!outcome.ok());
    check("exit 42", "[exit 42]\n", 42).await;
    let outcome = bench.run("kill -9 $$").await;
    assert_eq!((outcome.exit, outcome.signal), (None, Some(9)));
    assert_eq!(outcome.output, "[killed by signal 9 (SIGKILL)]\n");
    let outcome = bench.run("no-such-program-here").await;
    assert_eq!(outcome.exit, Some(127));
    assert!(outcome.output.ends_with("[exit 127: command not found]\n"));
}

#[tokio::test]
async fn a_search_without_a_find_is_no_failure() {
    let bench = Bench::new();
    let outcome = bench.run("echo a | grep b").await;
    assert!(outcome.ok() && outcome.exit == Some(1));
    assert!(!bench.run("grep b /nonexistent").await.ok());
    assert!(!bench.run("exit 1").await.ok());
}

#[tokio::test]
async fn nothing_is_guessed_from_the_output() {
    let outcome = Bench::new().run("echo timed out; exit 28").await;
    assert_eq!(outcome.output, "timed out\n[exit 28]\n");
    assert!(!outcome.timed_out);
}

#[tokio::test]
async fn nothing_waits_for_an_answer() {
    let bench = Bench::new();
    for command in [
        "cat",
        "read x",
        "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git rebase -i --root",
        "git -c user.name=a -c user.email=a@b commit --allow-empty",
        "cat </dev/tty",
        "sudo -S true",
        "ssh-keygen -y -f /dev/tty",
        "python3 -c 'input()'",
    ] {
        let began = Instant::now();
        let outcome = bench.run(command).await;
        assert!(!outcome.timed_out, "{command}: {outcome:?}");
        assert!(began.elapsed() < Duration::from_secs(15), "{command}");
    }
    let terminal = "if test -t 0 || test -t 1 || test -t 2; then echo terminal; fi";
    assert_eq!(bench.run(terminal).await.output, "");
}

#[tokio::test]
async fn standard_input_is_the_text_given() {
    let bench = Bench::new();
    let mut spec = bench.spec("cat; echo .");
    spec.stdin = Some(b"one\ntwo".to_vec());
    assert_eq!(bench.run_spec(spec).await.output, "one\ntwo.\n");
    // More than a pipe holds, and a command that does not read it.
    let mut spec = bench.spec("wc -c");
    spec.stdin = Some(vec![b'x'; 1 << 20]);
    assert_eq!(bench.run_spec(spec).await.output.trim(), "1048576");
    let mut spec = bench.spec("true");
    spec.stdin = Some(vec![b'x'; 1 << 20]);
    assert!(bench.run_spec(spec).await.ok());
}

#[tokio::test]
async fn argv_runs_without_a_shell() {
    let bench = Bench::new();
    let mut spec = bench.spec("");
    spec.program = Program::Argv(
        ["printf", "%s|", "a b", "$HOME", "*"]
            .map(str::to_owned)
            .to_vec(),
    );
    assert_eq!(bench.run_spec(spec.clone()).await.output, "a b|$HOME|*|");
    spec.program = Program::Argv(vec!["no-such-program-here".to_owned()]);
    let error = bench.refused(spec.clone()).await;
    assert!(matches!(error, Error::NotFound { .. }), "{error}");
    spec.program = Program::Argv(vec!["/etc/passwd".to_owned()]);
    let error = bench.refused(spec.clone()).await;
    assert!(error.is_permission(), "{error}");
    for empty in [
        Program::Argv(vec![]),
        Program::Argv(vec![String::new()]),
        Program::Shell(" \n".to_owned()),
    ] {
        spec.program = empty;
        let error = bench.refused(spec.clone()).await;
        assert!(matches!(error, Error::Empty), "{error}");
    }
    spec.program = Program::Shell(format!("true {}", "x".repeat(1 << 20)));
    assert!(matches!(bench.refused(spec.clone()).await, Error::TooLong));
    spec.program = Program::Shell("echo \0".to_owned());
    assert!(matches!(bench.refused(spec).await, Error::Nul));
}

/// Makes a program of that text; one without a text is a file that nobody may run.
fn program(path: &std::path::Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    let mode = if text.is_empty() { 0o644 } else { 0o755 };
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_program_is_the_first_on_path_that_can_be_run_wherever_one_is() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    program(&at("plain/tool"), "");
    program(&at("real/tool"), "#!/bin/sh\necho real\n");
    program(&at("real/bash"), "#!/bin/sh\necho another bash\n");
    // From where the tests run, and so from nowhere that a person would name.
    let own = std::env::current_dir().unwrap();
    let up = "../".repeat(own.components().count());
    let relative = format!("{up}{}", at("relative").display());
    program(&at("relative/tool"), "#!/bin/sh\necho relative\n");
    let path = format!(
        "{relative}:{}:{}:/usr/bin:/bin",
        at("plain").display(),
        at("real").display()
    );
    let bench = Bench::with(|setup| setup.env = vec![("PATH".into(), path.into())]);
    let mut spec = bench.spec("");
    spec.program = Program::Argv(vec!["tool".to_owned()]);
    assert_eq!(bench.run_spec(spec).await.output, "real\n");
    // What was judged is what runs.
    assert_eq!(bench.run("echo the bash").await.output, "the bash\n");
}

#[tokio::test]
async fn what_cannot_be_confined_or_placed_does_not_run() {
    let bench = Bench::new();
    for confinement in bench.levels() {
        let mut spec = bench.spec("touch ran");
        spec.confinement = confinement;
        let error = bench.refused(spec).await;
        assert!(matches!(error, Error::Sandbox(_)), "{error}");
    }
    let mut spec = bench.spec("true");
    spec.cwd = ".".into();
    let error = bench.refused(spec).await;
    assert!(matches!(error, Error::RelativeCwd(_)), "{error}");
    assert!(!bench.path().join("ran").exists());
}

#[tokio::test]
async fn a_directory_that_cannot_be_entered_is_named_whatever_was_to_run_there() {
    let bench = Bench::new();
    let limited = Bench::with_launcher(|setup| setup.settings.open_files = Some(100));
    let (gone, file) = (bench.path().join("gone"), bench.path().join("file"));
    std::fs::write(&file, "").unwrap();
    let argv = |words: &[&str]| Program::Argv(words.iter().map(ToString::to_string).collect());
    let programs = [
        Program::Shell("true".to_owned()),
        argv(&["true"]),
        argv(&["./program"]),
        argv(&["no-such-program"]),
    ];
    for (cwd, why) in [(gone, "No such file"), (file, "ot a directory")] {
        for program in &programs {
            for (executor, streams) in [
                (&bench.executor, Streams::Whole),
                (&bench.executor, TERMINAL),
                (&limited.executor, Streams::Whole),
            ] {
                let mut spec = bench.spec("");
                spec.program = program.clone();
                spec.cwd.clone_from(&cwd);
                let error = executor.start_on(spec, streams).await.unwrap_err();
                assert!(matches!(error, Error::Cwd { .. }), "{program:?}: {error:?}");
                let text = error.to_string();
                assert!(text.contains(cwd.to_str().unwrap()), "{text}");
                assert!(text.contains(why), "{text}");
            }
        }
    }
    assert!(bench.run("echo next").await.ok());
}

#[tokio::test]
async fn binary_output_is_in_the_file_alone() {
    let bench = Bench::new();
    let outcome = bench.run("printf 'a\\0b'").await;
    let file = outcome.spill.unwrap();
    let told = format!("[binary output, 3 bytes; all of it: {}]\n", file.display());
    assert_eq!((outcome.output, outcome.printed), (told, 0));
    assert_eq!(std::fs::read(file).unwrap(), b"a\0b");
}

#[tokio::test]
async fn a_directory_of_a_model_that_has_become_a_link_is_not_entered() {
    let bench = Bench::with_launcher(|_| {});
    let outside = tempfile::tempdir().unwrap();
    let cwd = bench.path().join("d");
    std::os::unix::fs::symlink(outside.path(), &cwd).unwrap();
    for confinement in bench.levels().into_iter().chain([Confinement::Plain]) {
        let is_plain = confinement == Confinement::Plain;
        let spec = CommandSpec {
            cwd: cwd.clone(),
            confinement,
            ..bench.spec("touch ran")
        };
        let by_person = CommandSpec {
            caller: Caller::Person,
            ..spec.clone()
        };
        let error = bench.executor.start(spec).await.unwrap_err();
        assert!(error.to_string().contains("/d"), "{error}");
        assert!(!outside.path().join("ran").exists());
        if is_plain {
            assert!(bench.run_spec(by_person).await.ok());
        }
    }
}
