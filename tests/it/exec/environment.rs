//! The environment of commands.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;

use co_exec::{
    Caller, Environment, ExecSettings, Executor, ExecutorSetup, HostEnvironment, Streams,
};

use super::{Bench, TERMINAL};

fn host(more: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut host = vec![("PATH".into(), path)];
    host.extend(more.iter().map(|(name, value)| (name.into(), value.into())));
    host
}

async fn variables(caller: Caller) -> BTreeMap<String, String> {
    let bench = Bench::with(|setup| setup.env = host(HOSTS));
    let mut spec = bench.spec("env");
    spec.caller = caller;
    spec.extra_env = vec![("EXTRA".into(), "e".into())];
    pairs(&bench.run_spec(spec).await.output)
}

fn pairs(output: &str) -> BTreeMap<String, String> {
    let pairs = output.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.trim_end().to_owned()))
        .collect()
}

/// An editor's environment.
const HOSTS: &[(&str, &str)] = &[
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
    ("EDITOR", "ed"),
    ("GIT_EDITOR", "ed -s"),
    ("LINES", "9"),
    ("TERM", "dumb"),
];

/// Returns the variables of a person's command with `environment`, in a terminal or not.
async fn given(
    environment: impl FnOnce(HostEnvironment) -> Environment,
    terminal: bool,
) -> BTreeMap<String, String> {
    let bench = Bench::with(|setup| setup.env = host(&[("OWN", "x"), ("HOME", "/own")]));
    let mut spec = bench.by_person("env");
    spec.environment = environment(HostEnvironment {
        shell: ["sh", "-c"].map(OsString::from).into(),
        variables: host(HOSTS),
    });
    let streams = if terminal { TERMINAL } else { Streams::Whole };
    let running = bench.executor.start_on(spec, streams).await.unwrap();
    pairs(&running.outcome().await.output)
}

#[track_caller]
fn check(found: &BTreeMap<String, String>, expect: &[(&str, Option<&str>)]) {
    for (name, value) in expect {
        assert_eq!(found.get(*name).map(String::as_str), *value, "{name}");
    }
}

#[tokio::test]
async fn a_person_may_have_all_but_what_never_passes() {
    let found = given(Environment::Inherit, false).await;
    check(
        &found,
        &[
            ("HOME", Some("/home/x")),
            ("MADE_UP_SECRET", Some("s")),
            ("PAGER", Some("less")),
            ("MANPAGER", Some("less")),
            ("GIT_EDITOR", Some("ed -s")),
            ("LINES", Some("9")),
            ("TERM", Some("dumb")),
            ("PYTHONUNBUFFERED", None),
            ("GIT_PAGER", None),
            ("OWN", None),
            ("LD_PRELOAD", None),
            ("BASH_ENV", None),
            ("NVIM", None),
            ("NVIM_LISTEN_ADDRESS", None),
        ],
    );
    let found = given(Environment::Inherit, true).await;
    let terminal = [
        ("LINES", None),
        ("TERM", Some("xterm-256color")),
        ("MADE_UP_SECRET", Some("s")),
        ("NVIM", None),
    ];
    check(&found, &terminal);
}

#[tokio::test]
async fn a_terminal_has_the_persons_editor_also_where_little_passes() {
    let found = given(Environment::Restricted, true).await;
    let expect = [
        ("HOME", Some("/home/x")),
        ("EDITOR", Some("ed")),
        ("GIT_EDITOR", Some("ed -s")),
        ("MADE_UP_SECRET", None),
        ("PAGER", None),
        ("LINES", None),
    ];
    check(&found, &expect);
    let found = given(Environment::Restricted, false).await;
    let expect = [
        ("EDITOR", None),
        ("GIT_EDITOR", Some("false")),
        ("PAGER", Some("cat")),
    ];
    check(&found, &expect);
}

/// Writes a program that says what it was started with.
fn shell_that_tells(bench: &Bench) -> OsString {
    let path = bench.path().join("own-shell");
    std::fs::write(&path, "#!/bin/sh\nprintf '<%s>' \"$@\"\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path.into_os_string()
}

#[tokio::test]
async fn their_own_shell_gets_the_command_as_its_last_word() {
    let bench = Bench::new();
    let mut spec = bench.spec("echo 'a  b' | cat");
    let words = |name: OsString| vec![name, "-l".into(), "-c".into()];
    let host = |shell| HostEnvironment {
        shell,
        variables: host(&[]),
    };
    spec.environment = Environment::Inherit(host(words(shell_that_tells(&bench))));
    let outcome = bench.run_spec(spec.clone()).await;
    assert_eq!(outcome.output, "<-l><-c><echo 'a  b' | cat>");
    spec.environment = Environment::Inherit(host(words("no-such-shell".into())));
    let refused = bench.refused(spec.clone()).await;
    assert!(
        refused
            .to_string()
            .contains("no program named `no-such-shell`")
    );
    // Where nothing is said of a shell, and where little passes, it is bash.
    spec.program = co_exec::Program::Shell("echo $BASH_VERSION".to_owned());
    for environment in [
        Environment::Inherit(host(Vec::new())),
        Environment::Restricted(host(words("no-such-shell".into()))),
    ] {
        spec.environment = environment;
        assert!(bench.run_spec(spec.clone()).await.output.len() > 1);
    }
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
    check(&found, &expect);
}

#[tokio::test]
async fn a_person_keeps_the_key_agent_and_colours() {
    let found = variables(Caller::Person).await;
    let expect = [
        ("SSH_AUTH_SOCK", Some("/run/ssh")),
        ("NO_COLOR", None),
        ("NVIM", None),
    ];
    check(&found, &expect);
}

/// Writes a shell that a person might have, and returns the PATH a command then sees.
async fn path_from(shell: &str) -> String {
    let bench = Bench::with(|_| {});
    let login = bench.path().join("login-shell");
    std::fs::write(&login, shell).expect("a script");
    std::fs::set_permissions(&login, PermissionsExt::from_mode(0o755)).expect("a mode");
    let mut settings = ExecSettings::new(bench.path().join("spill"));
    settings.login_path = true;
    let executor = Executor::new(ExecutorSetup {
        env: host(&[
            ("SHELL", login.to_str().expect("UTF-8")),
            ("HOME", "/nonexistent"),
        ]),
        ..ExecutorSetup::new(settings)
    })
    .expect("an executor");
    let mut output = String::new();
    for _ in 0..2 {
        let running = executor
            .start(bench.spec("echo $PATH"))
            .await
            .expect("it starts");
        output = running.outcome().await.output;
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
