//! `/commit`: the model writes the message of a commit.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::http::Reply;
use crate::support::scene::Scene;
use crate::support::workspace::Workspace;
use crate::support::{DEADLINE, proc};

const PASSWORD: &str = "correct-horse_battery/staple";

/// The last event of an answer that the output limit cut.
const CUT: &str = r#"data: {"choices":[{"index":0,"delta":{"content":"Add it beca"},"finish_reason":"length"}]}

data: [DONE]

"#;

/// An event of a server that fails.
const FAULT: &str = r#"data: {"error":{"message":"overloaded","type":"server_error","code":503}}

"#;

/// An event of a server that refuses the request.
const REFUSAL: &str = r#"data: {"error":{"message":"No models loaded","type":"invalid_request_error","code":400}}

"#;

/// Edits the message of a commit of `notes.txt`, which has `staged` as its new text.
fn committing(staged: &str, replies: impl IntoIterator<Item = Reply>) -> Scene {
    let workspace = Workspace::new();
    workspace.write("notes.txt", "one\n");
    workspace.git(&["add", "."]);
    workspace.git(&["commit", "--quiet", "--message", "Begin"]);
    workspace.write("notes.txt", staged);
    workspace.git(&["add", "."]);
    edited(workspace, ".git/COMMIT_EDITMSG", replies)
}

/// Edits the message of a commit.
fn edited(workspace: Workspace, message: &str, replies: impl IntoIterator<Item = Reply>) -> Scene {
    let message = workspace.write(message, "\n# Please\n");
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.replies(replies);
    let edit = format!("edit {} | set filetype=gitcommit", message.display());
    scene.command(&edit);
    scene
}

/// Types `/commit` and waits for a message.
#[track_caller]
fn write(scene: &Scene, message: &str) {
    scene.type_keys(":Co /commit<CR>");
    scene.wait_for(&format!("vim.fn.getline(1) == '{message}'"), "the message");
}

/// Returns the changes that the model got.
fn told(scene: &Scene) -> String {
    scene.server.requests()[0].last("user").unwrap()
}

#[test]
fn it_is_written_without_tools_and_without_secrets() {
    let scene = committing(
        &format!("+DB_PASSWORD={PASSWORD}\n"),
        [Reply::text("```\nAdd the password\n```")],
    );
    scene
        .workspace
        .write(".env", &format!("DB_PASSWORD={PASSWORD}\n"));
    write(&scene, "Add the password");
    assert!(
        told(&scene).contains("[redacted: secret value]"),
        "{}",
        told(&scene)
    );
    assert!(scene.server.requests()[0].body.get("tools").is_none());
    assert!(scene.chats().is_empty());
}

#[test]
fn it_is_asked_for_again_after_a_fault_and_its_tokens_count() {
    let replies = [
        Reply::new().raw(FAULT.as_bytes()),
        Reply::text("Add it"),
        Reply::text("```\n```"),
        Reply::new().raw(CUT.as_bytes()),
    ];
    let scene = committing("two\n", replies);
    write(&scene, "Add it");
    for reason in [
        "the model wrote no text; /commit asks again",
        "it reached the model's output limit",
    ] {
        scene.type_keys(":Co /commit<CR>");
        scene.wait_notice(&format!("no commit message: {reason}"));
    }
    scene.type_keys(":Co /usage<CR>");
    scene.wait_text("20 tokens in");
}

#[test]
fn it_is_asked_for_with_less_after_a_refusal_and_each_time_that_it_is_typed() {
    let refusals = || (0..4).map(|_| Reply::new().raw(REFUSAL.as_bytes()));
    let lines = "a line of the change\n".repeat(1_000);
    let scene = committing(&lines, refusals());
    scene.type_keys(":Co /commit<CR>");
    scene.wait_notice("No models loaded");
    let sizes: Vec<_> = scene
        .server
        .requests()
        .iter()
        .map(|it| it.bytes.len())
        .collect();
    assert!(sizes.len() == 4 && sizes[3] < sizes[0] / 4, "{sizes:?}");
    scene.replies([Reply::text("Add it")]);
    write(&scene, "Add it");
}

#[test]
fn nothing_staged_is_no_commit() {
    let scene = committing("one\n", []);
    scene.type_keys(":Co /commit<CR>");
    scene.wait_notice("no commit message: nothing is staged");
}

/// Changes `notes.txt` where the model answers with `message`, adds a new file and a hook, and types `/commit`.
fn asked(message: &str) -> Scene {
    let workspace = Workspace::new();
    workspace.write("notes.txt", "one\n");
    workspace.git(&["add", "."]);
    workspace.git(&["commit", "--quiet", "--message", "Begin"]);
    workspace.write("notes.txt", "two\n");
    workspace.write("new.txt", "new\n");
    let hook = workspace.write(".git/hooks/pre-commit", "#!/bin/sh\necho ran > hooked\n");
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    let scene = Scene::in_workspace(workspace, json!({}), &[]);
    scene.replies([Reply::text(message)]);
    scene.type_keys(":Co /commit<CR>");
    for text in [
        "Change it",
        "git commit, with all changes of tracked files",
        "with M notes.txt",
        "not  ? new.txt",
        "ready · a question waits",
    ] {
        scene.wait_text(text);
    }
    scene
}

