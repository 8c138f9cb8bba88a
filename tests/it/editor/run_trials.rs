//! `:Co! ++try`: a command of the person runs as a trial, and a question tells what it would change.

use serde_json::json;

use crate::support::workspace::Workspace;

use super::scene::Scene;

/// Replaces the first and the last word of `a.txt`, and makes a file.
const TWO_PARTS: &str = "sed -i -e 's/^0$/first/' -e 's/^20$/last/' a.txt; echo new > new.txt";

fn numbers(first: &str, last: &str) -> String {
    let middle: String = (1..20).map(|line| format!("{line}\n")).collect();
    format!("{first}\n{middle}{last}\n")
}

impl Scene {
    /// Runs a command as a trial and waits for a text of the question.
    #[track_caller]
    fn try_run(&self, command: &str, shown: &str) {
        self.run(&format!("++try {command}"));
        self.wait_text(shown);
    }
}

#[test]
fn nothing_changes_before_the_yes_which_keeps_all() {
    let scene = Scene::new();
    scene.workspace.write("a.txt", &numbers("0", "20"));
    scene.workspace.write("gone.txt", "gone\n");
    scene.workspace.write(".gitignore", "build/\n");
    scene.workspace.write("build/out", "built\n");
    scene.try_run(
        &format!("{TWO_PARTS}; rm gone.txt; rm -r build; echo done"),
        "nothing has changed yet",
    );
    scene.wait_text("your build/ is as it was");
    let shell = scene.wait_shell("it would change 3 files; nothing has changed yet");
    assert!(shell.starts_with("$ ++try sed"), "{shell}");
    assert!(shell.contains("\ndone\nexit 0"), "{shell}");
    assert_ne!(scene.eval("vim.bo.filetype"), "co-approval");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), numbers("0", "20"));
    assert!(!scene.workspace.exists("new.txt"));
    scene.answer("y");
    scene.wait_shell("tried: kept: 3 files");
    let read = |name| scene.workspace.read(name).unwrap();
    assert_eq!(read("a.txt"), numbers("first", "last"));
    assert_eq!(read("new.txt"), "new\n");
    assert_eq!(read("build/out"), "built\n");
    assert!(!scene.workspace.exists("gone.txt"));
}

#[test]
fn a_no_drops_all_and_a_review_keeps_parts() {
    let scene = Scene::new();
    scene.workspace.write("a.txt", &numbers("0", "20"));
    scene.try_run(TWO_PARTS, "diff +3 -2");
    scene.answer("n");
    scene.wait_shell("tried: its changes are dropped");
    assert!(!scene.workspace.exists("new.txt"));
    // The same again, as a trial.
    scene.type_keys(":Co!<CR>");
    scene.wait_text("run 2 · #2");
    scene.answer("d");
    scene.wait_text("0 of 2 answered");
    scene.nvim.type_keys("n");
    scene.wait_text("1 of 2 answered");
    scene.nvim.type_keys("y");
    scene.wait_text("file 2 of 2");
    scene.press("y");
    scene.wait_shell("tried: kept: 2 files");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), numbers("0", "last"));
    assert_eq!(scene.workspace.read("new.txt").unwrap(), "new\n");
}

#[test]
fn a_program_of_an_agent_gets_what_its_preset_names() {
    let dir = tempfile::tempdir().unwrap();
    let bin = dir.path().join("agent/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(dir.path().join("agent/greeting"), "greeting\n").unwrap();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let script = format!(
        "#!/bin/bash
cat \"$(dirname \"$0\")/../greeting\" \"$CLAUDE_CONFIG_DIR/CLAUDE.md\"
echo s > \"$CLAUDE_CONFIG_DIR/session\"
echo x 2>/dev/null > ~/.claude/CLAUDE.md || echo refused
exec 3<>/dev/tcp/127.0.0.1/{} && echo reached
echo two > a.txt
",
        address.port()
    );
    for name in ["claude", "other"] {
        let program = bin.join(name);
        std::fs::write(&program, &script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let agents = json!({ "agents": { "claude": { "hosts": [address.to_string()] } } });
    let scene = Scene::with(agents, &[("PATH", &path)]);
    let home = scene.home.path();
    std::fs::create_dir_all(home.join(".claude")).unwrap();
    std::fs::write(home.join(".claude/CLAUDE.md"), "instructions\n").unwrap();
    scene.try_run("claude -p hello", "+ two");
    let shell = scene.wait_shell("nothing has changed yet");
    assert!(
        shell.contains("greeting\ninstructions\nrefused\nreached\n"),
        "{shell}"
    );
    scene.answer("n");
    scene.wait_shell("tried: its changes are dropped");
    assert!(!scene.workspace.exists("a.txt"));
    let kept = std::fs::read_to_string(home.join(".claude/CLAUDE.md"));
    assert_eq!(kept.unwrap(), "instructions\n");
    // Another program gets nothing of that.
    scene.run("++try other -p hello");
    scene.wait_text("run 2 · #2");
    scene.answer("n");
    scene.wait_for("(co_seen.CoJobDone or 0) == 2", "the end of the other run");
    let shell = scene.wait_shell("$ ++try other");
    let other = shell.split("$ ++try other").last().unwrap();
    assert!(
        !other.contains("instructions") && !other.contains("reached"),
        "{shell}"
    );
}

#[test]
fn a_terminal_runs_as_a_trial_too() {
    let scene = Scene::new();
    scene.type_keys(":Co! ++try ++pty test -t 0 && echo two > a.txt<CR>");
    scene.wait_text("+ two");
    scene.wait_buffer("co://term/1", "it would change 1 file");
    assert!(!scene.workspace.exists("a.txt"));
    scene.type_keys("<C-\\><C-n>");
    scene.answer("y");
    scene.wait_buffer("co://term/1", "tried: kept: 1 file");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "two\n");
}

#[test]
fn a_command_that_changes_nothing_needs_no_answer() {
    let scene = Scene::new();
    scene.workspace.write(".gitignore", "*.o\n");
    scene.run("++try echo looked");
    scene.wait_shell("tried: it changed nothing");
    scene.run("++try echo 1 > a.o");
    scene.wait_shell("tried: it changed only ignored files, your a.o is as it was");
    assert!(!scene.workspace.exists("a.o"));
    scene.run("++try mkfifo pipe");
    scene.wait_shell("tried: nothing was kept: pipe cannot be kept: it is a FIFO");
    assert_eq!(scene.eval("#require('co.question').pending()"), 0);
}

#[test]
fn what_a_trial_cannot_do_runs_for_real_after_a_yes() {
    let workspace = Workspace::new();
    workspace.git(&["init", "-q", "-b", "main"]);
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.try_run(
        "echo two > a.txt; git add a.txt; git -c user.name=n -c user.email=e commit -qm tried",
        "git  a commit on main: tried, 1 file",
    );
    scene.wait_shell("it changed .git, which a trial cannot keep; nothing has changed yet");
    assert!(!scene.workspace.exists("a.txt"));
    scene.answer("y");
    scene.wait_shell("tried: its changes are dropped, and it runs for real\n\n$ echo two > a.txt");
    scene.wait_for("(co_seen.CoJobDone or 0) == 2", "the end of the real run");
    assert_eq!(scene.workspace.git(&["log", "--format=%s"]), "tried\n");
    // The key `r` does so for any trial.
    scene.try_run("echo three > a.txt", "+ three");
    scene.answer("r");
    scene.wait_for("(co_seen.CoJobDone or 0) == 4", "the end of the real run");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "three\n");
}

