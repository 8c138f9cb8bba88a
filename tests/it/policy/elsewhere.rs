//! Repositories with data outside the workspace: git reads only real work trees and submodules unasked.

use std::fs;
use std::process::Command;

use super::repositories::{COMMANDS, Trap};
use super::world::word;

/// Shows that unconfined git would print the contents of another repository.
fn springs_secret(trap: &Trap) {
    let output = Command::new("git")
        .args(["show", "HEAD:s.txt"])
        .current_dir(&trap.world.workspace)
        .env("HOME", &trap.world.home)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text, "OUTSIDE-SECRET\n", "{output:?}");
}

#[test]
fn another_repository_is_not_read_through_a_file_a_link_or_a_commondir() {
    let trap = Trap::new();
    let work = &trap.world.workspace;
    let other = trap.world.home.join("other");
    fs::create_dir(&other).unwrap();
    let as_person = ["-c", "user.name=x", "-c", "user.email=x@example.org"];
    let path = other.to_str().unwrap();
    trap.world.git(&["init", "-q", "-b", "main", path]);
    fs::write(other.join("s.txt"), "OUTSIDE-SECRET\n").unwrap();
    trap.world.git(&["-C", path, "add", "s.txt"]);
    trap.world
        .git(&[&["-C", path][..], &as_person, &["commit", "-q", "-m", "x"]].concat());
    let git = other.join(".git");
    fs::rename(work.join(".git"), work.join("data")).unwrap();
    let dot = work.join(".git");
    let asks = |why: &str| {
        springs_secret(&trap);
        let verdict = trap.world.verdict(&trap.judge(), "git show HEAD:s.txt");
        assert_eq!(word(&verdict), "ask", "{verdict:?}");
        assert!(format!("{verdict:?}").contains(why), "{verdict:?}");
        trap.all_ask();
    };

    fs::write(&dot, format!("gitdir: {}\n", git.display())).unwrap();
    asks("does not name this workspace as its work tree");
    fs::remove_file(&dot).unwrap();
    std::os::unix::fs::symlink(&git, &dot).unwrap();
    asks("is a link that leads out of the workspace");
    fs::remove_file(&dot).unwrap();
    fs::rename(work.join("data"), &dot).unwrap();
    assert_eq!(trap.run_allowed(), COMMANDS.len());
    fs::write(dot.join("commondir"), git.to_str().unwrap()).unwrap();
    fs::write(dot.join("HEAD"), fs::read(git.join("HEAD")).unwrap()).unwrap();
    asks("names another repository");
    fs::write(dot.join("commondir"), ".\n").unwrap();
    assert_eq!(trap.run_allowed(), COMMANDS.len());
    fs::remove_file(dot.join("commondir")).unwrap();
    for name in ["objects", "refs"] {
        fs::rename(dot.join(name), work.join(name)).unwrap();
        std::os::unix::fs::symlink(git.join(name), dot.join(name)).unwrap();
    }
    asks("is a link that leads out of the repository");
    for name in ["objects", "refs"] {
        fs::remove_file(dot.join(name)).unwrap();
        fs::rename(work.join(name), dot.join(name)).unwrap();
    }
    fs::copy(git.join("HEAD"), dot.join("HEAD")).unwrap();
    fs::copy(git.join("refs/heads/main"), dot.join("refs/heads/main")).unwrap();
    for fan in fs::read_dir(git.join("objects")).unwrap() {
        let fan = fan.unwrap();
        let ours = dot.join("objects").join(fan.file_name());
        fs::create_dir_all(&ours).unwrap();
        for object in fs::read_dir(fan.path()).unwrap() {
            let object = object.unwrap();
            let link = ours.join(object.file_name());
            std::os::unix::fs::symlink(object.path(), link).unwrap();
        }
    }
    asks("is a link that leads out of the repository");
}

#[test]
fn a_repository_whose_data_lies_in_the_workspace_asks() {
    let trap = Trap::new();
    let work = &trap.world.workspace;
    fs::rename(work.join(".git"), work.join("data")).unwrap();
    for leads in ["data", "nowhere"] {
        fs::write(work.join(".git"), format!("gitdir: {leads}\n")).unwrap();
        trap.all_ask();
    }
}

#[test]
fn real_work_trees_and_submodules_ask_nothing() {
    let mut trap = Trap::new();
    trap.world.git(&["worktree", "add", "-q", "../tree"]);
    let top = trap.world.home.parent().unwrap().to_owned();
    let path = |name: &str| top.join(name).to_str().unwrap().to_owned();
    let tree = path("tree");
    let submodule = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    trap.world.git(
        &[
            &["-C", &tree][..],
            &submodule,
            &["add", &path("work"), "deep/sub"],
        ]
        .concat(),
    );
    let sub = path("tree/deep/sub");
    trap.world
        .git(&["-C", &sub, "worktree", "add", "-q", &path("tree-of-sub")]);
    let main = trap.world.workspace.clone();
    trap.world
        .git(&[&submodule[..], &["add", &path("tree"), "deep/sub"]].concat());
    for work in [&tree, &sub, &path("tree-of-sub"), &path("work/deep/sub")] {
        trap.world.workspace = work.into();
        fs::write(trap.world.workspace.join("a.txt"), "one\nagain\n").unwrap();
        assert_eq!(trap.run_allowed(), COMMANDS.len(), "{work}");
    }
    trap.world.workspace = main;
    let own = top.join("work/.git/modules/deep/sub/config");
    let text = fs::read_to_string(&own).unwrap();
    fs::write(&own, format!("{text}[core]\n\tworktree = /\n")).unwrap();
    trap.world.workspace = path("work/deep/sub").into();
    trap.all_ask();
}

#[test]
fn a_work_tree_elsewhere_asks_however_it_is_written() {
    let trap = Trap::new();
    let work = trap.world.workspace.display().to_string();
    let config = trap.world.workspace.join(".git/config");
    let own = fs::read_to_string(&config).unwrap();
    let other = trap.world.home.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a.txt"), "OUTSIDE-SECRET\n").unwrap();
    let other = other.display();
    let here = format!("[core]\n\tworktree = {work}\n");
    for text in [&here, "[core] worktree = \"../\" ; here\n"] {
        fs::write(&config, format!("{own}{text}")).unwrap();
        assert_eq!(trap.run_allowed(), COMMANDS.len(), "{text}");
    }
    for elsewhere in [
        format!("[core] worktree = {other}\n"),
        format!("[core] # x\n\tworktree = {other}\n"),
        format!("[core];\n\tworktree = {other}\n"),
        format!("[core]\n\tworktree = \"{other}\"\n"),
        format!("[core]\n\tworktree = {other} # x\n"),
        format!("[core]\n\tworktree = {work}\n\tworktree = {other}\n"),
        format!("[x]\n\ty = \\\n[core]\n[core] worktree = {other}\n"),
    ] {
        fs::write(&config, format!("{own}{here}{elsewhere}")).unwrap();
        let output = Command::new("git")
            .arg("diff")
            .current_dir(&trap.world.workspace)
            .env("HOME", &trap.world.home)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains("OUTSIDE-SECRET"), "{elsewhere}: {output:?}");
        trap.all_ask();
    }
}
