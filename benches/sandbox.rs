//! The cost of confinement: starts in turn, plain and at each level, compared pair by pair.
//!
//! `cargo bench --bench sandbox`; the number of rounds may follow `--`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement prints, and stops where it cannot"
)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use co::trial::Layer;
use co_exec::sandbox::Launcher;
use co_exec::{Confinement, Network, ShownSecrets};

/// A command that does nothing, so that only the start is measured.
const COMMAND: &str = "/bin/true";

/// A way to start a command, and what was measured of it.
struct Way {
    name: &'static str,
    /// The most that it may cost, in plain starts.
    target: f64,
    launcher: Launcher,
    level: Confinement,
    /// The directory of the layers of trials, of which each start makes one.
    layers: Option<PathBuf>,
    times: Vec<Duration>,
    ratios: Vec<f64>,
}

fn main() {
    let rounds = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(500);
    let top = tempfile::tempdir().unwrap();
    let workspace = top.path().canonicalize().unwrap().join("empty");
    std::fs::create_dir(&workspace).unwrap();
    let git = Command::new("git")
        .args(["init", "-q"])
        .current_dir(&workspace)
        .status();
    assert!(git.unwrap().success());
    let exe = PathBuf::from(env!("CARGO_BIN_EXE_co-nvim"));
    let home = std::env::home_dir().unwrap();
    let launcher = Launcher::new(exe.clone(), home.clone(), Vec::new());
    println!("{}", launcher.support().words());
    launcher.report().confined().unwrap();

    let writing = Confinement::Workspace {
        workspace: workspace.clone(),
        network: Network::None,
        shown: ShownSecrets::default(),
    };
    let reading = Confinement::ReadOnly {
        workspace: workspace.clone(),
    };
    let layer = top.path().join("layer");
    std::fs::create_dir(&layer).unwrap();
    let trying = Confinement::Trial {
        workspace: workspace.clone(),
        layer,
        ignored: None,
        caches: None,
        places: co_exec::GrantedPlaces::default(),
    };
    launcher.report().trials(&workspace).unwrap();
    let way = |name, target, launcher: &Launcher, level: &Confinement| Way {
        name,
        target,
        launcher: launcher.clone(),
        level: level.clone(),
        layers: None,
        times: Vec::new(),
        ratios: Vec::new(),
    };
    let real = top.path().canonicalize().unwrap();
    let full = |name: &str, secrets: &[String]| {
        let workspace = real.join(name);
        furnish(&workspace, secrets);
        // A launcher keeps what it knows of one workspace only.
        let launcher = Launcher::new(exe.clone(), home.clone(), Vec::new());
        launcher.report().confined().unwrap();
        (launcher, Confinement::ReadOnly { workspace })
    };
    let near: Vec<String> = [".env", ".env.local", "0/.env", "1/server.key", "2/0/.env"]
        .map(str::to_owned)
        .into();
    let spread: Vec<String> = (0..20).map(|n| format!("{n}/{n}/.env")).collect();
    let (five, searching) = full("near", &near);
    let (twenty, spread) = full("spread", &spread);
    let [five_less, twenty_less] = [&five, &twenty].map(|it| it.clone().namespaces(false));
    let mut ways = vec![
        way("read-only", 8.0, &launcher, &reading),
        way("read-only, 5 secrets near the root", 8.0, &five, &searching),
        way("the same, no namespaces", 8.0, &five_less, &searching),
        way("read-only, 20 secrets spread", 25.0, &twenty, &spread),
        way("the same, no namespaces", 25.0, &twenty_less, &spread),
        way("workspace", 5.0, &launcher, &writing),
        way("trial", 10.0, &launcher, &trying),
        way(
            "workspace, no namespaces",
            5.0,
            &launcher.clone().namespaces(false),
            &writing,
        ),
    ];

    for (name, in_layer, in_workspace) in [
        ("trial with its layer", 0, 0),
        ("the same, 1 GB of ignored files", IGNORED_FILES, 0),
        (
            "the same, also in the workspace",
            IGNORED_FILES,
            IGNORED_FILES,
        ),
    ] {
        let root = real.join(name);
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join(".gitignore"), "target/\n").unwrap();
        build(&root, in_workspace);
        let layers = real.join(format!("{name}, layers"));
        let layer = Layer::new(&layers, &root, None, launcher.removals()).unwrap();
        let trying = layer.confinement(&root);
        let Confinement::Trial { ignored, .. } = &trying else {
            panic!("no trial");
        };
        build(ignored.as_ref().unwrap(), in_layer);
        let launcher = Launcher::new(exe.clone(), home.clone(), Vec::new());
        launcher.report().trials(&root).unwrap();
        ways.push(Way {
            layers: Some(layers),
            ..way(name, 10.0, &launcher, &trying)
        });
    }

    let mut plain = Vec::new();
    for round in 0..rounds + 20 {
        let base = start(&launcher, &Confinement::Plain, None, &workspace);
        let each: Vec<_> = ways
            .iter()
            .map(|way| start(&way.launcher, &way.level, way.layers.as_deref(), &workspace))
            .collect();
        // The first rounds warm caches up.
        if round < 20 {
            continue;
        }
        plain.push(base);
        for (way, time) in ways.iter_mut().zip(each) {
            way.times.push(time);
            way.ratios.push(time.as_secs_f64() / base.as_secs_f64());
        }
    }
    plain.sort_unstable();
    println!("{:<38} {:>8.0?}", "plain", at(&plain, 50));
    for way in &mut ways {
        way.times.sort_unstable();
        way.ratios.sort_by(f64::total_cmp);
        // On a busy machine most of a start is waiting: the fastest tell what it costs.
        let quiet = at(&way.times, 5).as_secs_f64() / at(&plain, 5).as_secs_f64();
        println!(
            "{:<38} {:>8.0?}  {:.2} x plain, pair by pair (quartiles {:.2} to {:.2}); {quiet:.2} x at the fastest twentieth; wanted: {} x",
            way.name,
            at(&way.times, 50),
            at(&way.ratios, 50),
            at(&way.ratios, 25),
            at(&way.ratios, 75),
            way.target,
        );
    }
}

