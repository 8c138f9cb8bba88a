//! Changes of files by the model's tools.

use std::fs;

use serde_json::json;

use crate::support::ROOT;
use crate::support::http::Reply;

use super::scene::Scene;

const BUFFER: &str = "table.concat(vim.fn.getbufline('notes.txt', 1, '$'), '|')";

#[test]
fn what_the_person_types_during_the_question_stays() {
    let edit = json!({ "path": "notes.txt", "edits": [{ "old": "two", "new": "2\n3" }] });
    let scene = Scene::scripted([
        Reply::new().call("c1", "edit_file", &edit),
        Reply::text("All through."),
    ]);
    scene.workspace.write("notes.txt", "one\r\ntwo\r\n");
    scene.co("change it");
    scene.wait_ask("1/1");
    scene.command("split notes.txt");
    scene.command("call append(0, 'typed above')");
    scene.command("call append('$', 'typed below')");
    scene.answer("y");
    let text = scene.wait_chat("All through.");
    let shown = format!("{BUFFER} == 'typed above|one|2|3|typed below'");
    scene.wait_for(&shown, "the buffer has both");
    assert_eq!(
        scene.workspace.read("notes.txt").unwrap(),
        "one\r\ntwo\r\n",
        "the person saves what they typed"
    );
    assert!(
        text.contains("  +2 -1, not saved: it had unsaved changes\n"),
        "{text}"
    );
    let told = scene.told(1);
    assert!(told.contains("The change is in the buffer only"), "{told}");
}

#[test]
fn a_file_that_neovim_writes_elsewhere_is_named() {
    let edit = |old: &str, new: &str| json!({ "path": "d/notes.txt", "edits": [{ "old": old, "new": new }] });
    let scene = Scene::scripted([
        Reply::new().call("c1", "edit_file", &edit("one", "1")),
        Reply::new().call("c2", "edit_file", &edit("1", "one")),
        Reply::new().call("c3", "edit_file", &edit("1", "two")),
        Reply::text("All through."),
    ]);
    scene.workspace.write("d/notes.txt", "one\n");
    scene.workspace.write("elsewhere/notes.txt", "two\n");
    scene.command("edit d/notes.txt");
    scene.co("change it");
    scene.answer_ask("1/1", "y");
    scene.wait_chat("  +1 -1");
    assert_eq!(scene.workspace.read("d/notes.txt").unwrap(), "1\n");
    // As a job could do at the same moment. Neovim asks about a file whose time differs.
    let link = "call rename('d', 'moved') | call system('ln -s elsewhere d; touch -r moved/notes.txt elsewhere/notes.txt')";
    let back = "call delete('d') | call rename('moved', 'd')";
    scene.command(&format!("autocmd BufWritePre * ++once {link}"));
    scene.command(&format!("autocmd BufWritePost * ++once {back}"));
    scene.answer_ask("1/1", "y");
    scene.wait_chat("not saved: the file did not change when Neovim wrote it");
    assert_eq!(
        scene.workspace.read("elsewhere/notes.txt").unwrap(),
        "one\n"
    );
    assert_eq!(scene.workspace.read("d/notes.txt").unwrap(), "1\n");
    scene.wait_ask("1/1");
    scene.command(link);
    scene.answer("y");
    scene.wait_chat("All through.");
    let told = scene.told(3);
    assert!(told.contains("is a link now"), "{told}");
}

#[test]
fn files_that_run_later_ask_although_every_edit_is_allowed() {
    let write = |path: &str| json!({ "path": path, "text": "x\n" });
    let later = [
        "mise.toml",
        ".mcp.json",
        ".pnpmfile.cjs",
        ".clinerules/a.md",
        "deep/.bazelrc",
        ".luarc.json",
        ".hg/hgrc",
        "sub/.jj/repo/config.toml",
        "bare.git/HEAD",
    ];
    let mut replies = vec![
        Reply::new().call("c1", "write_file", &write("notes.txt")),
        Reply::new().call("c2", "write_file", &write("src/free.rs")),
    ];
    for path in later {
        replies.push(Reply::new().call(path, "write_file", &write(path)));
    }
    replies.push(Reply::text("All through."));
    let scene = Scene::scripted(replies);
    scene.co("write them");
    scene.answer_ask("1/1", "a");
    scene.press("f");
    for path in later {
        scene.wait_text(&format!("write_file {path}"));
        scene.answer_ask("1/1", "n");
    }
    scene.wait_chat("All through.");
    assert!(scene.workspace.exists("notes.txt") && scene.workspace.exists("src/free.rs"));
    for path in later {
        assert!(!scene.workspace.exists(path), "{path}");
    }
}

