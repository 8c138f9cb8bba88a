//! A throwaway workspace with a judge for it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use co::workspace::judge::{Judge, JudgeConfig};
use co_exec::{Launcher, Program};
use co_policy::{ApprovalQuestion, Assessment, Pattern, PolicySettings, Verdict};

use crate::support::BACKEND;

/// A workspace, a home beside it, and a directory of programs.
pub(crate) struct World {
    // Removed with everything in it when the world is dropped.
    _dir: tempfile::TempDir,
    pub(crate) workspace: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) bin: PathBuf,
}

impl World {
    /// A repository with a few files, a secret, links and a FIFO.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let world = Self {
            workspace: root.join("work"),
            home: root.join("home"),
            bin: root.join("bin"),
            _dir: dir,
        };
        for name in [
            "work/src",
            "work/d",
            "work/a",
            "work/.co",
            "home/.ssh",
            "other",
            "bin",
        ] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for (name, text) in [
            ("src/main.rs", "fn main() {}\n"),
            ("src/lib.rs", "//! x\n"),
            ("a.txt", "one\ntwo\n"),
            ("b.txt", "two\n"),
            ("f", "x\n"),
            ("b", "y\n"),
            ("package.json", "{\"name\":\"x\"}\n"),
            ("Cargo.toml", "[package]\n"),
            ("README.md", "# x\n"),
            (".env.example", "KEY=\n"),
        ] {
            fs::write(world.workspace.join(name), text).unwrap();
        }
        fs::write(world.home.join(".bashrc"), "x=1\n").unwrap();
        fs::write(world.home.join(".ssh/id_rsa"), "OUTSIDE-SECRET\n").unwrap();
        fs::write(root.join("other/file"), "OUTSIDE\n").unwrap();
        world.git(&["init", "-q", "-b", "main"]);
        world.commit("first");
        for (name, text) in [(".env", "TOKEN=hush\n"), ("server.pem", "x\n")] {
            fs::write(world.workspace.join(name), text).unwrap();
        }
        symlink(root.join("other"), world.workspace.join("out")).unwrap();
        symlink(root.join("nowhere"), world.workspace.join("dangling")).unwrap();
        symlink(".env", world.workspace.join("innocent")).unwrap();
        nix::unistd::mkfifo(&world.workspace.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::create_dir(world.workspace.join("nested-repo")).unwrap();
        world.run("git", &["init", "-q", "nested-repo"]);
        world
    }

    pub(crate) fn git(&self, args: &[&str]) {
        self.run("git", args);
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        let config = [
            "-c",
            "user.name=x",
            "-c",
            "user.email=x@example.org",
            "-c",
            "commit.gpgsign=false",
        ];
        let args = [&config[..], &["commit", "-q", "-m", message]].concat();
        self.git(&args);
    }

    fn run(&self, program: &str, args: &[&str]) {
        let output = Command::new(program)
            .args(args)
            .current_dir(&self.workspace)
            .env("HOME", &self.home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{program} {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Puts a program into the directory that stands first on PATH.
    pub(crate) fn program(&self, name: &str, text: &str) {
        let path = self.bin.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn path(&self) -> OsString {
        let mut path = self.bin.clone().into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        path
    }

    pub(crate) fn judge(&self, settings: PolicySettings) -> (Judge, Vec<String>) {
        let own = vec![self.home.join("co/config.toml")];
        let (judge, problems) = Judge::new(JudgeConfig {
            workspace: self.workspace.clone(),
            home: self.home.clone(),
            path: self.path(),
            settings,
            saved: Default::default(),
            own: own.clone(),
        });
        let launcher = Launcher::new(BACKEND.into(), self.home.clone(), own);
        let env = vec![("PATH".into(), self.path())];
        (judge.with_launcher(launcher, env), problems)
    }
}

pub(crate) fn verdict_in(
    judge: &Judge,
    command: &str,
    cwd: &Path,
    chat_rules: &[Pattern],
) -> Verdict {
    let found = judge.assess(&Program::Shell(command.to_owned()), cwd, true);
    judge.verdict(&found, chat_rules)
}

/// Returns texts as an argument vector, or a list in the settings.
pub(super) fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

/// A world with a judge.
pub(crate) struct Judged {
    pub(crate) world: World,
    pub(crate) judge: Judge,
    /// Sentences about what is wrong with the settings.
    pub(crate) problems: Vec<String>,
}

impl Judged {
    pub(crate) fn new() -> Self {
        Self::with(PolicySettings::default())
    }

    pub(crate) fn with(settings: PolicySettings) -> Self {
        Self::of(World::new(), settings)
    }

    pub(crate) fn of(world: World, settings: PolicySettings) -> Self {
        let (judge, problems) = world.judge(settings);
        Self {
            world,
            judge,
            problems,
        }
    }

    pub(crate) fn verdict(&self, command: &str) -> Verdict {
        verdict_in(&self.judge, command, &self.world.workspace, &[])
    }

    /// Returns the one word for the verdict.
    pub(crate) fn said(&self, command: &str) -> &'static str {
        self.said_with(command, &[])
    }

    pub(crate) fn said_with(&self, command: &str, chat_rules: &[Pattern]) -> &'static str {
        let workspace = &self.world.workspace;
        verdict_in(&self.judge, command, workspace, chat_rules).word()
    }

    pub(crate) fn assess(&self, argv: &[&str]) -> Assessment {
        let program = Program::Argv(texts(argv));
        self.judge.assess(&program, &self.world.workspace, true)
    }

    /// Checks the verdicts of commands.
    #[track_caller]
    pub(crate) fn check(&self, cases: &[(&str, &str)]) {
        for (command, expected) in cases {
            let verdict = self.verdict(command);
            assert_eq!(verdict.word(), *expected, "{command}: {verdict:?}");
        }
    }

    #[track_caller]
    pub(crate) fn check_all(&self, commands: &[&str], expected: &str) {
        for command in commands {
            self.check(&[(command, expected)]);
        }
    }

    /// Returns the question about a command.
    #[track_caller]
    pub(crate) fn question(&self, command: &str) -> ApprovalQuestion {
        match self.verdict(command) {
            Verdict::Ask(question) => question,
            verdict => panic!("{command}: {verdict:?}"),
        }
    }
}
