//! A chain of what a person does with co all day, by keys that are counted.

use serde_json::{Value, json};

use crate::support::http::Reply;
use crate::support::workspace::Workspace;

use super::scene::Scene;

/// The most keys of the chain.
const MOST_KEYS: usize = 14;

/// Types keys and counts them.
///
/// A key is a press, alone or with Ctrl: `<C-\>y` is two keys. The words of a prompt do not count, because the person would
/// type them anywhere. Waiting does not count either.
struct Person<'a> {
    scene: &'a Scene,
    keys: usize,
}

impl Person<'_> {
    fn press(&mut self, keys: &[&str]) {
        self.keys += keys.len();
        self.scene.type_keys(&keys.concat());
    }

    /// Says yes to the question that has `text`, without going there.
    #[track_caller]
    fn approve(&mut self, text: &str) {
        let window = self.window();
        self.scene.wait_text(text);
        self.scene.wait_for(
            "require('co.question.sight').seen()",
            "the question to be on the screen for long enough",
        );
        self.press(&["<C-Bslash>", "y"]);
        self.scene.wait_for(
            "#require('co.question').pending() == 0",
            "the question to be answered",
        );
        assert_eq!(self.window(), window, "the focus stays after {text:?}");
    }

    fn window(&self) -> Value {
        self.scene
            .lua("return vim.api.nvim_get_current_win()", json!([]))
    }
}

#[test]
fn a_change_is_asked_for_read_approved_tested_and_committed_in_few_keys() {
    let workspace = Workspace::new();
    workspace.write("money.sh", "half=down\n");
    workspace.write("test.sh", ". ./money.sh; [ $half = up ] && echo 3 passed\n");
    workspace.git(&["add", "."]);
    workspace.git(&["commit", "--quiet", "--message", "Begin"]);
    let scene = Scene::in_workspace(workspace, json!({ "question_keys": true }), &[]);
    scene.command("map <F2> <Plug>(co-chat)");
    let edits = json!([{ "old": "half=down", "new": "half=up" }]);
    let edit = json!({ "path": "money.sh", "edits": edits });
    let reasons: String = (1..=80).map(|it| format!("Reason {it}.\n\n")).collect();
    scene.replies([
        Reply::new().say(&reasons).call("c1", "edit_file", &edit),
        Reply::shell("c2", "sh test.sh"),
        Reply::shell("c3", "git commit --all --message 'Round half up'"),
        Reply::text("All through."),
    ]);
    let mut person = Person {
        scene: &scene,
        keys: 0,
    };

    // Ask.
    person.press(&["<F2>", "i"]);
    scene.type_keys("fix the test");
    person.press(&["<C-s>"]);
    // Read a long answer.
    scene.wait_ask("1/1");
    person.press(&["<Esc>", "[", "["]);
    scene.wait_text("Reason 1.");
    person.press(&["<C-f>"]);
    scene.wait_no_text("Reason 1.");
    // Approve an edit, run the tests, commit.
    person.approve("edit_file money.sh");
    person.approve("sh test.sh");
    scene.wait_chat("3 passed");
    person.approve("git commit --all");
    scene.wait_chat("All through.");

    assert!(person.keys <= MOST_KEYS, "{} keys", person.keys);
    assert_eq!(scene.workspace.read("money.sh").unwrap(), "half=up\n");
    let log = scene.workspace.git(&["log", "--format=%s"]);
    assert_eq!(log.lines().next(), Some("Round half up"));
}
