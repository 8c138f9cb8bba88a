//! Limits that a person sets.

use std::process::Command;
use std::time::Duration;

use co::exec::{Error, Settings};

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
    assert!(!outcome.timed_out, "{outcome:?}");
    let told = "killed by signal 24 (SIGXCPU): its processor time is used up";
    assert!(outcome.status().contains(told), "{outcome:?}");
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

type Change = fn(&mut Settings);

#[tokio::test]
async fn limits_want_the_program_and_settings_have_ranges() {
    let bench = Bench::with(|setup| setup.settings.open_files = Some(64));
    let error = bench.executor.start(bench.spec("true")).await.unwrap_err();
    assert!(matches!(error, Error::NoHelper));
    let changes: &[(&str, Change)] = &[
        ("`shell_max_output` is 10, ", |it| it.max_output = 10),
        ("`shell_max_timeout` is 0, ", |it| {
            it.max_timeout = Duration::ZERO;
        }),
        ("`shell_screen_lines` is 99, ", |it| it.screen_lines = 99),
        ("`shell_spill_max` is ", |it| it.spill_max = u64::MAX),
        ("`shell_flood_max` is 0, ", |it| it.flood_max = 0),
        ("`shell_spill_total` is ", |it| it.spill_total = u64::MAX),
        ("`shell_memory` is 0, ", |it| it.memory = Some(0)),
        ("`shell_cpu_seconds` is 0, ", |it| it.cpu_seconds = Some(0)),
        ("`shell_open_files` is 7, ", |it| it.open_files = Some(7)),
        ("`A B` in `shell_env_allow` ", |it| {
            it.env_allow.push("A B".to_owned());
        }),
        ("`*` in `shell_env_allow` ", |it| {
            it.env_allow.push("*".to_owned());
        }),
        ("`1A` in `shell_env_allow` ", |it| {
            it.env_allow.push("1A".to_owned());
        }),
    ];
    for (expected, change) in changes {
        let mut settings = Settings::new("/tmp".into());
        assert!(settings.check().is_ok());
        change(&mut settings);
        let error = settings.check().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{expected}: {error}");
    }
}

#[test]
fn what_cannot_be_limited_or_started_is_not() {
    let become_it = |args: &[&str]| {
        let output = Command::new(BINARY).arg("--become").args(args).output();
        let output = output.unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.stdout.is_empty() && told.starts_with("co-nvim: cannot "),
            "{told}"
        );
        output.status.code()
    };
    for limit in ["what=1", "files=many", "files"] {
        assert_eq!(
            become_it(&[limit, "--", "echo", "ran"]),
            Some(126),
            "{limit}"
        );
    }
    assert_eq!(become_it(&["--", "/nonexistent"]), Some(127));
    assert_eq!(become_it(&["--", "/etc/passwd"]), Some(126));
}
