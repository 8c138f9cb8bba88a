//! Keys go where they are meant, whatever mode a question finds the person in.

use serde_json::json;

use crate::support::http::{Gate, Reply};
use crate::support::{DEADLINE, proc};

use super::scene::Scene;

/// The keys that would answer a question in the float.
const ANSWERS: &str = "yna";

/// Two chats with three questions each, and the person back in a window of their own.
struct Desk {
    scene: Scene,
    gates: [Gate; 6],
}

impl Desk {
    fn new() -> Self {
        let gates: [Gate; 6] = std::array::from_fn(|_| Gate::default());
        let calls = gates.iter().enumerate().map(|(index, gate)| {
            let id = format!("call-{index}");
            let arguments = json!({ "cmd": format!("touch f{index}") });
            Reply::new()
                .hold(gate)
                .call(&id, "run_shell_command", &arguments)
        });
        let ends = ["One is through.", "Two is through."].map(Reply::text);
        let scene = Scene::scripted(calls.chain(ends));
        scene.co("first");
        scene.server.wait_requests(1);
        scene.co("/new");
        scene.wait_for(
            "vim.api.nvim_buf_get_name(0) == 'co://chat/2/prompt'",
            "another chat",
        );
        scene.type_keys("isecond<C-s><Esc>");
        scene.server.wait_requests(2);
        scene.type_keys("q");
        scene.wait_for("vim.api.nvim_buf_get_name(0) == ''", "the own window");
        Self { scene, gates }
    }

    /// Lets a question come and types until it is on the screen, and at least `least` characters; returns them.
    #[track_caller]
    fn type_while_asked(&self, question: usize, position: &str, least: usize) -> String {
        self.gates[question].open();
        let mut typed = String::new();
        let shown = format!("co {position} ");
        proc::wait_until(DEADLINE, &shown, || {
            let there = || self.scene.screen().concat().contains(&shown);
            if typed.len() >= least && there() {
                return Some(());
            }
            self.scene.type_keys(ANSWERS);
            typed.push_str(ANSWERS);
            None
        });
        self.scene.type_keys(ANSWERS);
        typed + ANSWERS
    }

    /// Checks that so many questions wait, and that none of the commands from `first` on has run.
    #[track_caller]
    fn assert_pending(&self, count: usize, first: usize) {
        let pending = "return #require('co.question').pending()";
        assert_eq!(self.scene.lua(pending, json!([])), count);
        for index in first..6 {
            assert!(!self.scene.workspace.exists(&format!("f{index}")));
        }
    }

    /// Answers two questions; each is followed by its chat's next request.
    #[track_caller]
    fn answer_both(&self, first: usize, keys: [&str; 2]) {
        for (offset, keys) in keys.into_iter().enumerate() {
            let question = first + offset;
            self.scene.wait_text(&format!("touch f{question} "));
            self.scene.answer(keys);
            self.scene.server.wait_requests(question + 3);
            let file = format!("f{question}");
            assert_eq!(self.scene.workspace.exists(&file), keys == "y", "{file}");
        }
    }
}

#[test]
fn keys_go_where_they_are_meant_in_every_mode_and_questions_are_answered_in_order() {
    let desk = Desk::new();
    let nvim = &desk.scene;

    nvim.type_keys("i");
    nvim.wait_mode("i");
    let typed = desk.type_while_asked(0, "1/1", 2000);
    nvim.wait_for(
        &format!("vim.api.nvim_get_current_line() == {typed:?}"),
        "every character",
    );
    assert_eq!(nvim.mode().name, "i");
    desk.assert_pending(1, 0);

    nvim.type_keys("<Esc>ofive words for a macro<Esc>qqA");
    nvim.wait_for("vim.fn.reg_recording() == 'q'", "the recording");
    nvim.wait_mode("i");
    let typed = desk.type_while_asked(1, "1/2", 0);
    nvim.type_keys("<Esc>q");
    nvim.wait_for("vim.fn.reg_recording() == ''", "the end of the recording");
    let recorded = nvim.eval("vim.fn.getreg('q')");
    assert_eq!(recorded, format!("A{typed}\u{1b}"));
    let line = nvim.eval("vim.api.nvim_get_current_line()");
    assert_eq!(line, format!("five words for a macro{typed}"));
    desk.assert_pending(2, 0);
    desk.answer_both(0, ["y", "n"]);

    nvim.type_keys(":let g:typed = '");
    nvim.wait_mode("c");
    let typed = desk.type_while_asked(2, "1/1", 0);
    nvim.type_keys("'<CR>");
    nvim.wait_for(&format!("vim.g.typed == {typed:?}"), "the command line");
    desk.assert_pending(1, 2);

    nvim.type_keys("0v3l");
    nvim.wait_mode("v");
    desk.gates[3].open();
    desk.scene.wait_ask("1/2");
    assert_eq!(nvim.mode().name, "v");
    nvim.type_keys("y");
    nvim.wait_for("vim.fn.getreg('\"') == 'five'", "what was selected");
    desk.assert_pending(2, 2);
    desk.answer_both(2, ["y", "y"]);

    let lines = |count| format!("vim.api.nvim_buf_line_count(0) == {count}");
    nvim.wait_for(&lines(2), "two lines");
    nvim.type_keys("d");
    nvim.wait_mode("no");
    desk.gates[4].open();
    // What is asked about is on disk first. Neovim shows nothing while it waits for a key.
    proc::wait_until(DEADLINE, "the fifth call", || {
        let chats = desk.scene.chats();
        let mut texts = chats.iter().flat_map(std::fs::read_to_string);
        texts.any(|text| text.contains("call-4")).then_some(())
    });
    nvim.type_keys("d");
    nvim.wait_for(&lines(1), "the line that was deleted");
    desk.scene.wait_ask("1/1");
    desk.assert_pending(1, 4);

    nvim.type_keys(":belowright new | terminal cat<CR>i");
    nvim.wait_mode("t");
    let typed = desk.type_while_asked(5, "1/2", 0);
    nvim.type_keys("<CR>");
    nvim.wait_for(
        &format!("table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false)):find({typed:?}, 1, true) ~= nil"),
        "what the terminal was told",
    );
    assert_eq!(nvim.mode().name, "t");
    desk.assert_pending(2, 4);
    nvim.type_keys("<C-\\><C-n>");
    desk.answer_both(4, ["n", "y"]);
    desk.scene.wait_turns(2);
    desk.scene.wait_chat("One is through.");
    let second = nvim.buffer_text("co://chat/2").unwrap();
    assert!(second.contains("Two is through."), "{second}");
}
