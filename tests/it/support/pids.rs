//! A place with a limit on the number of processes, for programs that multiply.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time that anything may run there, in seconds.
const SECONDS: &str = "60";

/// The place. Dropping it removes its control group and kills the processes in the group.
pub(crate) struct Pids {
    most: u32,
    holder: Holder,
}

/// The limit on the number of processes.
enum Holder {
    /// A control group: no weaker limit holds for root.
    Group(PathBuf),
    /// The limit of a user that only this test has.
    User(u32),
    /// The limit of the user of the tests, beyond the processes that run already.
    Own,
}

impl Pids {
    /// Makes a place for `user`, or for the user of the tests.
    ///
    /// None where root cannot be held to a number: then nothing that multiplies may be started.
    pub(crate) fn new(most: u32, user: Option<u32>) -> Option<Self> {
        let root = rustix::process::geteuid().is_root();
        let holder = match user {
            Some(user) => Holder::User(user),
            None if root => Holder::Group(group(most)?),
            None => Holder::Own,
        };
        Some(Self { most, holder })
    }

    /// A command that is in the place from its first instruction on.
    pub(crate) fn command(&self, program: &str) -> Command {
        let enter = match &self.holder {
            Holder::Group(path) => format!("echo $$ > '{}/cgroup.procs'", path.display()),
            Holder::User(_) => format!("ulimit -u {}", self.most),
            Holder::Own => format!(
                "ulimit -u $(($(ps -L -o lwp= -u $(id -u) | wc -l) + {}))",
                self.most
            ),
        };
        let line = format!("{enter} || exit 99; exec timeout -s KILL {SECONDS} \"$0\" \"$@\"");
        let mut command = Command::new("/bin/bash");
        command
            .args(["--noprofile", "--norc", "-c", &line, program])
            .stdin(Stdio::null());
        if let Holder::User(user) = self.holder {
            command.uid(user).gid(user);
        }
        command
    }
}

impl Drop for Pids {
    fn drop(&mut self) {
        let Holder::Group(path) = &self.holder else {
            return;
        };
        let end = Instant::now() + Duration::from_secs(10);
        while std::fs::remove_dir(path).is_err() && Instant::now() < end {
            let inside = std::fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
            for pid in inside.lines().filter_map(|pid| pid.parse().ok()) {
                super::proc::kill9(pid);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A control group for at most this number of processes, in either version.
fn group(most: u32) -> Option<PathBuf> {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("co-test-{}-{number}", std::process::id());
    ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"]
        .iter()
        .map(|parent| Path::new(parent).join(&name))
        .find(|path| {
            let made = std::fs::create_dir(path).is_ok();
            let held = made && std::fs::write(path.join("pids.max"), most.to_string()).is_ok();
            if made && !held {
                let _ = std::fs::remove_dir(path);
            }
            held
        })
}
