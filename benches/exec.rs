//! The cost of the executor beside the least that a start can cost: ratios, taken in turns in one run.
//!
//! `cargo bench --bench exec`. Absolute times move with the machine; the ratios are what counts.

use std::ffi::CString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::{Duration, Instant};

use co_exec::{
    Caller, CommandOutcome, CommandSpec, Confinement, Environment, ExecSettings, Executor,
    ExecutorSetup, Program,
};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};

const RUNS: usize = 300;
const FLOODS: usize = 9;
const MEGABYTES: u64 = 100;
const FRAME: Duration = Duration::from_millis(16);

fn main() -> std::process::ExitCode {
    co_exec::detach_terminal();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let report = runtime.block_on(run());
    let _ = std::io::stdout().lock().write_all(report.as_bytes());
    std::process::ExitCode::SUCCESS
}

async fn run() -> String {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut report = String::new();
    let quiet = ExecutorSetup {
        sole: true,
        ..ExecutorSetup::new(settings(dir.path(), 0))
    };
    let executor = Executor::new(quiet).expect("an executor");
    // First: what the others free stays with the process, and would hide growth.
    memory(&executor, dir.path(), &mut report).await;
    start_to_exit(&executor, dir.path(), "as it is", &mut report).await;
    let ballast = vec![1_u8; 300 << 20];
    start_to_exit(&executor, dir.path(), "with 300 MB of heap", &mut report).await;
    drop(ballast);
    let spilling =
        Executor::new(ExecutorSetup::new(settings(dir.path(), 1 << 40))).expect("an executor");
    flood(&executor, &spilling, dir.path(), &mut report).await;
    executor.shutdown().await;
    report
}

fn settings(dir: &Path, spill: u64) -> ExecSettings {
    let mut settings = ExecSettings::new(dir.join("spill"));
    settings.spill_max = spill;
    settings.flood_max = 1 << 40;
    settings
}

fn spec(dir: &Path, command: &str) -> CommandSpec {
    CommandSpec {
        program: Program::Shell(command.to_owned()),
        cwd: dir.to_owned(),
        caller: Caller::Person,
        stdin: None,
        timeout: Duration::from_secs(600),
        confinement: Confinement::Plain,
        environment: Environment::default(),
        extra_env: Vec::new(),
    }
}

/// Runs a command as an editor would see it: a look at the screen each frame.
async fn watched(executor: &Executor, spec: CommandSpec) -> CommandOutcome {
    let running = executor.start(spec).await.expect("it starts");
    let screen = running.screen();
    let outcome = tokio::spawn(running.outcome());
    while screen.changed().await {
        std::hint::black_box(screen.take());
        if !outcome.is_finished() {
            let _ = tokio::time::timeout(FRAME, std::future::pending::<()>()).await;
        }
    }
    outcome.await.expect("the supervisor")
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

async fn start_to_exit(executor: &Executor, dir: &Path, what: &str, report: &mut String) {
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let began = Instant::now();
        bare();
        plain.push(began.elapsed());
        let began = Instant::now();
        let running = executor.start(spec(dir, "true")).await.expect("it starts");
        assert!(running.outcome().await.ok());
        ours.push(began.elapsed());
    }
    let (plain, ours) = (median(plain), median(ours));
    let ratio = ours.as_secs_f64() / plain.as_secs_f64();
    let _ = writeln!(
        report,
        "start to exit, {what}: {ratio:.2} x posix_spawn ({ours:.0?} to {plain:.0?}); target 1.3"
    );
}

/// The same command by posix_spawn alone.
fn bare() {
    let word = |text: &str| CString::new(text).expect("no NUL");
    let argv = ["/bin/bash", "--noprofile", "--norc", "-c", "true"].map(word);
    let env = [word("PATH=/usr/bin:/bin")];
    let actions = PosixSpawnFileActions::init().expect("actions");
    let attributes = PosixSpawnAttr::init().expect("attributes");
    let pid = posix_spawn(c"/bin/bash", &actions, &attributes, &argv, &env).expect("it starts");
    nix::sys::wait::waitpid(pid, None).expect("it ends");
}

async fn flood(quiet: &Executor, spilling: &Executor, dir: &Path, report: &mut String) {
    let file = dir.join("flood");
    let line = format!("{}\n", "x".repeat(39));
    let count = usize::try_from(MEGABYTES * 1_000_000).expect("64 bits") / line.len();
    std::fs::write(&file, line.repeat(count)).expect("a file");
    let command = format!("cat {}", file.display());
    let piped = format!("{command} | cat >/dev/null");
    let (mut base, mut kept, mut spilt) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..FLOODS {
        let began = Instant::now();
        let status = std::process::Command::new("/bin/bash")
            .args(["--noprofile", "--norc", "-c", &piped])
            .process_group(0)
            .status();
        assert!(status.is_ok_and(|it| it.success()));
        base.push(began.elapsed());
        for (executor, times) in [(quiet, &mut kept), (spilling, &mut spilt)] {
            let began = Instant::now();
            let outcome = watched(executor, spec(dir, &command)).await;
            assert_eq!(outcome.bytes, MEGABYTES * 1_000_000);
            times.push(began.elapsed());
            if let Some(spill) = outcome.spill {
                let _ = std::fs::remove_file(spill);
            }
        }
    }
    let base = median(base);
    for (what, times, target) in [("no spill", kept, 3), ("all of it spilt", spilt, 6)] {
        let time = median(times);
        let ratio = time.as_secs_f64() / base.as_secs_f64();
        let _ = writeln!(
            report,
            "{MEGABYTES} MB, {count} lines, {what}: {ratio:.2} x `cmd | cat` ({time:.1?} to {base:.1?}); target {target}"
        );
    }
}

async fn memory(executor: &Executor, dir: &Path, report: &mut String) {
    let gigabyte = "yes 0123456789012345678901234567890123456 | head -c 1000000000";
    let cases = [
        (
            "100 MB",
            "yes 012345678901234567890123456789012345678 | head -c 100000000",
            600,
            16,
        ),
        ("1 GB", gigabyte, 600, 16),
        ("yes for 2 s", "yes", 2, 32),
    ];
    for (what, command, seconds, target) in cases {
        // The peak is counted from here on.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let before = kib("VmRSS:");
        let mut spec = spec(dir, command);
        spec.timeout = Duration::from_secs(seconds);
        let outcome = watched(executor, spec).await;
        let grown = kib("VmHWM:").saturating_sub(before) as f64 / 1024.0;
        let late = outcome.wall.saturating_sub(Duration::from_secs(seconds));
        let _ = writeln!(
            report,
            "{what}: {} MB read, backend + {grown:.1} MiB, target {target}{}",
            outcome.bytes / 1_000_000,
            if outcome.timed_out {
                format!("; ended {late:.0?} late, target 500 ms")
            } else {
                String::new()
            }
        );
    }
}

fn kib(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|it| it.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
