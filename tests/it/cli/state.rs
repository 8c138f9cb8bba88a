//! A state directory that cannot be written.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::BACKEND;

/// Mounts a file system over the state directory, runs `made` there, and then makes the mount read-only. A `remount` of the
/// file system itself needs a user who may name its owner.
pub(crate) fn read_only(state: &Path, made: &str) -> String {
    let state = state.display();
    format!(
        "mount -t tmpfs -o mode=0700 none {state} && cd {state} && {{ {made}; }} && cd / && mount -o remount,bind,ro {state}"
    )
}

/// Runs a line of shell as a user who may mount.
fn unshared(line: &str, home: &Path) -> Output {
    let mut unshare = Command::new("unshare");
    unshare.args(["--map-root-user", "--mount", "sh", "-c", line, BACKEND]);
    let path = std::env::var_os("PATH").unwrap();
    unshare.env_clear().env("PATH", path).env("HOME", home);
    let state = home.join("state");
    unshare.env("XDG_STATE_HOME", state).output().unwrap()
}

/// Returns whether a file system can be mounted here.
pub(crate) fn may_mount() -> bool {
    let done = unshared("mount -t tmpfs none /mnt", Path::new("/"));
    if !done.status.success() {
        eprintln!("nothing can be mounted here");
    }
    done.status.success()
}

#[test]
fn exec_exits_with_125() {
    if !may_mount() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("state");
    std::fs::create_dir(&state).unwrap();
    for made in ["true", "mkdir -m 700 -p co-nvim co-nvim/output"] {
        let before = read_only(&state, made);
        let line = format!("{before} && exec \"$0\" exec --json 'touch ran; echo hi'");
        let done = unshared(&line, home.path());
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(125), "{made}: {said}");
        assert!(done.stdout.is_empty(), "{made}");
        assert_eq!(said.lines().count(), 1, "{made}: {said}");
        assert!(
            said.contains("state/co-nvim/output: Read-only file system"),
            "{made}: {said}"
        );
    }
}
