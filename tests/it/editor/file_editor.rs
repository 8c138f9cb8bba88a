//! The editor of commands of the person: a buffer of this Neovim.

use serde_json::json;

use crate::support::http::Reply;
use crate::support::proc;
use crate::support::workspace::Workspace;

use super::scene::{Scene, below, gate, open_gate, wait_gone};

/// The keys and the command in the winbar of the current window.
const WINBAR: &str = " :wq goes on · <C-c><C-k> aborts · `git commit` waits%<";

/// A scene with a file to commit.
fn staged() -> Scene {
    let workspace = Workspace::new();
    workspace.write("a.txt", "a\n");
    workspace.git(&["add", "a.txt"]);
    Scene::in_workspace(workspace, json!({}), &[])
}

/// Waits until the current buffer is the file `name`.
#[track_caller]
fn wait_file(scene: &Scene, name: &str) {
    let open = format!("vim.fn.expand('%:t') == '{name}'");
    scene.wait_for(&open, &format!("{name} to have the focus"));
}

/// Starts `git commit` and waits for the message.
#[track_caller]
fn begin_commit(scene: &Scene, options: &str) {
    scene.run(&format!("{options}git commit"));
    wait_file(scene, "COMMIT_EDITMSG");
}

fn subjects(scene: &Scene) -> String {
    scene.workspace.git(&["log", "--all", "--format=%s"])
}

/// Nothing is left of the sockets.
#[track_caller]
fn assert_no_sockets(scene: &Scene) {
    let sockets = format!(
        "#vim.fn.readdir('{}') == 0",
        scene.home.path().join("state/co-nvim/editors").display()
    );
    scene.wait_for(&sockets, "the sockets to be gone");
}

#[test]
fn git_commits_with_the_message_that_was_written_here() {
    let scene = staged();
    begin_commit(&scene, "");
    assert_eq!(scene.eval("vim.bo.filetype"), "gitcommit");
    assert_eq!(scene.eval("vim.wo.winbar"), WINBAR);
    scene.type_keys("ifirst<Esc>:w<CR>");
    scene.type_keys(":wq<CR>");
    scene.wait_shell("exit 0");
    assert_eq!(subjects(&scene), "first\n");
    assert_eq!(scene.eval("vim.fn.bufnr('COMMIT_EDITMSG')"), -1);

    // In a terminal, and by another command that closes it.
    scene.run("++pty git commit --amend");
    wait_file(&scene, "COMMIT_EDITMSG");
    scene.type_keys("ccsecond<Esc>:w<CR>:bd<CR>");
    scene.wait_text("[exit 0, after");
    assert_eq!(subjects(&scene), "second\n");
    assert_no_sockets(&scene);
}

/// `git commit -a` gives its editor an index of its own.
#[test]
fn the_model_writes_the_message_of_the_commit_that_waits() {
    let scene = staged();
    scene.workspace.git(&["commit", "--quiet", "-m", "one"]);
    scene.workspace.write("a.txt", "changed\n");
    scene.replies([Reply::text("Change it")]);
    scene.run("git commit -a");
    wait_file(&scene, "COMMIT_EDITMSG");
    scene.co("/commit");
    scene.wait_for("vim.fn.getline(1) == 'Change it'", "the message");
    scene.type_keys(":wq<CR>");
    scene.wait_shell("exit 0");
    assert_eq!(subjects(&scene), "Change it\none\n");
}

#[test]
fn a_rebase_opens_its_list_and_then_its_messages() {
    let scene = staged();
    for subject in ["one", "two", "three"] {
        scene.workspace.write(subject, "");
        scene.workspace.git(&["add", subject]);
        scene.workspace.git(&["commit", "--quiet", "-m", subject]);
    }
    scene.run("git rebase -i HEAD~2");
    wait_file(&scene, "git-rebase-todo");
    scene.type_keys(":2s/^pick/reword/<CR>ZZ");
    wait_file(&scene, "COMMIT_EDITMSG");
    scene.type_keys("ccfour<Esc>ZZ");
    scene.wait_shell("exit 0");
    assert_eq!(subjects(&scene), "four\ntwo\none\n");
}

