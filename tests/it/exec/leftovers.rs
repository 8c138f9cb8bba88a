//! Time-outs, cancelling, and what a command leaves running.

use std::time::{Duration, Instant};

use co_exec::{Caller, CommandOutcome, Error};

use super::{Bench, alive, eventually, holding};

/// Loaded machines are slow; a hang is 30 s or more.
const HANG_LIMIT: Duration = Duration::from_secs(8);

async fn timed(bench: &Bench, command: &str, caller: Caller, seconds: u64) -> CommandOutcome {
    let began = Instant::now();
    let mut spec = bench.spec(command);
    spec.caller = caller;
    spec.timeout = Duration::from_secs(seconds);
    let outcome = bench.run_spec(spec).await;
    assert!(
        began.elapsed() < HANG_LIMIT,
        "{command}: {:?}",
        began.elapsed()
    );
    outcome
}

#[tokio::test]
async fn a_time_out_ends_it_and_keeps_what_was_said() {
    let bench = Bench::new();
    let outcome = timed(&bench, "echo started; sleep 30", Caller::Agent, 2).await;
    assert!(outcome.timed_out && !outcome.cancelled);
    assert!(
        outcome.output.starts_with("started\n[timed out after 2."),
        "{}",
        outcome.output
    );
    assert_eq!(outcome.signal, Some(15));
}

#[tokio::test]
async fn the_time_out_has_a_range() {
    let bench = Bench::with(|setup| setup.settings.max_timeout = Duration::from_secs(2));
    let outcome = timed(&bench, "sleep 30", Caller::Agent, 300).await;
    assert!(outcome.timed_out);
    let mut spec = bench.spec("true");
    spec.timeout = Duration::ZERO;
    let error = bench.refused(spec).await;
    assert!(matches!(error, Error::Timeout { .. }));
    assert!(error.to_string().contains("1 to 2 s"), "{error}");
}

#[tokio::test]
async fn cancelled_is_over() {
    let bench = Bench::new();
    for command in [
        "sleep 300; touch m",
        "trap '' TERM; sleep 300; touch m",
        "(trap '' TERM; sleep 300; touch m) & wait",
        "sh -c 'trap \"\" TERM; sleep 300; touch m' & trap 'exit 0' TERM; wait",
        "setsid sh -c 'sleep 300; touch m' & sleep 300",
        "kill -STOP $$; touch m",
    ] {
        let running = bench.start(&format!("echo up; {command}")).await;
        assert!(running.screen().changed().await);
        let began = Instant::now();
        running.cancel();
        let outcome = running.outcome().await;
        assert!(
            outcome.cancelled && began.elapsed() < HANG_LIMIT,
            "{command}: {outcome:?}"
        );
        let dir = bench.path().to_str().unwrap();
        assert_eq!(holding(dir), [0; 0], "{command}");
    }
    assert!(!bench.path().join("m").exists());
}

#[tokio::test]
async fn what_is_cancelled_may_tidy_up_also_where_it_was_stopped() {
    let bench = Bench::new();
    // It has a fifth of a second, which a loaded machine may not give to each.
    for _ in 0..20 {
        let script = "trap 'echo tidied; exit' TERM; echo up; kill -STOP $$; sleep 300";
        let running = bench.start(script).await;
        let stat = format!("/proc/{}/stat", running.pid());
        eventually("it is stopped", || {
            std::fs::read_to_string(&stat).is_ok_and(|it| it.contains(") T "))
        })
        .await;
        running.cancel();
        let outcome = running.outcome().await;
        assert!(outcome.cancelled, "{outcome:?}");
        if outcome.output.starts_with("up\ntidied\n") {
            return;
        }
    }
    panic!("none was told to end before it was killed");
}

#[tokio::test]
async fn what_cleared_its_environment_and_ignores_signals_is_cancelled() {
    let bench = Bench::new();
    // Found by its name: no other run of the tests may have the same.
    let sleep = format!("sleep 3310.{}", std::process::id());
    let line = sleep.replace(' ', "\0");
    let script = format!("(trap '' TERM; exec env -i setsid {sleep}) & wait");
    let running = bench.start(&script).await;
    eventually("it runs", || !holding(&line).is_empty()).await;
    running.cancel();
    assert!(running.outcome().await.cancelled);
    assert!(holding(&line).is_empty());
}

