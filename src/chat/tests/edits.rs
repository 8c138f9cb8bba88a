//! The calls that change files.

use serde_json::{Value, json};

use super::chat::{Chat, asks_for, call, done, says, tool};
use crate::chat::{Msg, Prompt};
use crate::protocol::{Answer, HunkAnswer, LineRange, Question, Scope, ToEditor};

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({ "path": path, "edits": [{ "old": old, "new": new }] })
}

#[tokio::test]
async fn a_change_is_shown_asked_and_made() {
    let mut chat = Chat::new([
        asks_for("1", "edit_file", edit("src/a", "two", "2\n3")),
        says("Changed."),
    ]);
    chat.write("src/a", "one\ntwo\n");
    let ask = chat.question("change it").await;
    assert!(chat.screen().contains("? edit src/a"), "shown first");
    assert_eq!(ask.command, "edit_file src/a");
    assert_eq!(ask.reasons, ["changes a file"]);
    assert_eq!(ask.prefix.as_deref(), Some("edit_file src/**"));
    let change = ask.change.unwrap();
    assert_eq!(
        (change.files[0].path.as_str(), change.added, change.removed),
        ("src/a", 2, 1)
    );
    assert_eq!(change.excerpt, " one\n-two\n+2\n+3\n");
    assert_eq!(chat.read("src/a"), "one\ntwo\n", "nothing before the yes");
    chat.answer(ask.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.read("src/a"), "one\n2\n3\n");
    let told = chat.told("1");
    assert!(
        told.starts_with("Done: src/a +2 -1.\nIts hash is "),
        "{told}"
    );
    assert!(told.ends_with("-two\n+2\n+3\n"), "{told}");
    chat.assert_shown("✓ src/a  +2 -1");
    // Resumed, it reads the same.
    let resumed = chat.resumed().await;
    for piece in ["  +2\n  +3\n", "✓ src/a  +2 -1"] {
        assert!(resumed.contains(piece), "{resumed}");
    }
}

#[tokio::test]
async fn a_name_with_line_breaks_takes_one_line_in_a_question() {
    let name = "a\n+b\u{202e}";
    let mut chat = Chat::new([
        asks_for("1", "edit_file", edit(name, "two", "2")),
        asks_for(
            "2",
            "move_file",
            json!({ "from": name, "to": "src\nc/\nd" }),
        ),
        says("Done."),
    ]);
    chat.write(name, "two\n");
    let ask = chat.question("change it").await;
    assert_eq!(ask.command, r"edit_file 'a\n+b\u{202e}'");
    let change = ask.change.unwrap();
    assert_eq!(change.files[0].path, r"a\n+b\u{202e}");
    chat.answer(ask.id, Answer::Once);
    let ask = chat.asked().await;
    let change = ask.change.unwrap();
    assert_eq!(change.excerpt, "!moved from a\\n+b\\u{202e}\n");
    chat.answer(ask.id, Answer::Deny);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.read(name), "2\n");
}

fn accept(accept: bool, lines: Option<&[&str]>, comment: Option<&str>) -> HunkAnswer {
    HunkAnswer {
        accept,
        lines: lines.map(|lines| lines.iter().map(ToString::to_string).collect()),
        comment: comment.map(str::to_owned),
    }
}

#[tokio::test]
async fn each_hunk_of_a_change_can_be_answered() {
    let text = "A\nb\nC\nd\nE\nf";
    let mut chat = Chat::new([
        asks_for("1", "write_file", json!({ "path": "src/a", "text": text })),
        says("I see."),
    ]);
    chat.write("src/a", "a\nb\nc\nd\ne\nf");
    let ask = chat.question("write it").await;
    let change = ask.change.unwrap();
    assert_eq!(change.files[0].parts, 3);
    let end = " d\n@\n-e\n+E\n f\n\\ No newline at end of file\n";
    let expected = format!("@\n-a\n+A\n b\n@\n-c\n+C\n{end}");
    assert_eq!(change.files[0].text.as_str(), expected);
    let hunks = vec![
        accept(true, None, None),
        accept(false, None, Some("keep this one")),
        accept(true, Some(&["mine", "too"]), None),
    ];
    chat.review(ask.id, hunks);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.read("src/a"), "A\nb\nc\nd\nmine\ntoo\nf");
    let told = chat.told("1");
    for said in [
        "Done: src/a +3 -2.",
        "Note: change 2 of 3, at line 3, was not made; the person says: keep this one.",
        "Note: change 3 of 3, at line 5, was made with another text.",
    ] {
        assert!(told.contains(said), "{told}");
    }
    let line = "✓ write src/a  +3 -2 · you: 2 of 3 changes, 1 with your text\n";
    chat.assert_shown(line);
    chat.assert_shown("  ✎ keep this one\n");
    let resumed = chat.resumed().await;
    assert!(resumed.contains(line), "{resumed}");
}

