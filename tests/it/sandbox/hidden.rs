//! Secrets of a workspace cannot be opened at the confined levels, by whatever name a hostile command tries.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use co_exec::{Confinement, ShownSecrets};

use super::hostile::python;
use super::scene::{SOMEBODY, Scene, am_root, stdout, support};

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
    assert!(support().namespaces, "{}", support().words());
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

fn hides_all(user: Option<u32>) {
    let scene = furnished(user);
    for level in [scene.read_only(), scene.workspace()] {
        let (got, rows, said) = run(&scene, Some(&level));
        assert!(rows >= 60, "{rows} rows: {said}");
        assert_eq!(got, [""; 0], "{level:?}");
        for name in SECRETS {
            let text = fs::read_to_string(scene.ws.join(name)).unwrap();
            assert_eq!(text, "KEY=hunter2\n", "{name}");
        }
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
fn a_hidden_file_is_refused_and_not_empty() {
    let scene = furnished(None);
    for level in [scene.read_only(), scene.workspace()] {
        let check = |line: &str, wanted: &str| {
            let done = scene.bash(&level, &format!("{line} 2>&1"));
            assert!(stdout(&done).contains(wanted), "{line}: {done:?}");
        };
        check("cat .env", "cat: .env: Permission denied");
        check(
            "ls secrets",
            "cannot open directory 'secrets': Permission denied",
        );
        check("git diff tracked", "\"tracked/.env\"): Permission denied");
        let done = scene.bash(&level, "git diff; git status --short; git diff --stat");
        let told = stdout(&done);
        assert!(!told.contains("-KEY"), "{told}");
        assert!(!told.contains("deleted"), "{told}");
    }
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
            network: false,
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
fn no_file_of_the_workspace_is_executed_read_only() {
    for user in [None, am_root().then_some(SOMEBODY)] {
        let scene = furnished(user);
        let tries = [
            "./e.sh",
            "cp e.sh \"$TMPDIR\" && \"$TMPDIR/e.sh\"",
            "cp /bin/true \"$TMPDIR/t\" && \"$TMPDIR/t\" && echo RAN",
            "PATH=.:$PATH e.sh",
            "git -c alias.x='!./e.sh' x",
            "env ./e.sh",
            "find . -maxdepth 1 -name e.sh -exec {} ';'",
            "echo x | xargs ./e.sh",
        ];
        for line in tries {
            let done = scene.bash(&scene.read_only(), line);
            assert!(!stdout(&done).contains("RAN"), "{line}: {done:?}");
            let scene = scene.bash(&scene.workspace(), "./e.sh");
            assert_eq!(stdout(&scene), "RAN\n");
        }
        let loader = Path::new("/lib64/ld-linux-x86-64.so.2");
        if loader.exists() {
            fs::copy("/bin/true", scene.ws.join("program")).unwrap();
            scene.hand_over_one(&scene.ws.join("program"));
            let line = format!("{} ./program && echo RAN", loader.display());
            let done = scene.bash(&scene.read_only(), &line);
            assert!(!stdout(&done).contains("RAN"), "{done:?}");
        }
        // Without namespaces, Landlock alone holds it.
        let scene = scene.without_namespaces();
        let done = scene.bash(&scene.read_only(), "./e.sh");
        assert_eq!(stdout(&done), "", "{done:?}");
    }
}

#[test]
fn own_directories_are_hidden_where_the_home_is_the_workspace() {
    for user in [None, am_root().then_some(SOMEBODY)] {
        let scene = Scene::new(user);
        scene.hand_over();
        let level = Confinement::ReadOnly {
            workspace: scene.home.clone(),
        };
        let line = "cd ../home && cat .local/state/co/session .config/co/key .ssh/id; ls .local/state/co .config/co .ssh";
        let done = scene.bash(&level, line);
        assert_eq!(stdout(&done), "", "{done:?}");
        let none = scene.without_namespaces();
        let done = none.bash(&level, line);
        assert!(!stdout(&done).contains("hunter2"), "{done:?}");
    }
}
