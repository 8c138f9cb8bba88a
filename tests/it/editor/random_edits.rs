//! Random commands typed in pieces, while the model's edits and commands change the same file: its text is what the keys and
//! the change give one after the other.

use std::time::Duration;

use fastrand::Rng;
use serde_json::json;

use crate::support::http::{Gate, Reply};
use crate::support::nvim::{Nvim, Options};
use crate::support::{cases, proc, random};

use super::scene::Scene;

/// Edits and reloads, of which `make test` does a twentieth.
const CASES: usize = 600;
/// The rounds of one Neovim.
const BATCH: usize = 50;
/// The numbers of the lines that the person changes. Above them are lines for the model.
const OWN: std::ops::Range<usize> = 20..60;

/// Commands, with `|` between their pieces. Behind a `!`, Neovim takes no message before the next piece. `&` is a space,
/// `N` the number of a line, `M` that of one below it. The first piece goes to the line and begins the command.
const COMMANDS: &str = r#"NG0d|j NG0d|w NG0c|w|ab|<Esc> NG0d|3!|j NG0d|f!|b NG0d|i!|w NG0gU|j NG0>|j NG0=|2!|j NG0y|j
    NG03!|dd NG02!|d|j NG03!|J NG0"!|a|p NG0"a|P NG0"a|d|j NG0r!|X NG0g!|J NG0gU|U NG0dd NG0yyp NG0ddp NG0xx
    NG0v|j|d NG0v|e|cab|<Esc> NG0V|j|d NG0V|2!|j|> NG0V|j|J NG0V|j|U NG0V|j|y NG0v|i!|w|d NG0V|j|:|d<CR> NG0V|j|Iab|<Esc>
    NG0<C-v>|2!|j|d NG0<C-v>|jjl|r!|X NG0<C-v>|jj|I|ab|<Esc> NG0<C-v>|jjl|A|ab|<Esc> NG0<C-v>|jj$|A|ab|c|<Esc>
    NG0<C-v>|jl|c|ab|<Esc> NG0c<C-v>|j|ab|<Esc> NG0<C-v>jj|Ia|f<C-n>|<C-e>|<Esc>
    NG0gh|X|<Esc> NG0v|l|<C-g>|X|<Esc> NG0gH|X|<Esc>
    NG0ix|ab|<BS>|<Esc> NG0ix|<CR>ab|<Esc> NG0Ax|ab|<CR>cd|<Esc> NG0ox|ab|<Esc> NG0Ox|ab|<Esc> NG0ccx|ab|<Esc>
    NG03ix|ab|<Esc> NG03ox|ab|<Esc> NG0Rxy|ab|<BS><BS><BS>|<Esc> NG0gRxy|ab|<Esc> NG0sx|<Left><Left>ab|<Esc>
    NG0ix|<C-o>|dw|y|<Esc> NG0ix|<C-o>|D|<Esc> NG0ix|<C-r>!|a|<Esc> NG0ix|<C-v>!|<Tab>|<Esc> NG0ix|<C-r>=|1+1<CR>|y|<Esc>
    NG0Ax&f|<C-n>|<C-n>|<C-y>|<Esc> NG0Ax&f|<C-n>|x|<Esc> NG0ox|<CR>f<C-x>|<C-l>|<C-n>|<C-e>|<Esc> NG0ox|<CR>p<C-p>|<Esc>
    :N,M|d<CR> :N|t.<CR> :N,M|j<CR> :N,M|>|<CR> :Nnorm&|Axy<CR> :N|put&|a<CR> :N,Ms/o/0/|g<CR> :N,Mg/1/|d<CR>
    :N,Ms/o/0/gc<CR>|y|n|y|<Esc> :N,Ms/o/0/c<CR>|y|y|y :N,Ms/o/0/c<CR>|n|a :N,Ms/f/FF/gc<CR>|y|l :%s/p3/P3/c<CR>|y|n|y|<Esc>
    :%s/ba/\r/gc<CR>|y|y|n|y|l :N,Ms/o/\=1+1/gc<CR>|y|y :N,Mg/o/s/f/F/c<CR>|y|n|y
    NG0d/p4|9<CR> NG0d/q|x|<CR> NG0c/ba|r<CR>|xy|<Esc> NG0/foo<CR>cgn|xy|<Esc> NG0q:i|N|d<CR> NG0q:i|Ns/o/0/|<CR>
    NG0<F3>|x NG0<F3>|<Esc> NG0<F4>!|x NG0<F5>|ab|<CR> NG0qb|dd|q NG0qbA|xy|<Esc>q NG0:|<C-u>.d|<CR> NG0zf|j"#;

