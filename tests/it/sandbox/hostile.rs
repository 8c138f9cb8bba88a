//! A table of hostile actions: each does its deed unconfined, and none does when confined.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use serde_json::Value;

use super::scene::{SOMEBODY, Scene, am_root, older, support};
pub(super) use crate::support::runner::python;

const TABLE: &str = concat!(
    include_str!("hostile/base.py"),
    include_str!("hostile/files.py"),
    include_str!("hostile/others.py"),
    include_str!("hostile/secrets.py"),
    include_str!("hostile/system.py"),
    include_str!("hostile/main.py"),
);

/// The rows that a trial may do: in its layer, in shared memory and a `/var/tmp` of its own, and in a network of its own.
const OF_TRIALS: &[&str] = &[
    "add to git's configuration",
    "connect by TCP over IPv6",
    "create a file in /dev/shm",
    "create a file in /var/tmp",
    "listen by TCP",
    "make a hook",
    "send by UDP",
];

/// The targets of the rows outside of the scene's files. All of them end with the test.
struct Outside {
    victim: Child,
    token: String,
    tcp: TcpListener,
    udp: UdpSocket,
    inherited: OwnedFd,
    inherited_dir: OwnedFd,
    terminal: nix::pty::OpenptyResult,
    _sockets: (UnixListener, UnixListener, UnixDatagram, UnixListener),
}

impl Outside {
    fn new(scene: &Scene, user: Option<u32>, name: &str) -> Self {
        let token = format!("co-test-{name}-{}", std::process::id());
        let hidden = SocketAddr::from_abstract_name(&token).unwrap();
        let sockets = (
            UnixListener::bind(scene.ws.join("editor.sock")).unwrap(),
            UnixListener::bind(scene.out.join("docker.sock")).unwrap(),
            UnixDatagram::bind(scene.out.join("log.sock")).unwrap(),
            UnixListener::bind_addr(&hidden).unwrap(),
        );
        let mut victim = scene.plain("sleep");
        victim.arg("300").env("KEY", "hunter2").process_group(0);
        victim.current_dir(scene.home.join(".ssh"));
        let terminal = nix::pty::openpty(None, None).unwrap();
        if let Some(user) = user {
            victim.uid(user).gid(user);
            rustix::fs::fchown(&terminal.slave, Some(rustix::fs::Uid::from_raw(user)), None)
                .unwrap();
        }
        // Without O_CLOEXEC, as a careless library would have it.
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let inherited = rustix::fs::open(scene.ws.join("inherited"), flags, Mode::RWXU).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let inherited_dir =
            rustix::fs::open(scene.home.join(".cargo"), flags, Mode::empty()).unwrap();
        Self {
            victim: victim.stdout(Stdio::null()).spawn().unwrap(),
            token,
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            inherited,
            inherited_dir,
            terminal,
            _sockets: sockets,
        }
    }

    /// Checks that nothing has reached its sockets.
    fn got_nothing(&self) {
        self.udp.set_nonblocking(true).unwrap();
        self.tcp.set_nonblocking(true).unwrap();
        assert!(self.udp.recv(&mut [0]).is_err(), "a datagram arrived");
        assert!(self.tcp.accept().is_err(), "somebody connected");
    }

    fn describe(&self, scene: &Scene, tmp: &std::path::Path, run: &Run) -> String {
        let disk = fs::read_dir("/sys/block")
            .ok()
            .and_then(|mut disks| disks.next());
        let disk = disk.and_then(Result::ok).map(|disk| disk.file_name());
        serde_json::json!({
            "ws": scene.ws, "home": scene.home, "out": scene.out, "tmp": tmp, "free": *run == Run::Free,
            "writes": matches!(run, Run::Workspace | Run::Trial), "inherited_dir": self.inherited_dir.as_raw_fd(),
            "victim": self.victim.id(), "parent": std::process::id(), "token": self.token, "inherited": self.inherited.as_raw_fd(),
            "tcp": self.tcp.local_addr().unwrap().port(), "udp": self.udp.local_addr().unwrap().port(),
            "terminal": nix::unistd::ttyname(&self.terminal.slave).unwrap(),
            "disk": disk.unwrap_or_default().to_string_lossy(),
        })
        .to_string()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

fn rows(mut command: Command, terminal: &OwnedFd) -> BTreeMap<String, Value> {
    let done = command
        .stdin(terminal.try_clone().unwrap())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{} {told}", done.status);
    let text = String::from_utf8(done.stdout).unwrap();
    let each = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    each.map(|row| (row["row"].as_str().unwrap().to_owned(), row))
        .collect()
}

/// The confinement for a run of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Free,
    ReadOnly,
    Workspace,
    Trial,
    /// A trial that also does the rows by which a level that writes changes the workspace.
    WorkingTrial,
}

/// The way in which a table is run.
#[derive(Clone, Copy, Default)]
struct How {
    user: Option<u32>,
    /// The version of Landlock, if not the kernel's own.
    abi: Option<u32>,
    /// True on a kernel without namespaces.
    alone: bool,
}

impl How {
    fn kinds(self) -> &'static str {
        match (am_root(), self.user) {
            (true, None) => "user,root",
            (true, Some(_)) => "user,setuid",
            (false, _) => "user",
        }
    }

