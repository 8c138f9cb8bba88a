//! `sandbox_backend = "landlock"` as a person has it: approved commands, `:Co!`, and the command line.

use std::fs;
use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::proc;
use crate::support::scene::Scene;
use crate::support::workspace::Workspace;
use crate::support::{BACKEND, DEADLINE};

fn landlocked() -> Scene {
    Scene::in_workspace(
        Workspace::new(),
        json!({ "sandbox_backend": "landlock" }),
        &[],
    )
}

#[test]
fn a_run_writes_in_the_workspace_alone_and_tells_what_appeared() {
    let outside = tempfile::tempdir().unwrap();
    let out = outside.path().join("out");
    let scene = landlocked();
    scene.run(&format!(
        "echo in > inside; echo x > .envrc; echo out > {}",
        out.display()
    ));
    let shell = scene.wait_shell("exit 1");
    assert!(
        shell.contains("made or replaced, and other programs run or read it: "),
        "{shell}"
    );
    assert!(shell.contains("/.envrc"), "{shell}");
    assert_eq!(scene.workspace.read("inside").as_deref(), Some("in\n"));
    assert!(!out.exists());
}

/// `co-nvim exec` in a workspace, with a home of its own.
struct Exec {
    workspace: Workspace,
    home: TempDir,
}

impl Exec {
    /// A scene with this text as `config.toml`.
    fn with(config: &str) -> Self {
        let exec = Self {
            workspace: Workspace::new(),
            home: tempfile::tempdir().unwrap(),
        };
        let place = exec.home.path().join(".config/co-nvim");
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("config.toml"), config).unwrap();
        exec
    }

    fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(BACKEND);
        command.args(["exec", "--json"]).args(args);
        command
            .current_dir(self.workspace.path())
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", self.home.path())
            .envs(variables.iter().copied());
        command.output().unwrap()
    }

    /// Returns what is told of a command that ran.
    #[track_caller]
    fn told(&self, args: &[&str], variables: &[(&str, &str)]) -> Value {
        let done = self.run(args, variables);
        serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
    }
}

#[test]
fn the_command_line_obeys_the_settings_and_a_flag_wins() {
    let outside = tempfile::tempdir().unwrap();
    let out = outside.path().join("out");
    let script = format!("echo in > inside; echo out > {}", out.display());
    let check = |config: &str, args: &[&str], variables: &[(&str, &str)], level: &str| {
        let exec = Exec::with(config);
        let told = exec.told(&[args, &[&script]].concat(), variables);
        assert_eq!(
            told["level"], level,
            "{config} {args:?} {variables:?}: {told}"
        );
        assert_eq!(exec.workspace.exists("inside"), level != "read-only");
        assert_eq!(out.exists(), level == "none", "{told}");
        let _ = fs::remove_file(&out);
    };
    let landlock = "sandbox_backend = 'landlock'";
    let variable = ("CO_CLI_SANDBOX_BACKEND", "landlock");
    check(landlock, &[], &[], "workspace");
    check("", &[], &[variable], "workspace");
    check(
        "sandbox_backend = 'subprocess'",
        &[],
        &[variable],
        "workspace",
    );
    check("sandbox_backend = 'auto'", &[], &[], "workspace");
    check("", &["--backend", "auto"], &[], "workspace");
    check("", &["--backend", "landlock"], &[], "workspace");
    check(landlock, &["--backend", "subprocess"], &[], "none");
    check(landlock, &["--read-only"], &[], "read-only");
    check("", &[], &[], "none");
}

#[test]
fn on_the_command_line_the_workspace_is_that_of_the_real_directory() {
    let exec = Exec::with("sandbox_backend = 'landlock'");
    let (here, there) = (exec.workspace.path(), tempfile::tempdir().unwrap());
    let link = here.join("link");
    std::os::unix::fs::symlink(there.path(), &link).unwrap();
    let depth = here.components().count() - 1;
    let up = format!(
        "{}{}",
        "../".repeat(depth),
        &there.path().to_str().unwrap()[1..]
    );
    for cwd in [up.as_str(), link.to_str().unwrap()] {
        let script = format!("echo in > inside; echo out > {}/out", here.display());
        let told = exec.told(&["--cwd", cwd, &script], &[]);
        assert_eq!(told["level"], "workspace", "{told}");
        assert!(!exec.workspace.exists("out"), "{cwd}: {told}");
        assert!(there.path().join("inside").exists(), "{cwd}: {told}");
        fs::remove_file(there.path().join("inside")).unwrap();
    }
    let done = exec.run(&["--cwd", "nowhere", "true"], &[]);
    assert_eq!(done.status.code(), Some(125), "{done:?}");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        told.contains("nowhere is not a directory; name one that exists"),
        "{told}"
    );
}

#[test]
fn on_the_command_line_a_confined_command_has_the_network_of_the_settings() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo con$((0))nected");
    for (network, connected) in [("none", false), ("host", true)] {
        let config = format!("sandbox_backend = 'landlock'\nsandbox_network = '{network}'\n");
        let told = Exec::with(&config).told(&[&script], &[]);
        let output = told["output"].as_str().unwrap();
        assert_eq!(
            output.contains("con0nected"),
            connected,
            "{network}: {told}"
        );
        assert_eq!(told["level"], "workspace");
    }
}

#[test]
fn on_the_command_line_limits_and_the_environment_are_those_of_the_settings() {
    let config = "shell_max_timeout = 1\nshell_env_allow = ['FOO']\nshell_open_files = 77\n";
    let exec = Exec::with(config);
    let variables = [("FOO", "bar"), ("BAR", "baz"), ("CARGO_HOME", "/c")];
    let told = exec.told(
        &["echo \"<$FOO$BAR$CARGO_HOME>\"; ulimit -n; sleep 30"],
        &variables,
    );
    let output = told["output"].as_str().unwrap();
    assert!(output.starts_with("<bar>\n77\n"), "{told}");
    assert_eq!(told["timed_out"], true, "{told}");
}

/// Nobody else removes it. A later backend knows it by its age, and because nobody holds its lock.
#[test]
fn what_a_killed_backend_left_is_removed_by_a_later_one() {
    let tmp = tempfile::tempdir().unwrap();
    let state = tempfile::tempdir().unwrap();
    let exec = |command: &str| {
        let mut exec = Command::new(BACKEND);
        exec.args(["exec", "--read-only", command])
            .env("TMPDIR", tmp.path())
            .env("XDG_STATE_HOME", state.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        exec.spawn().unwrap()
    };
    let mut killed = exec("echo x > $TMPDIR/x; echo up; sleep 30");
    let mut up = [0; 2];
    killed.stdout.take().unwrap().read_exact(&mut up).unwrap();
    let backend = proc::children(i32::try_from(killed.id()).unwrap())[0];
    proc::kill9(backend);
    killed.wait().unwrap();
    let entries = || fs::read_dir(tmp.path()).unwrap().flatten();
    let left: Vec<_> = entries().map(|entry| entry.path()).collect();
    let [left] = &left[..] else {
        panic!("one directory was left: {left:?}");
    };
    let old = SystemTime::now() - Duration::from_secs(3600);
    fs::File::open(left).unwrap().set_modified(old).unwrap();
    proc::wait_until(DEADLINE, "its removal", || {
        assert!(exec("true").wait().unwrap().success());
        (!left.exists()).then_some(())
    });
}
