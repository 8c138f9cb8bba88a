//! The examples of the documents do what they say: each is run in a Neovim of its own, and its settings are taken.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::nvim::{Nvim, Options};
use crate::support::{BACKEND, ROOT};

/// Other plugins, which take everything.
const OTHERS: &str = "
    local any = setmetatable({}, { __index = function(it) return it end, __call = function(it) return it end })
    for _, name in ipairs({ 'lualine', 'which-key', 'lazy', 'cmp', 'blink.cmp', 'render-markdown' }) do
        package.loaded[name] = any
    end";

/// Runs an example. One that is a table is what lazy.nvim reads. An older Neovim only reads one for `vim.pack`.
const RUN: &str = "
    local text = ...
    if text:find('^%s*{') then
        local spec = assert(loadstring('return ' .. text))()
        if spec.init then spec.init() end
        for _, key in ipairs(spec.keys or {}) do
            assert(vim.fn.maparg(key[2], 'n') ~= '', 'nothing is mapped to ' .. key[2])
        end
    else
        local chunk = assert(loadstring(text))
        if not text:find('vim.pack', 1, true) or vim.fn.has('nvim-0.12') == 1 then chunk() end
    end
    local settings = vim.g.co or {}
    settings.bin = vim.g.co_test_bin
    vim.g.co = settings";

fn document(name: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(name)).unwrap()
}

/// Returns the blocks of a language in a document of markdown.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    let parts = text.split(&start).skip(1);
    parts
        .map(|part| part.split("```").next().unwrap().to_owned())
        .collect()
}

/// Returns the blocks of a language in a help file: the indented lines below one that ends with `>lua`.
fn help_blocks(text: &str, language: &str) -> Vec<String> {
    let start = format!(">{language}\n");
    let parts = text.split(&start).skip(1);
    let block = |part: &str| {
        let inside = |line: &&str| line.is_empty() || line.starts_with(' ');
        let lines: Vec<_> = part.lines().take_while(inside).collect();
        lines.join("\n")
    };
    parts.map(block).collect()
}

#[test]
fn lua_examples_run_and_their_settings_are_taken() {
    let mut examples = blocks(&document("README.md"), "lua");
    examples.extend(blocks(&document("docs/RECIPES.md"), "lua"));
    examples.extend(help_blocks(&document("doc/co.txt"), "lua"));
    assert!(examples.len() > 12, "{examples:#?}");
    for example in examples {
        eprintln!("--- the example\n{example}");
        let nvim = Nvim::start(Options::default());
        nvim.lua("vim.g.co_test_bin = ...", json!([BACKEND]));
        nvim.lua(OTHERS, json!([]));
        nvim.lua(RUN, json!([example]));
        nvim.type_keys(":Co! echo o$((0))ne<CR>");
        nvim.wait_text("o0ne");
        let told = nvim.lua("return require('co.ui.log').lines()", json!([]));
        assert!(!told.to_string().contains("notice: "), "{told}");
    }
}

#[test]
fn the_commands_of_co_in_examples_run() {
    let examples = blocks(&document("docs/RECIPES.md"), "sh");
    let own = examples.iter().filter(|it| it.contains("co-nvim"));
    let home = tempfile::tempdir().unwrap();
    let programs = Path::new(BACKEND).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut count = 0;
    for example in own {
        let mut bash = Command::new("bash");
        bash.args(["-c", &format!("{example}\ntrue")]);
        bash.env("PATH", &path).env("HOME", home.path());
        let done = bash.output().unwrap();
        assert!(done.status.success(), "{example}: {done:?}");
        assert_eq!(String::from_utf8_lossy(&done.stderr), "", "{example}");
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn each_command_that_a_document_names_exists() {
    let nvim = Nvim::start(Options::default());
    let known = "local all = vim.tbl_keys(require('co.user_command.slash').commands)
        table.sort(all)
        return all";
    let known = nvim.lua(known, json!([]));
    let known: Vec<_> = known.as_array().unwrap().iter().collect();
    for name in [
        "README.md",
        "doc/co.txt",
        "docs/RECIPES.md",
        "docs/SECURITY.md",
        "docs/SANDBOX.md",
    ] {
        for rest in document(name).split(":Co /").skip(1) {
            let command: String = rest
                .chars()
                .take_while(|c| c.is_ascii_lowercase() || *c == '!')
                .collect();
            let command = command.trim_end_matches('!');
            if command.is_empty() {
                continue;
            }
            assert!(known.iter().any(|it| **it == command), "{name}: /{command}");
        }
    }
}
