//! A streaming answer changes the end of its chat only, and disturbs no key.

use serde_json::json;

use crate::support::DEADLINE;
use crate::support::http::{Gate, Reply};
use crate::support::proc;

use super::scene::Scene;

/// Notes the number of lines that each change of the first chat replaces, and the number of lines from its start to the end.
const WATCH: &str = "_G.co_changes = { count = 0, lines = 0, above = 0 }
    local seen = co_changes
    vim.api.nvim_buf_attach(vim.fn.bufnr('^co://chat/1{,/co: *}$'), false, {
        on_lines = function(_, buf, _, first, last, new)
            local before = vim.api.nvim_buf_line_count(buf) - (new - last)
            seen.count = seen.count + 1
            seen.lines = math.max(seen.lines, last - first)
            seen.above = math.max(seen.above, before - first)
        end,
    })";

#[test]
fn an_answer_changes_the_end_of_its_chat_and_takes_no_key() {
    let (begin, end) = (Gate::default(), Gate::default());
    let mut reply = Reply::text("It begins.").hold(&begin);
    for number in 0..2000 {
        reply = match number % 50 {
            0 => reply.say(&format!("\n\n### Part {number}\n\n")),
            20 => reply.say("\n\n- an item with `code`"),
            _ => reply.say(&format!(" word{number}")),
        };
    }
    let scene = Scene::scripted([reply.hold(&end).say("\n\n### The last part\n\nIt ends.")]);
    scene.co("tell me much");
    scene.wait_chat("It begins.");
    scene.lua(WATCH, json!([]));
    scene.type_keys("i");
    scene.wait_mode("i");
    begin.open();
    let mut typed = String::new();
    proc::wait_until(DEADLINE, "the middle of the answer", || {
        scene.type_keys("not a key is lost. ");
        typed.push_str("not a key is lost. ");
        let text = scene.chat();
        text.contains("word1999").then_some(())
    });
    end.open();
    scene.wait_chat("It ends.");
    scene.wait_turns(1);
    scene.wait_for(
        &format!("vim.api.nvim_get_current_line() == {typed:?}"),
        "every character",
    );
    assert_eq!(scene.mode().name, "i");
    // The last line of the text.
    let changes = scene.eval("co_changes");
    assert!(changes["count"].as_u64().unwrap() > 1, "{changes}");
    assert_eq!(
        (&changes["lines"], &changes["above"]),
        (&json!(1), &json!(1))
    );
    scene.wait_screen(
        |_| {
            let groups = scene.groups("The last part").unwrap_or_default();
            groups.iter().any(|group| group == "Title")
        },
        "the heading in its colour",
    );
}

#[test]
fn a_stop_keeps_what_was_done() {
    let scene = Scene::scripted([
        Reply::shell("c1", "printf 'by the model\\n' >notes.txt"),
        Reply::text("And now").hold(&Gate::default()),
        Reply::text("On we go."),
    ]);
    scene.workspace.write("notes.txt", "by me\n");
    scene.type_keys(":set autoread | edit notes.txt<CR>");
    scene.wait_text("by me");
    scene.co("change my notes");
    scene.approve();
    scene.wait_chat("And now");
    scene.type_keys(":Co /stop<CR>");
    scene.wait_turns(1);
    assert_eq!(
        scene.workspace.read("notes.txt").as_deref(),
        Some("by the model\n")
    );
    scene.wait_text("by the model");
    scene.type_keys(":Co go on<CR>");
    scene.wait_chat("On we go.");
    scene.wait_turns(2);
    let text = scene.chat();
    assert!(text.contains("And now"), "{text}");
}
