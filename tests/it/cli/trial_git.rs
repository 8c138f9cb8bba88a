//! A trial keeps files, and no change of a repository: it says what the command did there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use super::trial_commands::run;
use super::trial_scene::{COMMIT, DROPPED, REPOSITORY, Scene, said, wait};
use crate::support::runner::Runner;

/// Checks that a trial of a script leaves the repository as it is, keeps a file, and says what the script did in `.git`.
#[track_caller]
fn check(script: &str, words: &str) {
    let scene = Scene::new(REPOSITORY);
    check_in(&scene, script, words);
}

#[track_caller]
fn check_in(scene: &Scene, script: &str, words: &str) {
    let before = scene.repository();
    let done = scene.keep(&format!("set -e\n{script}\necho kept > file"));
    let told = said(&done);
    assert_eq!(done.status.code(), Some(123), "{script}: {done:?}");
    let expected = format!("co-nvim: {DROPPED}: {words}");
    assert!(told.contains(&expected), "{script}: {told:?}");
    assert!(scene.repository() == before, "{script}: {told:?}");
    scene.bash("test $(cat file) = kept");
}

#[test]
fn a_commit_is_told_and_not_kept() {
    check(COMMIT, "a commit on main: second, 1 file");
    check(
        &format!("{COMMIT} echo 3 > b; git commit -qam third"),
        "2 commits on main, the last one: third, 2 files",
    );
    check(
        "git commit -q --amend -m other",
        "a commit on main: other, 0 files; main has 1 commit fewer",
    );
    check("git switch -q side", "HEAD is on side");
    check(
        &format!("git switch -q -c new; {COMMIT}"),
        "a commit on new: second, 1 file",
    );
    check("git checkout -q --detach", "HEAD is on a detached HEAD");
    let scene = Scene::new(&format!("{REPOSITORY}; {COMMIT}"));
    check_in(&scene, "git reset -q HEAD^", "main has 1 commit fewer");
    let scene =
        Scene::new("git init -q -b main; git config user.name a; git config user.email a@b");
    check_in(
        &scene,
        "echo 1 > a; git add a; git commit -qm first",
        "a commit on main: first, 1 file",
    );
    for format in ["sha256", "sha1"] {
        let script = REPOSITORY.replace("init", &format!("init --object-format {format}"));
        check_in(
            &Scene::new(&script),
            COMMIT,
            "a commit on main: second, 1 file",
        );
    }
}

#[test]
fn what_else_changed_is_named_by_its_path() {
    check("echo 2 > a; git add a", ".git/index changed");
    check("git tag v1", ".git/refs/tags/v1 changed");
    check(
        "git update-ref refs/heads/HEAD HEAD",
        ".git/refs/heads/HEAD changed",
    );
    check("echo 2 > a; git stash -q", ".git/refs/stash changed");
    check(
        &format!("{COMMIT} git config core.pager x"),
        "a commit on main: second, 1 file; .git/config changed",
    );
    check(
        "echo 'exit 1' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        ".git/hooks/pre-commit changed",
    );
    check("rm -rf .git/hooks", ".git/hooks changed");
    check("rm -rf .git", ".git changed");
    check("ln -sf /etc/passwd .git/COMMIT", ".git/COMMIT changed");
    check("rm .git/HEAD; ln -s ../a .git/HEAD", ".git/HEAD changed");
    check("mkfifo .git/logs/x", ".git/logs/x changed");
    check(
        "echo /etc > .git/objects/info/alternates",
        ".git/objects/info/alternates changed",
    );
    check("git init -q sub", "new repository: sub/.git");
    check(
        "for n in 1 2 3 4 5; do echo $n > .git/x$n; done",
        ".git/x1, .git/x2, .git/x3 changed",
    );
}

