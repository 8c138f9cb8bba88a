//! The tool `rename_symbol` with a real Neovim and a scripted language server.

use serde_json::json;

use crate::support::ROOT;
use crate::support::http::Reply;

use super::scene::{Scene, gate, open_gate};

/// Lua code that attaches a language server to the current buffer. It renames each `name` of the files. If there is a
/// function `_G.hold`, the server passes its answer to that instead.
pub(super) fn server(files: &[&str]) -> String {
    let files: Vec<_> = files.iter().map(|file| format!("'{file}'")).collect();
    let code = r"
        local files = { FILES }
        local function rename(params)
            local changes = {}
            for _, file in ipairs(files) do
                local path = vim.fn.fnamemodify(file, ':p')
                local buf, edits = vim.fn.bufnr(path), {}
                local lines = buf > 0 and vim.api.nvim_buf_get_lines(buf, 0, -1, false) or vim.fn.readfile(path)
                for row, line in ipairs(lines) do
                    local from, to = line:find('name', 1, true)
                    if from then
                        local start = vim.fn.strutf16len(line:sub(1, from - 1))
                        edits[#edits + 1] = { newText = params.newName, range = {
                            start = { line = row - 1, character = start },
                            ['end'] = { line = row - 1, character = start + 4 },
                        } }
                    end
                end
                changes[vim.uri_from_fname(path)] = edits
            end
            return { changes = changes }
        end
        dofile('ROOT/tests/lua/language_server.lua')({ renameProvider = true }, {
            ['textDocument/rename'] = function(params, callback)
                local function answer() callback(nil, rename(params)) end
                return _G.hold and _G.hold(answer) or answer()
            end,
        })
    ";
    let code = code
        .replace("FILES", &files.join(", "))
        .replace("ROOT", ROOT);
    format!(
        "lua {}",
        code.split_whitespace().collect::<Vec<_>>().join(" ")
    )
}

/// A scene in which the model asks for a rename in a saved buffer, an unsaved one, and a file that is not open.
fn renames() -> Scene {
    renames_beside(Reply::new())
}

/// Returns the same scene. `reply` has calls of its own, which come before the rename.
fn renames_beside(reply: Reply) -> Scene {
    let rename = json!({ "path": "a.txt", "name": "name", "new_name": "other" });
    let scene = Scene::scripted([
        reply.call("c1", "rename_symbol", &rename),
        Reply::text("All through."),
    ]);
    scene.workspace.write("a.txt", "\u{1f600} name\nx\n");
    scene.workspace.write("b.txt", "one\nname");
    scene.workspace.write("c.txt", "name\r\ntwo\r\n");
    scene.command("edit b.txt");
    scene.command("call setline(1, 'typed')");
    scene.command("split a.txt");
    scene
}

fn buffer(file: &str, text: &str, modified: bool) -> String {
    format!(
        "table.concat(vim.fn.getbufline('{file}', 1, '$'), '|') == '{text}' and vim.bo[vim.fn.bufnr('{file}')].modified == {modified}"
    )
}

#[test]
fn a_rename_is_one_question_and_one_undo() {
    let scene = renames();
    scene.command(&server(&["a.txt", "b.txt", "c.txt"]));
    scene.co("rename it");
    scene.wait_ask("1/1");
    for text in [
        "rename_symbol name other in a.txt  +3 -3",
        "── b.txt ",
        "── c.txt ",
    ] {
        scene.wait_text(text);
    }
    assert_eq!(scene.workspace.read("c.txt").unwrap(), "name\r\ntwo\r\n");
    // The person types on.
    scene.command("call append(0, 'above')");
    scene.answer("y");
    let text = scene.wait_chat("All through.");
    assert!(
        text.contains("  +3 -3 in 3 files; a.txt, not saved: it had unsaved changes; b.txt, not saved: it had unsaved changes\n"),
        "{text}"
    );
    assert_eq!(
        scene.workspace.read("a.txt").unwrap(),
        "\u{1f600} name\nx\n"
    );
    assert_eq!(scene.workspace.read("b.txt").unwrap(), "one\nname");
    assert_eq!(scene.workspace.read("c.txt").unwrap(), "other\r\ntwo\r\n");
    let changed = [
        buffer("a.txt", "above|\u{1f600} other|x", true),
        buffer("b.txt", "typed|other", true),
    ];
    scene.wait_for(&changed.join(" and "), "the buffers");
    scene.command("Co /undo");
    scene.wait_text("/undo  +3 -3");
    scene.answer("y");
    scene.wait_text("files taken back");
    assert_eq!(scene.workspace.read("c.txt").unwrap(), "name\r\ntwo\r\n");
    let back = [
        buffer("a.txt", "above|\u{1f600} name|x", true),
        buffer("b.txt", "typed|name", true),
    ];
    scene.wait_for(&back.join(" and "), "the buffers");
}