#[test]
fn a_key_aborts_the_commit() {
    let scene = staged();
    for (count, options) in [(1, ""), (2, "++env=inherit "), (3, "++pty ")] {
        begin_commit(&scene, options);
        scene.type_keys("ifirst<Esc>:w<CR>");
        // It would interrupt Neovim before it has read these keys.
        scene.wait_for(
            "vim.fn.getline(1) == 'first' and not vim.bo.modified",
            "the text",
        );
        scene.type_keys("<C-c><C-k>");
        scene.wait_for(
            &format!("(co_seen.CoJobDone or 0) == {count}"),
            "the commit's end",
        );
        assert_eq!(subjects(&scene), "");
        assert_eq!(scene.eval("vim.fn.bufnr('COMMIT_EDITMSG')"), -1);
    }
    let text = scene.wait_shell("exit 1");
    assert_eq!(
        text.matches("co-nvim: aborted in Neovim\n").count(),
        2,
        "{text}"
    );
}

#[test]
fn neovim_quits_while_the_message_is_open() {
    let mut scene = staged();
    begin_commit(&scene, "");
    scene.type_keys("ifirst<Esc>:w<CR>");
    scene.wait_for("not vim.bo.modified", "the message to be written");
    let editors = scene.wait_below("__edit");
    scene.type_keys(":qa!<CR>");
    assert!(scene.wait_exit().success());
    wait_gone(&editors);
    assert_eq!(subjects(&scene), "");
}

#[test]
fn a_run_that_ends_leaves_the_text_and_says_so() {
    let scene = staged();
    begin_commit(&scene, "");
    let editors = scene.wait_below("__edit");
    scene.type_keys("ifirst<Esc>");
    let last = "require('co.run').last()";
    scene.lua(&format!("require('co.run').cancel({last})"), json!([]));
    scene.wait_shell("cancelled");
    scene.wait_notice("`git commit` has ended and no longer waits for this file");
    wait_gone(&editors);
    assert_eq!(scene.eval("vim.fn.getline(1)"), "first");
    assert_eq!(scene.eval("vim.bo.modified"), true);
    assert_eq!(
        scene.eval("vim.wo.winbar"),
        " `git commit` has ended and no longer waits for this file%<"
    );
    // The buffer is the person's own now.
    scene.type_keys(":w<CR>:hide<CR>");
    scene.wait_for(
        "vim.fn.bufwinnr('COMMIT_EDITMSG') == -1",
        "the window to close",
    );
    assert_eq!(
        scene.eval("vim.fn.bufloaded(vim.fn.bufnr('COMMIT_EDITMSG'))"),
        1
    );
}

#[test]
fn a_backend_that_dies_leaves_the_text() {
    let scene = staged();
    begin_commit(&scene, "");
    scene.type_keys("ifirst<Esc>");
    proc::kill9(scene.backend());
    scene.wait_notice("`git commit` has ended and no longer waits for this file");
    assert_eq!(scene.eval("vim.fn.getline(1)"), "first");
}

#[test]
fn programs_open_several_files_at_once_at_their_lines() {
    let workspace = Workspace::new();
    workspace.write("the first.txt", "1\n2\n3\n");
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.run("sh -c '$VISUAL +3 \"the first.txt\"'; echo fi$((1))rst");
    wait_file(&scene, "the first.txt");
    assert_eq!(scene.eval("vim.fn.line('.')"), 3);
    scene.run("sh -c \"$EDITOR -- -new-\"; echo n$((0))w");
    wait_file(&scene, "-new-");
    scene.type_keys("itext<Esc>:wq<CR>");
    let text = scene.wait_shell("n0w");
    assert!(!text.contains("fi1rst"), "{text}");
    assert_eq!(scene.workspace.read("-new-").as_deref(), Some("text\n"));
    wait_file(&scene, "the first.txt");
    scene.type_keys(":q<CR>");
    scene.wait_shell("fi1rst");
}

