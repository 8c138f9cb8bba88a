//! Runs that are written to, sent to the background, or have a terminal: in a real Neovim, by keys.

use serde_json::json;

use crate::support::nvim::Nvim;

use super::scene::Scene;

#[test]
fn an_open_input_is_written_to_and_closed_from_the_list() {
    let scene = Scene::new();
    scene.run("++stdin cat; echo over");
    scene.wait_text("$ cat; echo over");
    scene.type_keys(":Co /jobs<CR>");
    scene.wait_text("   1  running");
    scene.type_keys("i");
    scene.wait_text("stdin of run 1:");
    scene.type_keys("one and 漢<CR>");
    scene.wait_text("one and 漢");
    scene.wait_shell("$ cat; echo over\none and 漢\n");
    scene.type_keys("I");
    scene.wait_text("   1  exit 0");
    scene.wait_shell("$ cat; echo over\none and 漢\nover\nexit 0");
}

#[test]
fn a_terminal_is_one_is_typed_to_and_follows_its_window() {
    let scene = Scene::new();
    let script = "test -t 1 || exit 1\nold=$(stty size)\necho \"$old\"\nread -r line\necho \"<$line>\"\n\
                  while test \"$(stty size)\" = \"$old\"; do sleep 0.05; done\nstty size\n\
                  while read -r line; do :; done\necho over\n";
    scene.workspace.write("script.sh", script);
    scene.run("++pty bash script.sh");
    scene.wait_for("vim.bo.buftype == 'terminal'", "a terminal");
    let size = |nvim: &Nvim| {
        let code = "return vim.api.nvim_win_get_height(0) .. ' ' .. vim.api.nvim_win_get_width(0)";
        nvim.lua(code, json!([])).as_str().unwrap().to_owned()
    };
    scene.wait_text(&size(&scene));
    scene.wait_mode("t");
    scene.type_keys("some 漢字<CR>");
    scene.wait_text("<some 漢字>");
    scene.resize(70, 34);
    scene.wait_text(&size(&scene));
    scene.type_keys("<C-d>");
    let lines = scene.wait_text("[exit 0, after");
    assert!(lines.iter().any(|line| line == "over"), "{lines:#?}");
    scene.type_keys("x");
    scene.wait_mode("nt");
    scene.type_keys("q:Co /jobs<CR>");
    scene.wait_text("   1  exit 0");
}
