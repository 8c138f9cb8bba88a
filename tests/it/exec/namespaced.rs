//! Commands in a PID namespace of their own.

use std::time::Duration;

use co_exec::sandbox::SandboxSupport;
use co_exec::{Caller, CommandOutcome, CommandSpec, Launcher};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{BACKEND, Bench, Watched, alive, eventually, holding};

/// A bench whose commands get a PID namespace.
fn bench() -> Bench {
    let bench = Bench::with_launcher(|_| {});
    let support = bench.executor.launcher().unwrap().support();
    assert!(support.pid_namespaces, "{}", support.words());
    bench
}

#[tokio::test]
async fn a_command_sees_no_process_but_its_own() {
    let bench = bench();
    for confinement in bench.levels() {
        let spec = CommandSpec {
            confinement,
            ..bench.spec("echo $$ $PPID /proc/[0-9]*; cat /proc/1/environ")
        };
        let output = bench.run_spec(spec).await.output;
        let told = "2 1 /proc/1 /proc/2\ncat: /proc/1/environ: Permission denied\n";
        assert!(output.starts_with(told), "{output}");
    }
}

/// Some containers hide a part of `/proc`. There a command cannot have a `/proc` of its own.
#[tokio::test]
async fn with_the_machines_proc_it_still_reaches_no_other_process() {
    let support = SandboxSupport {
        own_proc: false,
        ..bench().executor.launcher().unwrap().support().clone()
    };
    let bench = Bench::with(|setup| {
        let home = "/nonexistent".into();
        let launcher = Launcher::with_support(BACKEND.into(), home, Vec::new(), support);
        setup.launcher = Some(launcher);
    });
    let own = std::process::id();
    let script = format!("[ -d /proc/{own} ] && echo seen; kill -CONT {own}; echo $$; sleep 300 &");
    let outcome = bench.run_spec(bench.read_only(&script)).await;
    assert!(outcome.output.starts_with("seen\n"), "{outcome:?}");
    assert!(
        outcome
            .output
            .contains("No such process\n2\n[co ended what it left running: sleep 300"),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn it_ends_as_it_would_outside() {
    let bench = bench();
    for command in [
        "exit 0",
        "exit 42",
        "exit 255",
        "kill -HUP $$",
        "kill -KILL $$",
        "kill -PIPE $$",
        "kill -SEGV $$",
        "trap 'exit 3' TERM; kill $$",
        "sleep 300 & exit 7",
        "exec true",
        "exec /nonexistent/program",
    ] {
        let how = |outcome: &CommandOutcome| (outcome.exit, outcome.signal);
        let plain = bench.run(command).await;
        let confined = bench.run_spec(bench.read_only(command)).await;
        assert_eq!(how(&confined), how(&plain), "{command}: {confined:?}");
    }
}

#[tokio::test]
async fn a_signal_to_the_launcher_reaches_the_command_once() {
    let bench = bench();
    let script = "trap 'echo told' USR1; trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done";
    let running = bench.start_spec(bench.read_only(script)).await;
    assert!(running.screen().changed().await);
    let launcher = Pid::from_raw(running.pid());
    kill(launcher, Signal::SIGUSR1).unwrap();
    assert!(running.screen().changed().await);
    kill(launcher, Signal::SIGTERM).unwrap();
    let outcome = running.outcome().await;
    assert_eq!(outcome.exit, Some(5), "{outcome:?}");
    assert_eq!(outcome.output.matches("told").count(), 1, "{outcome:?}");
}

#[tokio::test]
async fn a_time_out_tells_every_process_to_end_and_then_ends_all() {
    let bench = bench();
    let script = "(trap 'echo inner; exit' TERM; while :; do sleep 0.01; done) &
        setsid bash -c \"trap '' TERM; exec sleep 3401\" & trap 'echo outer' TERM; wait; wait";
    let mut spec = bench.read_only(script);
    spec.timeout = Duration::from_secs(1);
    let outcome = bench.run_spec(spec).await;
    assert!(outcome.timed_out, "{outcome:?}");
    let count = |word| outcome.output.matches(word).count();
    assert_eq!((count("inner"), count("outer")), (1, 1), "{outcome:?}");
    assert!(holding("sleep\x003401").is_empty());
}

#[tokio::test]
async fn nothing_outlives_the_launcher() {
    let bench = bench();
    let script = "setsid sleep 3402 & echo up; sleep 3402";
    let running = bench.start_spec(bench.read_only(script)).await;
    assert!(running.screen().changed().await);
    kill(Pid::from_raw(running.pid()), Signal::SIGKILL).unwrap();
    let outcome = running.outcome().await;
    assert_eq!(outcome.signal, Some(9), "{outcome:?}");
    eventually("all end", || holding("sleep\x003402").is_empty()).await;
}

#[tokio::test]
async fn process_1_cannot_be_killed_from_inside() {
    let bench = bench();
    let outcome = bench
        .run_spec(bench.read_only("kill -KILL 1; kill -STOP 1; echo on"))
        .await;
    assert_eq!((outcome.output.as_str(), outcome.exit), ("on\n", Some(0)));
}

#[tokio::test]
async fn a_persons_namespace_is_kept_until_its_last_process_ends() {
    let bench = bench();
    let [_, workspace] = bench.levels();
    let start = |command| {
        let mut spec = bench.spec(command);
        (spec.caller, spec.confinement) = (Caller::Person, workspace.clone());
        bench.executor.start(spec)
    };
    let end = |pid| kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    let script = "setsid sleep 3403 > /dev/null 2>&1 & sleep 3403 & echo hi";
    let running = start(script).await.unwrap();
    let canceller = running.canceller();
    let outcome = running.outcome().await;
    let [first, second] = &outcome.background[..] else {
        panic!("{outcome:?}");
    };
    assert!(
        outcome.kept && [first, second].iter().all(|it| it.name == "sleep 3403"),
        "{outcome:?}"
    );
    end(first.pid);
    eventually("one ends", || !alive(first.pid)).await;
    assert!(alive(second.pid) && !canceller.is_cancelled());
    end(second.pid);
    canceller.cancelled().await;

    let running = start("sleep 3404 & echo hi").await.unwrap();
    let canceller = running.canceller();
    let left = running.outcome().await.background;
    assert!(left.len() == 1 && alive(left[0].pid), "{left:?}");
    canceller.cancel();
    eventually("cancelling ends what was kept", || !alive(left[0].pid)).await;
}

#[tokio::test]
async fn its_terminal_is_that_of_its_own_session() {
    let bench = bench();
    let script = "ps -o pid=,pgid=,sid=,tpgid= -p $$; tty < /dev/tty; stty size; trap 'echo told; exit 4' INT; \
        echo up; while sleep 0.1; do :; done";
    let mut watched = Watched::start(&bench, bench.read_only(script)).await;
    watched.until("up").await;
    watched.input().write(b"\x03".to_vec()).unwrap();
    let outcome = watched.running.outcome().await;
    assert_eq!(outcome.exit, Some(4), "{outcome:?}");
    let lines: Vec<&str> = outcome.output.lines().collect();
    let ids: Vec<&str> = lines[0].split_ascii_whitespace().collect();
    assert_eq!(ids, ["2"; 4], "{outcome:?}");
    assert!(lines[1].starts_with("/dev/"), "{outcome:?}");
    assert_eq!(lines[2], "23 91", "{outcome:?}");
}