#[test]
fn a_run_that_is_stopped_drops_its_changes() {
    let scene = Scene::new();
    scene.run("++try echo two > a.txt; echo begun; exec sleep 3709");
    scene.wait_shell("\nbegun\n");
    scene.type_keys("<C-w>j");
    scene.wait_for("vim.bo.filetype == 'co-shell'", "the shell buffer");
    scene.type_keys("<C-c>");
    scene.wait_shell("cancelled");
    scene.wait_shell("tried: its changes are dropped");
    // Stopped while its question waits.
    scene.try_run("echo two > a.txt", "+ two");
    scene.type_keys("G");
    // A key that comes while Neovim draws the question interrupts that.
    scene.wait_for("vim.fn.line('.') == vim.fn.line('$')", "the last line");
    scene.type_keys("<C-c>");
    scene.wait_shell("its changes are dropped, because the question got no answer");
    assert_eq!(scene.eval("#require('co.question').pending()"), 0);
    assert!(!scene.workspace.exists("a.txt"));
}

#[test]
fn neovim_says_that_an_answer_is_missing_before_it_quits() {
    let scene = Scene::new();
    scene.try_run("echo two > a.txt", "+ two");
    scene.type_keys(":qa<CR>");
    scene.wait_text("unanswered: echo two > a.txt");
    scene.type_keys("<CR>");
    scene.wait_text("1 question waits: :qa! quits anyway");
    assert!(!scene.workspace.exists("a.txt"));
}

#[test]
fn where_trials_do_not_exist_nothing_runs_and_a_sentence_says_why() {
    let scene = Scene::with(json!({ "sandbox_namespaces": false }), &[]);
    scene.run("++try echo two > a.txt");
    scene.wait_shell(
        "not run: commands cannot run as trials here: sandbox_namespaces is off; :Co! without ++try runs it for real",
    );
    assert!(!scene.workspace.exists("a.txt"));
    let scene = Scene::new();
    scene.type_keys(":cd ~<CR>");
    scene.run("++try echo two > a.txt");
    scene.wait_shell("is your home directory or contains it, work in a directory below it; :Co! without ++try runs it for real");
    scene.type_keys(":Co /jobs<CR>");
    scene.wait_buffer("co://jobs", "   1  not run: ");
    let scene = Scene::with(json!({ "sandbox_backend": "docker" }), &[]);
    scene.run("++try echo two > a.txt");
    scene.wait_shell("not run: your commands run in a container here, which has no trials: :Co! without ++try runs it for real");
    assert!(!scene.workspace.exists("a.txt"));
}

#[test]
fn of_two_trials_at_once_the_second_keeps_nothing_of_the_firsts() {
    let scene = Scene::new();
    scene.workspace.write("a.txt", "one\n");
    scene.try_run("echo two > a.txt", "+ two");
    scene.run("++try echo three > a.txt");
    scene.wait_text("1/2");
    scene.answer("y");
    scene.wait_shell("tried: kept: 1 file");
    scene.wait_text("+ three");
    scene.answer("y");
    scene.wait_shell("not kept: a.txt: it was changed later, in the same place");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "two\n");
}

#[test]
fn what_is_kept_is_merged_into_a_buffer_with_unsaved_changes() {
    let scene = Scene::new();
    scene.workspace.write("a.txt", &numbers("0", "20"));
    scene.type_keys(":edit a.txt<CR>Gccmine<Esc>gg");
    scene.try_run("sed -i 's/^0$/first/' a.txt", "+ first");
    scene.answer("y");
    scene.wait_shell("tried: kept: 1 file; unsaved in its buffer: a.txt");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), numbers("0", "20"));
    scene.wait_for("vim.fn.bufname() == 'a.txt'", "the focus to come back");
    scene.type_keys(":write<CR>");
    scene.wait_for("not vim.bo.modified", "the file");
    assert_eq!(
        scene.workspace.read("a.txt").unwrap(),
        numbers("first", "mine")
    );
}
