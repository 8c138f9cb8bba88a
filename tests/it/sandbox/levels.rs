//! The workspace level, the ways into it, and what is said where the kernel holds nothing.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;

use co_exec::{Confinement, Network};

use super::scene::{SOMEBODY, Scene, am_root, stdout, support};
use crate::support::{BACKEND, DEADLINE, proc};

/// Commands that would change a protected file of the workspace.
const HELD: &[&str] = &[
    "echo x >> .git/config",
    "git config core.fsmonitor /bin/false",
    "git config --local alias.x y",
    "echo x > .git/hooks/pre-commit",
    "mv .git/hooks .git/hooks2",
    "rm -r .git/hooks",
    "mv .git/config .git/config2",
    "ln -sf /dev/null .git/config",
    "chmod +x .git/hooks/there",
    "touch -d 2001-01-01 .git/hooks/there",
    "mv .git .git2",
    "rm -r .git/hooks/there",
    "echo x > .git/modules/sub/hooks/post-checkout",
    "echo x > .git/modules/sub/config",
    "mv .git/modules/sub .git/modules/sub2",
    "mv .git/modules .git/modules2",
    "echo x > .envrc",
    "rm .envrc",
    "mv .envrc .envrc2",
    "echo x > new; mv new .envrc",
    "ln -f one.txt .envrc",
    "chmod 777 .envrc",
    "echo x > .nvim.lua",
    "echo x > .exrc",
    "echo x > .nvimrc",
    "rm .nvimrc",
    "echo x > .lazy.lua",
    "mv .lazy.lua x",
    "echo x > .vscode/tasks.json",
    "mv .vscode x",
    "echo x > .co/policy.toml",
    "rm -r .co",
    "echo x > .mcp.json",
    "echo x > mise.toml",
    "echo x > new; mv new mise.toml",
    "echo x > .hg/hgrc",
    "mv .hg x",
    "echo x > .jj/repo/config.toml",
    "mv .jj x",
];

/// Commands that would change a file outside of it.
const OUTSIDE: &[&str] = &[
    "echo x > ../out/new",
    "echo x > ../home/new",
    "chmod 700 ../out/file",
    "touch ../out/file",
    "mv ../out/file .",
    "ln ../out/file linked && echo x > linked",
    "chmod 644 ../home/.ssh/id",
    "cat ../home/.ssh/id",
    "cat link-to-key",
    "cp ../home/.ssh/id stolen",
    "mv ../ws ../ws2",
    "echo x > /dev/shm/co-test-level",
    "echo x > /var/tmp/co-test-level",
    "ls ../home",
];

