//! Secrets that another program moves, makes or removes between the survey and the start of a command, and while it runs: the
//! model never gets one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use co_exec::{
    Caller, CommandOutcome, CommandSpec, Confinement, Error, Launcher, Network, RunningCommand,
    ShownSecrets,
};
use tempfile::TempDir;

use super::hostile::python;
use super::scene::{Scene, stdout};
use super::trial::users;
use super::user_home::UserHome;
use crate::exec::Bench;
use crate::support::BACKEND;
use crate::support::runner::OLDER;

const SECRET: &str = "KEY=hunter2\n";
/// Prints each secret of a workspace if it can.
const READ: &str =
    "cat .env app/.env app2/.env conf/.env secrets secrets/* app/plain other/.env 2>/dev/null";

/// Waits until the file `flag` says so. A trial may not see a new file.
const WAIT: &str = "echo ready; while grep -q wait flag; do :; done";

/// The levels that hide secrets, and whether there are namespaces.
const LEVELS: [(&str, bool); 4] = [
    ("read-only", true),
    ("read-only", false),
    ("workspace", true),
    ("trial", true),
];

/// A workspace whose launcher first runs a script in it, and an executor.
struct Place {
    bench: Bench,
    ws: PathBuf,
    layer: PathBuf,
    _dir: TempDir,
}

impl Place {
    fn new(script: &str) -> Self {
        Self::with_namespaces(true, script)
    }

