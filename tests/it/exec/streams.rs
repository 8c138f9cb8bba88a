//! Commands whose input stays open, and commands in a terminal.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use co_exec::{Confinement, GrantedPlaces, InputError, RunningCommand, Streams, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Bench, TERMINAL, Watched, alive, eventually};

#[test]
fn what_no_program_takes_of_a_terminals_input_holds_up_nobody() {
    // On a thread of its own: what never lets go of one cannot be timed there.
    let (tell, told) = std::sync::mpsc::channel();
    let run = async move {
        let bench = Bench::new();
        let mut spec = bench.spec("head -n 2");
        spec.stdin = Some(b"a line\n".repeat(1 << 19));
        let outcome = Watched::start(&bench, spec).await.running.outcome().await;
        tell.send(outcome.exit).unwrap();
    };
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    std::thread::spawn(move || runtime.block_on(run));
    assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(Some(0)));
}

#[tokio::test]
async fn only_a_terminal_is_one() {
    let bench = Bench::new();
    let test = "test -t 0 && test -t 1 && test -t 2";
    let outcome = bench.start_on(test, TERMINAL).await.outcome().await;
    assert_eq!(outcome.exit, Some(0), "{}", outcome.output);
    assert!(outcome.ended.is_some());
    for fd in 0..3 {
        let outcome = bench.run(&format!("test -t {fd}")).await;
        assert_eq!(outcome.exit, Some(1), "{fd}");
    }
    assert_eq!(bench.run("echo hi").await.output, "hi\n");
}

#[tokio::test]
async fn a_terminal_controls_its_session_and_has_a_size() {
    let bench = Bench::new();
    let outcome = bench
        .start_on("stty size </dev/tty; ps -o sid=,pgid=,pid= -p $$", TERMINAL)
        .await
        .outcome()
        .await;
    let mut lines = outcome.output.lines();
    assert_eq!(lines.next(), Some("23 91"), "{}", outcome.output);
    let ids: Vec<_> = lines.next().unwrap().split_whitespace().collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2], "{ids:?}");
    assert_eq!(bench.run("true </dev/tty").await.exit, Some(1));
}

#[tokio::test]
async fn the_end_of_a_terminal_is_no_error() {
    let bench = Bench::new();
    let outcome = bench
        .start_on("echo hi; exit 3", TERMINAL)
        .await
        .outcome()
        .await;
    assert_eq!((outcome.exit, outcome.bytes), (Some(3), 4), "hi, CR, LF");
    assert!(outcome.output.starts_with("hi\n"), "{:?}", outcome.output);
    assert!(outcome.background.is_empty() && !outcome.timed_out);
}

#[tokio::test]
async fn what_is_typed_arrives_and_a_new_size_is_told() {
    let bench = Bench::new();
    let script = "trap 'stty size' WINCH; echo ready; while read -r line; do echo \"<$line>\"; done; echo over";
    let mut watched = Watched::start(&bench, bench.spec(script)).await;
    watched.until("ready").await;
    let input = watched.input();
    input.write(b"one \xe6\xbc\xa2\n".to_vec()).unwrap();
    watched.until("<one 漢>").await;
    input.resize(TerminalSize {
        columns: 40,
        rows: 10,
    });
    input.write(b"two\n".to_vec()).unwrap();
    watched.until("10 40").await;
    input.close().unwrap();
    watched.until("over").await;
    let outcome = watched.running.outcome().await;
    assert_eq!(outcome.exit, Some(0));
    assert_eq!(input.write(b"late".to_vec()), Err(InputError::Closed));
}

#[tokio::test]
async fn control_c_reaches_the_foreground() {
    let bench = Bench::new();
    let mut watched = Watched::start(&bench, bench.spec("echo ready; exec sleep 3501")).await;
    watched.until("ready").await;
    // A bash that is about to become another program forgets what it was sent.
    let comm = format!("/proc/{}/comm", watched.running.pid());
    let sleeps = || std::fs::read_to_string(&comm).is_ok_and(|name| name == "sleep\n");
    eventually("it is sleep", sleeps).await;
    watched.input().write(vec![3]).unwrap();
    let outcome = watched.running.outcome().await;
    assert_eq!(outcome.signal, Some(2), "{}", outcome.output);
}