fn furnish(scene: &Scene) {
    for name in [
        ".git/hooks/there",
        ".envrc",
        ".nvim.lua",
        ".exrc",
        ".nvimrc",
        ".lazy.lua",
        ".vscode/tasks.json",
        ".co/policy.toml",
        ".mcp.json",
        "mise.toml",
        ".hg/hgrc",
        ".jj/repo/config.toml",
    ] {
        fs::create_dir_all(scene.ws.join(name).parent().unwrap()).unwrap();
        fs::write(scene.ws.join(name), "before\n").unwrap();
    }
    let module = scene.ws.join(".git/modules/sub");
    fs::create_dir_all(module.join("hooks")).unwrap();
    fs::write(module.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(module.join("config"), "[core]\n").unwrap();
    fs::write(scene.out.join("file"), "before\n").unwrap();
}

/// Checks that each line fails confined, and leaves its target unchanged.
fn each_is_held(user: Option<u32>, lines: &[&str]) {
    assert!(support().namespaces, "{}", support().words());
    let scene = Scene::new(user);
    furnish(&scene);
    scene.hand_over();
    let aimed = |scene: &Scene| {
        let mut files = scene.snapshot();
        files.retain(|path, _| {
            let below = path.strip_prefix(&scene.ws).unwrap_or(path);
            let git = [".git/hooks", ".git/config", ".git/modules"];
            let names = [
                ".envrc",
                ".nvim.lua",
                ".exrc",
                ".nvimrc",
                ".lazy.lua",
                ".vscode",
                ".co",
                ".mcp.json",
                "mise.toml",
                ".hg/hgrc",
                ".jj/repo/config.toml",
            ];
            // The times of a submodule's directory show the placeholders in it.
            let placed = below == std::path::Path::new(".git/modules/sub");
            let kept = git.iter().chain(&names).any(|name| below.starts_with(name));
            path.starts_with(&scene.home) || path.starts_with(&scene.out) || kept && !placed
        });
        files
    };
    let before = aimed(&scene);
    let went = went_through(&scene, lines);
    assert!(went.is_empty(), "{went:?}");
    assert_eq!(aimed(&scene), before, "something changed");
}

/// The lines that succeed at the workspace level, all run in one confinement.
fn went_through(scene: &Scene, lines: &[&str]) -> Vec<String> {
    let each = |line: &&str| format!("( {line} ) && echo 'WENT THROUGH: {line}'\n");
    let script: String = lines.iter().map(each).collect();
    let done = scene.bash(&scene.workspace(), &format!("{script}echo 'AT THE END'"));
    let told = stdout(&done);
    assert!(told.ends_with("AT THE END\n"), "{done:?}");
    let went = told
        .lines()
        .filter_map(|line| line.strip_prefix("WENT THROUGH: "));
    went.map(str::to_owned).collect()
}

/// Checks that each line does its deed unconfined: otherwise its failure would prove nothing.
fn each_does_its_deed_free(lines: &[&str]) {
    let scene = Scene::new(None);
    furnish(&scene);
    for line in lines {
        let copy = tempfile::tempdir().unwrap();
        let mut cp = scene.plain("cp");
        cp.arg("-a")
            .args([&scene.ws, &scene.home, &scene.out])
            .arg(copy.path());
        assert!(cp.status().unwrap().success());
        let mut bash = scene.plain("bash");
        let done = bash
            .args(["-c", line])
            .current_dir(copy.path().join("ws"))
            .output()
            .unwrap();
        for left in ["/dev/shm/co-test-level", "/var/tmp/co-test-level"] {
            let _ = fs::remove_file(left);
        }
        assert!(done.status.success(), "free, {line} does nothing: {done:?}");
    }
}

#[test]
fn what_runs_later_is_held_by_mounts() {
    each_is_held(None, HELD);
    each_does_its_deed_free(HELD);
}

#[test]
fn what_lies_outside_is_held_by_mounts() {
    each_is_held(None, OUTSIDE);
    each_does_its_deed_free(OUTSIDE);
}

#[test]
fn both_are_held_for_an_ordinary_user() {
    // Through a user namespace, which root does not need.
    if am_root() {
        each_is_held(Some(SOMEBODY), HELD);
        each_is_held(Some(SOMEBODY), OUTSIDE);
        let scene = Scene::new(Some(SOMEBODY));
        scene.hand_over();
        let line =
            "git commit -qam second && touch -d 2001-01-01 one.txt && chmod 600 one.txt && id -u";
        let done = scene.bash(&scene.workspace(), line);
        assert_eq!(stdout(&done).trim(), SOMEBODY.to_string(), "{done:?}");
    }
}

#[test]
fn without_namespaces_both_are_held_all_the_same() {
    let scene = Scene::new(None).without_namespaces();
    furnish(&scene);
    let before = scene.snapshot();
    for lines in [HELD, OUTSIDE] {
        let went = went_through(&scene, lines);
        assert!(went.is_empty(), "{went:?}");
    }
    assert_eq!(scene.snapshot(), before);
    // Names that are not there yet are held too, and with them all new ones at the top.
    for name in [".envrc", ".nvim.lua", ".exrc", ".git/commondir"] {
        let _ = fs::remove_file(scene.ws.join(name));
        let done = scene.bash(&scene.workspace(), &format!("echo x > {name}"));
        assert!(!done.status.success(), "{name}");
    }
    fs::create_dir(scene.ws.join("src")).unwrap();
    let done = scene.bash(
        &scene.workspace(),
        "echo x > src/new && echo y > one.txt && cat src/new one.txt",
    );
    assert_eq!(stdout(&done), "x\ny\n", "{done:?}");
}

#[test]
fn with_namespaces_missing_names_are_told() {
    let scene = Scene::new(None);
    let line = "echo x > .envrc; echo y > top; cat top";
    let (mut command, wrapped) = scene.confined(&scene.workspace(), &["bash", "-c", line]);
    assert!(wrapped.appeared().is_empty());
    let done = command.output().unwrap();
    assert_eq!(stdout(&done), "y\n", "{done:?}");
    assert_eq!(wrapped.appeared(), [scene.ws.join(".envrc")]);
}

#[test]
fn no_command_links_a_file_of_outside_into_the_workspace() {
    let line = "ln ../home/.gitconfig linked || ln -L ../home/.gitconfig linked || \
                python3 -c 'import os; os.link(\"../home/.gitconfig\", \"linked\")' || \
                ln ../home/.gitconfig $TMPDIR/linked";
    let scene = Scene::new(None);
    let free = scene.free(&["bash", "-c", line]).output().unwrap();
    assert!(free.status.success(), "{free:?}");
    for abi in [1, 2, 3, 4, 5, support().abi.unwrap()] {
        for namespaces in [true, false] {
            let mut scene = Scene::new(None).with_abi(abi);
            if !namespaces {
                scene = scene.without_namespaces();
            }
            for level in [scene.read_only(), scene.workspace()] {
                let done = scene.bash(&level, line);
                assert!(!done.status.success(), "ABI {abi}, {level:?}: {done:?}");
                assert!(!scene.ws.join("linked").exists(), "ABI {abi}, {level:?}");
            }
        }
    }
}

#[test]
fn the_network_is_as_asked_and_the_editor_out_of_reach() {
    let scene = Scene::new(None);
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let _editor = UnixListener::bind(scene.ws.join("editor.sock")).unwrap();
    let connect = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}",
        tcp.local_addr().unwrap().port()
    );
    let unix = "import socket; socket.socket(socket.AF_UNIX).connect('editor.sock')";
    let mut level = scene.workspace();
    assert!(!scene.bash(&level, &connect).status.success());
    assert!(!scene.run(&level, &["python3", "-c", unix]).status.success());
    if let Confinement::Workspace { network, .. } = &mut level {
        *network = Network::Machine;
    }
    let done = scene.bash(&level, &connect);
    assert!(done.status.success(), "{done:?}");
    let done = scene.run(&level, &["python3", "-c", unix]);
    assert!(
        String::from_utf8_lossy(&done.stderr).contains("PermissionError"),
        "{done:?}"
    );
    assert!(
        scene
            .plain("python3")
            .args(["-c", unix])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn what_cannot_start_says_so_and_exits_126() {
    let check = |exe: &str, args: &[&str]| {
        let done = Command::new(exe).args(args).output().unwrap();
        assert_eq!(done.status.code(), Some(126), "{exe} {args:?}");
        let told = String::from_utf8_lossy(&done.stderr);
        let name = exe.rsplit('/').next().unwrap();
        assert!(told.starts_with(&format!("{name}: ")), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.contains("not a command for people"), "{told}");
    };
    for argument in ["", "{}", "x"] {
        check(BACKEND, &["__launch", argument, "ls"]);
    }
    let scene = Scene::new(None);
    let done = scene.run(&scene.read_only(), &["/nonexistent/program"]);
    assert_eq!(done.status.code(), Some(126));
    assert!(String::from_utf8_lossy(&done.stderr).contains("/nonexistent/program did not start"));
}

#[test]
fn the_temporary_directory_goes_with_the_guard() {
    let scene = Scene::new(None);
    let (mut command, wrapped) = scene.confined(
        &scene.workspace(),
        &["bash", "-c", "echo x > $TMPDIR/x; echo $TMPDIR"],
    );
    let done = command.output().unwrap();
    let tmp = PathBuf::from(stdout(&done).trim());
    assert_eq!(wrapped.tmp.as_ref().unwrap().path(), tmp);
    assert_eq!(fs::read_to_string(tmp.join("x")).unwrap(), "x\n");
    drop(wrapped);
    proc::wait_until(DEADLINE, "its removal", || (!tmp.exists()).then_some(()));
}
