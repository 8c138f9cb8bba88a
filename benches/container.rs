//! The cost of a command in a container, beside the engine's own command line, in turns in one run.
//!
//! `python3 scripts/containers.py cargo bench --bench container`

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use co_exec::{
    Caller, CommandSpec, Confinement, Environment, ExecSettings, Executor, ExecutorSetup, Program,
    ShownSecrets,
};

const ROUNDS: usize = 15;
const FOLLOWING: usize = 5;

fn main() -> std::process::ExitCode {
    let Some(engines) = std::env::var_os("CO_TEST_ENGINES").map(PathBuf::from) else {
        let said = "run it by scripts/containers.py, which starts the engines\n";
        let _ = std::io::stderr().lock().write_all(said.as_bytes());
        return std::process::ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    for name in ["docker", "podman"] {
        let program = engines.join(name).join(name);
        let report = runtime.block_on(engine(name, &program));
        let _ = std::io::stdout().lock().write_all(report.as_bytes());
    }
    std::process::ExitCode::SUCCESS
}

async fn engine(name: &str, program: &Path) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let (mut first, mut following) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut settings = ExecSettings::new(dir.path().join("spill"));
        settings.container.engine = program.display().to_string();
        settings.container.image = "co-bash:test".to_owned();
        let executor = Executor::new(ExecutorSetup::new(settings)).expect("an executor");
        let ours = ours(&executor, dir.path()).await;
        // podman without systemd waits for many seconds after a command that it runs in the foreground.
        if name == "docker" {
            first.push((ours, by_hand(program, &run(dir.path()))));
        }
        let stays = "co-bench-stays";
        let mut keep = run(dir.path());
        keep.splice(1..2, ["--detach", "--name", stays].map(str::to_owned));
        keep.truncate(keep.len() - 2);
        keep.extend(["-c".to_owned(), "sleep 60".to_owned()]);
        by_hand(program, &keep);
        for _ in 0..FOLLOWING {
            let ours = self::ours(&executor, dir.path()).await;
            let exec = ["exec", stays, "bash", "-c", "true"].map(str::to_owned);
            following.push((ours, by_hand(program, &exec)));
        }
        by_hand(program, &["rm", "--force", stays].map(str::to_owned));
        executor.shutdown().await;
    }
    let mut report = String::new();
    for (what, pairs) in [("first command", first), ("following ones", following)] {
        if pairs.is_empty() {
            continue;
        }
        let mut ratios: Vec<f64> = pairs
            .iter()
            .map(|(ours, hand)| ours.as_secs_f64() / hand.as_secs_f64())
            .collect();
        ratios.sort_by(f64::total_cmp);
        let mut times: Vec<Duration> = pairs.iter().map(|(ours, _)| *ours).collect();
        times.sort();
        let ratio = ratios[ratios.len() / 2];
        let time = times[times.len() / 2];
        let _ = writeln!(report, "{name}: {what}: {time:.1?}, {ratio:.2} x by hand");
    }
    report
}

/// The options that co gives, for a command that ends.
fn run(workspace: &Path) -> Vec<String> {
    let mount = format!("type=bind,source={},target=/workspace", workspace.display());
    [
        "run",
        "--rm",
        "--pull=never",
        "--init",
        "--network",
        "none",
        "--memory",
        "1g",
        "--memory-swap",
        "1g",
        "--cpus",
        "1",
        "--pids-limit",
        "256",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "--user",
        "1000:1000",
        "--tmpfs",
        "/tmp:rw,exec,size=268435456,mode=1777",
        "--workdir",
        "/workspace",
        "--read-only",
        "--mount",
        &mount,
        "--entrypoint",
        "bash",
        "co-bash:test",
        "-c",
        "true",
    ]
    .map(str::to_owned)
    .into()
}

fn by_hand(program: &Path, args: &[String]) -> Duration {
    let began = Instant::now();
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    let done = command.output().expect("the engine");
    assert!(done.status.success(), "{done:?}");
    began.elapsed()
}

async fn ours(executor: &Executor, workspace: &Path) -> Duration {
    let began = Instant::now();
    let spec = CommandSpec {
        program: Program::Shell("true".to_owned()),
        cwd: workspace.to_owned(),
        caller: Caller::Agent,
        stdin: None,
        timeout: Duration::from_secs(60),
        confinement: Confinement::Container {
            workspace: workspace.to_owned(),
            shown: ShownSecrets::Everything,
            read_only: false,
        },
        environment: Environment::default(),
        extra_env: Vec::new(),
    };
    let running = executor.start(spec).await.expect("a command");
    let outcome = running.outcome().await;
    assert!(outcome.ok(), "{outcome:?}");
    began.elapsed()
}