#[test]
fn a_name_with_line_breaks_can_be_answered_and_reviewed() {
    let name = "odd\n+name\r\u{202e}";
    let edit =
        |old: &str, new: &str| json!({ "path": name, "edits": [{ "old": old, "new": new }] });
    let scene = Scene::scripted([
        Reply::new().call("c1", "edit_file", &edit("one", "1")),
        Reply::new().call("c2", "edit_file", &edit("two", "2")),
        Reply::text("All through."),
    ]);
    scene.workspace.write(name, "one\ntwo\n");
    scene.co("change it");
    let lines = scene.answer_ask("1/1", "y");
    let shown = r"edit_file 'odd\n+name\u{d}\u{202e}'  +1 -1";
    assert!(lines.iter().any(|line| line.contains(shown)), "{lines:?}");
    scene.wait_chat("  +1 -1");
    // Through the review.
    scene.answer_ask("1/1", "d");
    scene.wait_text("y accepts");
    scene.type_keys("y");
    scene.wait_chat("All through.");
    assert_eq!(scene.workspace.read(name).unwrap(), "1\n2\n");
}

#[test]
fn lines_at_the_end_of_an_open_file_get_no_blank_line_after_them() {
    let edit = |old: &str, new: &str| json!({ "path": "notes.txt", "edits": [{ "old": old, "new": new }] });
    let all = json!({ "path": "notes.txt", "text": "one\ntwo\nthree\nfour\nfive\n" });
    let scene = Scene::scripted([
        Reply::new().call("c1", "edit_file", &edit("two\n", "two\nthree\n")),
        Reply::new().call("c2", "edit_file", &edit("three\n", "three\nfour\n")),
        Reply::new().call("c3", "write_file", &all),
        Reply::text("All through."),
    ]);
    scene.workspace.write("notes.txt", "one\ntwo\n");
    scene.command("edit notes.txt");
    scene.co("change it");
    let bytes = |expected: &str| {
        let read = "table.concat(vim.fn.readfile('notes.txt', 'b'), '|')";
        scene.wait_for(&format!("{read} == '{expected}'"), "the bytes of the file");
    };
    scene.answer_ask("1/1", "y");
    bytes("one|two|three|");
    // Through the review.
    scene.answer_ask("1/1", "d");
    scene.wait_text("y accepts");
    scene.type_keys("Y");
    bytes("one|two|three|four|");
    scene.answer_ask("1/1", "y");
    scene.wait_chat("All through.");
    bytes("one|two|three|four|five|");
    scene.command("wincmd t");
    scene.command("call append('$', 'typed')");
    scene.command("Co /undo");
    scene.wait_text("/undo");
    scene.answer("y");
    scene.wait_for(&format!("{BUFFER} == 'one|two|typed'"), "the undo");
}

#[test]
fn every_line_of_a_very_long_change_can_be_seen_before_the_answer() {
    let text = "a line\n".repeat(500_000);
    // Else co would sum the text up.
    let scene = Scene::with(json!({ "context_window": 10_000_000 }), &[]);
    let write = json!({ "path": "a.txt", "text": text });
    scene.replies([
        Reply::new().call("c1", "write_file", &write),
        Reply::text("All through."),
    ]);
    scene.co("write it");
    scene.answer_ask("1/1", "d");
    scene.wait_text("change 1 of 1");
    let count = "vim.api.nvim_buf_line_count(0) == 500001";
    scene.wait_for(count, "the whole text");
    scene.type_keys("G");
    scene.wait_text("500001,1");
    scene.type_keys("y");
    scene.wait_chat("All through.");
    assert_eq!(scene.workspace.read("a.txt").unwrap().len(), text.len());
}

