//! The contexts of prompts that the backend reads: files, git, searches.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use crate::support::http::Reply;
use crate::support::scene::Scene;
use crate::support::workspace::Workspace;

/// A scene with a model that answers each prompt.
fn answering(workspace: Workspace) -> Scene {
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.replies((1..9).map(|number| Reply::text(&format!("Answer {number}."))));
    scene
}

/// Returns the last prompt of a request, with its contexts.
#[track_caller]
fn sent(scene: &Scene, request: usize) -> String {
    scene.wait_turns(request as u64 + 1);
    scene.server.requests()[request].last("user").unwrap()
}

/// A repository with one commit of `notes.txt`, which has changed since.
fn changed() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("notes.txt", "one\n");
    workspace.git(&["add", "."]);
    workspace.git(&["commit", "--quiet", "--message", "Begin"]);
    workspace.write("notes.txt", "two\n");
    workspace
}

/// Makes a program that writes the file `ran` beside the workspace and in it.
fn program(workspace: &Workspace) -> String {
    let outside = workspace.path().with_file_name("ran");
    let script = format!(
        "#!/bin/sh\n: > {}\n: > ran\ncat\nexit 1\n",
        outside.display()
    );
    let path = workspace.write(".git/program", &script);
    std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn ran(workspace: &Workspace) -> bool {
    workspace.exists("ran") || workspace.path().with_file_name("ran").exists()
}

#[test]
fn git_tells_of_changes_commits_and_lines() {
    let workspace = changed();
    workspace.write(".gitignore", "ignored\n");
    workspace.write("ignored", "a needle\n");
    workspace.write("new", "a needle\n");
    workspace.write(".env", "KEY=a-needle-in-hay\n");
    let scene = answering(workspace);
    scene.co("see @diff");
    assert!(
        sent(&scene, 0).contains("-one\n+two\n"),
        "{}",
        sent(&scene, 0)
    );
    scene.co("see @git:HEAD, @git:none, @git:--output=made");
    let told = sent(&scene, 1);
    assert!(told.contains("Begin") && told.contains("+one"), "{told}");
    scene.wait_notice("left out: @git:none (");
    assert!(!scene.workspace.exists("made"), "an option is no revision");
    scene.co("see @search:needle");
    let told = sent(&scene, 2);
    assert!(told.contains("new:1:a needle\n"), "{told}");
    assert!(
        !told.contains("ignored:1") && !told.contains("KEY"),
        "{told}"
    );
    scene.co("see @search:nowhere");
    scene.wait_notice("left out: @search:nowhere (no line contains it)");
}

#[test]
fn git_says_what_it_does_not_have() {
    let scene = answering(Workspace::new());
    scene.co("see @diff");
    scene.wait_notice("left out: @diff (there is no commit yet)");
    std::fs::remove_dir_all(scene.workspace.path().join(".git")).unwrap();
    scene.co("see @diff again");
    scene.wait_notice("left out: @diff (Not a git repository");
}

#[test]
fn a_program_that_the_repository_names_can_do_nothing() {
    let workspace = changed();
    let program = program(&workspace);
    for (name, value) in [
        ("core.fsmonitor", program.as_str()),
        ("diff.external", &program),
        ("diff.word.textconv", &program),
        ("filter.word.clean", &program),
        ("format.pretty", "%G? %s"),
        ("gpg.program", &program),
        ("core.pager", &program),
        ("pager.show", &program),
        ("filter.word.process", &program),
        ("filter.word.required", "true"),
        ("diff.word.command", &program),
        ("core.hooksPath", "hooks"),
        ("core.editor", &program),
        ("core.sshCommand", &program),
        ("credential.helper", &program),
        ("alias.show", &format!("!{program}")),
        ("alias.diff", &format!("!{program}")),
        ("includeIf.gitdir:**.path", "../more"),
    ] {
        workspace.git(&["config", name, value]);
    }
    workspace.write("more", &format!("[core]\n\tfsmonitor = {program}\n"));
    workspace.write("hooks/post-index-change", "#!/bin/sh\necho ran > ran\n");
    let hook = workspace.path().join("hooks/post-index-change");
    std::fs::set_permissions(hook, Permissions::from_mode(0o755)).unwrap();
    workspace.write(".gitattributes", "* filter=word diff=word\n");
    let signed = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n";
    sign(&workspace, signed);
    let scene = answering(workspace);
    scene.co("see @diff and @git:HEAD");
    let told = sent(&scene, 0);
    assert!(told.contains("Begin"), "{told}");
    scene.type_keys(":Co see @search:two<CR>");
    sent(&scene, 1);
    assert!(!ran(&scene.workspace));
}

/// Gives the last commit a signature.
fn sign(workspace: &Workspace, signature: &str) {
    let commit = workspace.git(&["cat-file", "commit", "HEAD"]);
    let (head, message) = commit.split_once("\n\n").unwrap();
    let signed = format!("{head}\n{signature}\n{message}");
    workspace.write(".git/signed", &signed);
    let name = workspace.git(&["hash-object", "-t", "commit", "-w", ".git/signed"]);
    workspace.git(&["update-ref", "refs/heads/main", name.trim()]);
}

#[test]
fn a_difference_has_all_but_tracked_secrets_and_names_them() {
    let workspace = changed();
    workspace.write(".env", "KEY=first\n");
    workspace.git(&["add", "--force", "."]);
    workspace.git(&["commit", "--quiet", "--message", "More"]);
    workspace.write(".env", "KEY=secondvalue\n");
    workspace.write("notes.txt", "three\n");
    let scene = answering(workspace);
    scene.co("see @diff");
    let told = sent(&scene, 0);
    assert!(told.contains("@diff (without .env)"), "{told}");
    assert!(told.contains("+three"), "{told}");
    assert!(!told.contains("secondvalue"), "{told}");
}

#[test]
fn a_link_out_of_the_workspace_is_asked_about_once() {
    let workspace = Workspace::new();
    let outside = workspace.path().with_file_name("outside.txt");
    std::fs::write(&outside, "far away\n").unwrap();
    symlink(&outside, workspace.path().join("README.md")).unwrap();
    let scene = answering(workspace);
    scene.co("see @file:README.md");
    scene.wait_text("outside.txt");
    scene.answer_text("Send @file:README.md to the model?", "n");
    assert!(!sent(&scene, 0).contains("far away"));
    scene.wait_notice("left out: @file:README.md (you refused it)");
    scene.wait_no_text("Send @file:README.md");
    scene.co("now see @file:README.md");
    scene.answer_text("Send @file:README.md to the model?", "y");
    assert!(sent(&scene, 1).contains("far away\n"));
    scene.co("and again @file:README.md");
    assert!(sent(&scene, 2).contains("far away\n"));
    scene.command("edit README.md");
    scene.co("here, too: @buffer");
    assert!(sent(&scene, 3).contains("far away\n"), "it was allowed");
}

#[test]
fn a_buffer_of_a_link_out_of_the_workspace_is_asked_about() {
    let workspace = Workspace::new();
    let outside = workspace.path().with_file_name("outside.txt");
    std::fs::write(&outside, "far away\n").unwrap();
    symlink(&outside, workspace.path().join("README.md")).unwrap();
    let scene = answering(workspace);
    scene.command("edit README.md");
    scene.co("see @buffer");
    scene.answer_text("Send @buffer to the model?", "n");
    assert!(!sent(&scene, 0).contains("far away"));
    scene.wait_no_text("Send @buffer");
    scene.type_keys(":1Co see<CR>");
    scene.answer_text("Send @selection to the model?", "y");
    assert!(sent(&scene, 1).contains("far away"));
}

/// The redactor knows whole secrets.
#[test]
fn a_selection_of_half_a_secret_is_its_lines_without_it() {
    let workspace = Workspace::new();
    workspace.write(".env", "API_TOKEN=sword-Qx71-fish-9032\n");
    workspace.write("notes.txt", "the pin is sword-Qx71-fish-9032\nall else\n");
    let scene = answering(workspace);
    scene.command("edit notes.txt");
    scene.type_keys("gg2wvj:<C-u>Co see @selection<CR>");
    let first = sent(&scene, 0);
    assert!(!first.contains("Qx71"), "{first}");
    scene.command("call cursor(1, 14)");
    scene.type_keys("vee:<C-u>Co see @selection<CR>");
    let half = sent(&scene, 1);
    assert!(!half.contains("Qx71"), "{half}");
    assert!(half.contains("the pin is "), "{half}");
    assert!(
        half.contains("whole lines, because they have a secret"),
        "{half}"
    );
    scene.type_keys("2G0ve:<C-u>Co see @selection<CR>");
    let other = sent(&scene, 2);
    assert!(other.contains("all") && !other.contains("else"), "{other}");
}

#[test]
fn the_files_of_quickfix_entries_are_asked_about_together() {
    let workspace = Workspace::new();
    workspace.write("notes.txt", "");
    for name in ["one.txt", "two.txt"] {
        std::fs::write(workspace.path().with_file_name(name), "").unwrap();
    }
    let scene = answering(workspace);
    for name in ["notes.txt", "../one.txt", "../one.txt", "../two.txt"] {
        scene.command(&format!("caddexpr '{name}:1:far away'"));
    }
    scene.co("see @quickfix");
    scene.wait_text("one.txt");
    scene.wait_text("two.txt");
    scene.answer_text("Send @quickfix to the model?", "n");
    assert!(!sent(&scene, 0).contains("far away"));
    scene.wait_no_text("Send @quickfix");
    scene.co("see @quickfix again");
    scene.answer_text("Send @quickfix to the model?", "y");
    assert!(sent(&scene, 1).contains("far away"));
    scene.wait_no_text("Send @quickfix");
    scene.co("and @quickfix");
    assert!(sent(&scene, 2).contains("far away"), "it was allowed");
}

#[test]
fn a_question_about_a_long_buffer_says_that_it_shows_a_part() {
    let workspace = Workspace::new();
    let outside = workspace.path().with_file_name("outside.txt");
    std::fs::write(&outside, "far away €\n".repeat(10_000)).unwrap();
    let scene = answering(workspace);
    scene.command("edit ../outside.txt");
    scene.co("see @buffer");
    scene.wait_text("only its first 64 KiB are shown here");
    scene.wait_text("127 KiB");
    scene.answer_text("Send @buffer to the model?", "n");
}

#[test]
fn a_cancelled_question_about_a_context_gives_the_prompt_back() {
    let workspace = Workspace::new();
    let scene = answering(workspace);
    scene.co("see @file:/etc/hostname");
    scene.wait_text("Send @file:/etc/hostname to the model?");
    scene.interrupt();
    let draft = "table.concat(vim.fn.getbufline('co://chat/1/prompt', 1, '$')) == 'see @file:/etc/hostname'";
    scene.wait_for(draft, "the prompt comes back");
    scene.wait_no_text("Send @file:/etc/hostname");
    assert!(scene.server.requests().is_empty());
}

#[test]
fn what_is_no_file_is_left_out_at_once() {
    let workspace = Workspace::new();
    let fifo = workspace.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    workspace.write("link.png", "no image");
    let scene = answering(workspace);
    scene.co("see @file:fifo, @file:/proc/self/environ, @file:none and @file:link.png");
    scene.answer_text("Send @file:/proc/self/environ", "n");
    for text in [
        "@file:fifo (it is no file)",
        "@file:none (there is no such file)",
        "@file:link.png (it has no image in it)",
    ] {
        scene.wait_notice(text);
    }
}

#[test]
fn a_place_of_a_language_server_is_read_as_a_file_is() {
    let workspace = Workspace::new();
    let outside = workspace.path().with_file_name("outside.txt");
    std::fs::write(&outside, "far away\n").unwrap();
    symlink(&outside, workspace.path().join("link.py")).unwrap();
    symlink("/proc/self/environ", workspace.path().join("environ.py")).unwrap();
    let fifo = workspace.path().join("fifo.py");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    workspace.write(".env", "KEY=secret\n");
    workspace.write("main.py", "area = 1\nprint(area)\n");
    let scene = answering(workspace);
    scene.command("edit main.py");
    scene.command("call setline(2, 'print(area, 2)')");
    scene.attach_server(
        &[("fifo.py", 0), ("link.py", 0), ("main.py", 0)],
        &[(".env", 0), ("environ.py", 0), ("main.py", 1)],
    );
    scene.co("what is @lsp:area?");
    scene.wait_text("outside.txt");
    scene.answer_text("Send @lsp:area to the model?", "n");
    let told = sent(&scene, 0);
    for line in [
        "main.py:1:area = 1\nmain.py:2:print(area, 2)\nReferences:\nmain.py:2:print(area, 2)\n",
        "fifo.py cannot be read",
        "outside.txt: you refused it",
        "2 references, outside the workspace or secret",
    ] {
        assert!(told.contains(line), "{told}");
    }
    assert!(
        !told.contains("far away") && !told.contains("secret\n"),
        "{told}"
    );
}
