//! A throwaway place: a home with secrets, a workspace that is a repository, and what lies beside.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use co_exec::Confinement;
use co_exec::sandbox::{ConfinedCommand, Launcher, SandboxSupport};

use crate::exec::levels;
use crate::support::BACKEND;
pub(super) use crate::support::runner::{SOMEBODY, am_root};

/// Below the home directory, each with a secret in it.
const SECRETS: &[&str] = &[
    ".ssh/id",
    ".aws/credentials",
    ".gnupg/key",
    ".kube/config",
    ".netrc",
    ".docker/config.json",
    ".git-credentials",
    ".config/git/credentials",
    ".cargo/credentials.toml",
    ".npmrc",
    ".pypirc",
    ".bash_history",
    ".python_history",
    ".mozilla/profile",
    ".config/gh/hosts.yml",
    ".pgpass",
    ".password-store/key",
    ".local/share/keyrings/login",
    ".local/state/co/chats",
    ".config/co/key",
    "other-project/.env",
];

pub(super) struct Scene {
    top: tempfile::TempDir,
    pub(super) ws: PathBuf,
    pub(super) home: PathBuf,
    pub(super) out: PathBuf,
    /// The layer of trials.
    pub(super) layer: PathBuf,
    pub(super) launcher: Launcher,
    /// The PATH of every command.
    pub(super) path: OsString,
    /// The user of the commands; none if it is the user of the tests.
    user: Option<u32>,
}