#[test]
fn a_git_directory_with_another_name_counts_as_one() {
    // Each of them meets each way and each deed.
    let mut runners = Runner::all().into_iter().cycle();
    for lead in [
        "mkdir deep; mv .git deep/bare; ln -s deep/bare .git",
        "mkdir deep; mv .git deep/bare; echo gitdir: deep/bare > .git",
        "mkdir deep; mv .git deep/bare; mkdir .git; cp deep/bare/HEAD .git; echo ../deep/bare > .git/commondir",
        "mkdir deep; mv .git deep/bare; ln -s deep/bare .git; echo deep/ > .gitignore",
    ] {
        for (deed, words) in [
            ("echo x >> deep/bare/config", "deep/bare/config changed"),
            (
                "echo 'exit 1' > deep/bare/hooks/pre-commit; chmod +x deep/bare/hooks/pre-commit",
                "deep/bare/hooks/pre-commit changed",
            ),
            ("rm -r deep/bare/hooks", "deep/bare/hooks changed"),
            (
                "echo x > deep/bare/config.worktree",
                "deep/bare/config.worktree changed",
            ),
            ("git -C deep/bare tag v1", "deep/bare/refs/tags/v1 changed"),
        ] {
            let script = format!("{REPOSITORY}; mkdir -p .git/hooks; {lead}");
            let scene = Scene::of(runners.next().unwrap(), &script);
            let before = scene.files();
            let done = scene.keep(&format!("{deed}; echo 2 > a"));
            let told = said(&done);
            let expected = format!("co-nvim: {DROPPED}: {words}");
            assert!(told.contains(&expected), "{lead}: {deed}: {told:?}");
            scene.bash("test $(cat a) = 2; echo 1 > a");
            let same = |it: &(&PathBuf, _)| it.0.starts_with("deep") || it.0.starts_with(".git");
            assert!(
                scene
                    .files()
                    .iter()
                    .filter(same)
                    .eq(before.iter().filter(same)),
                "{lead}: {deed}"
            );
        }
    }
}

#[test]
fn a_new_repository_is_named_and_not_kept() {
    let mut runners = Runner::all().into_iter().cycle();
    for (deed, name) in [
        ("git init -q sub", "sub/.git"),
        ("git init -q --bare deep/new.git", "deep/new.git"),
        (
            "mkdir -p x/refs x/objects; echo ref: refs/heads/a > x/HEAD; echo y > x/config",
            "x",
        ),
        // A part of it was there.
        ("echo ref: refs/heads/a > part/HEAD", "part"),
        ("mkdir y; echo x > y/HEAD; echo ../.git > y/commondir", "y"),
    ] {
        let script = format!("{REPOSITORY}; mkdir -p part/objects part/refs");
        let scene = Scene::of(runners.next().unwrap(), &script);
        let done = scene.keep(deed);
        let expected = format!("co-nvim: {DROPPED}: new repository: {name}");
        assert!(said(&done).contains(&expected), "{deed}: {:?}", said(&done));
        scene.bash(&format!(
            "test ! -e {name}/HEAD -a ! -e {name}/config -a ! -e {name}/hooks"
        ));
    }
}

#[test]
fn nobody_keeps_links_pipes_hooks_or_odd_refs_of_git() {
    for runner in Runner::all() {
        let scene = Scene::of(runner, REPOSITORY);
        let before = scene.repository();
        let script = "mkfifo .git/logs/x; git update-ref refs/heads/HEAD HEAD; ln -s $HOME/.bashrc .git/COMMIT; \
                      echo x > .git/hooks/pre-commit; git -c core.logAllRefUpdates=always tag v1";
        let (_, output, trial) = run(&scene, &["--try", "--keep"], script);
        let changed = trial["git"].as_array().unwrap();
        for path in ["logs/x", "refs/heads/HEAD", "COMMIT", "hooks/pre-commit"] {
            let path = format!(".git/{path}");
            assert!(
                changed.contains(&path.clone().into()),
                "{path}: {output} {trial}"
            );
        }
        assert!(scene.repository() == before, "{runner:?}");
    }
}

#[test]
fn a_bare_workspace_keeps_nothing_of_git() {
    let scene = Scene::new("git init -q --bare .");
    let before = scene.files();
    let done = scene.keep("git config a.b c; echo x > hooks/x");
    let expected = format!("co-nvim: {DROPPED}: config, hooks/x changed");
    assert!(said(&done).contains(&expected), "{:?}", said(&done));
    assert!(scene.files() == before);
}

#[test]
fn what_only_git_sees_is_no_change() {
    let scene = Scene::new(REPOSITORY);
    for script in [
        "touch -d 2001-01-01 b; git status > /dev/null",
        "echo unused | git hash-object -w --stdin > /dev/null",
        "git diff > /dev/null; git log > /dev/null",
        "echo x > .git/ORIG_HEAD",
    ] {
        let done = scene.keep(script);
        assert_eq!(
            (said(&done), done.status.code()),
            (Vec::new(), Some(0)),
            "{script}"
        );
    }
}