#[tokio::test]
async fn a_reviewed_part_whose_lines_changed_meanwhile_is_left_out() {
    let mut chat = Chat::new([
        asks_for(
            "1",
            "write_file",
            json!({ "path": "src/a", "text": "A\nb\nC\n" }),
        ),
        says("I see."),
    ]);
    chat.write("src/a", "a\nb\nc\n");
    let ask = chat.question("write it").await;
    chat.write("src/a", "a\nb\nmine\n");
    let all = vec![accept(true, None, None), accept(true, None, None)];
    chat.review(ask.id, all);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.read("src/a"), "A\nb\nmine\n");
    let told = chat.told("1");
    let note = "Note: the change at line 3 was left out after all, because its lines have changed meanwhile.";
    assert!(
        told.contains("Done: src/a +1 -1.") && told.contains(note),
        "{told}"
    );
}

#[tokio::test]
async fn a_review_that_accepts_nothing_is_a_no() {
    let mut chat = Chat::new([
        asks_for("1", "edit_file", edit("src/a", "two", "2")),
        asks_for("2", "edit_file", edit("src/a", "two", "2")),
        says("I see."),
    ]);
    chat.write("src/a", "one\ntwo\n");
    let ask = chat.question("change it").await;
    chat.review(ask.id, vec![accept(false, None, Some("two is right"))]);
    let ask = chat.asked().await;
    chat.review(
        ask.id,
        vec![accept(true, None, None), accept(true, None, None)],
    );
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.read("src/a"), "one\ntwo\n");
    assert_eq!(chat.told("1"), "User denied this action: two is right");
    assert_eq!(
        chat.told("2"),
        "Nothing was changed: the review is not one of this change."
    );
}

#[tokio::test]
async fn a_change_moves_with_what_was_written_during_the_question_or_is_not_made() {
    for (before, meanwhile, after, told) in [
        (
            "one\ntwo\n",
            "mine\none\ntwo\n",
            "mine\none\n2\n",
            "Done: src/a +1 -1.",
        ),
        (
            "one two\n",
            "mine two\n",
            "mine two\n",
            "Nothing was changed: cannot change src/a: the lines to change have changed meanwhile: read it again.",
        ),
    ] {
        let mut chat = Chat::new([
            asks_for("1", "edit_file", edit("src/a", "two", "2")),
            says("I see."),
        ]);
        chat.write("src/a", before);
        let ask = chat.question("change it").await;
        chat.write("src/a", meanwhile);
        chat.answer(ask.id, Answer::Once);
        assert_eq!(chat.ended().await, "done");
        assert_eq!(chat.read("src/a"), after);
        chat.assert_told("1", told);
    }
}

#[tokio::test]
async fn an_edit_of_a_text_that_changed_since_it_was_read_is_refused_with_what_changed() {
    let hash = co_edit::hash("one\ntwo\nthree\n");
    let with_hash = |old: &str, new: &str| {
        let mut arguments = edit("src/a", old, new);
        arguments["hash"] = hash.clone().into();
        arguments
    };
    let mut chat = Chat::trusting([
        asks_for("1", "read_file", json!({ "path": "src/a" })),
        vec![
            tool("2", "edit_file", with_hash("one", "1")),
            tool("3", "edit_file", with_hash("two", "2")),
            call("4", "echo four >> src/a"),
            done(),
        ],
        asks_for("5", "edit_file", with_hash("three", "3")),
        says("I see."),
    ]);
    chat.write("src/a", "one\ntwo\nthree\n");
    assert_eq!(chat.turn("change it").await, "done");
    assert!(
        chat.told("1").ends_with(&format!("; hash {hash}]")),
        "{}",
        chat.told("1")
    );
    // The model's own changes are not held against it.
    assert_eq!(chat.read("src/a"), "1\n2\nthree\nfour\n");
    chat.assert_told("5", "it has changed since you read it");
}

