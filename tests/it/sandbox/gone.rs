//! A program whose file is gone while it starts.

use std::fs::{self, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The kernel calls such a file by its name and ` (deleted)`, and another file may be called so.
#[test]
fn what_is_named_like_a_file_that_is_gone_is_never_started() {
    let dir = tempfile::tempdir().unwrap();
    let exe = dir.path().join("co-nvim");
    // By another process, or a command that another test starts meanwhile holds it open for writing.
    let copied = Command::new("cp")
        .args([env!("CARGO_BIN_EXE_co-nvim").as_ref(), exe.as_os_str()])
        .status();
    assert!(copied.unwrap().success());
    let open = fs::File::open(&exe).unwrap();
    let decoy = dir.path().join("co-nvim (deleted)");
    let marker = dir.path().join("started");
    let script = format!("#!/bin/sh\n: >'{}'\n", marker.display());
    fs::write(&decoy, script).unwrap();
    fs::set_permissions(&decoy, Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(&exe).unwrap();

    let by_descriptor = format!("/proc/{}/fd/{}", std::process::id(), open.as_raw_fd());
    let done = Command::new(by_descriptor)
        .args(["exec", "--read-only", "echo hello"])
        .env("HOME", dir.path())
        .current_dir("/usr")
        .output()
        .unwrap();
    assert!(!marker.exists(), "the decoy was started");
    let said = String::from_utf8_lossy(&done.stdout);
    let why = String::from_utf8_lossy(&done.stderr);
    assert!(said.contains("hello"), "{said} {why}");
}