#[tokio::test]
async fn cancelling_ends_all_of_a_terminal() {
    let bench = Bench::new();
    // Found by its name: no other run of the tests may have the same.
    let own = format!("3502.{}", std::process::id());
    let script = format!(
        "set -m; trap '' HUP TERM; sleep {own} & setsid sleep 3503 & echo pids $! $$ end; wait"
    );
    let mut watched = Watched::start(&bench, bench.spec(&script)).await;
    watched.until(" end").await;
    let pids: Vec<i32> = watched
        .seen
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert_eq!(pids.len(), 2, "{}", watched.seen);
    watched.running.cancel();
    let outcome = watched.running.outcome().await;
    assert!(outcome.cancelled);
    eventually("the end of all of it", || {
        pids.iter().all(|pid| !alive(*pid)) && super::holding(&format!("sleep\0{own}")).is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_flood_in_a_terminal_shows_its_end() {
    let bench = Bench::new();
    let mut watched = Watched::start(&bench, bench.spec("seq 500000")).await;
    // Nobody takes anything until it is over: 500,000 lines are more than is kept.
    eventually("the end of the flood", || {
        watched
            .running
            .screen()
            .take()
            .is_some_and(|it| it.lines.iter().any(|line| line == "500000"))
    })
    .await;
    watched.until("500000\r\n").await;
    assert!(watched.seen.len() < 64 << 10, "{}", watched.seen.len());
    assert!(watched.seen.starts_with('\x18'));
}

#[tokio::test]
async fn an_open_input_is_written_to_and_closed() {
    let bench = Bench::new();
    let mut spec = bench.spec("read -r one; echo \"1:$one\"; cat; echo over");
    spec.stdin = Some(b"first\n".to_vec());
    let started = bench.executor.start_on(spec, Streams::Open).await;
    let running = started.unwrap();
    let (input, screen) = (running.input().unwrap(), running.screen());
    assert!(!input.is_terminal());
    let mut lines: Vec<String> = Vec::new();
    let mut shows = |text: &str| {
        if let Some(patch) = screen.take() {
            lines.truncate(patch.from);
            lines.extend(patch.lines);
        }
        lines.iter().any(|line| line == text)
    };
    eventually("the text given at the start", || shows("1:first")).await;
    input.write(b"second\n".to_vec()).unwrap();
    eventually("what was written later", || shows("second")).await;
    assert!(!shows("over"));
    input.close().unwrap();
    let outcome = running.outcome().await;
    assert_eq!(outcome.output, "1:first\nsecond\nover\n");
    eventually("the end of the input", || {
        input.write(b"late".to_vec()) == Err(InputError::Closed)
    })
    .await;
}

#[tokio::test]
async fn a_command_that_reads_nothing_takes_no_memory_and_ends() {
    let bench = Bench::new();
    let running = bench.start_on("exec sleep 3504", Streams::Open).await;
    let input = running.input().unwrap();
    let mut taken = 0;
    while input.write(vec![b'x'; 60 << 10]).is_ok() {
        taken += 1;
        assert!(taken < 20, "more than a megabyte waits");
    }
    let rest = vec![b'x'; 60 << 10];
    assert_eq!(input.put(rest, true), Err(InputError::Full));
    // Nothing of that was taken, its end neither.
    assert_eq!(input.write(vec![b'x']), Ok(()));
    running.cancel();
    assert!(running.outcome().await.cancelled);
}

#[tokio::test]
async fn what_is_read_makes_room_for_more() {
    let bench = Bench::new();
    let running = bench.start_on("wc -c", Streams::Open).await;
    let input = running.input().unwrap();
    // Four times what may wait at once.
    for _ in 0..64 {
        let piece = vec![b'x'; 64 << 10];
        eventually("room", || input.write(piece.clone()).is_ok()).await;
    }
    eventually("room for the end", || input.close().is_ok()).await;
    assert_eq!(running.outcome().await.output, "4194304\n");
}

#[tokio::test]
async fn a_closed_input_ends_what_reads_it() {
    let bench = Bench::new();
    let running = bench.start_on("cat", Streams::Open).await;
    running.input().unwrap().close().unwrap();
    let outcome = running.outcome().await;
    assert_eq!((outcome.exit, outcome.output.as_str()), (Some(0), ""));
}

/// Writes `text` to the program's standard input, closes it, and returns what the program writes to standard output.
async fn talk(running: &mut RunningCommand, text: &str) -> String {
    let mut pipes = running.take_pipes().unwrap();
    assert!(running.take_pipes().is_none());
    pipes.input.write_all(text.as_bytes()).await.unwrap();
    drop(pipes.input);
    let mut output = String::new();
    pipes.output.read_to_string(&mut output).await.unwrap();
    output
}

#[tokio::test]
async fn the_caller_speaks_with_a_program_whose_output_is_its_standard_error() {
    let bench = Bench::new();
    let mut running = bench
        .start_on("cat; echo over >&2; exit 3", Streams::Pipes)
        .await;
    let text = "a line\n".repeat(30_000);
    let talked = async {
        let mut pipes = running.take_pipes().unwrap();
        let write = async {
            pipes.input.write_all(text.as_bytes()).await.unwrap();
            drop(pipes.input);
        };
        let mut output = String::new();
        let (_, ()) = tokio::join!(pipes.output.read_to_string(&mut output), write);
        output
    };
    assert_eq!(talked.await, text);
    let outcome = running.outcome().await;
    assert_eq!(
        (outcome.exit, outcome.bytes),
        (Some(3), 5),
        "{}",
        outcome.output
    );
    assert!(outcome.output.starts_with("over\n"));
}

/// The level of another agent: its own places, and no network but the port that the caller watches.
#[tokio::test]
async fn an_agent_has_its_places_and_reaches_only_its_caller() {
    let bench = Bench::with_launcher(|_| {});
    let outside = tempfile::tempdir().unwrap();
    for name in ["own", "read"] {
        std::fs::create_dir(outside.path().join(name)).unwrap();
    }
    std::fs::write(outside.path().join("read/file"), "readable").unwrap();
    std::fs::write(outside.path().join("secret"), "hunter2").unwrap();
    let machine = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = machine.local_addr().unwrap().port();
    let script = format!(
        "cd {}; cat read/file; echo; echo x > own/file && echo wrote; cat secret; echo x > read/more; echo x > beside; \
         read -r line; echo \"$line\" > \"$OLDPWD/work\" && echo worked; \
         exec 3<>/dev/tcp/127.0.0.1/17480 && read -r told <&3 && echo \"$told\"; exec 4<>/dev/tcp/127.0.0.1/{port}",
        outside.path().display()
    );
    let workspace = bench.path().canonicalize().unwrap();
    let mut spec = bench.spec(&script);
    spec.cwd = workspace.clone();
    spec.confinement = Confinement::Agent {
        workspace: workspace.clone(),
        places: GrantedPlaces {
            read: vec![outside.path().join("read")],
            write: vec![outside.path().join("own")],
        },
        whole_network: false,
    };
    let started = bench
        .executor
        .start_listening(spec, Streams::Pipes, &["127.0.0.1:17480".parse().unwrap()])
        .await;
    let (mut running, listeners) = started.unwrap();
    let listener = listeners.into_iter().next().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _): (TcpStream, _) = listener.accept().unwrap();
        stream.write_all(b"from the caller\n").unwrap();
    });
    let output = talk(&mut running, "typed\n").await;
    let outcome = running.outcome().await;
    assert_eq!(
        output, "readable\nwrote\nworked\nfrom the caller\n",
        "{}",
        outcome.output
    );
    server.join().unwrap();
    assert_eq!(
        std::fs::read_to_string(workspace.join("work")).unwrap(),
        "typed\n"
    );
    assert!(outside.path().join("own/file").exists());
    assert!(!outside.path().join("read/more").exists() && !outside.path().join("beside").exists());
    assert!(!outcome.output.contains("hunter2"));
    machine.set_nonblocking(true).unwrap();
    assert!(machine.accept().is_err(), "the machine is another network");
    assert_eq!(outcome.level, "agent");
}

#[tokio::test]
async fn an_agent_is_refused_where_secrets_cannot_be_hidden() {
    let bench = Bench::with_launcher(|setup| {
        setup.settings.namespaces = false;
    });
    let workspace = bench.path().canonicalize().unwrap();
    for whole_network in [false, true] {
        let mut spec = bench.spec("echo started");
        spec.cwd = workspace.clone();
        spec.confinement = Confinement::Agent {
            workspace: workspace.clone(),
            places: GrantedPlaces::default(),
            whole_network,
        };
        let started = bench.executor.start_on(spec, Streams::Pipes).await;
        let refusal = started.err().unwrap().to_string();
        assert!(
            refusal.contains("secrets in the workspace cannot be hidden from an agent or a tool server here: sandbox_namespaces is off")
                && refusal.contains("confinement = 'none'"),
            "{refusal}"
        );
    }
}
