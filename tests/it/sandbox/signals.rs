//! Confined commands cannot stop or kill the backend, its guard or another process of the person, at any version of
//! Landlock.

use std::fs;
use std::io::Read;
use std::process::{Child, Stdio};

use super::hostile::python;
use super::scene::am_root;
use super::user_home::UserHome;
use crate::support::runner::OLDER;
use crate::support::{DEADLINE, proc};

/// A user that is neither the tests' own nor that of another test.
const SOMEBODY: u32 = 54_325;

/// Tries all ways to signal, and prints those that succeeded.
const ACTIONS: &str = include_str!("signals.py");

/// A kernel with or without namespaces.
#[derive(Debug, Clone, Copy)]
struct Kernel {
    /// The version of Landlock, or 0 for the kernel's own.
    landlock: &'static str,
    namespaces: bool,
}

/// Without namespaces, Landlock and the filter alone keep signals in.
const KERNELS: [Kernel; 6] = [
    Kernel::new("0", true),
    Kernel::new("1", true),
    Kernel::new("0", false),
    Kernel::new("1", false),
    Kernel::new("4", false),
    Kernel::new("5", false),
];

impl Kernel {
    const fn new(landlock: &'static str, namespaces: bool) -> Self {
        Self {
            landlock,
            namespaces,
        }
    }
}

/// A user's home, with a process of that user.
struct Place {
    home: UserHome,
    victim: Child,
}

impl Place {
    fn new(user: Option<u32>) -> Self {
        let home = UserHome::new(user);
        // Its session is its own: in a container, the one of the tests may be outside, where it has no number.
        let victim = home.command("setsid").args(["sleep", "300"]).spawn();
        Self {
            home,
            victim: victim.unwrap(),
        }
    }

    /// Returns the output of the actions of a command at a level.
    #[track_caller]
    fn reached(&self, kernel: Kernel, level: &[&str], how: &str) -> String {
        let targets = self.home.work().join("targets");
        let _ = fs::remove_file(&targets);
        let mut command = self.home.command(python());
        command.args(["-c", OLDER, kernel.landlock]);
        command.arg(self.home.exe()).arg("exec");
        command.args(level).args(["--", python(), "-c", ACTIONS]);
        command.arg(&targets).arg(how);
        command.env("CO_CLI_SANDBOX_NAMESPACES", kernel.namespaces.to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = Running(command.spawn().unwrap());
        let older = i32::try_from(running.0.id()).unwrap();
        // Each one starts the next, and the backend the command.
        let [guard, backend] = proc::wait_until(DEADLINE, "the command", || {
            let guard = *proc::children(older).first()?;
            let backend = *proc::children(guard).first()?;
            proc::children(backend).first()?;
            Some([guard, backend])
        });
        let text = format!("{backend} {guard} {}", self.victim.id());
        fs::write(targets.with_extension("new"), text).unwrap();
        fs::rename(targets.with_extension("new"), targets).unwrap();
        // A stopped process does not end.
        let ended = || running.0.try_wait().unwrap();
        proc::wait_until(DEADLINE, "the end of the backend", ended);
        let mut printed = String::new();
        let mut output = running.0.stdout.take().unwrap();
        output.read_to_string(&mut printed).unwrap();
        printed
    }
}

/// A backend. When dropped, it is killed with its commands.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).unwrap();
        let all = proc::descendants(pid);
        all.into_iter().chain([pid]).for_each(proc::kill9);
        let _ = self.0.wait();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

#[track_caller]
fn nobody_is_reached(user: Option<u32>) {
    let mut place = Place::new(user);
    let free = place.reached(KERNELS[0], &["--backend", "subprocess"], "harmless");
    for name in ["the backend", "its guard", "the person's"] {
        assert!(free.contains(&format!("{name} by its number")), "{free}");
    }
    for kernel in KERNELS {
        for level in [&["--read-only"][..], &["--backend", "landlock"]] {
            let reached = place.reached(kernel, level, "deadly");
            assert_eq!(reached, "done\n", "{kernel:?}, {level:?}");
        }
    }
    assert_eq!(place.victim.try_wait().unwrap(), None);
}

#[test]
fn whoever_runs_the_tests_reaches_nobody() {
    nobody_is_reached(None);
}

#[test]
fn an_ordinary_user_reaches_nobody() {
    // If the tests run as an ordinary user, the other test covers this.
    if am_root() {
        nobody_is_reached(Some(SOMEBODY));
    }
}
