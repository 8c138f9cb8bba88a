//! `co-nvim exec` as a person uses it, with its own home directory and repositories.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use super::scene::stdout;
use crate::support::runner::Runner;

/// A home directory with a `.bashrc`, and space beside it for workspaces and repositories.
pub(super) struct Machine {
    _top: TempDir,
    runner: Runner,
    backend: PathBuf,
    pub(super) top: PathBuf,
    pub(super) home: PathBuf,
}

impl Machine {
    pub(super) fn new() -> Self {
        Self::of(Runner::default())
    }

    /// A machine for each user and kernel.
    pub(super) fn all() -> Vec<Self> {
        Runner::all().into_iter().map(Self::of).collect()
    }

    /// A machine on which everything belongs to a user, who runs co on a kernel.
    fn of(runner: Runner) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("co-git-")
            .tempdir()
            .unwrap();
        let top = dir.path().canonicalize().unwrap();
        let home = top.join("home");
        fs::create_dir(&home).unwrap();
        fs::write(home.join(".bashrc"), "mine\n").unwrap();
        let backend = runner.backend(&top);
        let who = "[user]\n\tname = A\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n";
        fs::write(home.join(".gitconfig"), who).unwrap();
        runner.give(&top);
        Self {
            _top: dir,
            runner,
            backend,
            top,
            home,
        }
    }

    /// A command with only the person's environment.
    pub(super) fn command(&self, program: impl AsRef<OsStr>, cwd: &Path) -> Command {
        self.with_environment(self.runner.command(program), cwd)
    }

    fn with_environment(&self, mut command: Command, cwd: &Path) -> Command {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &self.home)
            .current_dir(cwd);
        command
    }

    /// Runs a line of bash as the person does.
    #[track_caller]
    pub(super) fn bash(&self, cwd: &Path, line: &str) {
        let done = self.command("bash", cwd).args(["-c", line]).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{line}: {done:?}");
    }

    pub(super) fn exec(&self, cwd: &Path, level: &[&str], line: &str) -> Output {
        let co = self.runner.co(&self.backend);
        let mut command = self.with_environment(co, cwd);
        command.arg("exec").args(level).arg(line);
        command.output().unwrap()
    }

    /// The same machine without namespaces from now on.
    pub(super) fn without_namespaces(self) -> Self {
        let config = self.home.join(".config/co-nvim");
        fs::create_dir_all(&config).unwrap();
        fs::write(config.join("config.toml"), "sandbox_namespaces = false\n").unwrap();
        self
    }

    /// Runs a line of bash at the workspace level.
    pub(super) fn write(&self, cwd: &Path, line: &str) -> Output {
        self.exec(cwd, &["--backend", "landlock"], line)
    }

    /// A directory with files, made as needed.
    pub(super) fn lay(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let dir = self.top.join(name);
        fs::create_dir_all(&dir).unwrap();
        for (file, text) in files {
            let file = dir.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let top = Path::new(name).iter().next().unwrap();
        self.runner.give(&self.top.join(top));
        dir
    }

    /// Checks that a line of bash at the workspace level neither changes nor reads the home directory.
    #[track_caller]
    pub(super) fn home_is_closed(&self, ws: &Path) {
        let home = self.home.display();
        let lines = [
            format!("echo x >> {home}/.bashrc"),
            format!("cat {home}/.bashrc"),
            format!("echo x > {home}/new"),
        ];
        self.each_is_held(ws, &lines.each_ref().map(String::as_str));
        let text = fs::read_to_string(self.home.join(".bashrc")).unwrap();
        assert_eq!(text, "mine\n");
        assert!(!self.home.join("new").exists());
    }

    /// A repository with one commit.
    pub(super) fn repository(&self, name: &str) -> PathBuf {
        let dir = self.lay(name, &[("one.txt", "one\n")]);
        self.bash(&dir, "git init -q && git add . && git commit -qm first");
        dir
    }

    /// Checks that each line fails at the workspace level; all run in one confinement.
    #[track_caller]
    pub(super) fn each_is_held(&self, ws: &Path, lines: &[&str]) {
        let each =
            |line: &&str| format!("( {line} ) 2> /dev/null && echo 'WENT THROUGH: {line}'\n");
        let script: String = lines.iter().map(each).collect();
        let done = self.write(ws, &format!("{script}echo 'AT THE END'"));
        assert_eq!(stdout(&done), "AT THE END\n", "{done:?}");
    }

    /// Checks that each line succeeds unconfined. Otherwise its failure would prove nothing.
    #[track_caller]
    pub(super) fn each_works_free(&self, ws: &Path, lines: &[&str]) {
        for line in lines {
            let copy = self.top.join("copy");
            self.bash(
                &self.top,
                &format!("rm -rf copy && cp -a {} copy", ws.display()),
            );
            self.bash(&copy, line);
        }
    }
}
