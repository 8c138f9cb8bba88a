//! A kernel without Landlock: every way into it says so in one sentence, and nothing is weaker than asked.
//!
//! A filter answers the first call of Landlock as such a kernel does, for the backend and all it starts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::hostile::python;
use crate::support::BACKEND;
use crate::support::chat::Chat;
use crate::support::http::Reply;
use crate::support::workspace::Workspace;

const WITHOUT: &str = include_str!("absent.py");

/// What is said of such a kernel.
const WHY: &str = "Landlock";

/// The backend as a program that runs it on such a kernel.
struct Backend {
    dir: TempDir,
}

impl Backend {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("absent.py"), WITHOUT).unwrap();
        let backend = Self { dir };
        let script = backend.dir.path().join("absent.py");
        let text = format!(
            "#!/bin/sh\nexec {} '{}' '{BACKEND}' \"$@\"\n",
            python(),
            script.display()
        );
        fs::write(backend.path(), text).unwrap();
        fs::set_permissions(backend.path(), fs::Permissions::from_mode(0o755)).unwrap();
        backend
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("co-nvim")
    }

    fn run(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        let mut command = Command::new(self.path());
        command.args(args).current_dir(self.dir.path());
        command
            .env("HOME", self.dir.path())
            .envs(env.iter().copied());
        command.output().unwrap()
    }

    /// A chat with this backend.
    fn chat(&self, settings: &Value) -> Chat {
        let mut settings = settings.clone();
        settings["bin"] = json!(self.path());
        let workspace = Workspace::new();
        workspace.write("a.txt", "one\n");
        Chat::start(workspace, &settings)
    }
}

#[test]
fn a_level_asked_for_by_name_is_refused_in_one_sentence() {
    let backend = Backend::new();
    for level in [&["--read-only"][..], &["--backend", "landlock"]] {
        let done = backend.run(&[&["exec"], level, &["echo it ran"]].concat(), &[]);
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(125), "{done:?}");
        assert!(done.stdout.is_empty(), "{done:?}");
        assert!(
            told.contains(WHY) && told.contains("sandbox_backend"),
            "{told}"
        );
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    let done = backend.run(&["exec", "echo it ran"], &[]);
    assert_eq!(done.stdout, b"it ran\n", "{done:?}");
}

#[test]
fn exec_refuses_a_backend_of_the_settings_and_auto_takes_what_is_there() {
    let backend = Backend::new();
    let exec = |args: &[&str], setting: &str| {
        let args = [&["exec", "--json"], args, &["echo it ran"]].concat();
        backend.run(&args, &[("CO_CLI_SANDBOX_BACKEND", setting)])
    };
    let done = exec(&[], "landlock");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(125), "{done:?}");
    assert!(done.stdout.is_empty() && told.contains(WHY), "{done:?}");
    for (args, setting) in [
        (&[][..], "auto"),
        (&["--backend", "auto"], "landlock"),
        (&["--backend", "subprocess"], "landlock"),
    ] {
        let done = exec(args, setting);
        let told: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(told["level"], "plain", "{args:?}: {told}");
        assert_eq!(
            told["output"].as_str().unwrap().lines().next(),
            Some("it ran")
        );
    }
}

#[test]
fn the_doctor_says_what_that_comes_to() {
    let backend = Backend::new();
    let checks = |env: &[(&str, &str)]| -> Vec<Value> {
        serde_json::from_slice(&backend.run(&["doctor", "--json"], env).stdout).unwrap()
    };
    let of = |checks: &[Value], name: &str| {
        let check = checks.iter().find(|check| check["name"] == name).unwrap();
        let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
        (text("level"), text("message"))
    };
    let (level, message) = of(&checks(&[]), "sandbox");
    assert_eq!(level, "warn");
    assert!(
        message.contains(WHY) && message.contains("nearly every command asks"),
        "{message}"
    );
    assert_eq!(of(&checks(&[]), "approved commands").0, "ok");
    let named = checks(&[("CO_CLI_SANDBOX_BACKEND", "landlock")]);
    let (level, message) = of(&named, "approved commands");
    assert_eq!(level, "error");
    assert!(message.contains(WHY), "{message}");
}

#[test]
fn the_bar_and_the_health_check_say_that_nothing_confines() {
    let backend = Backend::new();
    let chat = backend.chat(&json!({}));
    chat.server.reply(Reply::shell("c1", "cat a.txt"));
    chat.server.reply(Reply::text("Read."));
    chat.co(" read it");
    chat.wait_turns(1);
    // Its arguments are literal and it opens nothing of the person's, so it runs unconfined.
    assert_eq!(chat.events("CoApprovalRequested"), 0);
    chat.nvim.wait_for(
        "vim.wo[vim.fn.win_findbuf(vim.fn.bufnr('^co://chat/1$'))[1]].winbar:find('approved: unconfined · no sandbox', 1, true)",
        "the winbar",
    );
    chat.co(" /sandbox");
    chat.nvim.wait_text("because nothing can confine it");
    chat.nvim.type_keys("<CR>");
    chat.nvim.command("checkhealth co");
    let said = chat.nvim.lua(
        "return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')",
        json!([]),
    );
    let said = said.as_str().unwrap();
    assert!(said.contains("nearly every command asks"), "{said}");
}

#[test]
fn nearly_every_command_asks() {
    let backend = Backend::new();
    let chat = backend.chat(&json!({}));
    chat.server.reply(Reply::shell("c1", "sort a.txt"));
    chat.server.reply(Reply::text("Sorted."));
    chat.co(" sort it");
    chat.answer("the kernel cannot confine commands here", "y");
    chat.wait_turns(1);
}

#[test]
fn a_backend_asked_for_by_name_runs_nothing() {
    let backend = Backend::new();
    let chat = backend.chat(&json!({ "sandbox_backend": "landlock" }));
    chat.co("! echo ran > made");
    let shell = chat.wait_buffer(
        "co://shell",
        "not run: this system cannot confine a command",
    );
    assert!(shell.contains(WHY), "{shell}");
    chat.server.reply(Reply::shell("c1", "echo ran > made"));
    chat.server.reply(Reply::text("So be it."));
    chat.co(" make it");
    chat.answer("co 1/1", "y");
    chat.wait_turns(1);
    let told = chat.server.requests()[1].last("tool").unwrap();
    assert!(
        told.contains("this system cannot confine a command"),
        "{told}"
    );
    assert!(!chat.workspace.exists("made"));
}

#[test]
fn it_cannot_be_chosen_later_either() {
    let backend = Backend::new();
    let chat = backend.chat(&json!({}));
    chat.co(" /sandbox landlock");
    chat.nvim
        .wait_text("the sandbox is not changed: this system cannot confine a command");
    chat.nvim.type_keys("<CR>");
    chat.co("! echo r$((0))an > made && cat made");
    chat.wait_buffer("co://shell", "\nr0an");
    chat.co(" /sandbox");
    chat.nvim.wait_for(
        "table.concat(require('co.ui.log').lines(), '\\n'):find('with all your permissions', 1, true)",
        "what holds commands",
    );
    let log = "return table.concat(require('co.ui.log').lines(), '\\n')";
    let log = chat.nvim.lua(log, json!([]));
    assert!(
        !log.as_str().unwrap().contains("/sandbox landlock"),
        "{log}"
    );
}