#[tokio::test]
async fn a_command_claims_nothing_of_another_whose_number_begins_like_its_own() {
    let bench = Bench::new();
    let start = |command: &str| bench.start_spec(bench.by_person(command));
    let first = start("echo up; sleep 300").await;
    for _ in 2..10 {
        start("true").await.outcome().await;
    }
    let tenth = start("setsid sleep 3311 & echo hi").await;
    let canceller = tenth.canceller();
    let kept = tenth.outcome().await.background;
    assert!(
        kept.iter().any(|it| it.name.contains("sleep 3311")),
        "{kept:?}"
    );
    first.cancel();
    assert!(first.outcome().await.cancelled);
    assert!(kept.iter().all(|it| alive(it.pid)), "{kept:?}");
    canceller.cancel();
    eventually("it is ended", || kept.iter().all(|it| !alive(it.pid))).await;
}

#[tokio::test]
async fn who_else_holds_the_output_open_holds_up_nobody() {
    let bench = Bench::new();
    let script = "echo up; exec sleep 300";
    let running = bench.start(script).await;
    assert!(running.screen().changed().await);
    // As a process that the command gave it to, and that is not below it.
    let output = format!("/proc/{}/fd/1", running.pid());
    let held = std::fs::File::options().write(true).open(output).unwrap();
    running.cancel();
    let outcome = tokio::time::timeout(HANG_LIMIT, running.outcome()).await;
    assert!(outcome.expect("it ends").cancelled);
    drop(held);
}

#[tokio::test]
async fn what_prints_on_and_on_is_not_waited_for() {
    let bench = Bench::new();
    let script = "(while :; do echo on; done) & echo hi";
    let outcome = tokio::time::timeout(HANG_LIMIT, bench.run(script)).await;
    let outcome = outcome.expect("it ends");
    assert_eq!((outcome.exit, outcome.background.len()), (Some(0), 1));
}

#[tokio::test]
async fn of_many_that_are_left_ten_are_named() {
    let bench = Bench::new();
    let outcome = bench
        .run("for i in {1..12}; do sleep 3312 & done; echo hi")
        .await;
    assert_eq!(outcome.background.len(), 12);
    assert_eq!(outcome.output.matches("sleep 3312").count(), 10);
    assert!(
        outcome.output.ends_with(", 2 more]\n"),
        "{}",
        outcome.output
    );
}

#[tokio::test]
async fn a_dropped_command_is_cancelled() {
    let bench = Bench::new();
    let running = bench.start("setsid sleep 333 & sleep 334").await;
    let pid = running.pid();
    drop(running);
    eventually("the command ends", || !alive(pid)).await;
    let running = bench.start("sleep 335").await;
    let pid = running.pid();
    drop(running.outcome());
    eventually("the command ends", || !alive(pid)).await;
}

const LEAVING: &[(&str, &str)] = &[
    ("sleep 3301 & echo hi", "sleep 3301"),
    ("setsid sleep 3302 & echo hi", "sleep 3302"),
    ("nohup sleep 3303 >/dev/null 2>&1 & echo hi", "sleep 3303"),
    (
        "(setsid sh -c 'sleep 3304 & sleep 3304' &) ; sleep 0.2; echo hi",
        "sleep 3304",
    ),
    ("(trap '' TERM; exec sleep 3305) & echo hi", "sleep 3305"),
    (
        "set -m; (env -i sleep 3306 &) ; sleep 0.2; echo hi",
        "sleep 3306",
    ),
    (
        "(setsid env -i sh -c 'sleep 3313 & sleep 3313' &) ; sleep 0.2; echo hi",
        "sleep 3313",
    ),
];

#[tokio::test]
async fn what_a_model_leaves_is_named_and_ended() {
    let bench = Bench::new();
    // While another command runs, a process without parent and environment could belong to either.
    let other = bench.start("sleep 300").await;
    for (command, name) in LEAVING {
        let outcome = timed(&bench, command, Caller::Agent, 30).await;
        assert_eq!(outcome.exit, Some(0), "{command}");
        assert!(
            outcome
                .output
                .starts_with("hi\n[co ended what it left running: "),
            "{command}: {}",
            outcome.output
        );
        assert!(
            outcome.background.iter().any(|it| it.name.contains(name)),
            "{command}: {outcome:?}"
        );
        for left in &outcome.background {
            assert!(!alive(left.pid), "{command}: {left:?}");
        }
    }
    assert!(alive(other.pid()));
}

/// `/proc` shows a process as a zombie when its first thread has ended, also while other threads run.
#[tokio::test]
async fn what_runs_on_without_its_first_thread_is_named_and_ended() {
    let bench = Bench::new();
    let threads = "import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(300,)).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)";
    let script = format!(
        "python3 -c \"{threads}\" & until grep -q '^State:.Z' /proc/$!/status; do :; done; echo hi $!"
    );
    let outcome = timed(&bench, &script, Caller::Agent, 30).await;
    let named = outcome.background.iter().map(|left| (left.pid, &left.name));
    let [(pid, name)] = named.collect::<Vec<_>>()[..] else {
        panic!("{outcome:?}");
    };
    assert!(name.contains("python3 -c import"), "{outcome:?}");
    assert!(outcome.output.starts_with(&format!("hi {pid}\n")));
    assert!(!alive(pid), "{outcome:?}");
}

