//! Runs that are written to, sent to the background, or have a terminal: in a real Neovim, by keys.

use serde_json::json;

use crate::support::nvim::Nvim;

use super::scene::Scene;

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
