//! Secrets of a workspace cannot be opened at the confined levels, by whatever name a hostile command tries.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use co_exec::{Confinement, Network, ShownSecrets};

use super::hostile::python;
use super::scene::{SOMEBODY, Scene, am_root, older, stdout};

const TABLE: &str = include_str!("hidden.py");

/// Files with a secret in them, below the workspace.
const SECRETS: &[&str] = &[
    ".env",
    "app/.env.production",
    "app/deep/er/server.key",
    "secrets/database.yml",
    "secrets/more/token",
    ".aws/credentials",
    "sub/.env",
    "nested/.env.local",
    "conf/plain.txt",
    "keys/k",
    ".git/credentials",
    "with space/\n/.env",
    "tracked/.env",
];

/// A workspace with secrets, links to them, a submodule, a nested repository and 10,000 other files.
fn furnish(scene: &Scene) {
    let ws = &scene.ws;
    for name in SECRETS {
        let path = ws.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "KEY=hunter2\n").unwrap();
    }
    for n in 0..10_000 {
        let dir = ws.join(format!("many/{}", n % 100));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(n.to_string()), "").unwrap();
    }
    symlink("conf/plain.txt", ws.join(".env.staging")).unwrap();
    symlink("keys", ws.join("credentials")).unwrap();
    symlink(".env", ws.join("link")).unwrap();
    symlink("secrets", ws.join("dirlink")).unwrap();
    fs::hard_link(ws.join(".env"), ws.join("many/0/hard")).unwrap();
    fs::hard_link(ws.join("secrets/database.yml"), ws.join("hard2")).unwrap();
    fs::hard_link(scene.home.join(".ssh/id"), ws.join("many/1/key")).unwrap();
    fs::write(ws.join("sub/.git"), "gitdir: ../.git/modules/sub\n").unwrap();
    for git in [
        &["add", "-f", "tracked/.env"][..],
        &["commit", "-q", "-m", "second"],
        &["init", "-q", "nested"],
    ] {
        assert!(scene.plain("git").args(git).status().unwrap().success());
    }
    let program = ws.join("e.sh");
    fs::write(&program, "#!/bin/sh\necho RAN\n").unwrap();
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
}

fn furnished(user: Option<u32>) -> Scene {
    let scene = Scene::new(user);
    furnish(&scene);
    scene.hand_over();
    scene
}

/// Runs the table and returns the rows that got a secret, how many rows there are, and what the program said.
fn run(scene: &Scene, level: Option<&Confinement>) -> (Vec<String>, usize, String) {
    let argv = [python(), "-c", TABLE];
    let done = match level {
        Some(level) => scene.run(level, &argv),
        None => scene.free(&argv).output().unwrap(),
    };
    let told = stdout(&done);
    let rows: Vec<&str> = told.lines().collect();
    let got = rows.iter().filter_map(|row| row.strip_prefix("GOT "));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (got.map(str::to_owned).collect(), rows.len(), said)
}

/// Checks that no row of the table gets a secret at a level, and that the secrets stay as they are.
fn check_hidden(scene: &Scene, level: &Confinement) {
    let (got, rows, said) = run(scene, Some(level));
    assert!(rows >= 60, "{rows} rows: {said}");
    assert_eq!(got, [""; 0], "{level:?}");
    for name in SECRETS {
        let text = fs::read_to_string(scene.ws.join(name)).unwrap();
        assert_eq!(text, "KEY=hunter2\n", "{name}");
    }
}

fn hides_all(user: Option<u32>) {
    let scene = furnished(user);
    for level in [scene.read_only(), scene.workspace(), scene.trial()] {
        check_hidden(&scene, &level);
    }
    // The table is worth nothing if its rows cannot get a secret.
    let (got, rows, said) = run(&scene, None);
    assert!(got.len() * 10 > rows * 8, "{} of {rows}: {said}", got.len());
}

#[test]
fn the_current_user_cannot_open_secrets() {
    hides_all(None);
}