#[test]
fn words_that_a_command_chose_do_not_move_the_cursor() {
    for script in [
        r"echo 2 > a; git commit -qam $'x\e[2J\xe2\x80\xae'",
        r"git update-ref $'refs/heads/\xe2\x80\xae' HEAD",
        r"echo x > $'.git/\e[2J'",
        r"git switch -q -c $'\xe2\x80\xae'",
    ] {
        let told = said(&Scene::new(REPOSITORY).keep(script)).join("\n");
        assert!(told.contains(DROPPED), "{told:?}");
        let is_hidden = |c: char| matches!(c, '\u{1b}' | '\u{202e}');
        assert!(!told.contains(is_hidden), "{told:?}");
    }
}

#[test]
fn json_has_the_changed_paths_and_the_words() {
    let scene = Scene::new(REPOSITORY);
    let (exit, _, trial) = run(&scene, &["--try"], &format!("{COMMIT} git config a.b c"));
    assert_eq!(exit, 0);
    assert_eq!(trial["head"], "a commit on main: second, 1 file");
    let paths = trial["git"].as_array().unwrap();
    assert!(paths.contains(&".git/config".into()), "{paths:?}");
    assert_eq!(trial.get("repository"), None);
    let (_, _, trial) = run(&scene, &["--try"], "true");
    assert_eq!(
        (&trial["git"], &trial["head"]),
        (&Value::Array(Vec::new()), &Value::Null)
    );
}

#[test]
fn a_git_that_hangs_delays_the_end_by_seconds() {
    let scene = Scene::new(REPOSITORY);
    let bin = TempDir::new().unwrap();
    let git = bin.path().join("git");
    fs::write(&git, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    fs::set_permissions(&git, Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let done = scene
        .try_command(&["--keep", &format!("PATH=${{PATH#*:}}; {COMMIT}")])
        .env("PATH", format!("{}:{path}", bin.path().display()))
        .output()
        .unwrap();
    let told = said(&done);
    let words = ".git/index, .git/refs/heads/main changed";
    assert!(
        told.contains(&format!("co-nvim: {DROPPED}: {words}")),
        "{told:?}"
    );
}

/// The configuration that the command left runs in the trial only.
#[test]
fn programs_that_a_command_configured_reach_nothing() {
    let scene = Scene::new(&format!("{REPOSITORY}; mkdir ../out"));
    let program = "printf '#!/bin/sh\\necho x > ../out/ran; sleep 1000\\n' > p; chmod +x p
        git config core.fsmonitor $PWD/p; git config core.pager $PWD/p; git config log.showSignature true
        git config gpg.program $PWD/p; git config alias.log '!./p'";
    let before = scene.repository();
    let done = scene.keep(&format!("{COMMIT} {program}"));
    assert_eq!(done.status.code(), Some(123), "{done:?}");
    assert!(scene.repository() == before);
    scene.bash("! ls -A ../out | grep .");
}

#[test]
fn a_tracked_file_is_never_ignored() {
    let scene = Scene::new(&format!(
        "{REPOSITORY}; mkdir -p out/sub; echo 1 | tee x.log > out/sub/kept; echo junk > out/junk
        printf 'out/\\n*.log\\n' > .gitignore; git add -f .gitignore x.log out/sub; git commit -qm ignored"
    ));
    let done = scene.keep("echo 2 | tee x.log other.log out/other > out/sub/kept");
    assert!(done.status.success(), "{done:?}");
    scene.bash("for file in x.log out/sub/kept; do grep -qx 2 $file; done; test ! -e other.log -a ! -e out/other");
    // Of a directory that is removed, what git does not track stays.
    let done = scene.keep("rm x.log; rm -r out");
    assert!(done.status.success(), "{done:?}");
    scene.bash("test ! -e x.log -a ! -e out/sub -a -e out/junk");
}

#[test]
fn a_commit_of_the_person_during_the_trial_stays() {
    let scene = Scene::new(REPOSITORY);
    let person = "git commit -q --allow-empty -m mine";
    let child = scene.start_while(COMMIT, person);
    let before = scene.repository();
    scene.bash("echo go > flag");
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(123), "{done:?}");
    assert!(scene.repository() == before);
    scene.bash("git log -1 --format=%s | grep -qx mine; grep -qx 2 a");
    wait("a layer stays", || scene.layers().is_empty());
}