/// Makes the language server wait until [`release`], without the time limit of co.
fn hold(scene: &Scene) {
    scene.command("lua function _G.hold(answer) _G.held = answer; return true end");
    scene.command(
        "lua local defer = vim.defer_fn; function vim.defer_fn(f, ms) return ms ~= 10000 and defer(f, ms) end",
    );
}

fn release(scene: &Scene) {
    scene.wait_for("_G.held ~= nil", "the language server is asked");
    scene.command("lua _G.hold = nil; _G.held()");
}

#[test]
fn other_calls_do_not_wait_for_the_language_server() {
    let shell = |command: &str| json!({ "cmd": command });
    let scene = renames_beside(
        Reply::new()
            .call("a1", "run_shell_command", &shell("echo looked"))
            .call("a2", "run_shell_command", &shell("cat gate > first")),
    );
    let go = gate(&scene.workspace, "gate");
    scene.command(&server(&["c.txt"]));
    hold(&scene);
    scene.co("rename it");
    scene.wait_chat("looked");
    scene.answer_ask("1/1", "y");
    // The question about the rename comes while the command runs.
    release(&scene);
    scene.answer_text("rename_symbol name other in a.txt  +1 -1", "y");
    assert_eq!(scene.workspace.read("c.txt").unwrap(), "name\r\ntwo\r\n");
    open_gate(&go);
    scene.wait_chat("All through.");
    assert_eq!(scene.workspace.read("c.txt").unwrap(), "other\r\ntwo\r\n");
    scene.assert_outcomes(3);
}

#[test]
fn a_turn_that_waits_for_a_language_server_can_be_cancelled() {
    let scene = renames();
    scene.command(&server(&["c.txt"]));
    hold(&scene);
    scene.co("rename it");
    scene.wait_for("_G.held ~= nil", "the language server is asked");
    scene.interrupt();
    scene.wait_turns(1);
    scene.assert_outcomes(1);
    assert_eq!(scene.workspace.read("c.txt").unwrap(), "name\r\ntwo\r\n");
}

#[test]
fn a_rename_that_reaches_a_secret_or_another_place_is_refused_whole() {
    for (file, why) in [
        (".env", "looks like a secret"),
        ("../outside.txt", "is outside the workspace"),
    ] {
        let scene = renames();
        scene.workspace.write(file, "name\n");
        scene.command(&server(&["a.txt", file]));
        scene.co("rename it");
        scene.wait_chat("All through.");
        let told = scene.told(1);
        assert!(told.starts_with("Refused: cannot rename name: `"), "{told}");
        assert!(told.contains(why), "{told}");
        assert_eq!(
            scene.workspace.read("a.txt").unwrap(),
            "\u{1f600} name\nx\n"
        );
    }
}

#[test]
fn a_rename_without_a_language_server_is_refused() {
    let scene = renames();
    scene.co("rename it");
    scene.wait_chat("All through.");
    let told = scene.told(1);
    assert_eq!(
        told,
        "Refused: cannot rename name: no language server is attached to it."
    );
}

#[test]
fn a_rename_that_fails_half_way_is_taken_back() {
    let scene = renames();
    scene.command(&server(&["a.txt", "c.txt"]));
    // A formatter that changes the other file.
    scene.command("autocmd BufWritePost a.txt ++once call writefile(['my name'], 'c.txt')");
    scene.co("rename it");
    scene.approve();
    scene.wait_chat("All through.");
    let told = scene.told(1);
    assert_eq!(
        told,
        "Nothing was changed: cannot change c.txt: the lines to change have changed meanwhile: read it again."
    );
    let text = "\u{1f600} name\nx\n";
    assert_eq!(scene.workspace.read("a.txt").unwrap(), text);
    assert_eq!(scene.workspace.read("c.txt").unwrap(), "my name\n");
    let shown = buffer("a.txt", "\u{1f600} name|x", false);
    scene.wait_for(&shown, "the buffer is as before");
}

#[test]
fn the_files_of_a_rename_are_reviewed_by_parts() {
    let scene = renames();
    scene.command(&server(&["a.txt", "b.txt", "c.txt"]));
    scene.co("rename it");
    scene.answer_ask("1/1", "d");
    for (file, key) in [
        ("1 of 3 · a.txt", "n"),
        ("2 of 3 · b.txt", "y"),
        ("3 of 3 · c.txt", "y"),
    ] {
        scene.wait_text(&format!("file {file}"));
        scene.press(key);
    }
    scene.wait_chat("All through.");
    let told = scene.told(1);
    assert!(told.starts_with("Done: b.txt +1 -1.\n"), "{told}");
    assert!(told.contains("\nNote: a.txt was not changed.\n"), "{told}");
    assert_eq!(scene.workspace.read("c.txt").unwrap(), "other\r\ntwo\r\n");
    let stays = buffer("a.txt", "\u{1f600} name|x", false);
    scene.wait_for(&stays, "the refused file");
}
