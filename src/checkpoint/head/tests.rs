use std::path::Path;
use std::process::Command;

use super::*;

fn git(dir: &Path, line: &str) -> String {
    let done = Command::new("bash")
        .args(["-ec", line])
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs(["AUTHOR", "COMMITTER"].map(|it| (format!("GIT_{it}_NAME"), "a")))
        .envs(["AUTHOR", "COMMITTER"].map(|it| (format!("GIT_{it}_EMAIL"), "a@b")))
        .output()
        .unwrap();
    assert!(done.status.success(), "{line}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

fn head_by_git(dir: &Path) -> Head {
    let line = SCRIPT.replace("$co_git", "git");
    Head::parse(&git(dir, &line)).unwrap()
}

fn head_by_files(dir: &Path) -> Result<Head, UnknownHead> {
    let dir = dir.canonicalize().unwrap();
    Head::of_files(&repository::find(&dir).unwrap().unwrap())
}

fn head(dir: &Path) -> Head {
    let head = head_by_git(dir);
    assert_eq!(head_by_files(dir).as_ref(), Ok(&head));
    head
}

/// The states of HEAD before and after each line, in a new repository.
fn moved(dir: &Path, lines: &[&str]) -> (Vec<HeadMove>, Head) {
    let mut before = head(dir);
    let mut moves = Vec::new();
    for line in lines {
        git(dir, line);
        let after = head(dir);
        moves.extend(HeadMove::between(Some(before), Some(after.clone())));
        before = after;
    }
    (moves, before)
}

/// Checks that the command in the sentence about some lines brings HEAD and the index back.
#[track_caller]
fn check(start: &str, lines: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    git(dir, &format!("git init -q -b main; {start}"));
    let state = |dir| (head(dir), git(dir, "git ls-files -s"));
    let before = state(dir);
    let (moves, now) = moved(dir, lines);
    let moves: Vec<_> = moves.iter().collect();
    let told = way_back(&moves, Some(&now)).unwrap();
    let (_, command) = told.split_once("back: ").unwrap();
    git(dir, command);
    assert_eq!(state(dir), before, "{lines:?}: {command}");
    assert_eq!(way_back(&moves, Some(&before.0)), None);
}

const FIRST: &str = "echo 1 > a; git add a; git commit -qm first";
const SECOND: &str = "echo 2 > a; git commit -qam second";

#[test]
fn a_command_of_git_takes_commits_back() {
    check(FIRST, &[SECOND]);
    check(FIRST, &[SECOND, "git commit -q --amend -m other"]);
    check("", &[FIRST]);
    check("", &[FIRST, SECOND]);
    check(FIRST, &["git switch -q -c 'a&b'"]);
    check(FIRST, &["git switch -q -c new", SECOND]);
    check("", &["git switch -q -c new", FIRST]);
    check(&format!("{FIRST}; git checkout -q --detach"), &[SECOND]);
    check(
        &format!("{FIRST}; git checkout -q --detach"),
        &["git switch -q -c new", SECOND],
    );
    check(
        &format!("{FIRST}; {SECOND}"),
        &["git reset -q --hard HEAD^"],
    );
}

#[test]
fn a_head_that_moved_since_then_is_not_reset() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    git(dir, &format!("git init -q -b main; {FIRST}"));
    let (moves, _) = moved(dir, &[SECOND]);
    git(dir, "git commit -q --allow-empty -m mine");
    let told = way_back(&[&moves[0]], Some(&head(dir))).unwrap();
    let (_, command) = told.split_once("instead: ").unwrap();
    git(dir, &format!("{command} --no-edit"));
    assert_eq!(git(dir, "cat a"), "1\n");
    // Nor if the person committed between two commands.
    let (first, _) = moved(dir, &[SECOND]);
    git(dir, "git commit -q --allow-empty -m mine");
    let (second, now) = moved(dir, &["git commit -q --allow-empty -m third"]);
    let told = way_back(&[&first[0], &second[0]], Some(&now)).unwrap();
    assert!(told.contains("git revert"), "{told}");
    assert_eq!(way_back(&[], Some(&now)), None);
}

#[test]
fn what_is_no_head_is_not_known() {
    let commit = "a".repeat(40);
    let head = |text: &str| Head::parse(text);
    assert!(head(&format!("refs/heads/a\n{commit}\n")).is_some());
    assert!(head(&format!("\n{commit}\n")).is_some());
    assert!(head("refs/heads/a\n\n").is_some());
    for text in ["", "\n", "\n\n", "refs/heads/a\nfatal: x\n"] {
        assert_eq!(head(text), None, "{text}");
    }
}

#[test]
fn the_files_tell_the_same_as_git() {
    let top = tempfile::tempdir().unwrap();
    let dir = top.path().join("one");
    std::fs::create_dir(&dir).unwrap();
    git(&dir, "git init -q -b main");
    let check = |lines: &[&str]| {
        for line in lines {
            git(&dir, line);
            head(&dir);
        }
    };
    check(&[
        FIRST,
        "git pack-refs --all",
        SECOND,
        "git switch -q -c feature/deep",
        "git pack-refs --all",
        "git tag -a -m tag v1; git checkout -q v1",
        "git switch -q main",
        "git branch -q ain; git pack-refs --all; git branch -qd ain; git switch -q --orphan new",
    ]);
    git(&dir, "git worktree add -q ../other feature/deep");
    head(&top.path().join("other"));
    git(&dir, "git pack-refs --all");
    head(&top.path().join("other"));
}

#[test]
fn what_the_files_do_not_tell_is_left_to_git() {
    let lines = [
        "git symbolic-ref refs/heads/other refs/heads/main; git symbolic-ref HEAD refs/heads/other",
        "git symbolic-ref HEAD refs/elsewhere/main",
        "ln -sf refs/heads/main .git/HEAD",
        "echo x > .git/refs/heads/main",
        "echo 'ref: refs/heads/../../../a' > .git/HEAD",
        "echo 'ref: refs/heads/.invalid' > .git/HEAD",
        "echo > .git/HEAD",
        "rm .git/HEAD; mkfifo .git/HEAD",
        "mv .git/refs/heads/main a; ln -s ../../../a .git/refs/heads/main",
    ];
    for line in lines {
        let top = tempfile::tempdir().unwrap();
        git(top.path(), &format!("git init -q -b main; {FIRST}; {line}"));
        let root = top.path().canonicalize().unwrap();
        let dirs = repository::Dirs {
            own: root.join(".git"),
            common: root.join(".git"),
        };
        assert_eq!(Head::of_files(&dirs), Err(UnknownHead), "{line}");
    }
}

#[test]
fn references_in_a_table_are_left_to_git() {
    let top = tempfile::tempdir().unwrap();
    let mut init = Command::new("git");
    init.args(["init", "-q", "--ref-format=reftable"]);
    // An older git has no tables.
    if init.arg(top.path()).output().unwrap().status.success() {
        assert_eq!(head_by_files(top.path()), Err(UnknownHead));
    }
}