/// Mappings that wait for keys and then change the line at which they began.
const MAPS: &str = "local function map(key, act, expr)
        vim.keymap.set('n', key, function()
            local row = vim.fn.line('.')
            local text = act()
            if expr then
                return text
            end
            vim.api.nvim_buf_set_lines(0, row - 1, row, true, { text })
        end, { expr = expr })
    end
    map('<F3>', vim.fn.getcharstr)
    map('<F4>', function() return vim.fn.getcharstr() == 'x' and 'dd' or '' end, true)
    map('<F5>', function() return vim.fn.input('') end)
    vim.o.startofline, vim.o.wrapscan, vim.o.more, vim.o.shortmess = true, false, false, 'aoOtTWIcCFS'";

/// Counts the changes and the ends of commands that Neovim is told of.
const COUNT: &str = "_G.co_arrived = 0
    local handlers = require('co.handlers')
    local receive = handlers.receive
    handlers.receive = function(messages)
        for _, message in ipairs(messages) do
            if message.type == 'change_buffer' or message.type == 'block' and message.done then
                co_arrived = co_arrived + 1
            end
        end
        receive(messages)
    end";

/// Puts the person where each round begins.
const BEGIN: &str = "vim.fn.setreg('a', 'pasted\\n')
    vim.fn.setreg('b', '')
    vim.fn.setreg('\"', 'yanked\\n')
    vim.fn.setreg('/', 'foo')
    vim.cmd('silent! normal! zE')
    vim.api.nvim_win_set_cursor(0, { 1, 0 })";

/// Asks the model in a chat without a window.
const ASK: &str = "_G.co_ended = nil
    require('co').ask('go on', function(answer) _G.co_ended = answer.reason end)";

/// The lines of a text.
type Lines = Vec<String>;

/// A change of the first lines of the file, which the person does not change.
struct Change {
    /// The text of the line to replace.
    at: String,
    /// The lines in its place.
    new: Lines,
}

impl Change {
    /// Returns a change that keeps from five to fifteen such lines. `number` gives a new line its name.
    fn random(chance: &mut Rng, text: &Lines, number: usize) -> Self {
        let own: Vec<_> = text.iter().filter(|line| line.starts_with('m')).collect();
        let at = (*chance.choice(&own).unwrap()).clone();
        let new = |name: char| format!("m{number:04}{name}");
        let most = if own.len() > 15 { 2 } else { 5 };
        let least = if own.len() < 5 { 2 } else { 0 };
        let new = match chance.u8(least..most) {
            0 => Vec::new(),
            1 => vec![new('a')],
            2 => vec![new('a'), at.clone()],
            3 => vec![at.clone(), new('a')],
            _ => vec![new('a'), at.clone(), new('b'), new('c')],
        };
        Self { at, new }
    }

    fn of(&self, text: &Lines) -> Lines {
        let lines = text.iter().flat_map(|line| match *line == self.at {
            true => self.new.clone(),
            false => vec![line.clone()],
        });
        lines.collect()
    }

    /// Returns the call that makes the change: an edit, or a command that writes the file.
    fn reply(&self, is_edit: bool, gate: &Gate) -> Reply {
        let reply = Reply::new().hold(gate);
        if is_edit {
            let new: String = self.new.iter().map(|line| format!("{line}\n")).collect();
            let edit = json!({ "old": format!("{}\n", self.at), "new": new });
            return reply.call("c", "edit_file", &json!({ "path": "a", "edits": [edit] }));
        }
        let script = match self.new.is_empty() {
            true => format!("/^{}$/d", self.at),
            false => format!("s/^{}$/{}/", self.at, self.new.join("\\n")),
        };
        reply.and_shell("c", &format!("sed -i '{script}' a"))
    }
}

/// Returns the pieces of a command, and for each whether Neovim then waits for its next key alone.
fn command(chance: &mut Rng) -> Vec<(String, bool)> {
    let commands: Vec<_> = COMMANDS.split_whitespace().collect();
    let line = chance.usize(28..45);
    let last = line + chance.usize(1..4);
    let command = chance.choice(commands).unwrap();
    let command = command
        .replace('N', &line.to_string())
        .replace('M', &last.to_string());
    let pieces = command.split('|').map(|piece| {
        let blocks = piece.strip_suffix('!');
        let keys = blocks.unwrap_or(piece).replace('&', " ");
        (keys, blocks.is_some())
    });
    pieces.collect()
}

