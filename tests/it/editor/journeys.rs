//! A chain of what a person does with co all day, by keys that are counted.

use serde_json::{Value, json};

use crate::support::http::Reply;
use crate::support::workspace::Workspace;

use super::agents;
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

impl<'a> Person<'a> {
    fn new(scene: &'a Scene) -> Self {
        Self { scene, keys: 0 }
    }

    /// Asks, and reads the beginning of the long answer.
    fn ask_and_read(&mut self) {
        self.press(&["<F2>", "i"]);
        self.scene.type_keys("fix the test");
        self.press(&["<C-s>"]);
        self.scene.wait_ask("1/1");
        self.press(&["<Esc>", "[", "["]);
        self.scene.wait_text("Reason 1.");
        self.press(&["<C-f>"]);
        self.scene.wait_no_text("Reason 1.");
    }

    #[track_caller]
    fn assert_done(&self) {
        assert!(self.keys <= MOST_KEYS, "{} keys", self.keys);
        assert_eq!(self.scene.workspace.read("money.sh").unwrap(), "half=up\n");
        let log = self.scene.workspace.git(&["log", "--format=%s"]);
        assert_eq!(log.lines().next(), Some("Round half up"));
    }

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

/// Returns a repository whose test fails.
fn failing() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("money.sh", "half=down\n");
    workspace.write("test.sh", ". ./money.sh; [ $half = up ] && echo 3 passed\n");
    workspace.git(&["add", "."]);
    workspace.git(&["commit", "--quiet", "--message", "Begin"]);
    workspace
}

/// Returns a text that is longer than a screen.
fn reasons() -> String {
    (1..=80).map(|it| format!("Reason {it}.\n\n")).collect()
}

#[test]
fn a_change_is_asked_for_read_approved_tested_and_committed_in_few_keys() {
    let workspace = failing();
    let scene = Scene::in_workspace(workspace, json!({ "question_keys": true }), &[]);
    scene.command("map <F2> <Plug>(co-chat)");
    let edits = json!([{ "old": "half=down", "new": "half=up" }]);
    let edit = json!({ "path": "money.sh", "edits": edits });
    scene.replies([
        Reply::new().say(&reasons()).call("c1", "edit_file", &edit),
        Reply::shell("c2", "sh test.sh"),
        Reply::shell("c3", "git commit --all --message 'Round half up'"),
        Reply::text("All through."),
    ]);
    let mut person = Person::new(&scene);
    person.ask_and_read();
    // Approve an edit, run the tests, commit.
    person.approve("edit_file money.sh");
    person.approve("sh test.sh");
    scene.wait_chat("3 passed");
    person.approve("git commit --all");
    scene.wait_chat("All through.");
    person.assert_done();
}

#[test]
fn an_agent_needs_no_more_keys() {
    let workspace = failing();
    let ask = |id: &str, kind: &str, detail: Value| {
        let mut call = json!({ "toolCallId": id, "title": "Do it", "kind": kind });
        call.as_object_mut()
            .unwrap()
            .extend(detail.as_object().unwrap().clone());
        json!({ "ask": { "toolCall": call, "options": [
            { "optionId": "once", "name": "Yes", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ] } })
    };
    let command =
        |id: &str, command: &str| ask(id, "execute", json!({ "rawInput": { "command": command } }));
    let path = workspace.path().join("money.sh");
    let diff =
        json!({ "type": "diff", "path": path, "oldText": "half=down\n", "newText": "half=up\n" });
    let commit = "git commit --quiet --all --message 'Round half up'";
    let script = json!({ "fix the test": [
        agents::message(&reasons()),
        ask("1", "edit", json!({ "content": [diff] })),
        { "sh": "echo half=up > money.sh" },
        command("2", "sh test.sh"),
        { "sh": "sh test.sh" },
        command("3", commit),
        { "sh": commit },
        agents::message("All through."),
    ] });
    workspace.write("script.json", &script.to_string());
    let mut settings = agents::settings(&workspace, json!({}));
    settings["question_keys"] = json!(true);
    let scene = Scene::in_workspace(workspace, settings, &[]);
    scene.command("map <F2> <Plug>(co-chat)");
    scene.co("/agent scripted");
    scene.wait_notice("scripted works in this chat");
    let mut person = Person::new(&scene);
    person.ask_and_read();
    person.approve("money.sh");
    person.approve("sh test.sh");
    scene.wait_chat("3 passed");
    person.approve("git commit");
    scene.wait_chat("All through.");
    person.assert_done();
}