#[test]
fn a_file_keeps_its_encoding_and_its_stray_bytes_open_or_not() {
    let edit = |file: &str, old: &str, new: &str| json!({ "path": file, "edits": [{ "old": old, "new": new }] });
    let stray = |file: &str| edit(file, "two", "\u{2713} cat\u{e9}");
    let cyrillic = edit("cyrillic", "two", "\u{436}");
    let scene = Scene::scripted([
        Reply::new().call("c1", "edit_file", &stray("closed")),
        Reply::new().call("c2", "edit_file", &stray("open")),
        Reply::new().call("c3", "edit_file", &cyrillic),
        Reply::new().call("c4", "edit_file", &edit("cyrillic", "one", "1")),
        Reply::text("All through."),
    ]);
    let write =
        |file: &str, bytes: &[u8]| fs::write(scene.workspace.path().join(file), bytes).unwrap();
    let read = |file: &str| fs::read(scene.workspace.path().join(file)).unwrap();
    write("closed", b"\xc3\xa9 \xff one\ntwo\n");
    write("open", b"\xc3\xa9 \xfe one\ntwo\n");
    write("cyrillic", b"\xe6\xe6 one\ntwo\n");
    scene.command("edit open");
    scene.co("change them");
    scene.answer_text("\u{fffd}FF one", "y");
    // The review shows the byte too.
    scene.answer_text("\u{fffd}FE one", "d");
    assert_eq!(
        read("closed"),
        b"\xc3\xa9 \xff one\n\xe2\x9c\x93 cat\xc3\xa9\n"
    );
    scene.wait_text("y accepts");
    scene.wait_text("\u{fffd}FE one");
    scene.type_keys("Y");
    // The third call is refused, without a question.
    scene.answer_text("\u{fffd}E6\u{fffd}E6 one", "y");
    assert_eq!(
        read("open"),
        b"\xc3\xa9 \xfe one\n\xe2\x9c\x93 cat\xc3\xa9\n"
    );
    let told = scene.told(3);
    assert!(told.contains("co does not know its encoding"), "{told}");
    scene.wait_chat("All through.");
    assert_eq!(read("cyrillic"), b"\xe6\xe6 1\ntwo\n");
}

#[test]
fn a_buffer_in_another_encoding_takes_its_characters() {
    let edit = json!({ "path": "notes.txt", "edits": [{ "old": "two", "new": "\u{436}" }] });
    let scene = Scene::scripted([
        Reply::new().call("c1", "edit_file", &edit),
        Reply::text("All through."),
    ]);
    let file = scene.workspace.path().join("notes.txt");
    fs::write(&file, b"\xe6\xe6 one\r\ntwo\r\n").unwrap();
    scene.command("edit ++enc=cp1251 notes.txt");
    scene.co("change it");
    scene.answer_ask("1/1", "y");
    scene.wait_chat("All through.");
    assert_eq!(fs::read(&file).unwrap(), b"\xe6\xe6 one\r\n\xe6\r\n");
    scene.command("wincmd t");
    scene.command("call append('$', 'typed')");
    scene.command("Co /undo");
    scene.wait_text("/undo");
    scene.answer("y");
    scene.wait_for(
        &format!("{BUFFER} == '\u{436}\u{436} one|two|typed'"),
        "the undo",
    );
}

#[test]
fn the_model_reads_and_changes_what_the_person_has_not_saved() {
    let read = json!({ "path": "notes.txt" });
    let search = json!({ "pattern": "one|unsaved" });
    let edit = json!({ "path": "notes.txt", "edits": [{ "old": "unsaved", "new": "changed" }] });
    let scene = Scene::scripted([
        Reply::new().call("c0", "search", &search),
        Reply::new().call("c1", "read_file", &read),
        Reply::new().call("c2", "edit_file", &edit),
        Reply::text("All through."),
    ]);
    scene.workspace.write("notes.txt", "one\n");
    scene.command("edit notes.txt");
    scene.command("call setline(1, 'unsaved')");
    scene.co("change it");
    scene.wait_ask("1/1");
    scene.wait_text("note its buffer has unsaved changes");
    scene.answer("y");
    scene.wait_chat("All through.");
    scene.wait_for(&format!("{BUFFER} == 'changed'"), "the change");
    assert_eq!(scene.workspace.read("notes.txt").unwrap(), "one\n");
    let [found, read] = [1, 2].map(|at| scene.told(at));
    assert!(found.contains("notes.txt:1:unsaved\n"), "{found}");
    let summary = "[1 matching line in 1 file; 1 searched with unsaved changes]";
    assert!(found.ends_with(summary), "{found}");
    assert!(read.contains("unsaved\n"), "{read}");
}

