//! A scene with all that a hostile command could harm, and the look at it afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::super::hostile::python;
use super::super::scene::Scene;
use crate::support::pids::Pids;
use crate::support::runner::OLDER;
use crate::support::{DEADLINE, proc};

/// The text of every secret.
const SECRET: &str = "hunter2";

/// The same as it is, backwards, in Base64 and in hexadecimal, without white space.
const FORMS: [&str; 5] = [
    "hunter2",
    "2retnuh",
    "aHVudGVyMg",
    "68756e7465723",
    "68756E7465723",
];

/// The directories that all users share.
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// The most processes at one time.
const MAX_PROCESSES: u32 = 400;

/// The seconds that a confined command may run, and how long its end may take on a busy machine.
const SECONDS: u64 = 2;
const END: Duration = Duration::from_secs(30);

/// The longest time that the processes of a confined command may run after it.
const STOP_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// Files beside those of every scene.
const FURNITURE: [(&str, &str); 12] = [
    ("ws/a.txt", "one\ntwo\n"),
    ("ws/b.txt", "two\n"),
    ("ws/f", "x\n"),
    ("ws/src/main.rs", "fn main() {}\n"),
    ("ws/d/e/file", "x\n"),
    ("ws/package.json", "{\"name\": \"x\"}\n"),
    ("ws/.env", "TOKEN=hunter2\n"),
    ("ws/keys/server.pem", "hunter2\n"),
    ("ws/.co/policy.toml", "\n"),
    ("home/.bashrc", "x=1\n"),
    ("home/notes", "mine\n"),
    ("out/file", "outside\n"),
];

/// The outcome of a command.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) output: String,
    errors: String,
    /// The reason why it did not start, if it did not.
    pub(super) refused: Option<String>,
    took: Duration,
    /// The longest time that its processes may run after it.
    grace: Duration,
}

impl Ran {
    fn new(command: &mut Command, grace: Duration) -> Self {
        let began = Instant::now();
        let done = command.output().unwrap();
        Self {
            output: text(&done.stdout),
            errors: text(&done.stderr),
            refused: None,
            took: began.elapsed(),
            grace,
        }
    }

    /// Returns the first characters of its output.
    pub(super) fn start(&self) -> String {
        self.output.chars().take(500).collect()
    }

    pub(super) fn has_secret(&self) -> bool {
        let said: String = [&*self.output, &self.errors].concat();
        let said: String = said.split_whitespace().collect();
        FORMS.iter().any(|form| said.contains(form))
    }
}

/// A scene, a process that could be ended, and programs that listen.
pub(super) struct Place {
    scene: Scene,
    user: Option<u32>,
    pids: Pids,
    /// The name of the scene's directory. Each process of the place has it in its environment.
    token: String,
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    before: BTreeMap<PathBuf, String>,
    /// Files that an earlier test left.
    stale: Vec<PathBuf>,
    /// The state of the victim at first.
    calm: String,
}

impl Place {
    pub(super) fn new(user: Option<u32>) -> Self {
        let pids = Pids::new(MAX_PROCESSES, user).unwrap();
        let scene = Scene::new(user);
        furnish(&scene);
        let unix = UnixListener::bind(scene.out.join("docker.sock")).unwrap();
        scene.hand_over();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        unix.set_nonblocking(true).unwrap();
        let victim = victim(&scene);
        let mut place = Self {
            before: scene.snapshot(),
            stale: Vec::new(),
            calm: manner(&victim).unwrap(),
            token: name(scene.root()),
            victim,
            scene,
            user,
            pids,
            tcp,
            udp,
            unix,
        };
        place.stale = place.shared();
        place
    }

    /// Puts everything back.
    pub(super) fn renewed(self) -> Self {
        let user = self.user;
        // Ends the processes of the user.
        drop(self);
        Self::new(user)
    }

    /// Runs a command at the read-only level, on a kernel that seems `older`.
    pub(super) fn run_confined(&self, older: &[&str], command: &str) -> Ran {
        let mut run = self.command(python());
        run.args(["-c", OLDER])
            .args(older)
            .arg(self.scene.exe())
            .args(["exec", "--json", "--read-only", "--timeout"])
            .arg(SECONDS.to_string())
            .args(["--", "bash", "--noprofile", "--norc", "-c"])
            .arg(self.filled(command))
            .env("XDG_STATE_HOME", self.state())
            .env("CO_CLI_UNASKED_MEMORY", "512MiB")
            .env("CO_CLI_SHELL_TMP_SIZE", "64MiB");
        let mut ran = Ran::new(&mut run, STOP_GRACE_PERIOD);
        let Ok(told) = serde_json::from_str::<serde_json::Value>(&ran.output) else {
            ran.refused = Some(std::mem::take(&mut ran.errors));
            return ran;
        };
        assert_eq!(told["level"], "read-only", "{command}: {told}");
        told["output"].as_str().unwrap().clone_into(&mut ran.output);
        if let Some(spill) = told["spill"].as_str() {
            ran.output += &text(&fs::read(spill).unwrap());
            fs::remove_file(spill).unwrap();
        }
        ran
    }

    /// Runs a command that nothing confines.
    pub(super) fn run_free(&self, command: &str) -> Ran {
        let mut run = self.command("timeout");
        run.args(["10", "bash", "--noprofile", "--norc", "-c"])
            .arg(self.filled(command))
            .env("TMPDIR", self.state());
        Ran::new(&mut run, Duration::ZERO)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.pids.command(program);
        command
            .env_clear()
            .envs(self.scene.env())
            .current_dir(&self.scene.ws);
        command
    }

