//! The help of the command line.

use std::process::Command;

/// The status and standard output of `co-nvim` with these arguments.
fn said(args: &[&str]) -> (Option<i32>, String) {
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_co-nvim"))
        .args(args)
        .env("XDG_DATA_HOME", home.path())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn every_command_answers_a_request_for_help() {
    let (code, all) = said(&["--help"]);
    assert_eq!(code, Some(0));
    for command in ["exec", "check", "edit", "doctor"] {
        assert!(all.contains(&format!("co-nvim {command}")), "{all}");
        for flag in ["--help", "-h"] {
            let (code, text) = said(&[command, flag]);
            assert_eq!(code, Some(0), "{command} {flag}: {text}");
            let expected = format!("usage: co-nvim {command}");
            assert!(text.starts_with(&expected), "{command} {flag}: {text}");
        }
    }
}
