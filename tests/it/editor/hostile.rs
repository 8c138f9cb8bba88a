//! Answers that would crash or block Neovim, from the model to the screen and back with `/resume`.

use serde_json::{Value, json};

use crate::support::http::Reply;

use super::resumed::LOADED;
use super::scene::Scene;

/// The most milliseconds of processor time of one turn of Neovim's event loop.
const BOUND: f64 = 50.0;

/// Measures the turns of the event loop. Processor time does not grow while other programs run.
const WATCH: &str = "_G.longest = 0
    local last = os.clock()
    _G.watch = _G.watch or vim.uv.new_timer()
    watch:start(0, 1, function()
        local now = os.clock()
        _G.longest = math.max(_G.longest, (now - last) * 1e3)
        last = now
    end)";

/// Returns the length of the longest line of the chat, in bytes.
const LONGEST_LINE: &str = "local longest = 0
    for _, line in ipairs(vim.api.nvim_buf_get_lines(vim.fn.bufnr('^co://chat/1{,/co: *}$'), 0, -1, false)) do
        longest = math.max(longest, #line)
    end
    return longest";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// Returns a reply of so many MB without a line break, in pieces.
fn long(reply: Reply, mb: usize, add: fn(Reply, &str) -> Reply) -> Reply {
    let piece = "a word ".repeat(1_000);
    (0..mb * 1_000_000 / piece.len()).fold(reply, |reply, _| add(reply, &piece))
}

/// Waits until the last lines of the chat have a text.
fn wait_end(scene: &Scene, text: &str) {
    let lines = "vim.api.nvim_buf_get_lines(vim.fn.bufnr('^co://chat/1{,/co: *}$'), -9, -1, false)";
    scene.wait_for(
        &format!("table.concat({lines}, ' '):find({text:?}, 1, true)"),
        text,
    );
}

/// Sends a prompt, then resumes the chat in another Neovim. Nothing may block it.
fn check(settings: &Value, reply: impl Fn() -> Reply, shown: &str, resumed: &str) {
    // A turn that took long once may have waited for memory that other programs use.
    let mut longest = Vec::new();
    for _ in 0..5 {
        let mut scene = Scene::with(settings.clone(), &[]);
        scene.replies([reply()]);
        scene.co("");
        scene.wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
        scene.lua(WATCH, json!([]));
        scene.co("go");
        scene.wait_turns(1);
        wait_end(&scene, shown);
        assert!(number(&scene.lua(LONGEST_LINE, json!([]))) < 6_000.0);
        let live = number(&scene.eval("longest"));
        scene.restart();
        scene.co("");
        scene.wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
        scene.lua(WATCH, json!([]));
        scene.resume();
        wait_end(&scene, resumed);
        scene.wait_for(LOADED, "all of the text");
        longest.push((live, number(&scene.eval("longest"))));
        if longest
            .last()
            .is_some_and(|(live, resumed)| live.max(*resumed) < BOUND)
        {
            return;
        }
    }
    panic!("Neovim was blocked for so many milliseconds: {longest:?}");
}

#[test]
fn an_answer_without_a_line_break_is_cut() {
    check(
        &json!({ "context_window": 10_000_000 }),
        || long(Reply::new(), 10, |reply, text| reply.say(text)),
        "the answer is longer than 4 MiB",
        "the turn failed",
    );
}

#[test]
fn a_thought_without_a_line_break_is_cut() {
    check(
        &json!({ "context_window": 10_000_000, "show_reasoning": true }),
        || long(Reply::new(), 8, |reply, text| reply.think(text)),
        "the answer is longer than 4 MiB",
        "the turn failed",
    );
}

#[test]
fn markers_that_are_nested_too_deep_crash_nothing() {
    let nested = ["- ", "> ", "1. "].map(|marker| marker.repeat(260));
    let answer = nested.join("\n\n") + "\n\nThe end.";
    check(&json!({}), || Reply::text(&answer), "The end.", "The end.");
}
