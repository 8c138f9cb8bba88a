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
use crate::support::http::Reply;
use crate::support::runner::OLDER;
use crate::support::scene::Scene;
use crate::support::workspace::Workspace;

/// The word that names the missing feature.
const WHY: &str = "Landlock";

/// The backend as a program that runs it on such a kernel.
struct Backend {
    dir: TempDir,
}

impl Backend {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("older.py");
        fs::write(&script, OLDER).unwrap();
        let (python, script) = (python(), script.display());
        let text = format!("#!/bin/sh\nexec {python} '{script}' none '{BACKEND}' \"$@\"\n");
        let backend = Self { dir };
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
    fn chat(&self, settings: &Value) -> Scene {
        let mut settings = settings.clone();
        settings["bin"] = json!(self.path());
        let workspace = Workspace::new();
        workspace.write("a.txt", "one\n");
        Scene::in_workspace(workspace, settings, &[])
    }
}

#[test]
fn exec_refuses_what_nothing_can_confine_and_auto_takes_what_is_there() {
    let backend = Backend::new();
    let exec = |args: &[&str], setting: &str| {
        let args = [&["exec", "--json"], args, &["echo it ran"]].concat();
        backend.run(&args, &[("CO_CLI_SANDBOX_BACKEND", setting)])
    };
    for (args, setting) in [(&[][..], "landlock"), (&["--read-only"], "auto")] {
        let done = exec(args, setting);
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(125), "{done:?}");
        assert!(done.stdout.is_empty() && told.contains(WHY), "{done:?}");
    }
    for (args, setting) in [
        (&[][..], "auto"),
        (&["--backend", "auto"], "landlock"),
        (&["--backend", "subprocess"], "landlock"),
    ] {
        let done = exec(args, setting);
        let told: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(told["level"], "none", "{args:?}: {told}");
        assert_eq!(
            told["output"].as_str().unwrap().lines().next(),
            Some("it ran")
        );
    }
}

#[test]
fn the_bar_and_the_health_check_say_that_nothing_confines() {
    let backend = Backend::new();
    let scene = backend.chat(&json!({}));
    scene.replies([Reply::shell("c1", "cat a.txt"), Reply::text("Read.")]);
    scene.co("read it");
    scene.wait_turns(1);
    // Its arguments are literal and it opens nothing of the person's, so it runs unconfined.
    assert_eq!(scene.events("CoApprovalRequested"), 0);
    scene.wait_for(
        "vim.wo[vim.fn.win_findbuf(vim.fn.bufnr('^co://chat/1{,/co: *}$'))[1]].winbar:find('ready · no sandbox', 1, true)",
        "the winbar",
    );
    scene.co("/sandbox");
    scene.wait_text("because nothing can confine it");
    scene.type_keys("<CR>");
    scene.command("checkhealth co");
    let said = scene.eval("table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')");
    let said = said.as_str().unwrap();
    assert!(said.contains("nearly every command asks"), "{said}");
}

#[test]
fn a_backend_asked_for_by_name_runs_nothing() {
    let backend = Backend::new();
    let scene = backend.chat(&json!({ "sandbox_backend": "landlock" }));
    scene.run("echo ran > made");
    let shell = scene.wait_shell("not run: this system cannot confine a command");
    assert!(shell.contains(WHY), "{shell}");
    scene.replies([
        Reply::shell("c1", "echo ran > made"),
        Reply::text("So be it."),
    ]);
    scene.co("make it");
    scene.approve();
    scene.wait_turns(1);
    let told = scene.told(1);
    assert!(
        told.contains("this system cannot confine a command"),
        "{told}"
    );
    assert!(!scene.workspace.exists("made"));
}