/// Makes 10,000 files in 1,000 directories below 50, and these secrets.
fn furnish(workspace: &Path, secrets: &[String]) {
    let plain = (0..10_000).map(|n| format!("{}/{}/file-{n}", n % 50, n / 50 % 20));
    for name in plain.chain(secrets.iter().cloned()) {
        let path = workspace.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "KEY=value\n").unwrap();
    }
}

/// The number of files of a build, each of 512 KiB.
const IGNORED_FILES: usize = 2_000;

/// Makes files that git ignores. They take no room.
fn build(dir: &Path, files: usize) {
    for number in 0..files {
        let dir = dir.join(format!("target/debug/{}", number % 20));
        std::fs::create_dir_all(&dir).unwrap();
        let file = std::fs::File::create(dir.join(number.to_string())).unwrap();
        file.set_len(512 << 10).unwrap();
    }
}

/// The time from the wish to start a command to its end. With `layers`, it makes the layer of a trial first.
fn start(launcher: &Launcher, level: &Confinement, layers: Option<&Path>, cwd: &Path) -> Duration {
    let path = std::env::var_os("PATH").unwrap();
    let mut env: Vec<(OsString, OsString)> = vec![("PATH".into(), path)];
    let begin = Instant::now();
    let (root, layer) = match (level, layers) {
        (Confinement::Trial { workspace, .. }, Some(layers)) => {
            let layer = Layer::new(layers, workspace, None, launcher.removals()).unwrap();
            (workspace.as_path(), Some(layer))
        }
        _ => (cwd, None),
    };
    let trying = layer.as_ref().map(|layer| layer.confinement(root));
    let (level, cwd) = (trying.as_ref().unwrap_or(level), root);
    let argv = vec![COMMAND.into()];
    let wrapped = level
        .level()
        .map(|level| launcher.wrap(level, argv, &mut env, cwd).unwrap());
    let mut command = match &wrapped {
        Some(wrapped) => {
            wrapped.share_plan().unwrap();
            let mut command = Command::new(&wrapped.argv[0]);
            command.args(&wrapped.argv[1..]);
            command
        }
        None => Command::new(COMMAND),
    };
    command.env_clear().envs(env);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    assert!(command.status().unwrap().success());
    begin.elapsed()
}

/// Returns a percentile of sorted values.
fn at<T: Copy>(sorted: &[T], part: usize) -> T {
    sorted[sorted.len() * part / 100]
}
