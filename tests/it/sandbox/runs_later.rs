//! Files that a command at the workspace level could leave for other programs to run.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Instant;

use super::hostile::python;
use super::machine::Machine;
use super::scene::stdout;
use crate::support::{BACKEND, DEADLINE, proc};

/// The ways in which a command could make a repository if there is none.
const INIT: &[&str] = &[
    "git init",
    "mkdir .git",
    "mkdir .git/hooks",
    "rmdir .git && git init",
    "mv .git x && git init",
    "echo gitdir: x > .git",
    "ln -s x .git",
    "mkdir x; mv -T x .git",
];

#[test]
fn a_command_makes_no_repository_of_the_workspace() {
    for machine in [Machine::new(), Machine::new().without_namespaces()] {
        let ws = machine.lay("ws", &[("src/a", "")]);
        machine.each_is_held(&ws, INIT);
        assert!(!ws.join(".git").exists());
    }
    let machine = Machine::new();
    let ws = machine.lay("ws", &[]);
    // Git finds no repository, and a command can make all other files at the top.
    let done = machine.write(&ws, "echo x > new; ls -A; git rev-parse");
    let told = stdout(&done);
    assert!(
        told.starts_with(".git\nnew\nfatal: not a git repository"),
        "{done:?}"
    );
    machine.bash(&ws, "git init -q");
    let done = machine.write(
        &ws,
        "git add new && git commit -qm first && git log --format=%s",
    );
    assert_eq!(stdout(&done), "first\n", "{done:?}");
}

#[test]
fn a_bare_repository_at_the_top_is_told_and_one_that_was_there_is_held() {
    let machine = Machine::new();
    let ws = machine.lay("ws", &[]);
    let done = machine.write(&ws, "git init -q --bare .");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(told.contains("/ws/HEAD"), "{told}");
    let deeds = &[
        "git config core.pager ./evil",
        "echo x > hooks/pre-push",
        "echo x > commondir",
        "mv hooks hooks2",
        "echo gitdir: x > .git",
    ];
    machine.each_works_free(&ws, deeds);
    machine.each_is_held(&ws, deeds);
    assert!(!ws.join("commondir").exists());
}

