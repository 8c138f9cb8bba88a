//! Limits that a person sets.

use std::collections::HashSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use co_exec::{
    Caller, CommandOutcome, CommandSpec, Confinement, Error, ExceededLimit, ExecSettings,
    LimitEnforcement,
};

use super::{BACKEND, Bench};

fn limited(change: impl FnOnce(&mut ExecSettings)) -> Bench {
    Bench::with_launcher(|setup| change(&mut setup.settings))
}

#[tokio::test]
async fn limits_hold_from_the_start() {
    let bench = limited(|settings| {
        settings.cpu_seconds = Some(7);
        settings.open_files = Some(64);
        settings.file_size = Some(1 << 20);
    });
    let outcome = bench.run("ulimit -t; ulimit -n; ulimit -f").await;
    assert_eq!(outcome.output, "7\n64\n1024\n");
    let outcome = bench.run("head -c 2000000 /dev/zero > big").await;
    assert!(!outcome.ok());
    assert_eq!(
        std::fs::metadata(bench.path().join("big")).unwrap().len(),
        1 << 20
    );
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

#[track_caller]
fn assert_limit(outcome: &CommandOutcome, limit: ExceededLimit) {
    assert_eq!(outcome.limit, Some(limit), "{outcome:?}");
}

/// Takes memory in pieces, and then waits.
const TAKES: &str = "python3 -c 'import os, time
if os.environ.get(\"FORK\"): os.fork()
x = [bytearray(b\"x\") * (1 << 20) for i in range(100)]
time.sleep(300)'";

#[tokio::test]
async fn a_models_command_that_takes_too_much_memory_is_ended_and_told() {
    let bench = limited(|settings| settings.memory = Some(150 << 20));
    let fork = format!("FORK=1 {TAKES}");
    let outcome = bench.run(&fork).await;
    assert_limit(&outcome, ExceededLimit::Memory(150 << 20));
    let told = "[ended: it took more than 150 MiB of memory]\n";
    assert!(outcome.output.ends_with(told), "{outcome:?}");
    assert!(outcome.status().starts_with("ended: it took more than"));
    assert!(!outcome.ok());
    // Memory that two processes share counts once, and each process alone uses less.
    let shares = "python3 -c 'import os, time
x = [bytearray(b\"x\") * (1 << 20) for i in range(100)]
os.fork()
time.sleep(2)'";
    assert_eq!(bench.run(shares).await.limit, None);
    let by_person = bench.by_person(&fork.replace("300", "2"));
    assert!(bench.run_spec(by_person).await.ok());
}

#[tokio::test]
async fn shared_memory_page_tables_and_the_buffers_of_sockets_count() {
    let most = 100 << 20;
    let bench = limited(|settings| settings.memory = Some(most));
    let shared = "import mmap
x = mmap.mmap(-1, 150 << 20)
for at in range(0, len(x), 4096): x[at] = 1";
    // It reads one byte for each page of its tables, and all of them are the same page of zeros.
    let tables = "import mmap
x = mmap.mmap(-1, 100 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ)
for at in range(0, len(x), 2 << 20): x[at]";
    let sockets = "import socket
pairs = [socket.socketpair() for _ in range(400)]
for end in (end for pair in pairs for end in pair):
    end.setblocking(False)
    try:
        while True: end.send(bytes(1 << 16))
    except BlockingIOError: pass";
    for program in [shared, tables, sockets] {
        let line = format!("/usr/bin/python3 -c \"{program}\nimport time; time.sleep(300)\"");
        let outcome = bench.run(&line).await;
        assert_limit(&outcome, ExceededLimit::Memory(most));
    }
}

#[tokio::test]
async fn files_in_memory_count() {
    let most = 100 << 20;
    let bench = limited(|settings| settings.memory = Some(most));
    let outcome = bench
        .run_spec(bench.read_only("yes | head -c 120000000 > $TMPDIR/a; sleep 300"))
        .await;
    assert_limit(&outcome, ExceededLimit::Memory(most));
}

#[tokio::test]
async fn memory_counts_also_without_the_first_thread() {
    let bench = limited(|settings| settings.memory = Some(50 << 20));
    let takes = "python3 -c \"import ctypes, os, threading, time
def take():
    x = [bytearray(b'x') * (1 << 20) for i in range(100)]
    time.sleep(300)
threading.Thread(target=take).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)\"";
    let mut spec = bench.spec(takes);
    spec.timeout = Duration::from_secs(10);
    let outcome = bench.run_spec(spec).await;
    assert_limit(&outcome, ExceededLimit::Memory(50 << 20));
}

#[tokio::test]
async fn a_models_command_that_starts_too_many_processes_is_ended_and_told() {
    let bench = limited(|settings| settings.processes = Some(20));
    let many = "for i in {1..30}; do sleep 300 & done; wait";
    let outcome = bench.run(many).await;
    assert_limit(&outcome, ExceededLimit::Processes(20));
    let few = "for i in {1..10}; do sleep 1 & done; wait";
    assert!(bench.run(few).await.ok());
}

#[tokio::test]
async fn what_fills_its_private_directory_is_ended_and_told() {
    let fill = "yes | head -c 20000000 > $TMPDIR/a; sleep 300";
    // A file that has no name any more.
    let hidden = "for i in 1 2 3; do exec {fd}<>$TMPDIR/a; yes | head -c 5000000 >&$fd; rm $TMPDIR/a; done; sleep 300";
    for (namespaces, line) in [(true, fill), (true, hidden), (false, hidden)] {
        let bench = limited(|settings| {
            settings.tmp_size = Some(8 << 20);
            settings.namespaces = namespaces;
        });
        let [read_only, workspace] = bench.levels();
        let mut spec = bench.spec(line);
        spec.confinement = if namespaces { workspace } else { read_only };
        let outcome = bench.run_spec(spec).await;
        if outcome.level == "none" {
            eprintln!("nothing is confined here");
            return;
        }
        assert_limit(&outcome, ExceededLimit::Disk(8 << 20));
        let told = "[ended: it took more than 8 MiB in its TMPDIR]\n";
        assert!(outcome.output.ends_with(told), "{outcome:?}");
    }
}

/// A command in a trial, with a workspace and a layer that it makes.
fn trial(bench: &Bench, line: &str) -> CommandSpec {
    let [workspace, layer, caches] = ["ws", "layer", "caches"].map(|name| bench.path().join(name));
    for dir in [&workspace, &layer, &caches] {
        std::fs::create_dir(dir).unwrap();
    }
    CommandSpec {
        cwd: workspace.clone(),
        confinement: Confinement::Trial {
            workspace,
            layer,
            ignored: None,
            caches: Some(caches),
            places: co_exec::GrantedPlaces::default(),
        },
        ..bench.spec(line)
    }
}

#[tokio::test]
async fn the_shared_memory_of_a_trial_counts() {
    let most = 200 << 20;
    let bench = limited(|settings| settings.memory = Some(most));
    let line = "head -c 300000000 /dev/zero > /dev/shm/a; sleep 300";
    let outcome = bench.run_spec(trial(&bench, line)).await;
    let memory = Some(ExceededLimit::Memory(most));
    assert_eq!(outcome.limit, memory, "{outcome:?}");
}

/// Programs that take shared memory, which shows in no process. They take far more than the limit, because co counts the shared
/// memory of the whole machine, and other tests may free some meanwhile.
const HIDE_MEMORY: [&str; 4] = [
    // A file that nobody maps.
    "file = os.memfd_create('x')\nfor _ in range(700): os.write(file, bytes(1 << 20))",
    // Files that nobody has open.
    "one, other = socket.socketpair()\nfor _ in range(25):\n file = os.memfd_create('x')\n for _ in range(30): \
     os.write(file, bytes(1 << 20))\n socket.send_fds(one, [b'x'], [file])\n os.close(file)",
    // A file of which one page is mapped.
    "file = os.memfd_create('x')\nfor _ in range(700): os.write(file, bytes(1 << 20))\nx = mmap.mmap(file, 4096)\n\
     os.close(file)",
    // Pages that the process lets go of.
    "x = mmap.mmap(-1, 700 << 20)\nfor at in range(0, len(x), 1 << 20):\n x[at:at + (1 << 20)] = bytes(1 << 20)\n \
     x.madvise(mmap.MADV_DONTNEED, at, 1 << 20)",
];

#[tokio::test]
async fn memory_that_shows_in_no_process_counts() {
    let most = 200 << 20;
    for program in HIDE_MEMORY {
        let bench = limited(|settings| settings.memory = Some(most));
        let line = format!(
            "/usr/bin/python3 -c \"import mmap, os, socket, time\n{program}\ntime.sleep(300)\""
        );
        let mut spec = trial(&bench, &line);
        assert_limit(
            &bench.run_spec(spec.clone()).await,
            ExceededLimit::Memory(most),
        );
        let [_, workspace] = bench.levels();
        (spec.confinement, spec.cwd) = (workspace, bench.path().to_owned());
        assert_limit(&bench.run_spec(spec).await, ExceededLimit::Memory(most));
    }
}

#[tokio::test]
async fn a_trial_that_writes_too_much_is_ended_and_told() {
    let fill = "yes | head -c 20000000 > a; sleep 300";
    // Files that have no name any more.
    let nameless =
        "for i in 1 2 3; do exec {fd}<>a; yes | head -c 5000000 >&$fd; rm a; done; sleep 300";
    // A directory that nobody can list.
    let closed = "mkdir d; yes | head -c 20000000 > d/a; chmod 0 d; sleep 300";
    let many = "mkdir d; cd d; for ((i = 0; i < 1001; i++)); do : > $i; done; sleep 300";
    let cached = "yes | head -c 20000000 > $XDG_CACHE_HOME/a; sleep 300";
    let many_cached = "cd $XDG_CACHE_HOME; for ((i = 0; i < 101; i++)); do : > $i; done; sleep 300";
    let bytes = ExceededLimit::Changes(8 << 20);
    for (line, limit) in [
        (fill, bytes),
        (nameless, bytes),
        (closed, bytes),
        (many, ExceededLimit::ChangedFiles(1000)),
        (cached, ExceededLimit::Caches(9 << 20)),
        (many_cached, ExceededLimit::CachedFiles(100)),
    ] {
        for caller in [Caller::Agent, Caller::Person] {
            let bench = limited(|settings| {
                settings.trial_size = Some(8 << 20);
                settings.trial_files = Some(1000);
                settings.trial_cache = Some(9 << 20);
            });
            let spec = CommandSpec {
                caller,
                ..trial(&bench, line)
            };
            let outcome = bench.run_spec(spec).await;
            // Otherwise an ordinary user cannot remove it.
            let closed = bench.path().join("layer/upper/d");
            let _ = std::fs::set_permissions(closed, Permissions::from_mode(0o700));
            assert_eq!(outcome.level, "trial", "{outcome:?}");
            assert_eq!(outcome.limit, Some(limit), "{line}: {outcome:?}");
            let told = format!("[ended: it took {limit}]\n");
            assert!(outcome.output.ends_with(&told), "{outcome:?}");
        }
    }
    assert_eq!(bytes.to_string(), "more than 8 MiB of changed files");
}

#[tokio::test]
async fn the_private_directory_of_what_only_reads_is_in_memory_and_bounded() {
    let line = "stat -fc %T $TMPDIR; yes | head -c 20000000 > $TMPDIR/a; stat -c %s $TMPDIR/a; rm $TMPDIR/a; \
                for ((i = 0; i < 50100; i++)); do : > $TMPDIR/$i || break; done; echo $i; echo gone > $TMPDIR/1; cat $TMPDIR/1";
    let bench = limited(|settings| settings.tmp_size = Some(8 << 20));
    let outcome = bench.run_spec(bench.read_only(line)).await;
    assert_eq!(outcome.limit, None, "{outcome:?}");
    let told: Vec<&str> = outcome.output.lines().collect();
    let has = |line: &str| told.contains(&line);
    assert!(
        has("tmpfs") && has("8388608") && has("49999"),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_file_of_what_only_reads_is_bounded_without_namespaces() {
    let bench = limited(|settings| settings.namespaces = false);
    let outcome = bench.run_spec(bench.read_only("ulimit -f")).await;
    // In KiB.
    assert_eq!(outcome.output, "524288\n", "{outcome:?}");
}

/// Returns the directory of the control group in which a command ran; none if it had none of its own.
fn group(outcome: &CommandOutcome) -> Option<PathBuf> {
    let path = outcome.output.trim_end().strip_prefix("0::/")?;
    let own = Path::new(path).file_name()?.to_str()?.starts_with("co-");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    own.then(|| Path::new(line.unwrap().split(' ').nth(4).unwrap()).join(path))
}

#[tokio::test]
async fn a_models_command_has_a_control_group_of_its_own_where_one_can_be_had() {
    let bench = limited(|_| {});
    let show = "grep '^0::' /proc/self/cgroup";
    let outcome = bench.run(show).await;
    let Some(dir) = group(&outcome) else {
        eprintln!("no control group can be made here: {outcome:?}");
        return;
    };
    assert!(dir.parent().unwrap().exists() && !dir.exists());
    let outcome = bench.run_spec(bench.by_person(show)).await;
    assert_eq!(group(&outcome), None, "{outcome:?}");
}

#[tokio::test]
async fn a_command_in_a_pid_namespace_has_a_control_group_only_for_its_limits() {
    let bench = limited(|_| {});
    let show = "echo $$; grep '^0::' /proc/self/cgroup";
    let outcome = bench.run_spec(bench.read_only(show)).await;
    let Some(shown) = outcome.output.strip_prefix("2\n") else {
        eprintln!("no PID namespace can be had here: {outcome:?}");
        return;
    };
    let limits = matches!(LimitEnforcement::find(), LimitEnforcement::Kernel(_));
    assert_eq!(shown.contains("/co-"), limits, "{outcome:?}");
}

#[tokio::test]
async fn a_command_starts_also_if_its_group_is_removed() {
    let bench = limited(|_| {});
    let show = "grep '^0::' /proc/self/cgroup";
    let Some(dir) = group(&bench.run(show).await) else {
        eprintln!("no control group can be made here");
        return;
    };
    let parent = dir.parent().unwrap().to_owned();
    let done = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&done);
    let removes = std::thread::spawn(move || {
        let mut removed = HashSet::new();
        while !over.load(Ordering::Relaxed) {
            for entry in std::fs::read_dir(&parent).unwrap().flatten() {
                let name = entry.file_name();
                let ours = name.as_encoded_bytes().starts_with(b"co-");
                // Each one only once. Those with processes stay.
                if ours && !removed.contains(&name) && std::fs::remove_dir(entry.path()).is_ok() {
                    removed.insert(name);
                }
            }
        }
        removed.len()
    });
    for _ in 0..20 {
        let outcome = bench.run(show).await;
        assert!(group(&outcome).is_some(), "{outcome:?}");
    }
    done.store(true, Ordering::Relaxed);
    assert!(removes.join().unwrap() > 0);
}

#[test]
fn what_the_system_limits_to_less_stays_so() {
    let state = tempfile::tempdir().unwrap();
    let output = Command::new("bash")
        .args(["-c", "ulimit -n 64; exec \"$0\" exec 'ulimit -n'", BACKEND])
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
        .args([
            "-c",
            "ulimit -f 20; exec \"$0\" exec --json \"$1\"",
            BACKEND,
        ])
        .arg("seq 1 10000; echo end; head -c 30000 /dev/zero > big; kill -l $?")
        .current_dir(state.path())
        .env("XDG_STATE_HOME", state.path())
        .output()
        .unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let text = told["output"].as_str().unwrap();
    // The command's own write ends it, as it would anywhere.
    assert!(
        text.contains("\nend\n") && text.contains("XFSZ\n"),
        "{told}"
    );
    assert_eq!(told["spill"], serde_json::Value::Null);
    let kept = std::fs::read_dir(state.path().join("co-nvim/output")).unwrap();
    assert_eq!(kept.count(), 0);
}

type Change = fn(&mut ExecSettings);

#[tokio::test]
async fn limits_want_a_launcher_and_settings_have_ranges() {
    let bench = Bench::with(|setup| setup.settings.open_files = Some(64));
    let error = bench.refused(bench.spec("true")).await;
    assert!(matches!(error, Error::Sandbox(_)));
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
        ("`shell_processes` is 0, ", |it| it.processes = Some(0)),
        ("`shell_tmp_size` is 0, ", |it| it.tmp_size = Some(0)),
        ("`unasked_memory` is 0, ", |it| it.unasked_memory = Some(0)),
        ("`unasked_processes` is 0, ", |it| {
            it.unasked_processes = Some(0);
        }),
        ("`unasked_open_files` is 7, ", |it| {
            it.unasked_open_files = Some(7);
        }),
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
        let mut settings = ExecSettings::new("/tmp".into());
        assert!(settings.check().is_ok());
        change(&mut settings);
        let error = settings.check().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{expected}: {error}");
    }
}
