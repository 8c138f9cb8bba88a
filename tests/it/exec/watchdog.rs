//! The backend and its watchdog: either sees to what the other one leaves.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::{BACKEND, holding};
use crate::support::{DEADLINE, proc};

/// A backend that runs one command; ended with what it started when dropped.
struct Backend {
    child: Child,
    watchdog: i32,
    state: TempDir,
}

impl Backend {
    /// Starts a backend, and waits for the command's first line.
    fn start(args: &[&str]) -> Self {
        let state = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&state.path().join("gate"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut child = Command::new(BACKEND)
            .arg("exec")
            .args(args)
            .current_dir(state.path())
            .env("XDG_STATE_HOME", state.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The end of a line is shown with the next one.
        let mut up = [0; 2];
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut up).unwrap();
        assert_eq!(&up, b"up");
        let watchdog = i32::try_from(child.id()).unwrap();
        Self {
            child,
            watchdog,
            state,
        }
    }

    fn supervised(&self) -> i32 {
        proc::children(self.watchdog)[0]
    }

    /// A pipe in its directory, from which a command can wait for a line.
    fn gate(&self) -> std::path::PathBuf {
        self.state.path().join("gate")
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command line of a `sleep` by which the tests find it: no other run of the tests may have the same.
fn sleeping(seconds: &str) -> String {
    format!("sleep\0{}", own(seconds))
}

fn own(seconds: &str) -> String {
    format!("{seconds}.{}", std::process::id())
}

/// Waits until the `sleep` of these seconds is gone.
fn gone(seconds: &str) {
    let line = sleeping(seconds);
    proc::wait_until(DEADLINE, &line, || holding(&line).is_empty().then_some(()));
}

/// Waits until the `sleep` of these seconds runs.
fn there(seconds: &str) {
    let line = sleeping(seconds);
    proc::wait_until(DEADLINE, &line, || {
        (!holding(&line).is_empty()).then_some(())
    });
}

/// Orphaned processes without their environment: in their own session, and in their own group.
fn escaped(seconds: &str) -> String {
    let seconds = own(seconds);
    format!(
        "(env -i setsid sh -c 'sleep {seconds} & sleep {seconds}' &); set -m; (env -i sleep {seconds} &); \
         echo up; sleep 300"
    )
}

#[test]
fn what_escaped_a_killed_backend_is_ended_by_its_watchdog() {
    let mut backend = Backend::start(&[&escaped("3511")]);
    there("3511");
    proc::kill9(backend.supervised());
    assert_eq!(backend.code(), Some(137));
    // The watchdog ends only when nothing is left.
    assert!(holding(&sleeping("3511")).is_empty());
}

#[test]
fn what_escaped_is_ended_by_the_backend_when_its_watchdog_is_killed() {
    let mut backend = Backend::start(&[&escaped("3512")]);
    there("3512");
    proc::kill9(backend.watchdog);
    assert_eq!(backend.code(), None);
    gone("3512");
}

#[test]
fn a_confined_command_ends_when_both_are_killed_at_once() {
    for level in [&["--try"][..], &["--read-only"], &["--backend", "landlock"]] {
        let workspace = tempfile::tempdir().unwrap();
        let cwd = workspace.path().to_str().unwrap();
        let line = format!("echo up; setsid sleep {0} & sleep {0}", own("3517"));
        let backend = Backend::start(&[level, &["--cwd", cwd, &line]].concat());
        there("3517");
        let both = [backend.watchdog, backend.supervised()];
        // So neither sees the end of the other.
        both.iter().for_each(|pid| stop(*pid));
        both.iter().for_each(|pid| proc::kill9(*pid));
        gone("3517");
    }
}

#[test]
fn a_signal_reaches_the_backend() {
    use nix::sys::signal::{Signal, kill};
    // A hang-up ends it, and the watchdog what it leaves.
    for (signal, code) in [
        (Signal::SIGINT, 143),
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
    ] {
        let mut backend = Backend::start(&[&format!("echo up; sleep {}", own("3513"))]);
        kill(nix::unistd::Pid::from_raw(backend.watchdog), signal).unwrap();
        assert_eq!(backend.code(), Some(code), "{signal}");
        assert!(holding(&sleeping("3513")).is_empty());
    }
}

fn stop(pid: i32) {
    use nix::sys::signal::{Signal, kill};
    kill(nix::unistd::Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    let stat = format!("/proc/{pid}/stat");
    proc::wait_until(DEADLINE, "it is stopped", || {
        let stat = std::fs::read_to_string(&stat).unwrap();
        stat.contains(") T ").then_some(())
    });
}

#[test]
fn a_stopped_backend_is_ended_after_it_was_told_to() {
    use nix::sys::signal::{Signal, kill};
    let mut backend = Backend::start(&[&format!("echo up; sleep {}", own("3516"))]);
    stop(backend.supervised());
    kill(
        nix::unistd::Pid::from_raw(backend.watchdog),
        Signal::SIGTERM,
    )
    .unwrap();
    assert_eq!(backend.code(), Some(143));
    assert!(holding(&sleeping("3516")).is_empty());
}

#[test]
fn a_stopped_backend_is_ended_when_nobody_is_left_to_serve() {
    let state = tempfile::tempdir().unwrap();
    let mut backend = Command::new(BACKEND)
        .env("XDG_STATE_HOME", state.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let watchdog = i32::try_from(backend.id()).unwrap();
    let supervised = proc::wait_until(DEADLINE, "two processes", || {
        proc::children(watchdog).first().copied()
    });
    stop(supervised);
    drop(backend.stdin.take());
    proc::wait_until(DEADLINE, "both end", || backend.try_wait().unwrap());
}

#[test]
fn a_stopped_watchdog_ends_with_its_backend() {
    let mut backend = Backend::start(&["echo up; read line < gate; exit 7"]);
    stop(backend.watchdog);
    std::fs::write(backend.gate(), "go\n").unwrap();
    assert_eq!(backend.code(), Some(7));
}

#[test]
fn what_is_kept_for_a_person_is_left_alone() {
    // In a session of its own, and in the command's group.
    for (start, seconds) in [("setsid", "3514"), ("nohup", "3515")] {
        let sleep = format!("{start} sleep {} 2>&1 & echo up", own(seconds));
        let mut backend = Backend::start(&["--keep", &sleep]);
        assert_eq!(backend.code(), Some(0));
        there(seconds);
        let kept = holding(&sleeping(seconds));
        assert_eq!(kept.len(), 1);
        proc::kill9(kept[0]);
        gone(seconds);
    }
}

/// A caller that waits for the end of standard input or output waits for the backend only, not for its watchdog.
#[test]
fn the_watchdog_lets_go_of_standard_input_and_output() {
    let backend = Backend::start(&["echo up; sleep 300"]);
    for fd in 0..2 {
        let fd = format!("/proc/{}/fd/{fd}", backend.watchdog);
        proc::wait_until(DEADLINE, &fd, || {
            let place = std::fs::read_link(&fd).ok()?;
            (place == std::path::Path::new("/dev/null")).then_some(())
        });
    }
}

/// A root directory that somebody made may have an empty `/dev`.
#[test]
fn what_it_cannot_start_without_is_named() {
    let unshare = |line: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--mount", "sh", "-c", line, BACKEND]);
        unshare.output().unwrap()
    };
    let empty = "mount -t tmpfs none /dev";
    if !unshare(empty).status.success() {
        eprintln!("no /dev of its own to be had here");
        return;
    }
    let done = unshare(&format!("{empty} && exec \"$0\" exec 'echo hi'"));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("its watchdog: /dev/null: "), "{said}");
    assert!(done.stdout.is_empty() && !done.status.success(), "{said}");
}