#[test]
fn what_is_no_file_is_refused() {
    let scene = Scene::new();
    for (file, said) in [
        (".", "is not a regular file"),
        ("-R", "this editor has no -R, only +LINE and files"),
        ("", "this editor opens a file, and none was named"),
    ] {
        scene.run(&format!("$EDITOR {file}"));
        scene.wait_shell(said);
    }
}

#[test]
fn a_file_that_is_open_stays_open() {
    let workspace = Workspace::new();
    let file = workspace.write("a.txt", "one\n");
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.command(&format!("edit {}", file.display()));
    scene.type_keys("itwo <Esc>");
    scene.run("$EDITOR a.txt; cat a.txt");
    scene.wait_for(
        "vim.wo.winbar ~= '' and vim.api.nvim_get_mode().mode == 'n'",
        "the keys",
    );
    scene.type_keys("<C-c><C-k>");
    scene.wait_shell("co-nvim: aborted in Neovim\none\nexit 0");
    assert_eq!(scene.eval("vim.fn.getline(1)"), "two one");
    assert_eq!(scene.eval("vim.wo.winbar"), "");
    scene.run("$EDITOR a.txt; cat a.txt");
    scene.wait_for("vim.wo.winbar ~= ''", "the keys");
    scene.type_keys(":w<CR>:new<CR>:on<CR>");
    scene.wait_for(
        "not vim.bo[vim.fn.bufnr('^co://shell$')].modified and vim.fn.bufwinnr('a.txt') == -1",
        "one window",
    );
    scene.wait_shell("$ $EDITOR a.txt; cat a.txt\ntwo one\nexit 0");
    assert_eq!(scene.eval("vim.fn.bufloaded('a.txt')"), 1);
}

#[test]
fn the_time_stands_still_while_a_file_is_open() {
    let scene = Scene::new();
    scene.run("++timeout=1 $EDITOR a.txt && echo d$((0))ne");
    wait_file(&scene, "a.txt");
    scene.lua("_G.opened = vim.uv.hrtime()", json!([]));
    scene.wait_for("vim.uv.hrtime() - opened > 1.5e9", "more time than it has");
    scene.type_keys(":wq<CR>");
    scene.wait_shell("d0ne\nexit 0");
}

/// The person does something else by then.
#[test]
fn a_file_that_comes_later_leaves_the_focus() {
    let scene = Scene::new();
    let go = gate(&scene.workspace, "gate");
    scene.run("cat gate; $EDITOR a.txt");
    scene.wait_shell("running");
    scene.type_keys("ityping");
    scene.wait_for("vim.fn.getline(1) == 'typing'", "the text");
    open_gate(&go);
    scene.wait_notice("waits until you close a.txt");
    assert_eq!(scene.eval("vim.fn.getline('.')"), "typing");
    scene.wait_mode("i");
    scene.type_keys("<Esc>");
    scene.command("bdelete a.txt");
    scene.wait_shell("exit 0");
}

/// The socket is for what the person typed alone.
#[test]
fn a_confined_command_and_one_of_the_model_have_no_such_editor() {
    let scene = staged();
    let said = "\nco: no terminal here for an editor, run it with :Co! ++pty\n";
    scene.co("/sandbox landlock");
    scene.wait_notice("approved commands write in the workspace");
    for (count, command) in [(1, "git commit"), (2, "++env=inherit git commit")] {
        scene.run(command);
        let done = format!("(co_seen.CoJobDone or 0) == {count}");
        scene.wait_for(&done, "the commit's end");
        let text = scene.wait_shell("exit 1");
        assert_eq!(text.matches(said).count(), count, "{text}");
    }
    scene.co("/sandbox subprocess");
    scene.replies([
        Reply::shell("c1", "touch x; env | grep EDIT"),
        Reply::text("done"),
    ]);
    scene.co("show it");
    scene.approve();
    scene.wait_turns(1);
    let told = scene.told(1);
    assert!(told.contains("GIT_EDITOR=false\n"), "{told}");
    assert!(!told.contains("__edit"), "{told}");
    assert!(below(scene.pid(), "__edit").is_empty());
    let state = scene.home.path().join("state/co-nvim");
    assert!(state.is_dir() && !state.join("editors").exists());
}
