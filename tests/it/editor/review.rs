//! `/review base`: the review of all changes since a branch.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::scene::Scene;
use crate::support::workspace::Workspace;

const TEXT: &str = "1\n2\n3\n4\n5\n6\n7\n8\n";

#[test]
fn all_changes_since_a_branch_are_reviewed() {
    let workspace = Workspace::new();
    workspace.write("a", TEXT);
    workspace.write("gone", "1\n");
    workspace.git(&["add", "."]);
    workspace.git(&["commit", "--quiet", "--message", "Base"]);
    workspace.git(&["branch", "base"]);
    workspace.write("a", "one\n2\n3\n4\n5\n6\n7\n8\n");
    workspace.git(&["commit", "--quiet", "--all", "--message", "Topic"]);
    workspace.write("a", "one\n2\n3\n4\n5\n6\n7\neight\n");
    workspace.write("new", "mine\n");
    workspace.git(&["rm", "--quiet", "gone"]);
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.command("Co /review base base");
    scene.wait_text("file 1 of 3");
    for text in ["- 1", "+ one", "- 8", "+ eight"] {
        scene.wait_text(text);
    }
    scene.press("y");
    scene.wait_text("accepted when the review ends");
    scene.press("n");
    scene.wait_text("file 2 of 3");
    scene.press("n");
    scene.wait_text("file 3 of 3");
    scene.press("q");
    scene.wait_text("1 change accepted; 1 change still open; parts of 2 files taken back");
    let read = |name| scene.workspace.read(name).unwrap();
    assert_eq!(read("a"), "one\n2\n3\n4\n5\n6\n7\n8\n");
    assert_eq!((read("gone"), read("new")), ("1\n".into(), "mine\n".into()));
    // Accepted parts are remembered, and git is as before.
    scene.command("Co /review base base");
    scene.wait_text("file 2 of 2");
    scene.press("[f");
    scene.wait_text("accepted when the review ends");
}

/// A workspace with a branch `base`, which has a commit of its own since `main` left it.
fn with_base() -> Workspace {
    let workspace = Workspace::new();
    for (name, text) in [
        ("a", TEXT),
        ("bin", "\0one"),
        ("old", TEXT),
        ("run", "echo\n"),
        (".env", "KEY=1\n"),
    ] {
        workspace.write(name, text);
    }
    std::os::unix::fs::symlink("a", workspace.path().join("link")).unwrap();
    workspace.git(&["add", "."]);
    workspace.git(&["commit", "-q", "-m", "Base"]);
    workspace.git(&["checkout", "-q", "-b", "base"]);
    workspace.write("a", &format!("{TEXT}of base\n"));
    workspace.git(&["commit", "-q", "-a", "-m", "Of base"]);
    workspace.git(&["checkout", "-q", "main"]);
    workspace
}

#[test]
fn a_review_against_a_branch_has_moves_and_modes_and_says_what_it_leaves_out() {
    let workspace = with_base();
    let path = workspace.path().to_owned();
    workspace.write("a", "one\n2\n3\n4\n5\n6\n7\n8\n");
    workspace.write("bin", "\0two");
    workspace.write(".env", "KEY=2\n");
    workspace.git(&["mv", "old", "new"]);
    std::fs::remove_file(path.join("link")).unwrap();
    std::os::unix::fs::symlink("run", path.join("link")).unwrap();
    std::fs::set_permissions(path.join("run"), Permissions::from_mode(0o755)).unwrap();
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.command("Co /review base base");
    scene.wait_text("file 1 of 3 · a  +1 -1");
    scene.wait_notice("not in the review, because they are no text: 2 files");
    scene.wait_for(
        "vim.fn.getqflist()[1].text == '+1 -1'",
        "a change without a call",
    );
    for (key, text) in [("]f", "! moved from old"), ("]f", "! mode 644 => 755")] {
        scene.press(key);
        scene.wait_text(text);
    }
    scene.press("n");
    scene.wait_text("file 1 of 3");
    scene.press("cwhy?<CR>");
    scene.wait_text("\"why?\"");
    scene.press("q");
    scene.wait_text("2 changes still open; parts of 1 file taken back");
    scene.wait_buffer("co://chat/1/prompt", "a:1: why?");
    let mode = std::fs::metadata(path.join("run"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o644);
}

#[test]
fn an_answer_stays_while_its_file_is_no_text() {
    let scene = Scene::in_workspace(with_base(), json!({}), &[]);
    let text = TEXT.replace('1', "one");
    scene.workspace.write("a", &text);
    scene.workspace.write("b", "new\n");
    scene.command("Co /review base base");
    scene.wait_text("file 1 of 2 · a");
    scene.press("y");
    scene.wait_text("file 2 of 2 · b");
    scene.press("q");
    scene.wait_text("1 change accepted; 1 change still open");
    scene.workspace.write("a", "\0");
    scene.command("Co /review base base");
    scene.wait_text(" b  +1 -0 · 0 of 1 answered");
    scene.wait_notice("not in the review, because they are no text: 1 file");
    scene.press("q");
    scene.workspace.write("a", &text);
    scene.command("Co /review base base");
    scene.wait_text("file 2 of 2 · b");
    scene.press("[f");
    scene.wait_text("accepted when the review ends");
    // Another merge base is another review.
    scene.press("<C-c>");
    scene.workspace.git(&["commit", "-q", "-a", "-m", "Topic"]);
    scene.workspace.write("a", TEXT);
    scene.command("Co /review base main");
    scene.wait_text("file 1 of 2 · a  +1 -1 · 0 of 1 answered");
}

#[test]
fn a_review_against_a_branch_needs_one() {
    let scene = Scene::in_workspace(with_base(), json!({}), &[]);
    for (args, text) in [
        ("nothing", "/review takes no words but `base` and a branch"),
        (
            "base",
            "say /review base and the name of a branch or a commit",
        ),
        (
            "base --all",
            "say /review base and the name of a branch or a commit",
        ),
        ("base nothing", "nothing"),
        (
            "base base",
            "nothing to review: no file differs from the merge base",
        ),
    ] {
        scene.command(&format!("Co /review {args}"));
        scene.wait_notice(text);
    }
}
