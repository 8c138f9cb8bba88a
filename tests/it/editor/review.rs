//! `/review base`: the review of all changes since a branch.

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