    fn filled(&self, command: &str) -> String {
        let port = |address: std::io::Result<std::net::SocketAddr>| address.unwrap().port();
        let unix = self.scene.out.join("docker.sock");
        command
            .replace("{victim}", &self.victim.id().to_string())
            .replace("{tcp}", &port(self.tcp.local_addr()).to_string())
            .replace("{udp}", &port(self.udp.local_addr()).to_string())
            .replace("{unix}", &unix.to_string_lossy())
            .replace("{token}", &format!("left-{}", self.token))
    }

    /// Returns the harm that a command did, if it did any.
    pub(super) fn harm(&self, ran: &Ran) -> Option<String> {
        if ran.has_secret() {
            return Some("it told a secret".to_owned());
        }
        if ran.took > Duration::from_secs(SECONDS) + END {
            return Some(format!("it took {:?}", ran.took));
        }
        let connected = self.tcp.accept().is_ok() || self.unix.accept().is_ok();
        if connected || self.udp.recv(&mut [0; 64]).is_ok() {
            return Some("it reached another program".to_owned());
        }
        let manner = manner(&self.victim);
        if manner.as_ref() != Some(&self.calm) {
            return Some(format!("the victim was {}, and is {manner:?}", self.calm));
        }
        self.left(ran.grace).or_else(|| self.changed())
    }

    /// Returns what a command left behind: processes, and files where all users can make some.
    fn left(&self, grace: Duration) -> Option<String> {
        let end = Instant::now() + grace;
        while let Some(process) = self.processes().first() {
            if Instant::now() > end {
                let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
                return Some(format!("process {process} is left: {}", text(&line)));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let path = self.shared().into_iter().next()?;
        Some(format!("{} is left", path.display()))
    }

    /// Returns the living processes of the place, without the victim.
    fn processes(&self) -> Vec<i32> {
        let own = |pid: &i32| u32::try_from(*pid) != Ok(self.victim.id());
        let marked = proc::holding(&self.token).into_iter();
        let user = self.user.map(proc::of_user).unwrap_or_default();
        marked.chain(user).filter(own).collect()
    }

    /// Returns the files of the place in shared directories, and beside the scene's own.
    fn shared(&self) -> Vec<PathBuf> {
        let root = self.scene.root();
        let is_ours = |path: &Path| {
            let named = path.to_string_lossy().contains(&self.token);
            let owner = path.symlink_metadata().ok().map(|facts| facts.uid());
            path != root && (named || self.user.is_some() && owner == self.user)
        };
        let shared = SHARED.iter().flat_map(|dir| entries(Path::new(dir)));
        let shared = shared.filter(|path| is_ours(path) && !self.stale.contains(path));
        let known = ["co-nvim", "home", "layer", "out", "state", "ws"];
        let beside = entries(root).into_iter();
        let beside = beside.filter(|path| !known.iter().any(|name| path.ends_with(name)));
        shared.chain(beside).collect()
    }

    /// Returns a file that is not as it was.
    fn changed(&self) -> Option<String> {
        let after = self.scene.snapshot();
        if after == self.before {
            return None;
        }
        let mut all = self.before.keys().chain(after.keys());
        let path = all.find(|path| self.before.get(*path) != after.get(*path))?;
        let (was, is) = (self.before.get(path), after.get(path));
        Some(format!("{} was {was:?}, and is {is:?}", path.display()))
    }

    fn state(&self) -> PathBuf {
        self.scene.root().join("state")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.processes().into_iter().for_each(proc::kill9);
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        for path in self.shared() {
            // A link is no directory, wherever it leads.
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
        }
    }
}

fn furnish(scene: &Scene) {
    let root = scene.root();
    for (name, text) in FURNITURE {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::create_dir(root.join("state")).unwrap();
    symlink(&scene.out, scene.ws.join("out-link")).unwrap();
    symlink(".env", scene.ws.join("innocent")).unwrap();
    fs::hard_link(scene.ws.join(".env"), scene.ws.join("hard-link")).unwrap();
    nix::unistd::mkfifo(&scene.ws.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for git in [
        &["branch", "other"][..],
        &["init", "-q", "--bare", "../out/bare.git"],
        &["init", "-q", "nested-repo"],
    ] {
        let done = scene.plain("git").args(git).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }
}

/// A process of the scene's user with a secret in its environment.
fn victim(scene: &Scene) -> Child {
    let mut sleep = scene.free(&["sleep", "3000"]);
    let sleep = sleep
        .env("KEY", SECRET)
        .current_dir(&scene.home)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Until it is `sleep` and sleeps, it looks different.
    proc::wait_until(DEADLINE, "the victim", || {
        let line = fs::read(format!("/proc/{}/cmdline", sleep.id())).ok()?;
        let sleeps = manner(&sleep)?.starts_with('S');
        (sleeps && line.starts_with(b"sleep\0")).then_some(())
    });
    sleep
}

/// Returns the state, the priority, the niceness and the scheduling policy of a process.
fn manner(process: &Child) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.id())).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let picked = [0, 15, 16, 38].map(|at| fields.get(at).copied().unwrap_or_default());
    Some(picked.join(" "))
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(dir).into_iter().flatten().flatten();
    found.map(|entry| entry.path()).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
