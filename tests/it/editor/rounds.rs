//! `/review` in three rounds over nine files: Neovim is killed in the second one, and the person edits files between them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::http::Reply;
use crate::support::{DEADLINE, proc};

use super::scene::{Scene, wait_gone};
use super::undo::wait_checkpoint;

/// The files at the start. `crlf` has carriage returns, `open` has no line break at its end, and `bin` is no text.
const FILES: [(&str, &str); 8] = [
    ("a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
    ("bin", "\0one"),
    ("crlf", "1\r\n2\r\n3\r\n4\r\n5\r\n"),
    ("gen", "1\n2\n3\n4\n5\n"),
    ("gone", "gone\n"),
    ("old", "1\n2\n3\n4\n"),
    ("open", "1\n2\n3"),
    ("run", "echo\n"),
];

fn edit(path: &str, edits: &[(&str, &str)]) -> Reply {
    let edits: Vec<Value> = (edits.iter())
        .map(|(old, new)| json!({ "old": old, "new": new }))
        .collect();
    let arguments = json!({ "path": path, "edits": edits });
    Reply::new().call(&format!("edit-{path}"), "edit_file", &arguments)
}

/// A file of the workspace with its mode; none if there is no file.
fn file(scene: &Scene, name: &str) -> Option<(Vec<u8>, u32)> {
    let path = scene.workspace.path().join(name);
    let mode = fs::metadata(&path).ok()?.permissions().mode() & 0o777;
    Some((fs::read(path).unwrap(), mode))
}

/// Checks every byte of the workspace: these files have these texts, the others do not exist. Only `executable` can be run.
#[track_caller]
fn check(scene: &Scene, expected: &[(&str, &str)], executable: bool) {
    for name in [
        "a",
        "bin",
        "crlf",
        "dir/moved",
        "dir/again",
        "gen",
        "gone",
        "new",
        "old",
        "open",
        "run",
    ] {
        let text = expected.iter().find(|(known, _)| *known == name);
        let mode = if name == "run" && executable {
            0o755
        } else {
            0o644
        };
        let expected = text.map(|(_, text)| (text.as_bytes().to_vec(), mode));
        assert_eq!(file(scene, name), expected, "{name}");
    }
    let names = fs::read_dir(scene.workspace.path()).unwrap().flatten();
    let names = names.filter(|it| it.file_name() != ".git" && it.path().is_file());
    let in_dir = expected
        .iter()
        .filter(|(name, _)| name.contains('/'))
        .count();
    assert_eq!(names.count() + in_dir, expected.len());
}

impl Scene {
    /// Sends the draft, or a text, and approves one call after the other. Each question has one of the texts.
    #[track_caller]
    fn round(&self, questions: &[&str], turns: u64) {
        for (at, text) in questions.iter().enumerate() {
            self.wait_text(text);
            if at == 0 {
                wait_checkpoint(self);
            }
            self.answer("y");
        }
        self.wait_turns(turns);
    }

    /// Answers the changes of a review, which come in this order: the name of the file, the number of the change and the keys.
    #[track_caller]
    pub(super) fn answers(&self, answers: &[(&str, &str, &str)]) {
        for (file, change, keys) in answers {
            let here = format!(
                "vim.api.nvim_buf_get_name(0):match('review: (%w+)') == '{file}' \
                 and vim.api.nvim_get_current_line():find('change {change} ', 1, true)"
            );
            self.wait_for(&here, &format!("change {change} of {file}"));
            self.press(keys);
        }
    }
}

#[test]
fn three_rounds_account_for_every_byte() {
    let command = "rm gone; mkdir dir; mv old dir/moved; chmod +x run; sed -i s/4/four/ gen; printf '\\0two' > bin";
    let mut scene = Scene::scripted([
        edit(
            "a",
            &[("2\n", "two\n"), ("5\n", "five\n"), ("8\n", "eight\n")],
        ),
        edit("crlf", &[("2\n", "two\n2b\n"), ("5\n", "five\n")]),
        edit("open", &[("1\n", "one\n"), ("3", "three")]),
        Reply::new().call(
            "new",
            "write_file",
            &json!({ "path": "new", "text": "def f():\n" }),
        ),
        Reply::shell("command", command),
        Reply::text("First."),
    ]);
    for (name, text) in FILES {
        scene.workspace.write(name, text);
    }
    scene.co("begin");
    scene.round(
        &[
            "edit_file a  +",
            "edit_file crlf  +",
            "edit_file open  +",
            "write_file new  +",
            "rm gone",
        ],
        1,
    );
    scene.wait_text("13 changes in 9 files since ");
    // The person edits one file in a buffer and another on disk.
    scene.command("1wincmd w");
    scene.type_keys(":edit a<CR>ggOmine<Esc>:write<CR>");
    scene.wait_for("not vim.bo.modified and vim.fn.line('$') == 10", "the file");
    scene
        .workspace
        .write("crlf", "1\r\ntwo\r\n2b\r\n3\r\ndisk\r\n4\r\nfive\r\n");
    scene.command("Co /review");
    scene.wait_text("~ mine");
    scene.wait_for("#vim.fn.getqflist() == 13", "the quickfix list");
    scene.answers(&[
        ("a", "1 of 3", "y"),
        ("a", "2 of 3", "n"),
        ("a", "3 of 3", "csmaller<CR>"),
        ("a", "3 of 3", "]c"),
        ("bin", "1 of 1", "]c"),
        ("crlf", "1 of 2", "n"),
        ("crlf", "2 of 2", "]c"),
        ("moved", "1 of 1", "y"),
        ("gen", "1 of 1", "y"),
        ("gone", "1 of 1", "n"),
        ("new", "1 of 1", "cwhy?<CR>"),
        ("new", "1 of 1", "]c"),
        ("open", "1 of 2", "y"),
        ("open", "2 of 2", "n"),
        ("run", "1 of 1", "n"),
    ]);
    // After the last file comes the first one with an open change.
    scene.answers(&[("a", "3 of 3", "q")]);
    scene.wait_text("4 changes accepted; 4 changes still open; parts of 5 files taken back");
    let a = "mine\n1\ntwo\n3\n4\n5\n6\n7\neight\n9\n";
    let crlf = "1\r\n2\r\n3\r\ndisk\r\n4\r\nfive\r\n";
    let gen_text = "1\n2\n3\nfour\n5\n";
    let open = "one\n2\n3";
    check(
        &scene,
        &[
            ("a", a),
            ("bin", "\0two"),
            ("crlf", crlf),
            ("dir/moved", "1\n2\n3\n4\n"),
            ("gen", gen_text),
            ("gone", "gone\n"),
            ("new", "def f():\n"),
            ("open", open),
            ("run", "echo\n"),
        ],
        false,
    );
    // The comments are the prompt of the second round.
    let command = "mv dir/moved dir/again; chmod +x run; echo 6 >> gen; rm open";
    scene.replies([
        edit("a", &[("eight\n", "EIGHT\n"), ("9\n", "nine\n")]),
        edit("new", &[("def f():\n", "def f():\n    pass\n")]),
        Reply::shell("second", command),
        Reply::text("Second."),
    ]);
    scene.co("");
    scene.wait_for("vim.bo.filetype == 'co-prompt'", "the prompt");
    scene.wait_buffer("co://chat/1/prompt", "a:9: smaller");
    scene.type_keys("<C-s>");
    scene.round(&["edit_file a  +", "edit_file new  +", "mv dir/moved"], 2);
    let prompt = scene.server.requests()[6].last("user").unwrap();
    for text in [
        "a:9: smaller\n```diff\n-8\n+eight\n```",
        "new:1: why?\n```diff\n+def f():\n```",
    ] {
        assert!(prompt.contains(text), "{prompt}");
    }
    scene
        .workspace
        .write("gen", &format!("mine\n{gen_text}6\n"));
    scene.command("Co /review");
    scene.answers(&[("a", "1 of 1", "y"), ("bin", "1 of 1", "cno<CR>")]);
    let kept = scene.home.path().join("state/co-nvim/checkpoints/reviews");
    let is_kept = || {
        let files = fs::read_dir(&kept).ok()?;
        let mut texts = files
            .flatten()
            .map(|it| fs::read_to_string(it.path()).unwrap_or_default());
        texts.any(|it| it.contains("\"no\"")).then_some(())
    };
    proc::wait_until(DEADLINE, "the comment on disk", is_kept);
    let backend = scene.backend();
    scene.kill9();
    wait_gone(&[backend]);
    scene.restart();
    scene.co("");
    scene.resume();
    scene.wait_text("Second.");
    scene.command("Co /review");
    scene.wait_text("\"no\"");
    scene.answers(&[("bin", "1 of 1", "[f")]);
    scene.wait_text("accepted when the review ends");
    scene.answers(&[
        ("a", "1 of 1", "]c"),
        ("bin", "1 of 1", "n"),
        ("crlf", "1 of 1", "y"),
        ("again", "1 of 1", "y"),
        ("gen", "1 of 1", "y"),
        ("new", "1 of 1", "]c"),
        ("open", "1 of 1", "n"),
        ("run", "1 of 1", "y"),
        ("new", "1 of 1", "q"),
    ]);
    scene.wait_text("5 changes accepted; 1 change still open; parts of 2 files taken back");
    let a = a.replace("eight\n9\n", "EIGHT\nnine\n");
    let gen_text = "mine\n1\n2\n3\nfour\n5\n6\n";
    // Each file but `new` is settled.
    let settled = [
        ("bin", "\0one"),
        ("crlf", crlf),
        ("dir/again", "1\n2\n3\n4\n"),
        ("gen", gen_text),
        ("open", open),
        ("run", "echo\n"),
    ];
    let more = [
        ("a", &*a),
        ("gone", "gone\n"),
        ("new", "def f():\n    pass\n"),
    ];
    check(&scene, &[&settled[..], &more].concat(), true);
    // The person writes over lines of the third round.
    scene.replies([
        edit("a", &[("1\n", "one\n"), ("nine\n", "NINE\n")]),
        Reply::new().call("delete", "delete_file", &json!({ "path": "gone" })),
        Reply::text("Third."),
    ]);
    scene.co("go on");
    scene.round(&["edit_file a  +", "delete_file gone"], 1);
    scene.command("1wincmd w");
    scene.type_keys(":edit a<CR>Gccmine too<Esc>");
    scene.wait_for("vim.fn.getline('$') == 'mine too'", "the line");
    scene.command("Co /review");
    scene.answers(&[
        ("a", "1 of 1", "n"),
        ("gone", "1 of 1", "y"),
        ("new", "1 of 1", "y"),
    ]);
    scene.wait_text("2 changes accepted; parts of 1 file taken back");
    scene.command("wall");
    let a = a.replace("nine\n", "mine too\n");
    let more = [("a", &*a), ("new", "def f():\n    pass\n")];
    check(&scene, &[&settled[..], &more].concat(), true);
    scene.command("Co /review");
    scene.wait_notice("nothing to review");
    scene.wait_no_text(" since ");
}