    /// A scene with all that the rows work on.
    fn prepare(self, name: &str) -> (Scene, Outside) {
        assert!(
            support().check().is_ok(),
            "no sandbox here: {}",
            support().words()
        );
        let mut scene = Scene::new(self.user);
        if let Some(abi) = self.abi {
            scene = scene.with_abi(abi);
        }
        if self.alone {
            scene = scene.without_namespaces();
        }
        let mut setup = scene.plain(python());
        let set = setup.args(["-c", TABLE, "setup"]).arg(&scene.ws).status();
        assert!(set.unwrap().success());
        let outside = Outside::new(&scene, self.user, name);
        scene.hand_over();
        // Belongs to whoever runs the tests: root's is worth starting for somebody else.
        let setuid = scene.ws.join("setuid-id");
        fs::copy("/usr/bin/id", &setuid).unwrap();
        fs::set_permissions(&setuid, fs::Permissions::from_mode(0o4755)).unwrap();
        (scene, outside)
    }

    /// Checks that every row does its deed unconfined: otherwise its failure would prove nothing.
    fn free(self, name: &str) {
        let (scene, outside) = self.prepare(name);
        let tmp = scene.out.join("tmp");
        fs::create_dir(&tmp).unwrap();
        scene.hand_over_one(&tmp);
        let place = outside.describe(&scene, &tmp, &Run::Free);
        let command = scene.free(&[python(), "-c", TABLE, "run", &place, self.kinds()]);
        let rows = rows(command, &outside.terminal.slave);
        let idle = rows.values().filter(|row| row["did"] == false);
        let (idle, excused): (Vec<_>, Vec<_>) = idle.partition(|row| row["lacks"] == "");
        eprintln!("free, these could not be shown: {excused:#?}");
        // What is excused for a reason of its own must not become the rule.
        assert!(excused.len() * 5 < rows.len(), "{} rows", rows.len());
        assert!(idle.is_empty(), "free, these did nothing: {idle:#?}");
    }

    fn confined(self, name: &str) {
        self.confined_at(name, Run::ReadOnly);
        self.confined_at(name, Run::Workspace);
        if !self.alone {
            self.confined_at(name, Run::Trial);
            self.confined_at(name, Run::WorkingTrial);
        }
    }

    /// No row succeeds, and no file changes.
    fn confined_at(self, name: &str, run: Run) {
        let (scene, outside) = self.prepare(name);
        let level = match run {
            Run::Workspace => scene.workspace(),
            Run::Trial | Run::WorkingTrial => scene.trial(),
            _ => scene.read_only(),
        };
        let (command, _wrapped) = scene.confined_in_tmp(&level, |tmp| {
            let place = outside.describe(&scene, tmp, &run);
            [python(), "-c", TABLE, "run", &place, self.kinds()].map(str::to_owned)
        });
        // This includes the placeholders that the command needs.
        let before = scene.snapshot();
        let rows = rows(command, &outside.terminal.slave);
        assert!(rows.len() >= 80, "{} rows", rows.len());
        let did: Vec<_> = rows.iter().filter(|(_, row)| row["did"] == true).collect();
        let did: Vec<&str> = did.iter().map(|(name, _)| name.as_str()).collect();
        match run {
            Run::Trial => assert_eq!(did, OF_TRIALS),
            Run::WorkingTrial => assert!(did.len() > 30, "{did:#?}"),
            _ => assert!(did.is_empty(), "confined, these went through: {did:#?}"),
        }
        outside.got_nothing();
        let mut after = scene.snapshot();
        after.retain(|path, state| before.get(path) != Some(state));
        assert!(after.is_empty(), "these changed: {after:#?}");
        let gone = before.keys().find(|path| path.symlink_metadata().is_err());
        assert_eq!(gone, None);
    }
}

#[test]
fn as_whoever_runs_the_tests_nothing_harms() {
    let how = How::default();
    how.free("self-free");
    how.confined("self");
}

#[test]
fn as_an_ordinary_user_nothing_harms() {
    // Where the tests run as an ordinary user, the other test has shown it.
    if am_root() {
        let how = How {
            user: Some(SOMEBODY),
            ..How::default()
        };
        how.free("other-free");
        how.confined("other");
    }
}

#[test]
fn older_landlocks_and_the_filter_hold_as_much() {
    let users = [None, Some(SOMEBODY)];
    for user in &users[..if am_root() { 2 } else { 1 }] {
        for abi in older([1, 2, 3, 4, 5]) {
            let how = How {
                user: *user,
                abi: Some(abi),
                alone: true,
            };
            how.confined(&format!("version-{abi}"));
        }
    }
}

#[test]
fn namespaces_hold_beside_the_oldest_landlock() {
    for user in &[None, Some(SOMEBODY)][..if am_root() { 2 } else { 1 }] {
        let how = How {
            user: *user,
            abi: Some(1),
            alone: false,
        };
        how.confined("namespaces");
    }
}
