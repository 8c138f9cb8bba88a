//! Commands cannot find the person's keys in the backend or its guard.

use std::fs;
use std::process::{Child, Stdio};

use super::hostile::python;
use super::scene::am_root;
use super::user_home::UserHome;
use crate::support::{DEADLINE, proc};

/// A user that is neither the tests' own nor that of another test.
const SOMEBODY: u32 = 54_323;

/// Prints the possible attacks on the backend and the guard.
const REACH: &str = r#"
import ctypes, os
def parent(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(") ", 1)[1].split()[1])
libc = ctypes.CDLL(None, use_errno=True)
backend = os.getppid()
for pid in (backend, parent(backend)):
    for name in ("environ", "mem", "maps", "fd"):
        try:
            path = f"/proc/{pid}/{name}"
            os.listdir(path) if name == "fd" else open(path, "rb").close()
            print(name)
        except PermissionError:
            pass
    if libc.ptrace(0x4206, pid, 0, 0) == 0:
        print("ptrace")
print("done")
"#;

/// A user's home, and a process of that user that has the key.
struct Place {
    home: UserHome,
    key: String,
    control: Child,
}

impl Place {
    fn new(user: Option<u32>) -> Self {
        let home = UserHome::new(user);
        let key = format!("sk-{}-{}", std::process::id(), user.unwrap_or(0));
        let mut sleep = home.command("sleep");
        sleep.arg("300").env("KEY", &key).stdout(Stdio::null());
        let control = sleep.spawn().unwrap();
        let environ = format!("/proc/{}/environ", control.id());
        proc::wait_until(DEADLINE, "a process with the key", || {
            let environ = fs::read(&environ).ok()?;
            let text = String::from_utf8_lossy(&environ);
            text.contains(&key).then_some(())
        });
        Self { home, key, control }
    }

    /// Runs a command unconfined by a backend whose environment holds keys.
    fn exec(&self, argv: &[&str]) -> String {
        let mut command = self.home.exec();
        command.args(["--backend", "subprocess"]).args(argv);
        command.env("OPENAI_API_KEY", &self.key);
        command
            .env("CO_CLI_API_KEY_ENV", "WORK")
            .env("WORK", &self.key);
        command.env("CO_CLI_HEADERS", format!("X-Api-Key={}", self.key));
        let done = command.output().unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.control.kill();
        let _ = self.control.wait();
    }
}

fn users() -> Vec<Option<u32>> {
    if am_root() {
        vec![None, Some(SOMEBODY)]
    } else {
        vec![None]
    }
}

#[test]
fn no_process_shows_a_key_in_its_environment() {
    for user in users() {
        let place = Place::new(user);
        // The pattern is no key itself.
        let pattern = place.key.replacen("sk", "s[k]", 1);
        let search = format!("grep -la '{pattern}' /proc/[0-9]*/environ 2> /dev/null");
        let found = place.exec(&[&search]);
        let control = format!("/proc/{}/environ", place.control.id());
        assert_eq!(found.lines().collect::<Vec<_>>(), [control], "{user:?}");
    }
}

#[test]
fn an_ordinary_user_s_command_cannot_look_into_the_backend_or_its_guard() {
    let user = if am_root() { Some(SOMEBODY) } else { None };
    let place = Place::new(user);
    fs::write(place.home.work().join("reach.py"), REACH).unwrap();
    let line = format!("exec {} reach.py", python());
    let reached = place.exec(&[&line]);
    assert_eq!(reached, "done\n");
}
