//! Files of the workspace that other programs run or obey, and secrets: what a command in a container cannot do to them.

use std::fs::{self, Permissions, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use serde_json::json;

use super::{BASH, BUSYBOX, Engine, engines, exec, exec_by, give, give_away, told};
use crate::support::runner::Runner;
use crate::support::scene::Scene;
use crate::support::workspace::Workspace;
use crate::support::{BACKEND, DEADLINE, cases, output_of, proc, test_tree};

/// Makes a repository with a submodule, further hooks and files that an editor runs.
fn repository() -> Workspace {
    let workspace = Workspace::new();
    workspace.git(&["config", "core.hooksPath", "tools/hooks"]);
    workspace.write("tools/hooks/pre-commit", "exit 0\n");
    workspace.write(".vscode/tasks.json", "{}\n");
    workspace.write(".envrc", "true\n");
    workspace.git(&["init", "--quiet", "--bare", ".git/modules/sub"]);
    workspace.write("sub/.git", "gitdir: ../.git/modules/sub\n");
    std::fs::remove_dir_all(workspace.path().join(".git/hooks")).unwrap();
    give_away(&workspace);
    workspace
}

#[test]
fn what_others_run_or_obey_cannot_be_changed_or_made() {
    for engine in engines() {
        let workspace = repository();
        let script = "for f in .git/hooks/pre-commit .git/config .git/config.worktree .git/commondir .git/info/attributes \
             .git/modules/sub/config tools/hooks/post-commit tools/hooks/pre-commit .vscode/new .envrc; do \
             echo x >> $f && echo \"wrote $f\"; done; mv .git other; mv tools other; rm -rf .git/config .vscode; \
             echo data > .git/COMMIT_EDITMSG && echo text > plain && echo could; echo x > .nvim.lua";
        let told = told(&exec(&engine, &workspace, BASH, &[script]));
        let output = told["output"].as_str().unwrap();
        assert!(!output.contains("wrote "), "{engine:?}: {output}");
        assert!(output.contains("could\n"), "{engine:?}: {output}");
        // This one was missing, so it is named.
        let named = output
            .lines()
            .find(|line| line.contains("other programs run"));
        assert!(
            named.is_some_and(|line| line.contains(".nvim.lua")),
            "{output}"
        );
        assert!(workspace.exists(".vscode/tasks.json") && !workspace.exists(".git/hooks"));
        let config = workspace.read(".git/config").unwrap();
        assert!(config.contains("hooksPath"), "{config}");
    }
}

#[test]
fn a_file_git_is_not_changed_and_a_new_repository_is_named() {
    for engine in engines() {
        let workspace = Workspace::new();
        std::fs::remove_dir_all(workspace.path().join(".git")).unwrap();
        give_away(&workspace);
        let script = "mkdir .git && echo made > .git/config";
        let first = told(&exec(&engine, &workspace, BASH, &[script]));
        let output = first["output"].as_str().unwrap();
        assert!(
            output.contains("other programs run or read it: "),
            "{output}"
        );
        std::fs::remove_dir_all(workspace.path().join(".git")).unwrap();
        workspace.write(".git", "gitdir: elsewhere\n");
        give_away(&workspace);
        let script = "echo gitdir: here > .git; mv .git other; rm -f .git";
        told(&exec(&engine, &workspace, BASH, &[script]));
        let text = workspace.read(".git");
        assert_eq!(text.as_deref(), Some("gitdir: elsewhere\n"), "{engine:?}");
    }
}

#[test]
fn what_git_leads_to_in_the_workspace_is_not_changed() {
    for engine in engines() {
        let mut runners = engine.runners().into_iter().cycle();
        for lead in [
            "ln -s deep/bare .git",
            "echo gitdir: deep/bare > .git",
            "mkdir .git; cp deep/bare/HEAD .git; echo ../deep/bare > .git/commondir",
        ] {
            let workspace = Workspace::new();
            let make = format!("mkdir -p deep .git/hooks; mv .git deep/bare; {lead}");
            let mut bash = Command::new("bash");
            let made = bash.args(["-ec", &make]).current_dir(workspace.path());
            assert!(made.status().unwrap().success());
            let runner = runners.next().unwrap();
            give(&workspace, runner);
            let script = "for f in config config.worktree hooks/pre-commit info/attributes; do \
                 echo x >> deep/bare/$f && echo \"wrote $f\"; done; rm -rf deep/bare/config deep/bare/hooks; \
                 rm -rf .git; mkdir -p .git/objects .git/refs && echo ref: refs/heads/main > .git/HEAD && echo x > .git/config";
            let told = told(&exec_by(runner, &engine, &workspace, BASH, &[script]));
            let output = told["output"].as_str().unwrap();
            assert!(!output.contains("wrote "), "{engine:?}, {lead}: {output}");
            let config = workspace.read("deep/bare/config").unwrap();
            assert!(config.contains("repositoryformatversion"), "{config}");
            assert!(workspace.exists("deep/bare/hooks"));
            // No mount holds a link, so the new repository in its place is named.
            let is_named = output.contains("other programs run or read it: ");
            assert_eq!(is_named, lead.starts_with("ln"), "{lead}: {output}");
        }
    }
}

#[test]
fn a_file_that_takes_the_place_of_a_protected_one_is_protected() {
    for engine in engines() {
        let workspace = repository();
        workspace.write(".env", "KEY=one\n");
        give_away(&workspace);
        let scene = Scene::in_workspace(workspace, engine.settings(BASH), &[]);
        scene.run("cat .e*; echo on$((0))e");
        scene.wait_shell("\non0e");
        for name in [".env", ".git/config"] {
            let text = scene.workspace.read(name).unwrap();
            scene.workspace.write("new", &text);
            std::fs::rename(
                scene.workspace.path().join("new"),
                scene.workspace.path().join(name),
            )
            .unwrap();
        }
        give_away(&scene.workspace);
        scene.run("cat .e*; echo x >> .git/config; echo tw$((0))o");
        scene.wait_shell("\ntw0o");
        let shown = scene.buffer_text("co://shell").unwrap();
        assert!(!shown.contains("KEY=one"), "{engine:?}: {shown}");
        let config = scene.workspace.read(".git/config").unwrap();
        assert!(!config.contains("\nx"), "{engine:?}: {config}");
        // The one before it is gone.
        proc::wait_until(DEADLINE, "one container", || {
            (engine.containers(&scene.workspace).len() == 1).then_some(())
        });
    }
}

#[test]
fn no_setuid_program_stays() {
    for engine in engines() {
        for runner in engine.runners() {
            check_setuid(&engine, runner);
        }
    }
}

fn check_setuid(engine: &Engine, runner: Runner) {
    let workspace = repository();
    workspace.write("before", "mine\n");
    give(&workspace, runner);
    let path = |name: &str| workspace.path().join(name);
    set_permissions(path("before"), Permissions::from_mode(0o4755)).unwrap();
    let mode = |name: &str| path(name).metadata().unwrap().mode() & 0o7777;
    let deep = "d/".repeat(150);
    let script = format!(
        "mkdir -p shared closed .git/objects/xx {deep} && chmod 2775 shared && cp before $'new\\nline' && \
         for f in made $'new\\nline' closed/x .git/objects/xx/y {deep}z; do echo x > \"$f\"; chmod 6755 \"$f\"; done && \
         chmod 0 closed; echo made"
    );
    let told = told(&exec_by(runner, engine, &workspace, BASH, &[&script]));
    let output = told["output"].as_str().unwrap();
    assert!(output.starts_with("made\n"), "{engine:?}: {output}");
    let named = output
        .lines()
        .find(|line| line.starts_with("[co took the setuid bit from "));
    assert!(
        named.is_some_and(|line| line.contains("closed/x") && line.contains("new\\nline")),
        "{output}"
    );
    assert_eq!(mode("closed"), 0, "{engine:?}");
    set_permissions(path("closed"), Permissions::from_mode(0o755)).unwrap();
    for name in [
        "made",
        "new\nline",
        "closed/x",
        ".git/objects/xx/y",
        &format!("{deep}z"),
    ] {
        assert_eq!(mode(name), 0o2755, "{engine:?}: {name}");
    }
    assert_eq!(
        (mode("shared"), mode("before")),
        (0o2775, 0o4755),
        "{engine:?}"
    );
}

/// Programs that move or make secrets of the workspace that they run in, as fast as they can. An engine may make the place of a
/// mount again, in which it is empty.
const MOVES: [&str; 2] = [
    "import os, shutil
old, new = 'app', 'app2'
while True:
    try:
        os.rename(old, new)
        old, new = new, old
    except OSError: shutil.rmtree(new, ignore_errors=True)",
    "import os
while True:
    try:
        open('.env', 'w').write('KEY=hunter2\\n')
        os.remove('.env')
    except OSError: pass",
];

#[test]
fn no_secret_comes_out_beside_a_program_that_moves_it() {
    for engine in engines() {
        for runner in engine.runners() {
            for moves in MOVES {
                let workspace = repository();
                workspace.write("app/.env", "KEY=hunter2\n");
                give(&workspace, runner);
                let mut mover = Command::new("python3");
                let mover = mover.args(["-c", moves]).current_dir(workspace.path());
                let mover = proc::Killed(mover.spawn().unwrap());
                for level in [&[][..], &["--read-only"]] {
                    let line = "for i in 1 2 3 4 5 6 7 8 9; do cat .env app/.env app2/.env 2> /dev/null; done";
                    let args = [level, &[line]].concat();
                    let done = exec_by(runner, &engine, &workspace, BASH, &args);
                    let output = String::from_utf8_lossy(&done.stdout);
                    let refused = String::from_utf8_lossy(&done.stderr);
                    let reasons = ["was moved or replaced", "cannot mount the workspace"];
                    let is_refused = reasons.iter().any(|it| refused.contains(it));
                    assert!(
                        is_refused || !output.is_empty(),
                        "{engine:?} {runner:?}: {done:?}"
                    );
                    assert!(
                        !output.contains("hunter2"),
                        "{engine:?} {runner:?}: {done:?}"
                    );
                }
                drop(mover);
                let secrets = ["app/.env", "app2/.env"].map(|name| workspace.read(name));
                let is_there = |text: &Option<String>| text.as_deref() == Some("KEY=hunter2\n");
                assert!(secrets.iter().any(is_there), "{secrets:?}");
            }
        }
    }
}

/// Puts links to the directories of the host in the place of those of the workspace, and takes them away, until it is killed.
const SWAPS: &str = "echo up > up; while :; do for n in d e; do mv $n $n.real; mv $n.link $n; mv $n $n.link; mv $n.real $n; done; done";

#[test]
fn edits_beside_a_command_that_makes_links_lead_nowhere() {
    for engine in engines() {
        let (workspace, outside) = (super::workspace(), tempfile::tempdir().unwrap());
        for name in ["d", "e"] {
            workspace.write(&format!("{name}/f"), "inside\n");
            fs::create_dir(outside.path().join(name)).unwrap();
            fs::write(outside.path().join(name).join("f"), "inside\n").unwrap();
            let link = workspace.path().join(format!("{name}.link"));
            symlink(outside.path().join(name), link).unwrap();
        }
        super::give_away(&workspace);
        let before = test_tree::read(outside.path());
        let mut job = super::running(&engine, &workspace, SWAPS);
        let mut made = 0;
        for round in 0..cases(30) {
            for request in [
                json!({ "path": "d/f", "text": format!("inside {round}\n") }),
                json!({ "path": format!("e/{round}"), "text": "inside\n" }),
            ] {
                let mut edit = Command::new(BACKEND);
                edit.arg("edit").current_dir(workspace.path());
                let done = output_of(&mut edit, request.to_string().as_bytes());
                made += usize::from(done.status.success());
            }
        }
        proc::kill9(proc::children(i32::try_from(job.id()).unwrap())[0]);
        job.wait().unwrap();
        assert!(made > 0, "{engine:?}: no edit was made");
        assert_eq!(test_tree::read(outside.path()), before, "{engine:?}");
        // The next one removes the container.
        exec(&engine, &super::workspace(), BUSYBOX, &["true"]);
    }
}
