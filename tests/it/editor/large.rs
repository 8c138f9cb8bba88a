//! Selections, prompts and commands that are too large to send.

use serde_json::json;

use crate::support::http::Reply;

use super::scene::Scene;

/// Fills the current buffer with this many MiB.
fn fill(scene: &Scene, mib: usize) {
    let fill = "vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.fn['repeat']({ ('x'):rep(1023) }, ... * 1024))";
    scene.lua(fill, json!([mib]));
}

#[test]
fn lines_that_are_too_many_for_a_command_are_refused_and_fewer_arrive() {
    let scene = Scene::new();
    fill(&scene, 20);
    scene.type_keys(":%Co! wc -c<CR>");
    scene.wait_text("not run: the message has 20 MiB, the most is 16 MiB");
    scene.wait_notice("save the input to a file and redirect it");
    assert_eq!(scene.buffer_text("co://shell"), None);
    scene.type_keys(":1,15360Co! wc -c<CR>");
    scene.wait_shell("\n15728640");
}

#[test]
fn a_prompt_that_is_too_long_is_refused_and_stays() {
    let scene = Scene::scripted([Reply::text("Aye.")]);
    scene.co("hello");
    scene.wait_turns(1);
    scene.co("");
    scene.wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
    let paste = "vim.api.nvim_put({ ('x'):rep(17 * 1024 * 1024) }, 'c', true, true)";
    scene.lua(paste, json!([]));
    scene.type_keys("<Esc><CR>");
    scene.wait_text("not sent: the message has 17 MiB, the most is 16 MiB");
    scene.wait_notice("name it with @file:");
    let kept = "return #vim.api.nvim_buf_get_lines(0, -2, -1, false)[1]";
    assert_eq!(scene.lua(kept, json!([])), json!(17 << 20));
    assert_eq!(scene.server.requests().len(), 1);
}

/// Returns the processor time that this Neovim takes to fill a buffer with half a million lines at once: the least of
/// five. The tests compare with it, because machines differ and other tests run meanwhile.
const FILL_TIME: &str = "local lines, least = vim.fn['repeat']({ '+line' }, 500000), math.huge
    local buffer = vim.api.nvim_create_buf(false, true)
    for _ = 1, 5 do
        local began = os.clock()
        vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
        least = math.min(least, os.clock() - began)
        vim.api.nvim_buf_set_lines(buffer, 0, -1, false, {})
    end
    vim.api.nvim_buf_delete(buffer, { force = true })
    return least";

/// Notes the longest processor time that Neovim takes between two looks at its events.
const WATCH: &str = "local last, timer = os.clock(), vim.uv.new_timer()
    _G.slowest = 0
    timer:start(0, 1, function()
        local now = os.clock()
        _G.slowest = math.max(_G.slowest, now - last)
        last = now
    end)";

#[test]
fn a_question_about_half_a_million_lines_is_there_at_once_and_shows_all_with_d() {
    let text = "line\n".repeat(500_000) + "the last line\n";
    let scene = Scene::scripted([
        Reply::new().call(
            "c1",
            "write_file",
            &json!({ "path": "b", "text": "small\n" }),
        ),
        Reply::new().call("c2", "write_file", &json!({ "path": "a", "text": text })),
        Reply::text("A summary: the call is too long for the model."),
        Reply::text("Done."),
    ]);
    scene.co("write it");
    scene.wait_ask("1/1");
    scene.lua(WATCH, json!([]));
    scene.answer("y");
    scene.wait_text("write_file a  +500001 -0");
    scene.answer("d");
    scene.wait_for("vim.fn.getline('$'):find('the last line')", "all");
    scene.type_keys("q");
    scene.answer_ask("1/1", "y");
    scene.wait_chat("+500001 -0");
    scene.wait_chat("Done.");
    assert_eq!(scene.workspace.read("a").unwrap(), text);
    let slowest = scene.lua("return _G.slowest", json!([])).as_f64().unwrap();
    let fill_time = scene.lua(FILL_TIME, json!([])).as_f64().unwrap();
    // All in one step would take at least twenty times as long.
    assert!(
        slowest < 4.0 * fill_time,
        "{slowest} s, a fill {fill_time} s"
    );
}