async fn asked_about(chat: &mut Chat, call: &str) -> Question {
    chat.until(pick!(ToEditor::Question(ask) if ask.command == call => (**ask).clone()))
        .await
}

#[tokio::test]
async fn always_holds_for_the_directory_and_not_for_files_that_others_run() {
    let mut chat = Chat::new([
        vec![
            tool("1", "edit_file", edit("src/a", "one", "1")),
            tool("2", "edit_file", edit("src/deep/b", "one", "1")),
            tool("3", "edit_file", edit("src/build.rs", "one", "1")),
            done(),
        ],
        says("Changed."),
    ]);
    for path in ["src/a", "src/deep/b", "src/build.rs"] {
        chat.write(path, "one\n");
    }
    chat.say("change them");
    chat.allow_next(Scope::Prefix).await;
    let obeyed = asked_about(&mut chat, "edit_file src/build.rs").await;
    assert_eq!(
        obeyed.reasons[0],
        "`build.rs`: Cargo builds and runs it or what it names, also for an editor"
    );
    assert_eq!(obeyed.prefix, None);
    chat.answer(obeyed.id, Answer::Deny);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.read("src/a"), "1\n");
    assert_eq!(chat.read("src/deep/b"), "1\n");
    assert_eq!(chat.read("src/build.rs"), "one\n");
}

#[tokio::test]
async fn answers_to_several_changes_of_a_file_hold_while_the_first_moves_its_lines() {
    let mut chat = Chat::new([
        vec![
            tool("1", "edit_file", edit("src/a", "one", "0\n1")),
            tool("2", "edit_file", edit("src/a", "three", "3")),
            done(),
        ],
        says("Changed."),
    ]);
    chat.write("src/a", "one\ntwo\nthree\n");
    let first = chat.question("change them").await;
    chat.approve().await;
    chat.answer(first.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.asks(), 2, "no question came again");
    assert_eq!(chat.read("src/a"), "0\n1\ntwo\n3\n");
}

#[tokio::test]
async fn every_edit_can_be_allowed_and_deletions_still_ask() {
    let mut chat = Chat::new([
        vec![
            tool("1", "edit_file", edit("src/a", "one", "1")),
            tool("2", "write_file", json!({ "path": "b", "text": "x\n" })),
            tool("3", "delete_file", json!({ "path": "src/a" })),
            done(),
        ],
        says("Changed."),
    ]);
    chat.write("src/a", "one\n");
    chat.say("change them");
    chat.allow_next(Scope::Edits).await;
    let deletion = asked_about(&mut chat, "delete_file src/a").await;
    assert!(deletion.destructive);
    chat.answer(deletion.id, Answer::Deny);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.read("src/a"), "1\n");
    assert_eq!(chat.read("b"), "x\n");
}

#[tokio::test]
async fn a_file_that_others_run_asks_by_each_of_its_names() {
    let paths = [".clinerules/a.md", "Makefile", "run/tasks.json"];
    let calls = paths.map(|path| {
        let text = json!({ "path": path, "text": "x\n" });
        asks_for(path, "write_file", text)
    });
    let mut chat = Chat::trusting(calls.into_iter().chain([says("I see.")]));
    chat.write("rules/a", "one\n");
    chat.write(".vscode/tasks.json", "one\n");
    std::os::unix::fs::symlink("rules/a", chat.work.join("Makefile")).unwrap();
    std::os::unix::fs::symlink(".vscode", chat.work.join("run")).unwrap();
    chat.say("write them");
    for (name, path) in [
        (".clinerules", ".clinerules/a.md"),
        ("Makefile", "rules/a"),
        (".vscode", ".vscode/tasks.json"),
    ] {
        let ask = asked_about(&mut chat, &format!("write_file {path}")).await;
        let start = format!("`{name}`: ");
        assert!(ask.reasons[0].starts_with(&start), "{:?}", ask.reasons);
        chat.answer(ask.id, Answer::Deny);
    }
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.read("rules/a"), "one\n");
}

#[tokio::test]
async fn auto_confirm_does_not_change_files_that_others_run() {
    let mut chat = Chat::trusting([
        vec![
            tool("1", "write_file", json!({ "path": "src/a", "text": "x\n" })),
            tool(
                "2",
                "write_file",
                json!({ "path": "AGENTS.md", "text": "x\n" }),
            ),
            done(),
        ],
        says("Changed."),
    ]);
    let ask = chat.question("write them").await;
    assert_eq!(ask.command, "write_file AGENTS.md");
    chat.answer(ask.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.read("src/a"), "x\n");
    assert_eq!(chat.read("AGENTS.md"), "x\n");
}