/// Waits until the last commit has this message, and the work tree has nothing else of it. git moves HEAD before it writes the
/// index.
#[track_caller]
fn wait_commit(scene: &Scene, message: &str) {
    proc::wait_until(DEADLINE, "the commit", || {
        let last = scene.workspace.git(&["log", "-1", "--format=%B"]);
        // With a lock, the commit could fail.
        let status = ["--no-optional-locks", "status", "--porcelain"];
        let rest = scene.workspace.git(&status);
        (last.trim() == message && rest == "?? hooked\n?? new.txt\n").then_some(())
    });
}

#[test]
fn one_question_makes_the_commit_with_the_hooks_of_the_person() {
    let scene = asked("Change it\n\nIt's \"one\".");
    scene.answer("y");
    wait_commit(&scene, "Change it\n\nIt's \"one\".");
    scene.wait_chat("git commit -a -m");
    let told = told(&scene);
    assert!(
        told.contains("-one\n+two\n") && !told.contains("new.txt"),
        "{told}"
    );
}

#[test]
fn its_message_is_edited_in_a_buffer() {
    let scene = asked("Change it");
    scene.answer("e");
    scene.wait_text("Commit with this message");
    scene.type_keys("A well<C-s>");
    wait_commit(&scene, "Change it well");
}

#[test]
fn a_no_and_a_later_change_make_no_commit() {
    let scene = asked("Change it");
    scene.workspace.write("notes.txt", "three\n");
    scene.answer("y");
    scene.wait_notice("no commit yet: the files have changed since the question");
    scene.wait_text("with all changes of tracked files");
    scene.answer("n");
    scene.wait_no_text("with all changes of tracked files");
    scene.wait_no_text("a question waits");
    let last = scene.workspace.git(&["log", "-1", "--format=%s"]);
    assert_eq!(last, "Begin\n");
}

#[test]
fn it_is_about_the_index_and_the_repository_of_the_commit() {
    let workspace = Workspace::new();
    workspace.write("inner/staged.txt", "staged\n");
    let git = |arguments: &[&str]| workspace.git(&[&["-C", "inner"], arguments].concat());
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    // As `git commit --only` does it.
    let at = |name: &str| workspace.path().join("inner/.git").join(name);
    std::fs::rename(at("index"), at("next-index-7.lock")).unwrap();
    let scene = edited(
        workspace,
        "inner/.git/COMMIT_EDITMSG",
        [Reply::text("Add it")],
    );
    scene.command("let $GIT_INDEX_FILE = '.git/next-index-7.lock'");
    write(&scene, "Add it");
    assert!(told(&scene).contains("+staged\n"), "{}", told(&scene));
}

#[test]
fn it_gets_whole_lines_of_changes_that_are_too_long() {
    let lines: String = (10_001..19_999)
        .map(|number| format!("key={number}\n"))
        .collect();
    let scene = committing(&lines, [Reply::text("Add it")]);
    write(&scene, "Add it");
    scene.wait_notice("the model gets the first 64 KiB of the changes");
    let told = told(&scene);
    let last = told
        .lines()
        .rev()
        .find(|line| line.starts_with("+key"))
        .unwrap();
    assert_eq!(last.len(), "+key=10001".len(), "{last}");
    assert!(told.contains("Begin\n"), "{told}");
}

#[test]
fn the_model_gets_the_trusted_instructions_and_the_conversation() {
    let scene = committing(
        "two\n",
        [
            Reply::text("I count from two now."),
            Reply::text("Count from two"),
            Reply::text("Count"),
        ],
    );
    scene.workspace.write("AGENTS.md", "Subjects are haiku.\n");
    scene.co("the tax law counts from two");
    scene.wait_turns(1);
    scene.wait_ask("1/1");
    scene.type_keys(":Co /commit<CR>");
    scene.wait_for("vim.fn.getline(1) == 'Count from two'", "the message");
    let request = |number: usize| scene.server.requests()[number].body.to_string();
    let sent = request(1);
    for said in ["the tax law counts from two", "I count from two now."] {
        assert!(sent.contains(said), "{sent}");
    }
    assert!(!sent.contains("haiku"), "{sent}");
    scene.answer("y");
    scene.wait_text("AGENTS.md is sent to the model");
    write(&scene, "Count");
    assert!(request(2).contains("Subjects are haiku."), "{}", request(2));
}

#[test]
fn a_chat_keeps_its_cost() {
    let workspace = Workspace::new();
    workspace.write("notes.txt", "one\n");
    workspace.git(&["add", "."]);
    let message = workspace.write(".git/COMMIT_EDITMSG", "\n# Please\n");
    let prices = json!({ "scripted": { "input": 30_000, "output": 20_000 } });
    let scene = Scene::in_workspace(workspace, json!({ "prices": prices }), &[]);
    scene.replies([
        Reply::text("Aye."),
        Reply::text("Add it"),
        Reply::text("Other."),
    ]);
    scene.co("hi");
    scene.wait_turns(1);
    scene.wait_text("$0.40");
    let edit = format!("split {} | set filetype=gitcommit", message.display());
    scene.command(&edit);
    write(&scene, "Add it");
    scene.wait_text(" $0.80");
    assert!(!scene.screen().concat().contains('≥'));
    scene.co("/model other");
    scene.co("and now");
    scene.wait_turns(2);
    scene.wait_text("≥ $0.80");
    scene.co("/usage");
    scene.wait_notice("≥ $0.8000");
}
