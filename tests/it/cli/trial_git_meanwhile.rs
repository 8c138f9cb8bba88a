//! The person changes the repository during a trial.

use std::process::Output;

use super::trial_scene::{COMMIT, DROPPED, REPOSITORY, Scene, said};
use crate::support::test_tree::Tree;

/// Runs it. Returns what the repository had after the person's script, and what the trial says.
fn keep_while(scene: &Scene, trial: &str, person: &str) -> (Tree, Output) {
    let child = scene.start_while(trial, person);
    let before = scene.repository();
    scene.bash("echo go > flag");
    (before, child.wait_with_output().unwrap())
}

#[test]
fn a_commit_of_the_person_during_the_trial_stays() {
    let scene = Scene::new(REPOSITORY);
    let commit = "git update-ref refs/heads/main $(git commit-tree -m mine -p HEAD HEAD^{tree})";
    let (before, done) = keep_while(&scene, COMMIT, commit);
    assert!(
        said(&done).contains(&format!(
            "co-nvim: {DROPPED}: branch main has changed meanwhile"
        )),
        "{done:?}"
    );
    assert_eq!(done.status.code(), Some(123));
    assert!(scene.repository() == before);
}

#[test]
fn a_refreshed_index_is_no_change_of_the_person() {
    let refresh = "cp .git/index ../old; touch -d 2001-01-01 b; git status > ../status; ! cmp -s .git/index ../old";
    let scene = Scene::new(REPOSITORY);
    let (_, done) = keep_while(&scene, COMMIT, refresh);
    assert_eq!(said(&done), ["[kept]"], "{done:?}");
    scene.bash("git log --format=%s | grep -qx second; test -z \"$(git status -s a b)\"");
    // A trial that only refreshes the index changes nothing, also if the person adds a file meanwhile.
    let scene = Scene::new(REPOSITORY);
    let trial = "touch -d 2001-01-01 b; git status > /dev/null;";
    let (before, done) = keep_while(&scene, trial, "echo 2 > c; git add c");
    assert_eq!(said(&done), ["[kept]"], "{done:?}");
    assert!(scene.repository() == before);
}

#[test]
fn a_file_that_the_person_adds_during_the_trial_stays_added() {
    for person in ["echo 2 > c; git add c", "git rm -q --cached b"] {
        let scene = Scene::new(REPOSITORY);
        let (before, done) = keep_while(&scene, COMMIT, person);
        let told = format!("co-nvim: {DROPPED}: the index has changed meanwhile");
        assert!(said(&done).contains(&told), "{person}: {done:?}");
        assert!(scene.repository() == before, "{person}");
    }
}

#[test]
fn a_commit_goes_to_the_branch_on_which_the_person_still_is() {
    // Both branches have the same files, so that only HEAD tells them apart.
    for (trial, person) in [
        (COMMIT, "git switch -q side"),
        (COMMIT, "git checkout -q --detach"),
        (
            "git commit -q --allow-empty -m second;",
            "git switch -q side",
        ),
        (
            "git branch -f side $(git commit-tree -m second -p HEAD HEAD^{tree});",
            "git switch -q side",
        ),
        ("git switch -q -c new;", "git switch -q side"),
    ] {
        let scene = Scene::new(REPOSITORY);
        let (before, done) = keep_while(&scene, trial, person);
        let told = said(&done).join("\n");
        let why = "HEAD has changed meanwhile: it was on branch main, and is";
        assert!(told.contains(&format!("{DROPPED}: {why}")), "{told}");
        assert!(scene.repository() == before, "{trial}");
    }
    // Such changes fit every HEAD.
    for trial in ["git tag new;", "git branch new;"] {
        let scene = Scene::new(REPOSITORY);
        let (_, done) = keep_while(&scene, trial, "git switch -q side");
        assert_eq!(said(&done), ["[kept]"], "{trial}");
        scene.bash("git rev-parse -q --verify new; grep -q side .git/HEAD");
    }
}

#[test]
fn a_branch_of_another_working_tree_stays() {
    let scene = Scene::new(REPOSITORY);
    let trial = "git update-ref refs/heads/side $(git commit-tree -m second -p HEAD HEAD^{tree});";
    let (before, done) = keep_while(&scene, trial, "git worktree add -q ../other side");
    let told = said(&done).join("\n");
    assert!(
        told.contains("another working tree has branch side"),
        "{told}"
    );
    assert!(scene.repository() == before);
}

#[test]
fn what_git_could_not_change_is_named() {
    let moves = "git stash -q; git switch -q -c new; echo 2 > b; git commit -qam second;";
    let made = "test $(git log -1 --format=%s new) = second; test $(git stash list | wc -l) = 1; git diff --cached --quiet new";
    let begins = format!("{COMMIT} git branch new; git branch other;");
    for (trial, person, failed, check) in [
        // Git moves HEAD after the refs.
        (moves, "touch .git/HEAD.lock", &["HEAD"][..], made),
        // Git writes the log of a ref when it has moved the refs before it.
        (
            &begins,
            "mkdir -p .git/logs/refs/heads/new; touch .git/logs/refs/heads/new/x",
            &["refs/heads/new", "refs/heads/other", "index"],
            "test $(git log -1 --format=%s main) = second",
        ),
    ] {
        let scene = Scene::new(&format!("{REPOSITORY}; echo 3 > a"));
        let (_, done) = keep_while(&scene, trial, person);
        let told = said(&done);
        assert_eq!(told.len(), failed.len() + 1, "{told:?}");
        for (path, line) in failed.iter().zip(&told) {
            let start = format!("co-nvim: .git/{path} cannot be kept: git ");
            assert!(line.starts_with(&start), "{told:?}");
        }
        assert_eq!(done.status.code(), Some(123));
        scene.bash(&format!("{check}; grep -q main .git/HEAD"));
        scene.bash("test ! -e .git/index.lock");
    }
}
