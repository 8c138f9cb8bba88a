//! Limits that a person sets.

use std::process::Command;

use co::exec::Error;

use super::{BINARY, Bench};

fn limited(change: impl FnOnce(&mut co::exec::Settings)) -> Bench {
    Bench::with(|setup| {
        setup.program = Some(BINARY.into());
        change(&mut setup.settings);
    })
}

#[tokio::test]
async fn limits_hold_from_the_start() {
    let bench = limited(|settings| {
        settings.memory = Some(512 << 20);
        settings.cpu_seconds = Some(7);
        settings.open_files = Some(64);
        settings.file_size = Some(1 << 20);
    });
    let outcome = bench
        .run("ulimit -v; ulimit -t; ulimit -n; ulimit -f")
        .await;
    assert_eq!(outcome.output, "524288\n7\n64\n1024\n");
    let outcome = bench.run("head -c 2000000 /dev/zero > big").await;
    assert!(!outcome.ok());
    assert_eq!(
        std::fs::metadata(bench.path().join("big")).unwrap().len(),
        1 << 20
    );
    assert!(!bench.run("python3 -c 'x = bytearray(1 << 30)'").await.ok());
    bench.executor.shutdown().await;
}

#[tokio::test]
async fn cpu_time_ends_it() {
    let bench = limited(|settings| settings.cpu_seconds = Some(1));
    let outcome = bench.run("while :; do :; done").await;
    assert!(
        outcome.signal.is_some() && !outcome.timed_out,
        "{outcome:?}"
    );
    bench.executor.shutdown().await;
}

#[test]
fn what_the_system_limits_to_less_stays_so() {
    let state = tempfile::tempdir().unwrap();
    let output = Command::new("bash")
        .args(["-c", "ulimit -n 64; exec \"$0\" exec 'ulimit -n'", BINARY])
        .env("XDG_STATE_HOME", state.path())
        .env("CO_CLI_SHELL_OPEN_FILES", "1000000")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "64\n");
}

#[test]
fn a_limit_of_files_sizes_leaves_the_output_and_no_piece_of_its_file() {
    let state = tempfile::tempdir().unwrap();
    let output = Command::new("bash")
        .args(["-c", "ulimit -f 20; exec \"$0\" exec --json \"$1\"", BINARY])
        .arg("seq 1 10000; echo end; head -c 30000 /dev/zero > big; kill -l $?")
        .current_dir(state.path())
        .env("XDG_STATE_HOME", state.path())
        .output()
        .unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let text = told["output"].as_str().unwrap();
    // The command's own write ends it, as it would anywhere.
    assert!(
        text.contains("\nend\n") && text.ends_with("XFSZ\n"),
        "{told}"
    );
    assert_eq!(told["spill"], serde_json::Value::Null);
    let kept = std::fs::read_dir(state.path().join("co-nvim/output")).unwrap();
    assert_eq!(kept.count(), 0);
}

#[tokio::test]
async fn limits_want_the_program_and_settings_have_ranges() {
    let bench = Bench::with(|setup| setup.settings.open_files = Some(64));
    let error = bench.executor.start(bench.spec("true")).await.unwrap_err();
    assert!(matches!(error, Error::NoHelper));
    let mut settings = co::exec::Settings::new("/tmp".into());
    settings.max_output = 10;
    let error = settings.check().unwrap_err().to_string();
    assert!(
        error.contains("shell_max_output") && error.contains("1000"),
        "{error}"
    );
}