    fn with_namespaces(namespaces: bool, script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let [ws, layer, exe] = ["ws", "layer", "launcher"].map(|name| top.join(name));
        for path in [&ws.join("app"), &ws.join("src"), &layer] {
            fs::create_dir_all(path).unwrap();
        }
        fs::write(ws.join("app/.env"), SECRET).unwrap();
        fs::write(ws.join("src/main.rs"), "fn main() {}\n").unwrap();
        fs::write(ws.join("flag"), "wait\n").unwrap();
        // The probe has the argument 0.
        let text = format!(
            "#!/bin/sh\n[ \"$2\" = 0 ] || (cd '{}' && {script}) >/dev/null 2>&1\nexec '{BACKEND}' \"$@\"\n",
            ws.display()
        );
        // A process that another test starts keeps a file of this one open for a moment, and such a file cannot be run.
        let write = ["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""];
        let written = Command::new("sh").args(write).arg(&exe).arg(text).status();
        assert!(written.unwrap().success());
        let bench = Bench::with_launcher(|setup| {
            setup.launcher = Some(Launcher::new(exe, "/nonexistent".into(), Vec::new()));
            setup.settings.namespaces = namespaces;
        });
        Self {
            bench,
            ws,
            layer,
            _dir: dir,
        }
    }

    fn level(&self, level: &str) -> Confinement {
        let workspace = self.ws.clone();
        match level {
            "read-only" => Confinement::ReadOnly { workspace },
            "workspace" => Confinement::Workspace {
                workspace,
                network: Network::None,
                shown: ShownSecrets::Nothing,
            },
            _ => Confinement::Trial {
                workspace,
                layer: self.layer.clone(),
                ignored: None,
                caches: None,
                places: co_exec::GrantedPlaces::default(),
            },
        }
    }

    async fn start(&self, level: &str, line: &str) -> Result<RunningCommand, Error> {
        let spec = CommandSpec {
            cwd: self.ws.clone(),
            confinement: self.level(level),
            ..self.bench.spec(line)
        };
        self.bench.executor.start(spec).await
    }

    /// Runs a command that prints all secrets that it can read. The error is the reason for a refusal.
    async fn run(&self, level: &str) -> Result<CommandOutcome, String> {
        let line = format!("{READ}; cat src/main.rs");
        match self.start(level, &line).await {
            Ok(running) => Ok(running.outcome().await),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[track_caller]
fn check_no_secret(outcome: &CommandOutcome, level: &str) {
    assert!(!outcome.output.contains("hunter2"), "{level}: {outcome:?}");
}

#[tokio::test]
async fn a_secret_that_moved_once_is_found_again() {
    for move_it in [
        "mv app app2",
        "mv app app2 && ln -s app2 app",
        "mv app/.env app/.env.local",
        "mkdir other && mv app/.env other/ && ln -s ../other/.env app/.env",
        "rm -r app && echo > app",
    ] {
        // Only the first start finds the secret where it was.
        let script = format!("test ! -e ../moved && touch ../moved && {move_it}");
        for level in ["workspace", "trial"] {
            let place = Place::new(&script);
            let outcome = place.run(level).await.unwrap();
            check_no_secret(&outcome, level);
            assert!(!outcome.withheld, "{level}, {move_it}: {outcome:?}");
            assert!(
                outcome.output.contains("fn main"),
                "{level}, {move_it}: {outcome:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_command_is_refused_if_a_secret_moves_each_time() {
    let script = "test -d app && mv app app2 || mv app2 app";
    for level in ["workspace", "trial"] {
        let why = Place::new(script).run(level).await.unwrap_err();
        assert!(
            why.ends_with(
                "/app/.env, because it was moved or replaced each time before the command could start: end the program that does that"
            ),
            "{level}: {why}"
        );
    }
}

#[tokio::test]
async fn what_appears_between_the_survey_and_the_start_is_withheld() {
    for (appears, named) in [
        ("echo KEY=hunter2 > src/.env", "src/.env"),
        ("mkdir -p conf && echo KEY=hunter2 > conf/.env", "conf/.env"),
        // It came and went.
        ("echo KEY=hunter2 > src/.env && rm src/.env", "src/.env"),
    ] {
        for (level, namespaces) in LEVELS {
            let place = Place::with_namespaces(namespaces, appears);
            let outcome = place.run(level).await.unwrap();
            let told = format!("a secret appeared where the command could read: {named}");
            assert!(outcome.withheld, "{level}, {appears}: {outcome:?}");
            assert!(
                outcome.output.contains(&told),
                "{level}, {appears}: {outcome:?}"
            );
            check_no_secret(&outcome, level);
        }
    }
}

#[tokio::test]
async fn a_file_in_the_place_of_a_directory_is_hidden() {
    for (before, replace) in [
        (
            "secrets/token",
            "rm -r secrets && echo KEY=hunter2 > secrets",
        ),
        (
            "secrets",
            "rm secrets && mkdir secrets && echo KEY=hunter2 > secrets/token",
        ),
    ] {
        for (level, namespaces) in LEVELS {
            let place = Place::with_namespaces(namespaces, replace);
            let secret = place.ws.join(before);
            fs::create_dir_all(secret.parent().unwrap()).unwrap();
            fs::write(secret, SECRET).unwrap();
            let outcome = place.run(level).await.unwrap();
            check_no_secret(&outcome, level);
        }
    }
}

#[tokio::test]
async fn a_secret_that_comes_and_goes_beside_a_command_is_withheld() {
    type Step = fn(&Path);
    const ALL: &[&str] = &["read-only", "workspace", "trial"];
    const MOUNTS: &[&str] = &["workspace", "trial"];
    let steps: [(&str, &[&str], Step); 9] = [
        ("the trial could read it by another name", MOUNTS, |ws| {
            fs::rename(ws.join("app"), ws.join("app2")).unwrap();
            fs::rename(ws.join("app2"), ws.join("app")).unwrap();
        }),
        ("it was replaced", MOUNTS, |ws| {
            fs::remove_file(ws.join("app/.env")).unwrap();
            fs::write(ws.join("app/.env"), SECRET).unwrap();
        }),
        // In the overlay of a trial, the file stays covered.
        ("it was removed", &["workspace"], |ws| {
            fs::remove_file(ws.join("app/.env")).unwrap();
        }),
        ("its directory was replaced", MOUNTS, |ws| {
            fs::remove_dir_all(ws.join("app")).unwrap();
            fs::create_dir(ws.join("app")).unwrap();
            fs::write(ws.join("app/.env"), SECRET).unwrap();
        }),
        // A command at the workspace level makes directories itself.
        ("a directory came and went", &["read-only", "trial"], |ws| {
            fs::create_dir(ws.join("src/conf")).unwrap();
            fs::write(ws.join("src/conf/.env"), SECRET).unwrap();
            fs::remove_dir_all(ws.join("src/conf")).unwrap();
        }),
        ("it was in a readable directory", ALL, |ws| {
            fs::rename(ws.join("app/.env"), ws.join("src/plain")).unwrap();
            fs::rename(ws.join("src/plain"), ws.join("app/.env")).unwrap();
        }),
        ("its directory was in a readable one", ALL, |ws| {
            fs::rename(ws.join("app"), ws.join("src/app")).unwrap();
            fs::rename(ws.join("src/app"), ws.join("app")).unwrap();
        }),
        ("it had a second name", ALL, |ws| {
            fs::hard_link(ws.join("app/.env"), ws.join("src/plain")).unwrap();
            fs::remove_file(ws.join("src/plain")).unwrap();
        }),
        ("a readable file took its place", ALL, |ws| {
            fs::rename(ws.join("src/main.rs"), ws.join("app/.env")).unwrap();
        }),
    ];
    for (what, levels, step) in steps {
        for level in levels {
            let place = Place::new("true");
            let running = place.start(level, WAIT);
            let running = running.await.unwrap();
            running.reading().settled(Duration::ZERO).await;
            step(&place.ws);
            fs::write(place.ws.join("flag"), "go\n").unwrap();
            let outcome = running.outcome().await;
            assert!(outcome.withheld, "{what}, {level}: {outcome:?}");
        }
    }
}

#[tokio::test]
async fn what_a_command_makes_itself_at_the_workspace_level_is_not_withheld() {
    let place = Place::new("true");
    let line = "echo A=1 > .env.new; mkdir d; echo A=1 > d/.env; rm -r d; echo A=1 > .env.gone; rm .env.gone; mv app lib; echo made";
    let outcome = place
        .start("workspace", line)
        .await
        .unwrap()
        .outcome()
        .await;
    assert!(
        !outcome.withheld && outcome.output.starts_with("made\n"),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_person_gets_the_output_of_their_command_beside_a_secret_that_appears() {
    let place = Place::new("true");
    let spec = CommandSpec {
        cwd: place.ws.clone(),
        confinement: place.level("workspace"),
        caller: Caller::Person,
        ..place.bench.spec(WAIT)
    };
    let running = place.bench.executor.start(spec).await.unwrap();
    running.reading().settled(Duration::ZERO).await;
    fs::rename(place.ws.join("app"), place.ws.join("app2")).unwrap();
    fs::rename(place.ws.join("app2"), place.ws.join("app")).unwrap();
    fs::write(place.ws.join("flag"), "go\n").unwrap();
    let outcome = running.outcome().await;
    assert!(
        !outcome.withheld && outcome.output.starts_with("ready\n"),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn what_others_change_beside_a_trial_is_not_withheld() {
    let place = Place::new("true");
    let line = format!("{WAIT}; cat src/main.rs");
    let running = place.start("trial", &line).await.unwrap();
    running.reading().settled(Duration::ZERO).await;
    let src = place.ws.join("src");
    // As editors save, and as builds write.
    fs::write(src.join("main.rs~"), "fn main() {}\n").unwrap();
    fs::rename(src.join("main.rs~"), src.join("main.rs")).unwrap();
    for dir in ["new", "target/debug/gone", "target/.fingerprint"] {
        fs::create_dir_all(place.ws.join(dir)).unwrap();
    }
    fs::remove_dir(place.ws.join("target/debug/gone")).unwrap();
    // The mount over it is in the overlay of the trial, and stays.
    fs::remove_file(place.ws.join("app/.env")).unwrap();
    fs::write(place.ws.join("flag"), "go\n").unwrap();
    let outcome = running.outcome().await;
    assert!(
        !outcome.withheld && outcome.output.contains("fn main"),
        "{outcome:?}"
    );
}

#[test]
fn a_launcher_without_an_executor_starts_nothing_if_a_secret_moved() {
    for user in users() {
        let scene = Scene::new(user);
        let [app, app2] = ["app", "app2"].map(|name| scene.ws.join(name));
        fs::create_dir(&app).unwrap();
        fs::write(app.join(".env"), SECRET).unwrap();
        scene.hand_over();
        for level in [scene.workspace(), scene.trial()] {
            for link in [false, true] {
                let line = "cat app/.env app2/.env; echo ran";
                let (mut command, _wrapped) = scene.confined(&level, &["bash", "-c", line]);
                fs::rename(&app, &app2).unwrap();
                if link {
                    std::os::unix::fs::symlink("app2", &app).unwrap();
                }
                let done = command.output().unwrap();
                let _link = fs::remove_file(&app);
                fs::rename(&app2, &app).unwrap();
                let said = String::from_utf8_lossy(&done.stderr);
                assert_eq!(
                    (stdout(&done).as_str(), done.status.code()),
                    ("", Some(126))
                );
                assert!(
                    said.contains("app/.env was moved or replaced before it could be protected"),
                    "{said}"
                );
            }
        }
    }
}

/// Programs that move, make or replace secrets of the workspace that they run in, as fast as they can. They print a line first.
const CHANGES: [(&str, &[&str]); 4] = [
    (
        "rename a directory",
        &[
            "python3",
            "-c",
            "import os\nprint(flush=True)\nwhile True:\n os.rename('app', 'app2')\n os.rename('app2', 'app')",
        ],
    ),
    (
        "rename a file",
        &[
            "python3",
            "-c",
            "import os\nmoves = os.open('moves', os.O_CREAT | os.O_WRONLY)\nprint(flush=True)\ndone = 0\nwhile True:\n \
             os.rename('app/.env', 'app/plain')\n os.rename('app/plain', 'app/.env')\n done += 1\n os.pwrite(moves, b'%d\\n' % done, 0)",
        ],
    ),
    (
        "make and remove",
        &[
            "python3",
            "-c",
            "import os\nprint(flush=True)\nwhile True:\n open('.env', 'w').write('KEY=hunter2\\n')\n os.remove('.env')",
        ],
    ),
    (
        "check out branches",
        &[
            "bash",
            "-c",
            "exec 2>/dev/null; git config user.name a; git config user.email a; mkdir conf; cp app/.env .env; cp app/.env conf; \
             git checkout -q -b other; git add -f .env conf app; git commit -qm second; echo; \
             while :; do git checkout -q main; git checkout -q other; done",
        ],
    ),
];

/// The commands beside each of these programs at each level.
const RUNS: usize = 5;

/// The options of [`OLDER`] for the oldest kernel that can confine. Without namespaces, only the read-only level hides secrets.
const OLDEST: [&str; 3] = ["--no-namespaces", "--no-openat2", "1"];

#[test]
fn no_secret_comes_out_beside_a_program_that_moves_it() {
    // Each other command runs on this kernel.
    let mut on_older = false;
    for user in users() {
        for (what, program) in CHANGES {
            let home = UserHome::new(user);
            let made = "git init -q -b main; git -c user.name=a -c user.email=b commit -q --allow-empty -m first; \
                        mkdir app; echo KEY=hunter2 > app/.env";
            let done = home.command("bash").args(["-ec", made]).status();
            assert!(done.unwrap().success());
            let mut change = home.command(program[0]);
            let change = change.args(&program[1..]).stdout(Stdio::piped());
            let mut change = change.spawn().unwrap();
            let mut began = BufReader::new(change.stdout.take().unwrap());
            began.read_line(&mut String::new()).unwrap();
            let levels = [
                (&["--read-only"][..], &OLDEST[..]),
                (&["--backend", "landlock"], &OLDEST[1..]),
                (&["--try", "--drop"], &OLDEST[1..]),
            ];
            for (level, older) in levels.iter().flat_map(|level| [level; RUNS]) {
                on_older = !on_older;
                let mut exec = home.command(python());
                exec.args(["-c", OLDER]);
                let exec = exec.args(if on_older { *older } else { &["0"] });
                let exec = exec.arg(home.exe()).args(["exec", "--json"]).args(*level);
                let line = format!("cat moves; for i in 1 2 3 4 5; do {READ}; done; cat moves");
                let told = stdout(&exec.arg(line).output().unwrap());
                assert!(
                    !told.contains("hunter2") || stood_still(&told),
                    "{what}, {level:?}: {told}"
                );
            }
            change.kill().unwrap();
            change.wait().unwrap();
        }
    }
}

/// Returns whether the program beside a command did nothing while the command ran, as the command's JSON tells. Until then, the
/// file had a name that is no secret's.
fn stood_still(told: &str) -> bool {
    let told: serde_json::Value = serde_json::from_str(told).unwrap();
    let lines = told["output"].as_str().unwrap().lines();
    let moves: Vec<_> = lines.filter(|line| line.parse::<u64>().is_ok()).collect();
    matches!(moves[..], [before, after] if before == after)
}
