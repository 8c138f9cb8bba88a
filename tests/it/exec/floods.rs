//! More output than anybody reads.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use super::{BACKEND, Bench, eventually};
use crate::support::proc;
use co_exec::CommandOutcome;

/// Returns the part of the output for a model that the command printed, and co's lines below it.
fn parts(outcome: &CommandOutcome) -> (&str, &str) {
    outcome.output.split_at(outcome.printed)
}

#[tokio::test]
async fn fifty_megabytes_keep_their_end_and_their_counts() {
    let bench = Bench::new();
    let outcome = bench.run("yes 'a line of fifty bytes, the newline being the last' | head -c 50000000; echo; echo ERROR last").await;
    let (printed, notes) = parts(&outcome);
    assert!(printed.ends_with("ERROR last\n"), "{notes}");
    let bytes = 50_000_000 + "\nERROR last\n".len() as u64;
    assert_eq!(outcome.bytes, bytes);
    let spill = outcome.spill.as_ref().unwrap();
    assert!(notes.contains(spill.to_str().unwrap()));
    let whole = std::fs::read(spill).unwrap();
    assert_eq!(whole.len() as u64, bytes);
    assert!(whole.ends_with(b"ERROR last\n"));
    assert_eq!(
        outcome.lines,
        whole.iter().filter(|it| **it == b'\n').count() as u64
    );
    assert_eq!(
        std::fs::metadata(spill).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[tokio::test]
async fn the_model_reads_as_much_as_is_set() {
    for max in [1_000, 30_000, 200_000, 4 << 20] {
        let bench = Bench::with(|setup| setup.settings.max_output = max);
        let outcome = bench.run("seq 1 1000000").await;
        let (printed, _) = parts(&outcome);
        assert!(printed.len() <= max, "{max}");
        assert!(printed.len() + 100 > max, "{max}: {}", printed.len());
        assert!(printed.starts_with("1\n") && printed.ends_with("\n1000000\n"));
        let line = bench.run("head -c 150000 /dev/zero | tr '\\0' x").await;
        assert_eq!(line.output.contains("left out"), max < 150_000, "{max}");
        bench.executor.shutdown().await;
    }
}

#[tokio::test]
async fn what_is_beyond_the_cap_is_missing_in_the_middle_and_counted() {
    let bench = Bench::with(|setup| setup.settings.spill_max = 100_000);
    let outcome = bench.run("seq 1 100000").await;
    let gap = outcome.gap.expect("a gap");
    let kept = std::fs::read_to_string(outcome.spill.as_ref().unwrap()).unwrap();
    assert!(kept.len() < 100_200, "{}", kept.len());
    assert!(kept.contains(&format!("[co: left out here: {gap} of the output]")));
    let told = format!(" bytes; all but {gap} of its middle: /");
    assert!(outcome.output.contains(&told), "{}", outcome.output);
    let line = outcome.status();
    let end = " in the middle: shell_spill_max sets the limit";
    assert!(line.ends_with(end), "{line}");
}

#[tokio::test]
async fn lines_that_leave_the_screen_are_in_the_file() {
    let bench = Bench::with(|setup| setup.settings.screen_lines = 100);
    let outcome = bench.run("seq 1 100").await;
    assert_eq!(outcome.spill, None);
    let outcome = bench.run("seq 1 500").await;
    let kept = std::fs::read_to_string(outcome.spill.unwrap()).unwrap();
    assert_eq!(kept.lines().count(), 500);
}

#[tokio::test]
async fn the_spill_can_be_off() {
    let bench = Bench::with(|setup| setup.settings.spill_max = 0);
    let outcome = bench.run("seq 1 100000").await;
    assert_eq!((outcome.spill, outcome.gap), (None, None));
    assert!(!bench.path().join("spill").exists());
}

/// The end of the output is lost with the backend.
#[tokio::test]
async fn a_backend_that_is_killed_leaves_output_that_says_that_its_end_is_missing() {
    let state = tempfile::tempdir().unwrap();
    let script = "seq 1 100000; while :; do echo more; done";
    let mut backend = tokio::process::Command::new(BACKEND)
        .args(["exec", "--json", script])
        .env("XDG_STATE_HOME", state.path())
        .env("CO_CLI_SHELL_SPILL_MAX", "100000")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let out = || {
        let files = std::fs::read_dir(state.path().join("co-nvim/output")).ok()?;
        let mut paths = files.flatten().map(|it| it.path());
        paths.find(|path| path.extension().is_some_and(|it| it == "out"))
    };
    let text = || std::fs::read_to_string(out()?).ok();
    let noted = || text().is_some_and(|it| it.ends_with('\n') && it.contains("[co: "));
    eventually("its first part", noted).await;
    let watchdog = i32::try_from(backend.id().unwrap()).unwrap();
    // The backend first: it would finish the file.
    let mut all = proc::children(watchdog);
    all.extend(proc::descendants(watchdog));
    all.insert(1, watchdog);
    all.into_iter().for_each(proc::kill9);
    backend.wait().await.unwrap();
    let text = text().unwrap();
    let (first, note) = text.split_once("[co: ").unwrap();
    assert!(first.starts_with("1\n2\n") && first.ends_with('\n'));
    assert!(
        note.contains("the rest is missing") && note.lines().count() == 1,
        "{note}"
    );
}

#[tokio::test]
async fn old_output_goes_when_an_executor_starts() {
    let mut old = std::path::PathBuf::new();
    let _bench = Bench::with(|setup| {
        let dir = &setup.settings.spill_dir;
        std::fs::create_dir_all(dir).unwrap();
        old = dir.join("old.out");
        let file = std::fs::File::create(&old).unwrap();
        let long_ago = std::time::SystemTime::now() - setup.settings.spill_age * 2;
        file.set_modified(long_ago).unwrap();
    });
    eventually("it is gone", || !old.exists()).await;
}

#[tokio::test]
async fn a_flood_is_ended_and_told() {
    let bench = Bench::with(|setup| setup.settings.flood_max = 4 << 20);
    let outcome = bench.run("yes; sleep 30").await;
    assert!(outcome.flooded && !outcome.timed_out && outcome.bytes > 4 << 20);
    assert!(
        outcome.output.contains("more than shell_flood_max allows"),
        "{}",
        outcome.output
    );
}

/// Returns the most memory that `co-nvim exec` had, in KiB.
async fn peak(args: &[&str]) -> u64 {
    let mut child = tokio::process::Command::new(BACKEND)
        .arg("exec")
        .args(args)
        .env(
            "XDG_STATE_HOME",
            tempfile::tempdir().expect("a directory").path(),
        )
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the backend starts");
    let status = format!("/proc/{}/status", child.id().expect("it runs"));
    let mut peak = 0;
    while child.try_wait().expect("a child").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let size = line.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(size.unwrap_or(0));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    peak
}

#[tokio::test]
async fn a_flood_costs_no_memory() {
    let quiet = peak(&["--json", "sleep 0.3"]).await;
    for command in [
        "yes",
        "yes '' | tr '\\n' x",
        "cat /dev/urandom | tr -d '\\0'",
    ] {
        let flooded = peak(&["--json", "--timeout", "2", command]).await;
        assert!(
            flooded < quiet + 32 * 1024,
            "{command}: {quiet} to {flooded} KiB"
        );
    }
}

#[tokio::test]
async fn a_flood_ends_on_time() {
    let bench = Bench::with(|setup| setup.settings.flood_max = 1 << 40);
    let mut spec = bench.spec("yes");
    spec.timeout = Duration::from_secs(2);
    let outcome = bench.run_spec(spec).await;
    assert!(outcome.timed_out);
    assert!(outcome.wall < Duration::from_secs(5), "{:?}", outcome.wall);
}
