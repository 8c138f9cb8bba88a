//! What a command finds in its environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;

use co::exec::{Caller, Executor, Settings, Setup};

use super::Bench;

fn host(more: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut host = vec![("PATH".into(), path)];
    host.extend(more.iter().map(|(name, value)| (name.into(), value.into())));
    host
}

async fn variables(caller: Caller) -> BTreeMap<String, String> {
    let bench = Bench::with(|setup| {
        setup.env = host(&[
            ("HOME", "/home/x"),
            ("LD_PRELOAD", "/no.so"),
            ("BASH_ENV", "/no"),
            ("MANPAGER", "less"),
            ("MADE_UP_SECRET", "s"),
            ("NVIM", "/run/nvim.sock"),
            ("NVIM_LISTEN_ADDRESS", "/run/nvim.sock"),
            ("SSH_AUTH_SOCK", "/run/ssh"),
            ("PAGER", "less"),
            ("CARGO_HOME", "/cargo"),
            ("LC_TIME", "C"),
        ]);
    });
    let mut spec = bench.spec("env");
    spec.caller = caller;
    spec.extra_env = vec![("EXTRA".into(), "e".into())];
    let outcome = bench.run_spec(spec).await;
    let pairs = outcome
        .output
        .lines()
        .filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[tokio::test]
async fn only_what_is_allowed_passes() {
    let found = variables(Caller::Agent).await;
    let expect = [
        ("HOME", Some("/home/x")),
        ("CARGO_HOME", Some("/cargo")),
        ("LC_TIME", Some("C")),
        ("EXTRA", Some("e")),
        ("PAGER", Some("cat")),
        ("GIT_PAGER", Some("cat")),
        ("PYTHONUNBUFFERED", Some("1")),
        ("GIT_TERMINAL_PROMPT", Some("0")),
        ("GIT_EDITOR", Some("false")),
        ("GIT_SEQUENCE_EDITOR", Some("false")),
        ("NO_COLOR", Some("1")),
        ("LD_PRELOAD", None),
        ("BASH_ENV", None),
        ("MANPAGER", None),
        ("MADE_UP_SECRET", None),
        ("NVIM", None),
        ("NVIM_LISTEN_ADDRESS", None),
        ("SSH_AUTH_SOCK", None),
    ];
    for (name, value) in expect {
        assert_eq!(found.get(name).map(String::as_str), value, "{name}");
    }
}

#[tokio::test]
async fn a_person_keeps_the_key_agent_and_colours() {
    let found = variables(Caller::Person).await;
    assert_eq!(
        found.get("SSH_AUTH_SOCK").map(String::as_str),
        Some("/run/ssh")
    );
    assert_eq!(found.get("NO_COLOR"), None);
    assert_eq!(found.get("NVIM"), None);
}

/// Writes a shell that a person might have, and returns the PATH a command then sees.
async fn path_from(shell: &str) -> String {
    let bench = Bench::with(|_| {});
    let login = bench.path().join("login-shell");
    std::fs::write(&login, shell).expect("a script");
    std::fs::set_permissions(&login, PermissionsExt::from_mode(0o755)).expect("a mode");
    let mut settings = Settings::new(bench.path().join("spill"));
    settings.login_path = true;
    let executor = Executor::new(Setup {
        env: host(&[
            ("SHELL", login.to_str().expect("UTF-8")),
            ("HOME", "/nonexistent"),
        ]),
        ..Setup::new(settings)
    })
    .expect("an executor");
    let mut output = String::new();
    for _ in 0..2 {
        let job = executor
            .start(bench.spec("echo $PATH"))
            .await
            .expect("it starts");
        output = job.outcome().await.output;
    }
    let asked = std::fs::read_to_string(bench.path().join("asked")).unwrap_or_default();
    assert!(asked.lines().count() <= 1, "asked more than once");
    executor.shutdown().await;
    output.trim().to_owned()
}

#[tokio::test]
async fn path_comes_from_the_login_shell_once() {
    let shell = "#!/bin/bash\necho noise\necho x >> \"$(dirname \"$0\")/asked\"\n\
        [ \"$1\" = -lic ] || exit 3\nexport PATH=/from/login:$PATH\neval \"$2\"\necho more noise\n";
    let own = std::env::var("PATH").unwrap();
    assert_eq!(path_from(shell).await, format!("/from/login:{own}"));
}

#[tokio::test]
async fn a_login_shell_that_fails_or_hangs_is_done_without() {
    let own = std::env::var("PATH").unwrap();
    assert_eq!(path_from("#!/bin/bash\nexit 1\n").await, own);
    assert_eq!(path_from("#!/bin/bash\nsleep 1000\n").await, own);
}
