//! The workspace of the tests of `co-nvim exec --try`, and its runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use tempfile::TempDir;

use crate::support::runner::{Runner, python};
use crate::support::test_tree::{self, Tree};
use crate::support::{DEADLINE, proc};

/// A repository with a commit.
pub(super) const REPOSITORY: &str =
    "git init -q -b main; git config user.name a; git config user.email a@b
echo 1 > a; echo 1 > b; git add .; git commit -qm first; git branch side";

/// A commit, for the start of a script.
pub(super) const COMMIT: &str = "echo 2 > a; git commit -qam second;";

pub(super) const DROPPED: &str = "changes in .git are dropped";

/// A workspace and a home directory.
pub(super) struct Scene {
    _dir: TempDir,
    pub(super) workspace: PathBuf,
    pub(super) home: PathBuf,
    runner: Runner,
    backend: PathBuf,
}

impl Scene {
    /// Returns the scene of a workspace that a script makes.
    pub(super) fn new(script: &str) -> Self {
        Self::new_in(&std::env::temp_dir(), script)
    }

    /// Returns the scene of a user on a kernel.
    pub(super) fn of(runner: Runner, script: &str) -> Self {
        Self::of_in(runner, &std::env::temp_dir(), script)
    }

    pub(super) fn new_in(place: &Path, script: &str) -> Self {
        Self::of_in(Runner::default(), place, script)
    }

    fn of_in(runner: Runner, place: &Path, script: &str) -> Self {
        let dir = TempDir::with_prefix_in("co-try-", place).unwrap();
        let top = dir.path().canonicalize().unwrap();
        let scene = Self {
            _dir: dir,
            workspace: top.join("work"),
            home: top.join("home"),
            runner,
            backend: runner.backend(&top),
        };
        for dir in [&scene.workspace, &scene.home] {
            fs::create_dir(dir).unwrap();
        }
        runner.give(&top);
        scene.bash(script);
        scene
    }

    pub(super) fn command(&self, program: &str) -> Command {
        self.with_environment(self.runner.command(program))
    }

    fn with_environment(&self, mut command: Command) -> Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &self.home)
            .current_dir(&self.workspace)
            .stdin(Stdio::null());
        command
    }

    /// Runs a script in the workspace, not as a trial.
    pub(super) fn bash(&self, script: &str) {
        let done = self.command("bash").args(["-ec", script]).output().unwrap();
        assert!(done.status.success(), "{script}: {done:?}");
    }

    pub(super) fn co(&self) -> Command {
        self.with_environment(self.runner.co(&self.backend))
    }

    pub(super) fn try_command(&self, args: &[&str]) -> Command {
        self.command_at(&["--try"], args)
    }

    /// Returns co's program, which runs a command at the level that these options name.
    pub(super) fn command_at(&self, level: &[&str], args: &[&str]) -> Command {
        let mut command = self.co();
        command.arg("exec").args(level).args(args);
        command
    }

    /// Returns the same, for a co that sees the file `hosts` in the place of `/etc/hosts`.
    pub(super) fn command_with_hosts(
        &self,
        hosts: &Path,
        level: &[&str],
        args: &[&str],
    ) -> Command {
        let co = self.command_at(level, args);
        let mut command = self.command(python());
        command.args(["-c", include_str!("../support/hosts.py")]);
        command.arg(hosts).arg(co.get_program()).args(co.get_args());
        command
    }

    pub(super) fn exec(&self, args: &[&str]) -> Output {
        self.try_command(args).output().unwrap()
    }

    pub(super) fn start(&self, args: &[&str]) -> Child {
        let mut command = self.try_command(args);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    pub(super) fn state(&self) -> PathBuf {
        self.home.join(".local/state/co-nvim")
    }

    pub(super) fn files(&self) -> Tree {
        test_tree::read(&self.workspace)
    }

    /// Returns all files of the repository.
    pub(super) fn repository(&self) -> Tree {
        let mut files = self.files();
        files.retain(|path, _| path.starts_with(".git"));
        files
    }

    pub(super) fn keep(&self, script: &str) -> Output {
        self.exec(&["--keep", script])
    }

    /// Starts a trial, with a script of the person before it ends.
    pub(super) fn start_while(&self, trial: &str, person: &str) -> Child {
        self.bash("echo wait > flag");
        let line = format!("{trial} touch made; while grep -q wait flag; do sleep 0.05; done");
        let child = self.start(&["--keep", &line]);
        self.wait_for("made");
        self.bash(person);
        child
    }

    /// Returns the layers of trials.
    pub(super) fn layers(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.state().join("trials")).unwrap();
        let paths = all.map(|it| it.unwrap().path());
        paths.filter(|it| !it.ends_with("ignored")).collect()
    }

    /// Waits until a trial has made a file.
    pub(super) fn wait_for(&self, name: &str) {
        let made = || {
            let layers = fs::read_dir(self.state().join("trials"))
                .into_iter()
                .flatten()
                .flatten();
            let mut paths = layers.map(|it| it.path().join("trial/upper").join(name));
            paths.any(|path| path.exists())
        };
        wait(&format!("no trial made {name}"), made);
    }
}

pub(super) fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < DEADLINE, "{what}");
        std::thread::yield_now();
    }
}

/// Kills co, which is the child of its watchdog, and waits until both have ended.
pub(super) fn kill(watchdog: &mut Child) {
    let pid = i32::try_from(watchdog.id()).unwrap();
    proc::children(pid).into_iter().for_each(proc::kill9);
    watchdog.wait().unwrap();
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the lines of standard error without the time that the command took.
pub(super) fn said(done: &Output) -> Vec<String> {
    let all = text(&done.stderr);
    let lines = all.lines().filter(|line| !line.contains(", after "));
    lines.map(str::to_owned).collect()
}
