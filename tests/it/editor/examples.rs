//! The examples and commands of the documents run, and the settings of the examples are taken.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

use crate::support::http::Reply;
use crate::support::nvim::{Nvim, Options};
use crate::support::scene::Scene;
use crate::support::{BACKEND, ROOT, tool};

/// Documents for users.
const DOCUMENTS: [&str; 3] = ["README.md", "docs/RECIPES.md", "doc/co.txt"];

/// Other plugins, which take everything.
const OTHERS: &str = "
    local any = setmetatable({}, { __index = function(it) return it end, __call = function(it) return it end })
    for _, name in ipairs({ 'lualine', 'which-key', 'lazy', 'cmp', 'blink.cmp', 'render-markdown' }) do
        package.loaded[name] = any
    end
    vim.pack = any";

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

/// Returns the blocks of a language in a document for users.
fn examples(name: &str, language: &str) -> Vec<String> {
    let text = document(name);
    match name.strip_suffix(".txt") {
        Some(_) => help_blocks(&text, language),
        None => blocks(&text, language),
    }
}

#[test]
fn lua_examples_run_and_their_settings_are_taken() {
    let examples: Vec<_> = DOCUMENTS
        .iter()
        .flat_map(|name| examples(name, "lua"))
        .collect();
    assert!(examples.len() > 12, "{examples:#?}");
    for example in examples {
        eprintln!("--- the example\n{example}");
        let nvim = Nvim::start(Options::default());
        nvim.lua("vim.g.co_test_bin = ...", json!([BACKEND]));
        // An empty buffer would be left out of a prompt.
        nvim.lua("vim.fn.setline(1, 'text')", json!([]));
        nvim.lua(OTHERS, json!([]));
        nvim.lua(RUN, json!([example]));
        nvim.type_keys(":Co! echo o$((0))ne<CR>");
        nvim.wait_text("o0ne");
        let told = nvim.lua("return require('co.ui.log').lines()", json!([]));
        assert!(!told.to_string().contains("notice: "), "{told}");
    }
}

/// A home in which a person follows the documents: with a repository of co, and programs in place of those that use the network.
struct Home {
    path: PathBuf,
    repository: PathBuf,
    programs: PathBuf,
    _root: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = Self {
            path: root.path().join("a home"),
            repository: root.path().join("the repository"),
            programs: root.path().join("bin"),
            _root: root,
        };
        for dir in [&home.path, &home.repository, &home.programs] {
            std::fs::create_dir(dir).unwrap();
        }
        for name in ["build.lua", "doc", "docker", "lua", "plugin"] {
            let copied = Command::new("cp")
                .arg("-r")
                .arg(Path::new(ROOT).join(name))
                .arg(&home.repository)
                .status();
            assert!(copied.unwrap().success(), "{name}");
        }
        for (name, text) in [
            (
                "cargo",
                format!(
                    "[ $1 = install ] || echo '{}'",
                    json!({ "executable": BACKEND })
                ),
            ),
            ("curl", "exit 1".to_owned()),
            ("claude", String::new()),
            ("docker", String::new()),
            ("gemini", String::new()),
            ("ssh", String::new()),
        ] {
            let file = home.programs.join(name);
            std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        }
        symlink(tool("CO_TEST_NVIM"), home.programs.join("nvim")).unwrap();
        symlink(BACKEND, home.programs.join("co-nvim")).unwrap();
        let commit =
            "git init -q && git add . && git -c user.name=a -c user.email=b commit -qm one";
        let made = home.bash(commit, &home.repository);
        assert!(made.status.success(), "{made:?}");
        home
    }

    /// Runs lines of shell. The first one that fails ends them.
    fn bash(&self, lines: &str, cwd: &Path) -> Output {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.programs.display());
        let mut bash = Command::new("bash");
        bash.args(["-e", "-c", lines]).current_dir(cwd).env_clear();
        bash.env("PATH", path).env("HOME", &self.path);
        bash.output().unwrap()
    }
}

#[test]
fn shell_examples_run_in_an_empty_home() {
    let home = Home::new();
    let mut count = 0;
    for example in DOCUMENTS.iter().flat_map(|name| examples(name, "sh")) {
        eprintln!("--- the example\n{example}");
        let address = format!("'{}'", home.repository.display());
        let lines = format!("{}\ntrue", example.replace("ADDRESS", &address));
        let done = home.bash(&lines, &home.repository);
        assert!(done.status.success(), "{example}\n{done:?}");
        count += 1;
    }
    assert!(count > 5, "{count} examples");
    // The first one has installed co.
    let look = "nvim --headless -c 'help co' -c 'lua print(vim.bo.buftype, require(\"co.backend.executable\").find())' -c qall";
    let found = home.bash(look, &home.path);
    let said = String::from_utf8_lossy(&found.stderr);
    let installed = home.path.join(".local/share/nvim/co/bin/co-nvim-");
    let expected = format!("help {}{}", installed.display(), env!("CARGO_PKG_VERSION"));
    assert_eq!(said.trim(), expected);
}

/// Returns the commands of Neovim that a document names as they are typed.
fn commands(text: &str) -> Vec<&str> {
    let own = |it: &&str| {
        let known = [":Co", ":checkhealth", ":help", ":vertical"];
        known.iter().any(|start| it.starts_with(start)) && !it.contains(['{', '['])
    };
    let starts = text.match_indices("`:").map(|(at, _)| &text[at + 1..]);
    let spans = starts.filter_map(|rest| rest.split('`').next());
    spans.filter(own).collect()
}

#[test]
fn commands_of_the_documents_run() {
    let empty = tempfile::tempdir().unwrap();
    let no_programs = empty.path().to_str().unwrap();
    // Nothing that a command starts may reach the network.
    let scene = Scene::with(json!({}), &[("PATH", no_programs)]);
    scene.lua("vim.ui.select = function() end", json!([]));
    let help = document("doc/co.txt");
    let mut turns = 0;
    for name in DOCUMENTS {
        let text = document(name);
        let named = commands(&text);
        assert!(!named.is_empty(), "{name}");
        for command in named {
            eprintln!("--- {name}: {command}");
            if let Some(tag) = command.strip_prefix(":help ") {
                assert!(help.contains(&format!("*{tag}*")), "{name}: {command}");
                continue;
            }
            let prompt = command
                .strip_prefix(":Co ")
                .is_some_and(|it| !it.starts_with('/'));
            if prompt {
                scene.server.reply(Reply::text("Yes."));
                turns += 1;
            }
            scene.command(command);
            scene.wait_turns(turns);
            scene.command("stopinsert");
        }
    }
    assert!(turns > 0);
    let told = scene.lua("return require('co.ui.log').lines()", json!([]));
    let told = told.to_string();
    assert!(!told.contains("unknown command"), "{told}");
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