#[tokio::test]
async fn what_a_link_that_others_run_leads_to_is_asked_about() {
    let paths = [
        "build/rules",
        "run/direnv.sh",
        "config/vscode/tasks.json",
        "scripts/hook.sh",
        "src/new.sh",
        "src/a",
    ];
    let write = |(number, path): (usize, &&str)| {
        let arguments = json!({ "path": path, "text": "x\n" });
        tool(&number.to_string(), "write_file", arguments)
    };
    let mut calls: Vec<_> = paths.iter().enumerate().map(write).collect();
    calls.push(done());
    let mut chat = Chat::trusting([calls, says("Changed.")]);
    for path in &paths[..4] {
        chat.write(path, "");
    }
    chat.write("src/b", "");
    chat.write(".git/HEAD", "ref: refs/heads/main\n");
    chat.write(".git/hooks/sample", "");
    for (target, link) in [
        ("build/rules", "Makefile"),
        ("run/direnv.sh", ".tool.sh"),
        ("config/vscode", ".vscode"),
        ("../../scripts/hook.sh", ".git/hooks/pre-commit"),
        ("src/new.sh", "Justfile"),
        (".", ".cache"),
    ] {
        std::os::unix::fs::symlink(target, chat.work.join(link)).unwrap();
    }
    let mut ask = chat.question("write them").await;
    for (path, link) in paths.iter().zip([
        "`Makefile` leads to it",
        "`.tool.sh` leads to it",
        "`.vscode` leads to it",
        "`.git/hooks/pre-commit` leads to it",
        "`Justfile` leads to it",
    ]) {
        assert_eq!(ask.command, format!("write_file {path}"));
        assert!(ask.reasons[0].starts_with(link), "{:?}", ask.reasons);
        chat.answer(ask.id, Answer::Once);
        if *path != "src/new.sh" {
            ask = chat.asked().await;
        }
    }
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.read("src/a"), "x\n");
}

/// Asks for a change of lines 2 and 3 of `a`.
fn say_of_range(chat: &Chat) {
    let file = chat.work.canonicalize().unwrap().join("a");
    chat.send(Msg::Prompt(Prompt {
        text: "change it".to_owned(),
        range: Some(LineRange {
            file: file.to_str().unwrap().to_owned(),
            first: 2,
            last: 3,
        }),
        ..Prompt::default()
    }));
}

#[tokio::test]
async fn an_edit_outside_of_the_lines_that_the_person_named_is_refused() {
    let mut chat = Chat::new([
        vec![
            tool("1", "edit_file", edit("a", "4", "four")),
            tool("2", "write_file", json!({ "path": "new", "text": "x\n" })),
            tool("3", "delete_file", json!({ "path": "a" })),
            tool("4", "edit_file", edit("a", "1\n2", "one\ntwo")),
            done(),
        ],
        asks_for("5", "edit_file", edit("a", "3", "three\nand more")),
        asks_for("6", "edit_file", edit("a", "and more", "and most")),
        says("Changed."),
        asks_for("7", "edit_file", edit("a", "4", "four")),
        says("Changed."),
    ]);
    chat.write("a", "1\n2\n3\n4\n5\n");
    say_of_range(&chat);
    let file = chat.work.canonicalize().unwrap().join("a");
    for _ in 0..2 {
        let ask = chat.asked().await;
        assert_eq!(ask.review.as_deref(), file.to_str());
        chat.answer(ask.id, Answer::Once);
    }
    assert_eq!(chat.ended().await, "done");
    assert_eq!(
        chat.told("1"),
        "Refused: cannot change a: the person asked for a change of lines 2 to 3 only, and this changes line 4: leave the other lines as they are."
    );
    for call in ["2", "3"] {
        let told = chat.told(call);
        let why = "the person asked for a change of lines 2 to 3 of a and of nothing else.";
        assert!(told.ends_with(why), "{told}");
    }
    chat.assert_told("4", "this changes line 1");
    // The next prompt names no lines.
    let ask = chat.question("go on").await;
    assert_eq!(ask.review, None);
    chat.answer(ask.id, Answer::Once);
    assert_eq!(chat.ended().await, "done");
    assert_eq!(chat.read("a"), "1\n2\nthree\nand most\nfour\n5\n");
}