#[test]
fn an_ordinary_user_cannot_open_secrets() {
    if am_root() {
        hides_all(Some(SOMEBODY));
    }
}

#[test]
fn a_command_that_only_reads_opens_no_secret_without_namespaces() {
    let user = am_root().then_some(SOMEBODY);
    let mut scene = furnished(user).without_namespaces();
    check_hidden(&scene, &scene.read_only());
    for abi in older([1, 4]) {
        scene = scene.with_abi(abi).without_namespaces();
        check_hidden(&scene, &scene.read_only());
    }
}

#[test]
fn a_hidden_file_is_refused_and_not_empty() {
    let scene = furnished(None);
    let check = |level: &Confinement, line: &str, wanted: &str| {
        let done = scene.bash(level, &format!("{line} 2>&1"));
        assert!(stdout(&done).contains(wanted), "{line}: {done:?}");
    };
    for level in [scene.read_only(), scene.workspace()] {
        check(&level, "cat .env", "cat: .env: Permission denied");
        check(&level, "cat secrets/more/token", "Permission denied");
        let done = scene.bash(&level, "git diff; git status --short; git diff --stat");
        let told = stdout(&done);
        assert!(!told.contains("-KEY"), "{told}");
        assert!(!told.contains("deleted"), "{told}");
    }
    check(&scene.read_only(), "ls secrets", "database.yml");
    check(
        &scene.workspace(),
        "ls secrets",
        "cannot open directory 'secrets': Permission denied",
    );
    fs::write(scene.ws.join("tracked/.env"), "KEY=hunter2 anew\n").unwrap();
    for level in [scene.read_only(), scene.workspace()] {
        check(
            &level,
            "git diff tracked",
            "\"tracked/.env\"): Permission denied",
        );
    }
}

#[test]
fn a_secret_stays_closed_when_its_file_is_replaced() {
    let read = "cat .env tracked/.env app/.env.production; cat readable";
    for namespaces in [true, false] {
        let mut scene = furnished(None);
        if !namespaces {
            scene = scene.without_namespaces();
        }
        let ws = scene.ws.clone();
        fs::write(ws.join("readable"), "fine\n").unwrap();
        // As most editors save.
        let saved = scene.after(&scene.read_only(), read, || {
            for name in [".env", "tracked/.env", "app/.env.production"] {
                let new = ws.join(name).with_file_name("new");
                fs::write(&new, "KEY=hunter2\n").unwrap();
                fs::rename(new, ws.join(name)).unwrap();
            }
        });
        assert_eq!(saved, "fine\n", "namespaces: {namespaces}");
        fs::write(ws.join("tracked/.env"), "KEY=hunter2 changed\n").unwrap();
        let stashed = scene.after(&scene.read_only(), read, || {
            let done = scene.plain("git").args(["stash", "-q"]).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        });
        assert_eq!(stashed, "fine\n", "namespaces: {namespaces}");
        let moved = scene.after(
            &scene.read_only(),
            "cat app2/.env.production; cat readable",
            || {
                fs::rename(ws.join("app"), ws.join("app2")).unwrap();
            },
        );
        assert_eq!(moved, "fine\n", "namespaces: {namespaces}");
    }
}

#[test]
fn a_secret_is_closed_through_a_second_mount_of_the_workspace() {
    if !am_root() {
        return;
    }
    let scene = furnished(None).without_namespaces();
    fs::create_dir(scene.out.join("again")).unwrap();
    let line = "cat ../out/again/.env ../out/again/app/.env.production; cat ../out/again/data.json";
    let (command, _wrapped) = scene.confined(&scene.read_only(), &["bash", "-c", line]);
    let mount = "mount --bind . ../out/again && exec \"$@\"";
    let mut mounted = scene.plain("unshare");
    mounted.args(["-m", "bash", "-c", mount, "bash"]);
    mounted.arg(command.get_program()).args(command.get_args());
    let done = mounted.output().unwrap();
    assert_eq!(stdout(&done), "{\"a\": [1, 2]}\n", "{done:?}");
}

