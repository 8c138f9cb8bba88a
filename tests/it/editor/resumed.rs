//! A long chat that is resumed: its end is there at once, and the text above it follows.

use std::path::Path;

use co::store::{Meta, Store};
use co_llm::transcript::{End, Item, Usage};
use serde_json::json;

use crate::support::http::Reply;
use crate::support::proc::kill9;

use super::scene::Scene;

const TURNS: usize = 6;

/// Lua code: the chat asks for no more text after one part, until it is released.
const HOLD: &str = "local loader = require('co.chat.earlier_text')
    local ask, left = loader.ask, 1
    loader.ask = function(chat)
        left = left - 1
        if left >= 0 then return ask(chat) end
        _G.held = function() ask(chat) end
        loader.ask = ask
    end";

/// The whole text of the chat is there.
pub(super) const LOADED: &str = "require('co.chat.registry').current().text.above == 0";

/// Returns an answer of about 80 KB, with blocks of code. The first one has a paragraph that is too long for one part.
fn answer(turn: usize) -> String {
    let mut text = match turn {
        // co cuts a line after 4,000 bytes.
        0 => ("long ".repeat(800) + "\n").repeat(40) + "\n",
        _ => String::new(),
    };
    for line in 0..2_500 {
        text += &format!("Line {line} of answer {turn}, é.\n");
        if line % 50 == 0 {
            text += "\n```lua\nlocal x = 1\n\n```\n\n";
        }
    }
    text + "The end."
}

/// Writes a chat. Returns its id and the text that it has in Neovim.
fn write(scene: &Scene) -> (String, String) {
    let data = scene.lua("return vim.env.XDG_DATA_HOME", json!([]));
    let data = Path::new(data.as_str().unwrap()).join("co-nvim");
    let place = scene.workspace.path().to_owned();
    let meta = Meta {
        workspace: place.clone(),
        cwd: place,
        title: "long".to_owned(),
    };
    let mut writer = Store::new(data).create(meta, &[]).unwrap();
    let mut shown = String::new();
    for turn in 0..TURNS {
        let (prompt, text) = (format!("Prompt {turn}"), answer(turn));
        shown += &format!("## You\n{prompt}\n\n## Co\n{text}\n\n");
        let end = Item::End {
            reason: End::Done,
            usage: Usage::default(),
            explained: false,
        };
        for item in [Item::user(&prompt), Item::Text { text }, end] {
            writer.append(&item).unwrap();
        }
    }
    (
        writer.id().to_owned(),
        shown.trim_end_matches('\n').to_owned(),
    )
}

/// Returns a text with the prompt and the answer of these tests.
fn with_answer(shown: &str) -> String {
    format!("{shown}\n\n## You\nmore\n\n## Co\nOne word.")
}

/// Resumes a long chat until its first parts are there. Returns the whole text too.
fn resumed_in_part() -> (Scene, String) {
    let scene = Scene::with(json!({ "context_window": 1_000_000 }), &[]);
    scene.replies([Reply::text("One word.")]);
    let (id, shown) = write(&scene);
    scene.co("");
    scene.wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
    scene.lua(HOLD, json!([]));
    scene.co(&format!("/resume {id}"));
    scene.wait_for("_G.held ~= nil", "the first parts");
    (scene, shown)
}

#[test]
fn a_long_chat_comes_whole_while_the_person_types_and_asks() {
    let (scene, shown) = resumed_in_part();
    let begun = scene.chat();
    assert!(begun.len() <= 2 * (64 << 10) && shown.ends_with(&begun));
    // A prompt, and the draft of another one.
    scene.type_keys("imore<C-s>");
    scene.wait_chat("One word.");
    scene.wait_turns(1);
    scene.type_keys("draft");
    scene.lua("_G.held()", json!([]));
    scene.wait_for(LOADED, "all of the text");
    assert!(scene.chat() == with_answer(&shown), "the text differs");
    assert_eq!(scene.buffer_text("co://chat/1/prompt").unwrap(), "draft");
    scene.wait_text("One word.");
    // The messages are where they begin.
    let rows = scene.lua(
        "local chat = require('co.chat.registry').current()
        local rows = chat.text.messages:between()
        local others = vim.tbl_filter(function(it)
            local line = vim.api.nvim_buf_get_lines(chat.buf, it.row, it.row + 1, false)[1]
            return line ~= '## You' and line ~= '## Co'
        end, rows)
        return { #rows, #others }",
        json!([]),
    );
    assert_eq!(rows, json!([TURNS * 2 + 2, 0]));
}

#[test]
fn a_backend_that_ends_meanwhile_leaves_a_hint_and_the_next_prompt_loads_the_rest() {
    let (scene, shown) = resumed_in_part();
    kill9(scene.backend());
    scene.type_keys("<Esc><C-w>kgg");
    scene.wait_text("come with the next prompt");
    scene.co("more");
    scene.wait_chat("One word.");
    scene.wait_for(LOADED, "all of the text");
    assert!(scene.chat() == with_answer(&shown), "the text differs");
    scene.wait_no_text("of earlier text");
    scene.wait_no_text("come with");
}