impl Scene {
    pub(super) fn new(user: Option<u32>) -> Self {
        let top = tempfile::Builder::new()
            .prefix("co-scene-")
            .tempdir()
            .unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let real = top.path().canonicalize().unwrap();
        let [ws, home, out, layer] = ["ws", "home", "out", "layer"].map(|name| real.join(name));
        for path in [&ws, &home, &out, &layer] {
            fs::create_dir(path).unwrap();
        }
        for name in SECRETS {
            let path = home.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "hunter2\n").unwrap();
        }
        fs::create_dir_all(home.join(".cargo/bin")).unwrap();
        fs::write(
            home.join(".gitconfig"),
            "[user]\n\tname = A\n\temail = a@example.org\n",
        )
        .unwrap();
        std::os::unix::fs::symlink(home.join(".ssh/id"), ws.join("link-to-key")).unwrap();
        copy_program(&real);
        let (exe, own) = (real.join("co-nvim"), own(&home));
        let launcher = Launcher::with_support(exe, home.clone(), own, support().clone());
        let scene = Self {
            top,
            ws,
            home,
            out,
            layer,
            launcher,
            path: std::env::var_os("PATH").unwrap(),
            user,
        };
        scene.repository();
        scene
    }

    /// The same, on a kernel without namespaces.
    pub(super) fn without_namespaces(mut self) -> Self {
        self.launcher = self.launcher.namespaces(false);
        self
    }

    /// The same, on a kernel with this version of Landlock.
    pub(super) fn with_abi(mut self, abi: u32) -> Self {
        let support = SandboxSupport {
            abi: Some(abi),
            ..support().clone()
        };
        let (exe, home) = (self.exe(), self.home.clone());
        self.launcher = Launcher::with_support(exe, home, own(&self.home), support);
        self
    }

    /// The same with a launcher that probes the kernel first, as everywhere but in most tests.
    pub(super) fn with_probe(mut self, limit: Duration) -> Self {
        let launcher = Launcher::new(self.exe(), self.home.clone(), own(&self.home));
        self.launcher = launcher.probe_limit(limit);
        self
    }

    /// Its copy of the backend.
    pub(super) fn exe(&self) -> PathBuf {
        self.home.with_file_name("co-nvim")
    }

    fn repository(&self) {
        fs::write(self.ws.join("one.txt"), "one\ntwo\nthree\n").unwrap();
        fs::write(self.ws.join("data.json"), "{\"a\": [1, 2]}\n").unwrap();
        for git in [
            &["init", "-q", "-b", "main"][..],
            &["add", "one.txt", "data.json"],
            &["commit", "-q", "-m", "first"],
        ] {
            let done = self.plain("git").args(git).output().unwrap();
            assert!(done.status.success(), "{done:?}");
        }
        fs::write(self.ws.join("one.txt"), "one\n2\nthree\n").unwrap();
    }

    /// The directory of all its files.
    pub(super) fn root(&self) -> &Path {
        self.home.parent().unwrap()
    }

    /// The environment of every command, with what must not reach a confined one.
    pub(super) fn env(&self) -> Vec<(OsString, OsString)> {
        let mut env: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), self.path.clone()),
            ("HOME".into(), self.home.clone().into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("NVIM".into(), self.ws.join("editor.sock").into()),
            ("NVIM_LISTEN_ADDRESS".into(), "x".into()),
            ("SSH_AUTH_SOCK".into(), "x".into()),
            ("DBUS_SESSION_BUS_ADDRESS".into(), "x".into()),
            ("TMPDIR".into(), self.top.path().into()),
            ("GIT_OPTIONAL_LOCKS".into(), "0".into()),
        ];
        for name in ["CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT"] {
            let default = std::env::home_dir().unwrap().join(format!(
                ".{}",
                name.split('_').next().unwrap().to_lowercase()
            ));
            let value = std::env::var_os(name).unwrap_or_else(|| default.into());
            env.push((name.into(), value));
        }
        env
    }

    /// A command that is not confined.
    pub(super) fn plain(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.env()).current_dir(&self.ws);
        command.stdin(Stdio::null());
        command
    }

    pub(super) fn read_only(&self) -> Confinement {
        let [read_only, _] = levels(&self.ws);
        read_only
    }

    pub(super) fn workspace(&self) -> Confinement {
        let [_, workspace] = levels(&self.ws);
        workspace
    }

    /// A trial, with a layer that only this scene has.
    pub(super) fn trial(&self) -> Confinement {
        Confinement::Trial {
            workspace: self.ws.clone(),
            layer: self.layer.clone(),
            ignored: None,
            caches: None,
            places: co_exec::GrantedPlaces::default(),
        }
    }

    /// A confined command, with the temporary directory that must outlive it.
    pub(super) fn confined(
        &self,
        level: &Confinement,
        argv: &[&str],
    ) -> (Command, ConfinedCommand) {
        let mut env = self.env();
        let argv = argv.iter().map(OsString::from).collect();
        let held = level.level().unwrap();
        let wrapped = self.launcher.wrap(held, argv, &mut env, &self.ws).unwrap();
        wrapped.share_plan().unwrap();
        let mut command = Command::new(&wrapped.argv[0]);
        command.args(&wrapped.argv[1..]).env_clear().envs(env);
        command.current_dir(&self.ws).stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
            let tmp = wrapped.tmp.as_ref().map(|tmp| tmp.path().to_owned());
            let layer = match level {
                Confinement::Trial { layer, .. } => walk(layer),
                _ => Vec::new(),
            };
            for path in tmp.into_iter().chain(layer) {
                std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
            }
        }
        (command, wrapped)
    }

    /// Starts a command, makes a change, and returns what the command's `line` prints after that.
    pub(super) fn after(&self, level: &Confinement, line: &str, change: impl FnOnce()) -> String {
        let text = format!("echo ready; read -r; {line}");
        let (mut command, _wrapped) = self.confined(level, &["bash", "-c", &text]);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = piped.stderr(Stdio::null()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut told = String::new();
        output.read_line(&mut told).unwrap();
        assert_eq!(told, "ready\n");
        change();
        drop(child.stdin.take());
        told.clear();
        output.read_to_string(&mut told).unwrap();
        child.wait().unwrap();
        told
    }

    /// The same for a command line that names its temporary directory.
    pub(super) fn confined_in_tmp(
        &self,
        level: &Confinement,
        argv: impl FnOnce(&Path) -> [String; 6],
    ) -> (Command, ConfinedCommand) {
        let (mut command, mut wrapped) = self.confined(level, &[]);
        let argv = argv(wrapped.tmp.as_ref().unwrap().path());
        command.args(&argv);
        wrapped.argv.extend(argv.map(OsString::from));
        (command, wrapped)
    }

    /// A command that is not confined, by the scene's user.
    pub(super) fn free(&self, argv: &[&str]) -> Command {
        let mut command = self.plain(argv[0]);
        command.args(&argv[1..]);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    pub(super) fn run(&self, level: &Confinement, argv: &[&str]) -> Output {
        let (mut command, _wrapped) = self.confined(level, argv);
        command.output().unwrap()
    }

    /// Runs a line of bash at a level.
    pub(super) fn bash(&self, level: &Confinement, line: &str) -> Output {
        self.run(level, &["bash", "--noprofile", "--norc", "-c", line])
    }

    /// Gives everything to the scene's user.
    pub(super) fn hand_over(&self) {
        let Some(user) = self.user else { return };
        for path in walk(self.top.path()) {
            std::os::unix::fs::lchown(&path, Some(user), Some(user)).unwrap();
        }
    }

    /// Gives one file to the scene's user.
    pub(super) fn hand_over_one(&self, path: &Path) {
        if let Some(user) = self.user {
            std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
        }
    }

    /// Everything about every file that a hostile command could change.
    pub(super) fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let describe = |path: &Path| {
            let m = path.symlink_metadata().unwrap();
            let text = if m.is_file() {
                fs::read(path).unwrap()
            } else {
                Vec::new()
            };
            format!(
                "mode {:o} owner {}:{} links {} written {}.{} changed {}.{} holds {:?}",
                m.mode(),
                m.uid(),
                m.gid(),
                m.nlink(),
                m.mtime(),
                m.mtime_nsec(),
                m.ctime(),
                m.ctime_nsec(),
                String::from_utf8_lossy(&text),
            )
        };
        let parts = [&self.ws, &self.home, &self.out];
        let paths = parts.into_iter().flat_map(|part| walk(part));
        paths.map(|path| (path.clone(), describe(&path))).collect()
    }
}

/// Returns the features of this kernel, tried once for all tests.
pub(super) fn support() -> &'static SandboxSupport {
    static SUPPORT: OnceLock<SandboxSupport> = OnceLock::new();
    SUPPORT.get_or_init(|| {
        let launcher = Launcher::new(BACKEND.into(), "/nonexistent".into(), Vec::new());
        launcher.support().clone()
    })
}

/// The versions of Landlock that this kernel can emulate.
pub(super) fn older<const N: usize>(versions: [u32; N]) -> impl Iterator<Item = u32> {
    let own = support().abi.unwrap_or(0);
    versions.into_iter().filter(move |version| *version <= own)
}

/// By another process: while this one has a program open to write it, a child of another test holds it
/// open too, and it cannot be started.
pub(super) fn copy_program(to: &Path) {
    let mut cp = Command::new("cp");
    let copied = cp.args([Path::new(BACKEND), to]).status();
    assert!(copied.unwrap().success());
}

fn own(home: &Path) -> Vec<PathBuf> {
    vec![home.join(".local/state/co"), home.join(".config/co")]
}

fn walk(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.symlink_metadata().unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            found.extend(walk(&entry.unwrap().path()));
        }
    }
    found
}

pub(super) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