#[test]
fn a_directory_that_is_renamed_at_the_start_opens_no_secret() {
    let scene = Scene::new(None);
    let [one, two] = ["app", "app2"].map(|name| scene.ws.join(name));
    fs::create_dir(&one).unwrap();
    fs::write(one.join(".env"), "hunter2").unwrap();
    fs::write(scene.ws.join(".env"), "hunter2").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = fs::rename(&one, &two);
                let _ = fs::rename(&two, &one);
            }
        });
        let line = "cat app/.env app2/.env app/.env app2/.env";
        // If the secrets have moved at each look for them, there is no command.
        let run = || stdout(&scene.bash(&scene.read_only(), line));
        let runs = (0..60).map(|_| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_default()
        });
        let told: Vec<String> = runs.collect();
        stop.store(true, Ordering::Relaxed);
        assert!(told.iter().all(String::is_empty), "{told:?}");
    });
}

#[test]
fn secrets_made_after_the_first_command_are_hidden_from_the_next() {
    let scene = furnished(None);
    let level = scene.read_only();
    let denied = |name: &str| {
        let done = scene.bash(&level, &format!("cat {name}"));
        assert_eq!(stdout(&done), "", "{name}");
    };
    denied(".env");
    fs::write(scene.ws.join("app/deep/.env.new"), "hunter2").unwrap();
    denied("app/deep/.env.new");
    fs::rename(scene.ws.join("one.txt"), scene.ws.join("app/x.pem")).unwrap();
    denied("app/x.pem");
    fs::hard_link(scene.ws.join(".env"), scene.ws.join("app/later")).unwrap();
    denied("app/later");
    fs::rename(scene.ws.join("app"), scene.ws.join("renamed")).unwrap();
    denied("renamed/.env.production");
}

#[test]
fn a_command_opens_what_it_is_shown() {
    let scene = furnished(None);
    let reads = |shown: ShownSecrets, name: &str| {
        let level = Confinement::Workspace {
            workspace: scene.ws.clone(),
            network: Network::None,
            shown,
        };
        let done = scene.bash(&level, &format!("cat {name}"));
        stdout(&done) == "KEY=hunter2\n"
    };
    let these = |names: &[&str]| {
        ShownSecrets::These(names.iter().map(|name| scene.ws.join(name)).collect())
    };
    assert!(reads(these(&[".env"]), ".env"));
    assert!(!reads(these(&[".env"]), "app/.env.production"));
    assert!(reads(
        these(&["secrets/database.yml"]),
        "secrets/database.yml"
    ));
    assert!(reads(ShownSecrets::Everything, "app/.env.production"));
    assert!(!reads(ShownSecrets::Nothing, ".env"));
}

#[test]
fn a_program_of_the_workspace_runs_and_changes_nothing() {
    for user in [None, am_root().then_some(SOMEBODY)] {
        let scene = furnished(user);
        let text = "#!/bin/sh\necho RAN\necho x > one.txt; cat .env\n";
        fs::write(scene.ws.join("e.sh"), text).unwrap();
        let done = scene.bash(&scene.read_only(), "./e.sh 2> /dev/null");
        assert_eq!(stdout(&done), "RAN\n", "{done:?}");
        let one = fs::read_to_string(scene.ws.join("one.txt")).unwrap();
        assert_eq!(one, "one\n2\nthree\n");
    }
}

#[test]
fn own_directories_in_a_workspace_are_closed() {
    for user in [None, am_root().then_some(SOMEBODY)] {
        let scene = Scene::new(user);
        fs::write(scene.home.join(".local/state/other"), "fine\n").unwrap();
        scene.hand_over();
        let level = Confinement::ReadOnly {
            workspace: scene.home.join(".local/state"),
        };
        let line = "cd ../home/.local/state && cat co/chats other";
        assert_eq!(stdout(&scene.bash(&level, line)), "fine\n");
        let none = scene.without_namespaces();
        assert_eq!(stdout(&none.bash(&level, line)), "fine\n");
    }
}
