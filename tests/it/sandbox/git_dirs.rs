//! Git directories outside the workspace: commands can read only those of real work trees and submodules.

use std::fs;
use std::path::PathBuf;

use super::machine::Machine;

#[test]
fn a_command_that_makes_a_git_file_opens_nothing() {
    for machine in Machine::all() {
        let ws = machine.lay("ws", &[("a", "")]);
        let plant = "echo 'gitdir: .f' > .git; mkdir .f; echo ../.git > .f/gitdir; echo $HOME > .f/commondir";
        machine.write(&ws, plant);
        machine.home_is_closed(&ws);
        machine.bash(&ws, &format!("rm -rf .git .f; {plant}"));
        machine.home_is_closed(&ws);
    }
}

#[test]
fn an_unpacked_archive_opens_nothing() {
    Machine::all().iter().for_each(no_archive_opens_anything);
}

fn no_archive_opens_anything(machine: &Machine) {
    let home = machine.home.display().to_string();
    let shape = ["HEAD", "objects/x", "refs/x"];
    for (dot, own, common) in [
        ("gitdir: .f\n", "ws/.f", home.clone()),
        ("gitdir: ../a/worktrees/x\n", "a/worktrees/x", home.clone()),
        (
            "gitdir: ../home/worktrees/x\n",
            "a/worktrees/x",
            "../..".into(),
        ),
    ] {
        let ws = machine.lay("ws", &[(".git", dot)]);
        machine.lay(own, &shape.map(|name| (name, "ref: refs/heads/main\n")));
        machine.lay("a", &shape.map(|name| (name, "ref: refs/heads/main\n")));
        let back = format!("{}/.git\n", ws.display());
        machine.lay(own, &[("gitdir", &back), ("commondir", &common)]);
        machine.home_is_closed(&ws);
    }
    // The names refer to the workspace, and the directory is a link.
    std::os::unix::fs::symlink(&machine.home, machine.top.join("a/worktrees/home")).unwrap();
    let ws = machine.lay("ws", &[(".git", "gitdir: ../a/worktrees/home\n")]);
    machine.home_is_closed(&ws);
    fs::remove_file(ws.join(".git")).unwrap();
    std::os::unix::fs::symlink(&machine.home, ws.join(".git")).unwrap();
    machine.home_is_closed(&ws);
    fs::remove_file(ws.join(".git")).unwrap();
    machine.lay("ws/.git", &shape.map(|name| (name, "x\n")));
    machine.lay("ws/.git", &[("commondir", &home)]);
    machine.home_is_closed(&ws);
}

/// A repository with a submodule `sub` and a work tree of the submodule.
fn with_submodule(machine: &Machine) -> (PathBuf, PathBuf) {
    machine.repository("library");
    let main = machine.repository("main");
    machine.bash(
        &main,
        "git -c protocol.file.allow=always submodule --quiet add ../library deep/sub && git commit -qm sub && \
         git -C deep/sub worktree add -q ../../../tree-of-sub",
    );
    (main.join("deep/sub"), machine.top.join("tree-of-sub"))
}

#[test]
fn a_commondir_that_a_command_makes_in_a_submodule_opens_nothing() {
    let machine = Machine::new();
    let (sub, _) = with_submodule(&machine);
    machine.write(&sub, "echo $HOME > ../../.git/modules/deep/sub/commondir");
    machine.home_is_closed(&sub);
    let own = machine.top.join("main/.git/modules/deep/sub");
    fs::write(own.join("commondir"), machine.home.to_str().unwrap()).unwrap();
    machine.home_is_closed(&sub);
}

#[test]
fn real_work_trees_and_submodules_work() {
    let machine = Machine::new();
    let (sub, tree_of_sub) = with_submodule(&machine);
    let main = machine.top.join("main");
    machine.bash(
        &main,
        "git worktree add -q ../tree && git worktree add -q inner",
    );
    machine.bash(&main, "git clone -q --bare . ../bare.git && cd ../bare.git && git worktree add -q ../tree-of-bare");
    let within = machine.top.join("tree");
    machine.bash(
        &within,
        "git -c protocol.file.allow=always submodule --quiet update --init",
    );
    for ws in [
        sub,
        tree_of_sub,
        within.clone(),
        main.join("inner"),
        machine.top.join("tree-of-bare"),
        within.join("deep/sub"),
    ] {
        let line = "git status --short && echo x > new && git add new && git commit -qm second && \
                    git log --oneline | wc -l";
        let before = machine
            .command("git", &ws)
            .args(["rev-list", "--count", "HEAD"])
            .output();
        let before: u32 = String::from_utf8(before.unwrap().stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let done = machine.write(&ws, line);
        let told = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(
            told.contains(&(before + 1).to_string()),
            "{}: {done:?}",
            ws.display()
        );
        let done = machine.exec(
            &ws,
            &["--read-only"],
            "git status --short && git log --oneline",
        );
        assert!(done.status.success(), "{}: {done:?}", ws.display());
        machine.home_is_closed(&ws);
    }
}