#[test]
fn the_review_of_lines_that_the_person_named_opens_at_once() {
    let edit = |old: &str, new: &str| json!({ "path": "notes.txt", "edits": [{ "old": old, "new": new }] });
    let scene = Scene::scripted([
        Reply::new().call("c1", "edit_file", &edit("one", "1")),
        Reply::new().call("c2", "edit_file", &edit("two", "2")),
        Reply::text("All through."),
    ]);
    scene.workspace.write("notes.txt", "one\ntwo\n");
    scene.command("edit notes.txt");
    scene.command("2Co /edit make it a number");
    scene.wait_text("change 1 of 1 · y accepts");
    scene.wait_text("+ 2");
    scene.press("y");
    scene.wait_chat("All through.");
    assert_eq!(scene.workspace.read("notes.txt").unwrap(), "one\n2\n");
    let told = scene.told(1);
    assert!(
        told.contains("a change of line 2 only, and this changes line 1"),
        "{told}"
    );
    let back = "#vim.api.nvim_list_tabpages() == 1 and vim.fn.bufname() == 'notes.txt'";
    scene.wait_for(back, "the review is closed");
}

#[test]
fn buffers_follow_files_that_are_moved_and_deleted_and_come_back() {
    let scene = Scene::scripted([
        Reply::new()
            .call(
                "c1",
                "move_file",
                &json!({ "from": "notes.txt", "to": "dir/moved.txt" }),
            )
            .call("c2", "delete_file", &json!({ "path": "other.txt" })),
        Reply::text("All through."),
    ]);
    scene.workspace.write("notes.txt", "one\n");
    scene.workspace.write("other.txt", "two\n");
    scene.command("edit notes.txt");
    scene.command("split other.txt");
    scene.co("move it");
    scene.answer_ask("1/2", "y");
    scene.approve();
    scene.wait_chat("All through.");
    let names = "vim.iter(vim.fn.getbufinfo({ buflisted = 1 })):map(function(it) return vim.fn.fnamemodify(it.name, ':.') end):join(' ')";
    let has = |name: &str, other: &str| {
        format!("{names}:find('{name}', 1, true) and not {names}:find('{other}', 1, true)")
    };
    scene.wait_for(&has("dir/moved.txt", "other.txt"), "the new name");
    scene.wait_for(&has("dir/moved.txt", "notes.txt"), "the new name");
    scene.command("Co /undo");
    scene.wait_text("/undo  +");
    scene.answer("y");
    scene.wait_text("taken back");
    scene.wait_for(&has("notes.txt", "dir/moved.txt"), "the old name");
    assert_eq!(scene.workspace.read("notes.txt").unwrap(), "one\n");
    assert_eq!(scene.workspace.read("other.txt").unwrap(), "two\n");
}

#[test]
fn the_failing_test_of_the_demo_is_fixed() {
    let test = json!({ "cmd": "python3 -m unittest" });
    let read = json!({ "path": "change.py" });
    let edit = json!({ "path": "change.py", "edits": [
        { "old": "        if cents >= coin:", "new": "        while cents >= coin:" },
    ] });
    let scene = Scene::scripted([
        Reply::text("I run the tests first.").call("c1", "run_shell_command", &test),
        Reply::text("One test fails.").call("c2", "read_file", &read),
        Reply::text("Each coin is given once at most.").call("c3", "edit_file", &edit),
        Reply::text("Now the tests again.").call("c4", "run_shell_command", &test),
        Reply::text("All tests pass."),
    ]);
    for name in ["change.py", "test_change.py"] {
        let path = format!("{ROOT}/demo/sample/{name}");
        scene
            .workspace
            .write(name, &std::fs::read_to_string(path).unwrap());
    }
    scene.nvim.command("edit change.py");
    scene.co("fix the failing test");
    scene.approve();
    scene.nvim.wait_text("edit_file change.py  +1 -1");
    scene.answer("y");
    scene.wait_chat("Now the tests again.");
    scene.approve();
    scene.wait_chat("All tests pass.");
    let told = |request: usize| scene.told(request);
    assert!(told(1).contains("FAILED (failures=1)"), "{}", told(1));
    assert!(told(2).contains("if cents >= coin"), "{}", told(2));
    assert!(told(3).starts_with("Done: change.py +1 -1."), "{}", told(3));
    assert!(
        told(4).contains("OK") && told(4).contains("Ran 3 tests"),
        "{}",
        told(4)
    );
    scene.nvim.wait_for(
        "vim.fn.search('while cents >= coin', 'nw') > 0 and not vim.bo.modified",
        "the buffer has the change",
    );
}
