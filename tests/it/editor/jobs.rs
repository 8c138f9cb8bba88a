//! Runs that are written to, sent to the background, or have a terminal: in a real Neovim, by keys.

use serde_json::json;

use crate::support::nvim::{Nvim, Options};
use crate::support::proc;
use crate::support::{DEADLINE, workspace::Workspace};

fn start(workspace: &Workspace) -> Nvim {
    let nvim = Nvim::start(Options {
        size: (100, 30),
        ..Options::default()
    });
    nvim.lua("vim.cmd.cd(...)", json!([workspace.path()]));
    nvim
}

#[test]
fn an_open_input_is_written_to_and_closed_from_the_list() {
    let workspace = Workspace::new();
    let nvim = start(&workspace);
    nvim.type_keys(":Co! ++stdin cat; echo over<CR>");
    nvim.wait_text("$ cat; echo over");
    nvim.type_keys(":Co /jobs<CR>");
    nvim.wait_text("   1  running");
    nvim.type_keys("i");
    nvim.wait_text("stdin of run 1:");
    nvim.type_keys("one and 漢<CR>");
    nvim.wait_text("one and 漢");
    nvim.wait_for(
        "vim.fn.bufnr('^co://shell$') > 0 and vim.fn.getbufline(vim.fn.bufnr('^co://shell$'), 2)[1] == 'one and 漢'",
        "what was written, in the run's block",
    );
    nvim.type_keys("I");
    nvim.wait_text("   1  exit 0");
    let text = nvim.buffer_text("co://shell").unwrap();
    let start = "$ cat; echo over\none and 漢\nover\nexit 0";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn a_run_in_the_background_goes_on_and_its_end_is_told() {
    let workspace = Workspace::new();
    let nvim = start(&workspace);
    nvim.type_keys(":Co! until test -e go; do sleep 0.05; done; echo went<CR>");
    nvim.wait_text("… running");
    nvim.lua(
        "vim.api.nvim_set_current_win(vim.fn.win_findbuf(vim.fn.bufnr('^co://shell$'))[1])",
        json!([]),
    );
    nvim.type_keys("<C-z>");
    nvim.wait_text("… running in the background, :Co /jobs lists it");
    nvim.type_keys("q");
    workspace.write("go", "");
    nvim.wait_text("co: run 1: exit 0, after");
    let text = nvim.buffer_text("co://shell").unwrap();
    assert!(text.contains("\nwent\nexit 0"), "{text}");
}

#[test]
fn a_terminal_is_one_is_typed_to_and_follows_its_window() {
    let workspace = Workspace::new();
    let nvim = start(&workspace);
    let script = "test -t 1 || exit 1\nold=$(stty size)\necho \"$old\"\nread -r line\necho \"<$line>\"\n\
                  while test \"$(stty size)\" = \"$old\"; do sleep 0.05; done\nstty size\n\
                  while read -r line; do :; done\necho over\n";
    workspace.write("script.sh", script);
    nvim.type_keys(":Co! ++pty bash script.sh<CR>");
    nvim.wait_for("vim.bo.buftype == 'terminal'", "a terminal");
    let size = |nvim: &Nvim| {
        let code = "return vim.api.nvim_win_get_height(0) .. ' ' .. vim.api.nvim_win_get_width(0)";
        nvim.lua(code, json!([])).as_str().unwrap().to_owned()
    };
    nvim.wait_text(&size(&nvim));
    nvim.wait_mode("t");
    nvim.type_keys("some 漢字<CR>");
    nvim.wait_text("<some 漢字>");
    nvim.resize(70, 24);
    nvim.wait_text(&size(&nvim));
    nvim.type_keys("<C-d>");
    let lines = nvim.wait_text("[exit 0, after");
    assert!(lines.iter().any(|line| line == "over"), "{lines:#?}");
    nvim.type_keys("x");
    nvim.wait_mode("nt");
    nvim.type_keys("q:Co /jobs<CR>");
    nvim.wait_text("   1  exit 0");
}

#[test]
fn a_terminal_that_is_wiped_hangs_up() {
    let workspace = Workspace::new();
    let nvim = start(&workspace);
    nvim.type_keys(":Co! ++pty trap '' HUP; echo pid $$ .; sleep 3601; sleep 3602<CR>");
    let pid_on = |lines: &[String]| {
        let line = lines.iter().find_map(|line| line.strip_prefix("pid "));
        line.and_then(|line| line.strip_suffix(" .")?.parse::<i32>().ok())
    };
    let lines = nvim.wait_screen(|lines| pid_on(lines).is_some(), "the program's id");
    let pid = pid_on(&lines).unwrap();
    assert!(proc::alive(pid));
    nvim.type_keys("<C-\\><C-n>:bwipeout!<CR>");
    proc::wait_until(DEADLINE, "the end of the program", || {
        (!proc::alive(pid)).then_some(())
    });
}

#[test]
fn the_sandbox_holds_a_terminal_too() {
    let workspace = Workspace::new();
    let nvim = Nvim::start(Options {
        size: (100, 30),
        settings: json!({ "sandbox_backend": "auto" }),
        ..Options::default()
    });
    nvim.lua("vim.cmd.cd(...)", json!([workspace.path()]));
    nvim.type_keys(":Co! ++pty test -t 0 && stty size && echo in > inside && echo 'done' .<CR>");
    nvim.wait_text("done .");
    assert_eq!(workspace.read("inside").as_deref(), Some("in\n"));
    nvim.wait_text("[exit 0, after");
}
