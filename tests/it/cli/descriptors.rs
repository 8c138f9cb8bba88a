//! With a low limit of open files, the backend reports it and never panics.

use std::process::{Command, Output};

use crate::support::wire::{map, notification};
use crate::support::{BACKEND, output_of};

/// Runs `co-nvim` with these arguments and input, and this limit of open files.
fn limited(limit: u32, args: &[&str], input: &[u8]) -> Output {
    let [home, work] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let script = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script, BACKEND]).args(args);
    let path = std::env::var_os("PATH").unwrap();
    command.env_clear().env("PATH", path);
    command.env("HOME", home.path()).current_dir(work.path());
    output_of(&mut command, input)
}

/// Checks each limit: the command prints one sentence and exits with `refused`, or works.
#[track_caller]
fn check(args: &[&str], input: &[u8], refused: i32) {
    for limit in 3..=64 {
        let output = limited(limit, args, input);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let what = format!(
            "{args:?} with {limit}: {:?}\n{stdout}{stderr}",
            output.status
        );
        if stderr.contains("error while loading shared libraries") {
            // The program that starts co-nvim cannot open its own files at these limits.
            assert_eq!(limit, 3, "{what}");
            continue;
        }
        let works = stderr.is_empty() && !stdout.contains("os error 24");
        let told = stdout.is_empty()
            && stderr.starts_with("co-nvim: ")
            && stderr.lines().count() == 1
            && stderr.contains("ulimit -n");
        assert_eq!(
            told,
            output.status.code() == Some(refused) && !works,
            "{what}"
        );
        assert!(told || works, "{what}");
        assert!(told || limit > 8, "{what}");
        assert!(works || limit < 64, "{what}");
    }
}

#[test]
fn exec_says_that_it_may_open_too_few_files() {
    check(&["exec", "--json", "true"], b"", 125);
    check(&["exec", "--json", "--read-only", "true"], b"", 125);
}

#[test]
fn check_says_that_it_may_open_too_few_files() {
    check(&["check", "cat a | head -3"], b"", 1);
}

#[test]
fn doctor_says_that_it_may_open_too_few_files() {
    check(&["doctor"], b"", 1);
}

#[test]
fn the_backend_says_that_it_may_open_too_few_files() {
    let hello = map([
        ("type", "hello".into()),
        ("protocol", co::protocol::PROTOCOL.into()),
        ("version", "0.1.0".into()),
    ]);
    let run = map([
        ("type", "run".into()),
        ("run", 1.into()),
        ("command", "true".into()),
        ("cwd", "/".into()),
    ]);
    let said = [hello, run].map(|message| notification("co", vec![message]));
    check(&[], &said.concat(), 1);
}