/// Types the pieces of a command; calls `change` before one of them, or after the last one.
fn type_pieces(nvim: &Nvim, pieces: &[(String, bool)], at: usize, mut change: impl FnMut(bool)) {
    let mut blocked = false;
    for (index, (keys, blocks)) in pieces.iter().enumerate() {
        if index == at {
            change(blocked);
        }
        nvim.type_keys(keys);
        blocked = *blocks;
        if !blocked {
            // Neovim answers when it has taken the keys.
            nvim.eval("1");
        }
    }
    nvim.type_keys("<Esc><Esc><C-Bslash><C-n><Cmd>let g:co_typed = 1<CR>");
    nvim.wait_for("vim.g.co_typed", "the keys");
    nvim.command("unlet g:co_typed");
    if at == pieces.len() {
        change(false);
    }
}

fn lines(nvim: &Nvim) -> Lines {
    let lines = nvim.call("nvim_buf_get_lines", json!([0, 0, -1, false]));
    serde_json::from_value(lines).unwrap()
}

/// A Neovim without co.
struct Reference(Nvim);

impl Reference {
    fn start() -> Self {
        let nvim = Nvim::start(Options {
            plugin: false,
            ..Options::default()
        });
        nvim.lua(MAPS, json!([]));
        Self(nvim)
    }

    /// Returns what keys make of a text.
    fn typed(&self, pieces: &[(String, bool)], text: &Lines) -> Lines {
        self.0
            .call("nvim_buf_set_lines", json!([0, 0, -1, false, text]));
        self.0.lua(BEGIN, json!([]));
        type_pieces(&self.0, pieces, usize::MAX, |_| ());
        lines(&self.0)
    }
}

/// Opens the gate and waits until Neovim is told of the change, unless it waits for a key alone.
fn let_arrive(scene: &Scene, gate: &Gate, chance: &mut Rng, blocked: bool) {
    let before = match blocked {
        true => None,
        false => scene.eval("co_arrived").as_u64(),
    };
    gate.open();
    if chance.bool() {
        // It may also come between any two of the next keys.
        return proc::pass(Duration::from_millis(chance.u64(..30)));
    }
    if let Some(before) = before {
        // A read waits too if the file has changed.
        let arrived =
            format!("co_ended or co_arrived > {before} or require('co.ui.gate').delays(1)");
        scene.wait_for(&arrived, "the change");
    }
}

/// A command of the person, while a call of the model changes the file.
fn round(scene: &Scene, reference: &Reference, chance: &mut Rng, number: usize) {
    let old = lines(scene);
    let change = Change::random(chance, &old, number);
    let (is_edit, gate) = (chance.bool(), Gate::default());
    scene.replies([change.reply(is_edit, &gate), Reply::text("Done.")]);
    let pieces = command(chance);
    let at = chance.usize(1..=pieces.len());
    scene.lua(BEGIN, json!([]));
    scene.lua(ASK, json!([]));
    type_pieces(scene, &pieces, at, |blocked| {
        let_arrive(scene, &gate, chance, blocked);
    });
    scene.wait_for("co_ended", "the end of the turn");
    let open = "require('co.ui.gate').is_open({ vim.api.nvim_get_current_buf() })";
    scene.wait_for(open, "a reload");

    let typed = reference.typed(&pieces, &old);
    let after = reference.typed(&pieces, &change.of(&old));
    let now = lines(scene);
    // A buffer with unsaved changes is not read again.
    let before = match !is_edit && scene.eval("vim.bo.modified") == json!(true) {
        true => typed,
        false => change.of(&typed),
    };
    let told = scene.server.requests().pop().unwrap().last("tool");
    let what = [&change.at, &change.new.join(" ")];
    assert!(
        now == before || now == after,
        "round {number}: {pieces:?}, change {what:?} (edit: {is_edit}) before piece {at}: {told:?}\n\
         {old:?}\n--- became\n{now:?}\n--- instead of\n{before:?}\n--- or\n{after:?}"
    );
    // The person overwrites what a command wrote meanwhile.
    scene.command("silent write!");
}

#[test]
fn keys_and_edits_give_what_they_give_one_after_the_other() {
    let reference = Reference::start();
    let mut chance = random(51);
    let mut left = cases(CASES).div_ceil(20);
    while left > 0 {
        let rounds = left.min(BATCH);
        left -= rounds;
        let scene = Scene::with(json!({ "auto_confirm": true }), &[]);
        let of_model = (0..8).map(|number| format!("m{number:04}\n"));
        let own = OWN.map(|number| format!("p{number} foo bar baz\n"));
        scene
            .workspace
            .write("a", &of_model.chain(own).collect::<String>());
        scene.command("edit a");
        scene.lua(MAPS, json!([]));
        scene.lua(COUNT, json!([]));
        for number in 0..rounds {
            round(&scene, &reference, &mut chance, number);
        }
    }
}