#[test]
fn a_new_repository_below_is_told() {
    let machine = Machine::new();
    let ws = machine.repository("ws");
    machine.bash(
        &ws,
        "git init -q old && git init -q --bare old.git && mkdir sub && echo gitdir: ../old.git > sub/.git",
    );
    let told = |line: &str| {
        let done = machine.write(&ws, line);
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    for (line, name) in [
        ("git init -q --bare deep/new.git", "/ws/deep/new.git"),
        ("git init -q new", "/ws/new/.git"),
        (
            "mkdir -p x/refs x/objects; echo ref: refs/heads/a > x/HEAD",
            "/ws/x",
        ),
        (
            "mkdir y; echo x > y/HEAD; echo ../old.git > y/commondir",
            "/ws/y",
        ),
        // Hidden among git's own files.
        (
            "git init -q --bare .git/worktrees/a; mkdir a; echo gitdir: ../.git/worktrees/a > a/.git",
            "/ws/a/.git",
        ),
        (
            "git init -q --bare .git/refs/b; mkdir b; ln -s ../.git/refs/b b/.git",
            "/ws/b/.git",
        ),
        (
            "git init -q --bare .git/objects/c; echo gitdir: ../.git/objects/c > sub/.git",
            "/ws/sub/.git",
        ),
        (
            "git worktree add -q tree; echo x > .git/worktrees/tree/config.worktree",
            "/ws/tree/.git",
        ),
        (
            "git worktree add -q tree2; git init -q --bare .git/logs/d; echo ../../logs/d > .git/worktrees/tree2/commondir",
            "/ws/tree2/.git",
        ),
    ] {
        let told = told(line);
        let named = format!(
            "other programs run or read it: {}{name}",
            machine.top.display()
        );
        assert!(told.contains(&named), "{line}: {told}");
    }
    for line in [
        "true",
        "git -C old config a.b c; mkdir old.git/x",
        "git worktree add -q inner",
        "mkdir z; echo x > z/HEAD; mkdir z/objects",
    ] {
        let told = told(line);
        assert!(!told.contains("other programs run"), "{line}: {told}");
    }
}

/// Starts a command of a new backend. The command tries to make a repository once a file `go` exists.
fn waiting(machine: &Machine, ws: &Path, name: &str) -> Child {
    let line = format!(
        "echo > {name}; while test ! -e go; do sleep 0.02; done; git init -q 2> /dev/null && echo MADE; echo end"
    );
    let mut command = machine.command(BACKEND, ws);
    command.args(["exec", "--backend", "landlock", &line]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + DEADLINE;
    while !ws.join(name).exists() {
        assert!(Instant::now() < until, "it did not start");
        std::thread::yield_now();
    }
    child
}

#[test]
fn commands_side_by_side_do_not_free_it_for_each_other() {
    let machine = Machine::new();
    let ws = machine.lay("ws", &[]);
    let commands = ["first", "second"].map(|name| waiting(&machine, &ws, name));
    assert!(machine.write(&ws, "true").status.success());
    assert!(ws.join(".git").is_dir());
    fs::write(ws.join("go"), "").unwrap();
    for command in commands {
        let done = command.wait_with_output().unwrap();
        assert_eq!(stdout(&done), "end\n");
    }
    assert!(!ws.join(".git").exists());
}

#[test]
fn one_that_a_killed_backend_left_is_removed_by_the_next() {
    let machine = Machine::new();
    let ws = machine.lay("ws", &[]);
    // A backend that is killed with its guard leaves this.
    fs::create_dir(ws.join(".git")).unwrap();
    let marked = std::os::unix::fs::PermissionsExt::from_mode(0o1755);
    fs::set_permissions(ws.join(".git"), marked).unwrap();
    machine.each_is_held(&ws, INIT);
    assert!(!ws.join(".git").exists());
    // The person's own file stays.
    fs::create_dir(ws.join(".git")).unwrap();
    machine.each_is_held(&ws, INIT);
    assert!(ws.join(".git").exists());
}

#[test]
fn directories_of_hooks_and_included_files_are_held() {
    for machine in [Machine::new(), Machine::new().without_namespaces()] {
        let ws = machine.repository("ws");
        machine.lay(
            "ws",
            &[
                ("tools/hooks/pre-commit", "#!/bin/sh\n"),
                ("conf/more", "[include]\n\tpath = nested\n"),
                ("conf/nested", "[core]\n\teditor = vi\n"),
                ("conf/on-branch", "[include]\n\tpath = deeper\n"),
                ("conf/deeper", ""),
                ("conf/global", ""),
                ("src/main", ""),
            ],
        );
        machine.bash(
            &ws,
            "git config core.hooksPath tools/hooks && git config include.path ../conf/more && \
             git config includeIf.onbranch:other.path ../conf/on-branch && \
             git config --global include.path $PWD/conf/global",
        );
        let deeds = &[
            "echo x > tools/hooks/pre-push",
            "echo x > tools/hooks/pre-commit",
            "mv tools/hooks tools/hooks2",
            "mv tools tools2",
            "echo x > conf/more",
            "echo x > conf/nested",
            "rm conf/nested",
            "echo x > new; mv new conf/nested",
            "echo x > conf/on-branch",
            "echo x > conf/deeper",
            "echo x > conf/global",
            "mv conf conf2",
        ];
        machine.each_works_free(&ws, deeds);
        machine.each_is_held(&ws, deeds);
        let done = machine.write(&ws, "echo x > src/new && cat src/new");
        assert_eq!(stdout(&done), "x\n", "{done:?}");
    }
}

#[test]
fn what_a_repository_of_another_owner_names_is_held() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for machine in [Machine::new(), Machine::new().without_namespaces()] {
        let ws = machine.repository("ws");
        machine.lay(
            "ws",
            &[
                ("tools/hooks/pre-commit", "#!/bin/sh\n"),
                ("conf/more", "[include]\n\tpath = nested\n"),
                ("conf/nested", ""),
            ],
        );
        machine.bash(
            &ws,
            "git config core.hooksPath tools/hooks && git config include.path ../conf/more && \
             chmod -R a+rwX . && chown -R 54321 . && ! git status 2> /dev/null",
        );
        machine.each_is_held(
            &ws,
            &[
                "echo x > tools/hooks/pre-push",
                "echo x > tools/hooks/pre-commit",
                "echo x > conf/more",
                "echo x > conf/nested",
                "mv conf conf2",
            ],
        );
        let done = machine.write(&ws, "echo x > one.txt && cat one.txt");
        assert_eq!(stdout(&done), "x\n", "{done:?}");
    }
}

#[test]
fn a_directory_of_hooks_that_is_missing_is_told_when_it_appears() {
    let machine = Machine::new();
    let ws = machine.repository("ws");
    machine.bash(&ws, "git config core.hooksPath .githooks");
    let done = machine.write(&ws, "mkdir .githooks");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(told.contains("/ws/.githooks"), "{told}");
    machine.each_is_held(&ws, &["echo x > .githooks/pre-commit"]);
    machine.bash(&ws, "git config core.hooksPath .");
    let done = machine.write(&ws, "true");
    assert_eq!(done.status.code(), Some(125), "{done:?}");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(told.contains("core.hooksPath"), "{told}");
}

#[test]
fn a_configuration_that_git_cannot_read_is_refused_in_time() {
    let machine = Machine::new();
    let ws = machine.repository("ws");
    machine.bash(&ws, "git config include.path ../fifo && mkfifo fifo");
    let done = machine.write(&ws, "true");
    assert_eq!(done.status.code(), Some(125), "{done:?}");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(told.contains("git cannot read its configuration"), "{told}");
    assert!(machine.exec(&ws, &["--read-only"], "true").status.success());
}

/// Moves the directory of hooks, as fast as it can.
const MOVES: &str = "import os
while True:
    os.rename('.git/hooks', '.git/hooks2')
    os.rename('.git/hooks2', '.git/hooks')";

#[test]
fn no_hook_is_planted_untold_beside_a_program_that_moves_them() {
    for machine in Machine::all() {
        let ws = machine.repository("ws");
        machine.bash(&ws, "mkdir -p .git/hooks");
        let mut mover = machine.command(python(), &ws);
        let mover = proc::Killed(mover.args(["-c", MOVES]).spawn().unwrap());
        let pid = i32::try_from(mover.0.id()).unwrap();
        for _ in 0..8 {
            let plant = "for i in $(seq 200); do echo x > .git/hooks/pre-commit; done 2> /dev/null";
            let done = machine.write(&ws, plant);
            proc::stop(pid);
            let told = String::from_utf8_lossy(&done.stderr).into_owned();
            let hooks = [".git/hooks", ".git/hooks2"].map(|name| ws.join(name).join("pre-commit"));
            for hook in hooks.iter().filter(|hook| hook.exists()) {
                assert!(told.contains("other programs run"), "{told}");
                fs::remove_file(hook).unwrap();
            }
            let pid = nix::unistd::Pid::from_raw(pid);
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGCONT).unwrap();
        }
    }
}