/// A command that joined the backend's group could stop the backend and so prevent its own end.
#[tokio::test]
async fn a_command_has_a_session_of_its_own() {
    let bench = Bench::new();
    let outcome = bench.run("ps -o pid=,pgid=,sid= -p $$; echo $$").await;
    let mut words = outcome.output.split_ascii_whitespace();
    let own = words.next_back();
    assert!(
        words.clone().count() == 3 && words.all(|it| Some(it) == own),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn what_a_person_leaves_is_named_and_kept() {
    let bench = Bench::new();
    for (command, name) in LEAVING {
        let running = bench.start_spec(bench.by_person(command)).await;
        let canceller = running.canceller();
        let outcome = running.outcome().await;
        assert!(
            outcome.output.starts_with("hi\n[still running: "),
            "{command}: {}",
            outcome.output
        );
        let status = outcome.status();
        assert!(
            outcome.kept && status.contains("; still running: "),
            "{status}"
        );
        let left = outcome.background;
        assert!(
            left.iter().any(|it| it.name.contains(name)),
            "{command}: {left:?}"
        );
        assert!(left.iter().all(|it| alive(it.pid)), "{command}: {left:?}");
        canceller.cancel();
        for it in left {
            eventually("cancelling ends what was kept", || !alive(it.pid)).await;
        }
    }
}

#[tokio::test]
async fn where_nothing_is_left_any_more_its_canceller_says_so() {
    let bench = Bench::new();
    nix::unistd::mkfifo(&bench.path().join("gate"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let waits = bench.by_person("read line < gate & echo hi");
    let running = bench.start_spec(waits).await;
    let canceller = running.canceller();
    assert!(running.outcome().await.kept);
    assert!(!canceller.is_cancelled());
    std::fs::write(bench.path().join("gate"), "go\n").unwrap();
    canceller.cancelled().await;
}

#[tokio::test]
async fn what_a_person_leaves_goes_on_printing_and_ends_with_the_executor() {
    let bench = Bench::new();
    let goes_on =
        bench.by_person("(while echo again; do echo >> ticks; sleep 0.05; done) & echo hi");
    let outcome = bench.run_spec(goes_on).await;
    let left = outcome.background[0].pid;
    let ticks = bench.path().join("ticks");
    let size = || std::fs::metadata(&ticks).map_or(0, |it| it.len());
    let before = size();
    eventually("it goes on", || size() > before + 5).await;
    assert!(alive(left));
    bench.executor.shutdown().await;
    eventually("it ends", || !alive(left)).await;
}

#[tokio::test]
async fn a_time_out_ends_what_left_the_group() {
    let bench = Bench::new();
    for caller in [Caller::Agent, Caller::Person] {
        let outcome = timed(
            &bench,
            "setsid sleep 3307 & nohup sleep 3308 & sleep 30",
            caller,
            1,
        )
        .await;
        assert!(outcome.timed_out);
        assert!(holding(bench.path().to_str().unwrap()).is_empty());
    }
}

#[tokio::test]
async fn shutdown_ends_all_and_starts_no_more() {
    let bench = Bench::new();
    let mut started = Vec::new();
    for command in [
        "sleep 341",
        "trap '' TERM; sleep 342",
        "setsid sleep 343 & sleep 344",
    ] {
        started.push(bench.start(&format!("echo up; {command}")).await);
    }
    for running in &started {
        assert!(running.screen().changed().await);
    }
    bench.executor.shutdown().await;
    for running in started {
        let pid = running.pid();
        // On a loaded machine, the end of the commands may take longer than a shutdown waits.
        assert!(running.outcome().await.cancelled);
        assert!(!alive(pid));
    }
    assert!(holding(bench.path().to_str().unwrap()).is_empty());
    let error = bench.refused(bench.spec("true")).await;
    assert!(matches!(error, Error::Closed));
}

#[test]
fn a_runtime_that_ends_takes_its_commands_along() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (pid, bench) = runtime.block_on(async {
        let bench = Bench::new();
        let running = bench.start("sleep 351 | sleep 352").await;
        let pid = running.pid();
        tokio::spawn(running.outcome());
        (pid, bench)
    });
    drop(runtime);
    let waiting = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    waiting.block_on(eventually("the command ends", || !alive(pid)));
    drop(bench);
}
