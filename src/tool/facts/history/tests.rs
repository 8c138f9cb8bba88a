use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};

use super::super::repository::Repositories;
use super::History;
use co_exec::repository::Dirs;

/// A repository beside a program that stands for git.
struct Scene {
    dir: tempfile::TempDir,
    root: PathBuf,
    git: PathBuf,
}

impl Scene {
    /// Makes the repository and the script `text`, in which `$log` is a file beside both.
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (root, git) = (top.join("work"), top.join("git"));
        let log = top.join("log");
        fs::write(
            &git,
            format!("#!/bin/sh\nlog='{}'\n{text}\n", log.display()),
        )
        .unwrap();
        fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(&root).unwrap();
        let scene = Self { dir, root, git };
        scene.run(&["init", "-q", "-b", "main"]);
        scene
    }

    fn run(&self, args: &[&str]) {
        let done = Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@example.org"])
            .args(args)
            .current_dir(&self.root)
            .status();
        assert!(done.unwrap().success(), "{args:?}");
    }

    fn add(&self, name: &str) {
        fs::write(self.root.join(name), "KEY=value\n").unwrap();
        self.run(&["add", name]);
    }

    fn dirs(&self) -> Dirs {
        let own = self.root.join(".git");
        Dirs {
            common: own.clone(),
            own,
        }
    }

    fn search(&self, history: &History) -> Option<Arc<[PathBuf]>> {
        history.secrets(&self.git, &self.root, &self.dirs())
    }

    /// Returns the lines of the log.
    fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits for this many lines in the log, the numbers of processes, and returns them.
    fn processes(&self, count: usize) -> Vec<Pid> {
        wait_until(|| self.log().len() >= count);
        let pid = |line: &String| Pid::from_raw(line.parse().unwrap()).unwrap();
        self.log().iter().map(pid).collect()
    }
}

#[track_caller]
fn wait_until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::yield_now();
    }
}

fn runs(pid: Pid) -> bool {
    test_kill_process(pid).is_ok()
}

/// A git that prints nothing.
const SILENT: &str = "echo $$ >> $log; exec sleep 600";

fn history(patience: u64, longest: u64) -> History {
    History {
        last: Mutex::default(),
        patience: Duration::from_millis(patience),
        longest: Duration::from_millis(longest),
    }
}

#[test]
fn a_newer_search_ends_the_older_one() {
    let scene = Scene::new(SILENT);
    let history = history(0, 600_000);
    assert_eq!(scene.search(&history), None);
    let old = scene.processes(1)[0];
    assert_eq!(scene.search(&history), None);
    assert!(runs(old), "nothing has changed");
    scene.run(&["commit", "-q", "--allow-empty", "-m", "first"]);
    assert_eq!(scene.search(&history), None);
    wait_until(|| !runs(old));
    let new = scene.processes(2)[1];
    assert!(runs(new));
    drop(history);
    wait_until(|| !runs(new));
}

#[test]
fn a_git_that_prints_nothing_is_stopped() {
    let scene = Scene::new(SILENT);
    let history = history(600_000, 1_000);
    assert_eq!(scene.search(&history), None);
    let silent = scene.processes(1)[0];
    wait_until(|| !runs(silent));
    // It is not tried again before the refs change.
    assert_eq!(scene.search(&history), None);
    assert_eq!(scene.log().len(), 1);
}

#[test]
fn only_a_git_that_succeeds_is_believed() {
    let listed = |text: &str| Scene::new(text).search(&history(20_000, 20_000));
    let prints = "echo 1234 a/.env; echo 1234 b.txt";
    let found = listed(prints).unwrap();
    assert_eq!(&*found, [Path::new("a/.env")]);
    assert_eq!(listed(&format!("{prints}; exit 1")), None);
}

#[test]
fn a_change_of_the_index_does_not_search_the_history_again() {
    let scene = Scene::new("echo $1 >> $log; exec git \"$@\"");
    let repositories = Repositories::new(scene.root.clone(), Some(scene.git.clone()));
    let check = |expected: &[&str], searches: usize| {
        let found = repositories.committed_secrets().unwrap();
        let expected: Vec<_> = expected.iter().map(Path::new).collect();
        assert_eq!(&*found, expected);
        let all = scene.log();
        let again = all.iter().filter(|line| *line == "rev-list").count();
        assert_eq!(again, searches);
    };
    check(&[], 1);
    scene.add("old.env");
    check(&["old.env"], 1);
    scene.run(&["commit", "-q", "-m", "first"]);
    check(&["old.env"], 2);
    scene.add("a.env");
    check(&["a.env", "old.env"], 2);
    scene.run(&["rm", "-q", "--cached", "a.env", "old.env"]);
    check(&["old.env"], 2);
}

#[test]
fn the_index_of_another_work_tree_counts() {
    let scene = Scene::new("exec git \"$@\"");
    scene.run(&["commit", "-q", "--allow-empty", "-m", "first"]);
    scene.run(&["worktree", "add", "-q", "../other"]);
    let other = scene.root.join("../other");
    fs::write(other.join("x.env"), "KEY=value\n").unwrap();
    scene.run(&["-C", "../other", "add", "x.env"]);
    let found = scene.search(&history(20_000, 20_000)).unwrap();
    assert_eq!(&*found, [Path::new("x.env")]);
}
