//! Random commands typed into a chat and its prompt, while an answer streams and a question waits: no line of the chat
//! changes, and undo gives the draft back.

use std::time::Duration;

use fastrand::Rng;
use serde_json::json;

use crate::support::http::{Gate, Reply};
use crate::support::{cases, random};

use super::scene::Scene;

/// Commands that are typed; `make fuzz` types more.
const COMMANDS: usize = 500;
/// Commands that are typed at once.
const BATCH: usize = 20;
const WORDS: usize = 600;

const MOTIONS: &str = "h j k l w b e ge W B 0 ^ $ gg G { } ( ) + - _ % H M L gj gk * # n N fa Fa ta Ta ; , | 'a `a go g_ gm ]] [[";
const OPERATORS: &str = "d c y gu gU g~ g? > <lt> = gq gw gJ zf";
const OBJECTS: &str = "iw aw ip ap is as iW i\" a( i` it";
const CHANGES: &str = "x X dd cc D C S s J gJ p P gp gP ]p ~ u <C-r> U . & g& rz Rxyz ia A<Space>b oline Oline Iz gIz gi <C-a> \
    <C-x> yy Y \"ayy \"Ayy \"ap \"_dd >> <lt><lt> == gqq guu gUU g~~ ma zz zt zb zo zc zR zM zE zD zfj @: g; g, \
    <C-d> <C-u> <C-e> <C-y> <C-f> <C-b> gv g- g+ gy <CR> <Up> <Down> <C-l> i<C-u> i<C-w> a<C-r>a i<C-o>dd \
    i<BS><BS>";
const RANGES: &str = "¦%¦.¦$¦1¦.,$¦1,.¦1,$¦'a,.¦0¦.-1,.+1";
/// A dot ends the lines that `change` and `append` read.
const EX: &str = "d¦delete a¦m0¦m$¦t.¦t0¦j¦j!¦>¦<lt>¦s/a/b/g¦s/$/!/¦s/^/# /¦&&¦~¦g/e/d¦v/e/d¦g/./m0¦normal! dd¦normal! ggVGd¦\
    normal Ax¦sort¦sort!¦put a¦put! a¦center¦left 4¦right¦retab! 2¦k b¦y¦fold¦foldopen¦undo¦redo¦earlier 3¦\
    later 2¦undo 0¦copy .¦change<CR>line<CR>.¦append<CR>line<CR>.";

/// Returns one of the words of a text.
fn word<'a>(chance: &mut Rng, words: &'a str) -> &'a str {
    chance.choice(words.split(' ').collect::<Vec<_>>()).unwrap()
}

/// Returns one of the parts of a text that has `¦` between them.
fn part<'a>(chance: &mut Rng, parts: &'a str) -> &'a str {
    chance.choice(parts.split('¦').collect::<Vec<_>>()).unwrap()
}

/// One random command: a motion, a change, an operator, a selection with one, or an Ex command.
fn command(chance: &mut Rng) -> String {
    let count = part(chance, "¦¦¦2¦3¦40");
    match chance.u8(..6) {
        0 => format!("{count}{}", word(chance, MOTIONS)),
        1 | 2 => match word(chance, CHANGES) {
            // Forty copies of all lines would take all memory.
            "@:" => "@:".to_owned(),
            change => format!("{count}{change}"),
        },
        3 => {
            let operator = word(chance, OPERATORS);
            let targets = if chance.bool() { MOTIONS } else { OBJECTS };
            format!("{operator}{count}{}", word(chance, targets))
        }
        4 => {
            let select = word(chance, "v V <C-v>");
            let operator = word(chance, "d c x y p J ~ u U > r- o D I- A-");
            format!("{select}{count}{}{operator}", word(chance, MOTIONS))
        }
        _ => format!(":{}{}<CR>", part(chance, RANGES), part(chance, EX)),
    }
}

/// Goes to the text or the prompt of the first chat, in normal mode. Shows the chat if a jump to another buffer took its
/// window, and cuts a draft that commands made very long.
const GO: &str = "function _G.co_go(name)
    local buf = vim.fn.bufnr('^' .. name .. '{,/co: *}$')
    if #vim.fn.win_findbuf(buf) == 0 then
        vim.cmd('Co')
    end
    vim.api.nvim_set_current_win(vim.fn.win_findbuf(buf)[1])
    if vim.bo.modifiable and vim.api.nvim_buf_line_count(0) > 1000 then
        vim.api.nvim_buf_set_lines(buf, 1000, -1, false, {})
    end
end";

/// Types one batch, each command into the text or the prompt, and waits until Neovim has taken all of it.
fn type_batch(scene: &Scene, chance: &mut Rng, batch: usize) {
    let mut keys = String::new();
    for _ in 0..BATCH {
        let place = word(chance, "co://chat/1 co://chat/1/prompt co://chat/1/prompt");
        keys.push_str(&format!(
            "<C-Bslash><C-n><Cmd>call v:lua.co_go('{place}')<CR>"
        ));
        keys.push_str(&command(chance));
        keys.push_str("<C-Bslash><C-n>");
    }
    keys.push_str(&format!("<Cmd>let g:co_batch = {batch}<CR>"));
    scene.type_keys(&keys);
    scene.wait_for(&format!("vim.g.co_batch == {batch}"), "the commands");
}

#[test]
fn random_commands_change_no_line_of_a_chat_and_undo_gives_the_draft_back() {
    let end = Gate::default();
    let mut reply = Reply::new();
    for word in 0..WORDS {
        let text = match word % 7 {
            0 => format!("\n\nword{word}"),
            _ => format!(" word{word}"),
        };
        reply = reply.say(&text).pause(Duration::from_millis(5));
    }
    let scene = Scene::scripted([reply.hold(&end), Reply::shell("c1", "touch out")]);
    scene.co("tell me much");
    scene.wait_chat("word10");
    // Another chat asks.
    scene.co("/new");
    scene.wait_for("vim.fn.bufname() == 'co://chat/2/prompt'", "another chat");
    scene.type_keys("imake a file<C-s><Esc><C-w>kq");
    scene.wait_ask("1/1");
    scene.type_keys(":vertical split co://chat/1<CR>");
    scene.wait_for("vim.fn.bufwinid('^co://chat/1/prompt$') > 0", "the chat");
    scene.lua(GO, json!([]));
    // Each command may be a step of the history.
    scene.lua(
        "vim.bo[vim.fn.bufnr('^co://chat/1/prompt$')].undolevels = 1000000",
        json!([]),
    );
    scene.lua("co_go('co://chat/1/prompt')", json!([]));
    scene.type_keys("ithe draft,<CR>of two lines<Esc>");
    scene.wait_for("vim.fn.getline('$') == 'of two lines'", "the draft");
    let draft = scene.eval("vim.fn.undotree().seq_cur");

    let mut chance = random(34);
    let mut text = scene.chat();
    for batch in 1..=cases(COMMANDS).div_ceil(BATCH) {
        type_batch(&scene, &mut chance, batch);
        let now = scene.chat();
        assert!(
            now.starts_with(&text),
            "batch {batch}: \n{text}\n--- is now\n{now}"
        );
        text = now;
    }
    scene.wait_chat(&format!("word{}", WORDS - 1));
    scene.lua("co_go('co://chat/1/prompt')", json!([]));
    scene.type_keys(&format!(":undo {draft}<CR>"));
    scene.wait_for(
        "vim.deep_equal(vim.fn.getline(1, '$'), { 'the draft,', 'of two lines' })",
        "the draft",
    );
    scene.wait_text("touch out");
}
