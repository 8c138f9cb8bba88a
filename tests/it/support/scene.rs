//! A Neovim in a workspace, with a model that follows a script.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::http::{Reply, Scripted};
use super::nvim::{Nvim, Options};
use super::workspace::Workspace;
use super::{DEADLINE, ROOT, proc};

/// Counts the events that the plugin raises.
const COUNT: &str = "_G.co_seen = {}
    vim.api.nvim_create_autocmd('User', { pattern = 'Co*', callback = function(event)
        co_seen[event.match] = (co_seen[event.match] or 0) + 1
    end })";

/// A Neovim in a workspace, and the server of its model.
pub(crate) struct Scene {
    pub(crate) nvim: Nvim,
    pub(crate) server: Scripted,
    pub(crate) workspace: Workspace,
    /// The directory with the settings, the chats and the log.
    pub(crate) home: TempDir,
}

impl Deref for Scene {
    type Target = Nvim;

    fn deref(&self) -> &Nvim {
        &self.nvim
    }
}

impl DerefMut for Scene {
    fn deref_mut(&mut self) -> &mut Nvim {
        &mut self.nvim
    }
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::with(json!({}), &[])
    }

    /// A scene with more settings, and variables in Neovim's environment.
    pub(crate) fn with(settings: Value, env: &[(&str, &str)]) -> Self {
        Self::in_workspace(Workspace::new(), settings, env)
    }

    /// The same in a workspace that has files.
    pub(crate) fn in_workspace(
        workspace: Workspace,
        settings: Value,
        env: &[(&str, &str)],
    ) -> Self {
        let server = Scripted::start();
        let home = tempfile::tempdir().unwrap();
        let nvim = start(&server, &workspace, home.path(), settings, env);
        Self {
            nvim,
            server,
            workspace,
            home,
        }
    }

    /// A scene whose model gives these answers, in this order.
    pub(crate) fn scripted(replies: impl IntoIterator<Item = Reply>) -> Self {
        let scene = Self::new();
        scene.replies(replies);
        scene
    }

    /// Adds answers to the end of the model's script.
    pub(crate) fn replies(&self, replies: impl IntoIterator<Item = Reply>) {
        replies.into_iter().for_each(|it| self.server.reply(it));
    }

    /// Another Neovim of the same person, in place of this one.
    pub(crate) fn restart(&mut self) {
        self.restart_with(json!({}));
    }

    /// Another Neovim of the same person with more settings, in place of this one.
    pub(crate) fn restart_with(&mut self, settings: Value) {
        let home = self.home.path();
        self.nvim = start(&self.server, &self.workspace, home, settings, &[]);
    }

    /// Starts another Neovim of the same person beside this one. Returns this one.
    pub(crate) fn begin_another(&mut self) -> Nvim {
        let home = self.home.path();
        let another = start(&self.server, &self.workspace, home, json!({}), &[]);
        std::mem::replace(&mut self.nvim, another)
    }

    /// Types `:Co text` and `<CR>`.
    #[track_caller]
    pub(crate) fn co(&self, text: &str) {
        self.type_keys(&format!(":Co {}<CR>", typed(text)));
    }

    /// Types `:Co! command` and `<CR>`.
    #[track_caller]
    pub(crate) fn run(&self, command: &str) {
        self.type_keys(&format!(":Co! {}<CR>", typed(command)));
    }

    /// Attaches a language server to the current buffer. It answers with these places for every name: files of the
    /// workspace, with rows from 0.
    pub(crate) fn attach_server(&self, definitions: &[(&str, u32)], references: &[(&str, u32)]) {
        self.lua(
            "local root, definitions, references = ...
            local function all(places)
                return vim.tbl_map(function(place)
                    local at = { line = place[2], character = 0 }
                    local uri = vim.uri_from_fname(vim.fn.getcwd() .. '/' .. place[1])
                    return { uri = uri, range = { start = at, ['end'] = at } }
                end, places)
            end
            dofile(root .. '/tests/lua/language_server.lua')({ definitionProvider = true, referencesProvider = true }, {
                ['textDocument/definition'] = function(_, done) done(nil, all(definitions)) end,
                ['textDocument/references'] = function(_, done) done(nil, all(references)) end,
            })",
            json!([ROOT, definitions, references]),
        );
    }

    /// Returns the text of the first chat.
    #[track_caller]
    pub(crate) fn chat(&self) -> String {
        self.buffer_text("co://chat/1").unwrap_or_default()
    }

    /// Waits until the first chat says `text`, and returns all of it.
    #[track_caller]
    pub(crate) fn wait_chat(&self, text: &str) -> String {
        self.wait_buffer("co://chat/1", text)
    }

    /// Waits until the shell buffer says `text`, and returns all of it.
    #[track_caller]
    pub(crate) fn wait_shell(&self, text: &str) -> String {
        self.wait_buffer("co://shell", text)
    }

    /// Waits until the buffer `name` says `text`, and returns all of it.
    #[track_caller]
    pub(crate) fn wait_buffer(&self, name: &str, text: &str) -> String {
        let mut last = String::new();
        let end = Instant::now() + DEADLINE;
        while Instant::now() < end {
            last = self.buffer_text(name).unwrap_or_default();
            if last.contains(text) {
                return last;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let screen = self.screen().join("\n");
        panic!("{name} does not say {text:?} but\n{last}\n--- the screen\n{screen}");
    }

    /// Returns how often an event was raised.
    #[track_caller]
    pub(crate) fn events(&self, name: &str) -> u64 {
        let count = self.lua("return co_seen[...] or 0", json!([name]));
        count.as_u64().unwrap_or(0)
    }

    /// Waits until that many turns have ended.
    #[track_caller]
    pub(crate) fn wait_turns(&self, count: u64) {
        let enough = format!("(co_seen.CoTurnDone or 0) >= {count}");
        self.wait_for(&enough, &format!("turn {count} to end"));
    }

    /// Waits until a question is on the screen, and returns the screen.
    #[track_caller]
    pub(crate) fn wait_ask(&self, position: &str) -> Vec<String> {
        self.wait_text(&format!("co {position} "))
    }

    /// Goes to the question that is on the screen and answers it with keys.
    #[track_caller]
    pub(crate) fn answer(&self, keys: &str) {
        // What is on the screen may be the question before, which has its answer.
        self.wait_for(
            "#require('co.question').pending() > 0",
            "a question to wait",
        );
        self.type_keys(":Co /approve<CR>");
        self.wait_for(
            "vim.bo.filetype == 'co-approval'",
            "the question to have the focus",
        );
        self.press(keys);
    }

    /// Waits for the only question and answers it with a yes.
    #[track_caller]
    pub(crate) fn approve(&self) {
        self.answer_ask("1/1", "y");
    }

    /// Waits for the question at a position, answers it with keys, and returns the screen that showed it.
    #[track_caller]
    pub(crate) fn answer_ask(&self, position: &str, keys: &str) -> Vec<String> {
        self.answer_text(&format!("co {position} "), keys)
    }

    /// Waits for a question that says `text`, answers it with keys, and returns the screen that showed it.
    #[track_caller]
    pub(crate) fn answer_text(&self, text: &str, keys: &str) -> Vec<String> {
        let screen = self.wait_text(text);
        self.answer(keys);
        screen
    }

    /// Goes to the chat and types `<C-c>`.
    #[track_caller]
    pub(crate) fn interrupt(&self) {
        self.type_keys(":Co<CR>");
        self.wait_for("vim.bo.filetype == 'co-prompt'", "the chat");
        self.type_keys("<C-c>");
    }

    /// Waits until co's log of notices says `text`.
    #[track_caller]
    pub(crate) fn wait_notice(&self, text: &str) {
        let log = "table.concat(require('co.ui.log').lines(), '\\n')";
        self.wait_for(&format!("{log}:find({text:?}, 1, true)"), text);
    }

    /// Resumes the first chat.
    #[track_caller]
    pub(crate) fn resume(&self) {
        self.co(&format!("/resume {}", self.chat_id()));
    }

    /// Returns the outcome of a call that the model read last in this request.
    #[track_caller]
    pub(crate) fn told(&self, request: usize) -> String {
        self.server.requests()[request].last("tool").unwrap()
    }

    /// Returns the outcome of a call in this request.
    #[track_caller]
    pub(crate) fn outcome(&self, request: usize, call: &str) -> String {
        let body = &self.server.requests()[request].body;
        let mut messages = body["messages"].as_array().unwrap().iter();
        let outcome = messages.find(|it| it["tool_call_id"] == call).unwrap();
        outcome["content"].as_str().unwrap().to_owned()
    }

    /// Waits for at least one process below Neovim whose command line has `text`, and returns all.
    #[track_caller]
    pub(crate) fn wait_below(&self, text: &str) -> Vec<i32> {
        proc::wait_until(DEADLINE, text, || {
            let found = below(self.pid(), text);
            (!found.is_empty()).then_some(found)
        })
    }

    /// Types into a question or a list that has had the focus long enough to take keys for answers.
    #[track_caller]
    pub(crate) fn press(&self, keys: &str) {
        self.wait_for(
            "not require('co.ui.focus').ignores_keys()",
            "the question or the list to take keys",
        );
        self.type_keys(keys);
    }

    /// Returns the files of all chats.
    pub(crate) fn chats(&self) -> Vec<PathBuf> {
        let directory = self.home.path().join("data/co-nvim/chats");
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
            .collect();
        found.sort();
        found
    }

    /// Returns what `/resume` takes for the first chat.
    pub(crate) fn chat_id(&self) -> String {
        let chat = &self.chats()[0];
        chat.file_stem().unwrap().to_str().unwrap().to_owned()
    }

    /// Returns the items of the only chat.
    #[track_caller]
    pub(crate) fn items(&self) -> Vec<Value> {
        let chats = self.chats();
        assert_eq!(chats.len(), 1, "{chats:?}");
        let text = std::fs::read_to_string(&chats[0]).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .filter(|line: &Value| line["item"].is_string())
            .collect()
    }

    /// Checks that each call on disk has exactly one outcome.
    #[track_caller]
    pub(crate) fn assert_outcomes(&self, calls: usize) {
        let items = self.items();
        let of = |kind: &str, field: &str| -> Vec<String> {
            let found = items.iter().filter(|item| item["item"] == kind);
            let mut ids: Vec<_> = found
                .map(|item| item[field].as_str().unwrap().to_owned())
                .collect();
            ids.sort();
            ids
        };
        assert_eq!(of("call", "id").len(), calls, "{items:#?}");
        assert_eq!(of("call", "id"), of("outcome", "call"), "{items:#?}");
    }

    /// Returns the backend's process; Neovim's own child is its guard.
    #[track_caller]
    pub(crate) fn backend(&self) -> i32 {
        let pid = self
            .nvim
            .wait_for("require('co.backend').status().pid", "the backend");
        let guard = i32::try_from(pid.as_i64().unwrap()).unwrap();
        proc::wait_until(DEADLINE, "the backend", || {
            proc::children(guard).first().copied()
        })
    }
}

fn start(
    server: &Scripted,
    workspace: &Workspace,
    home: &Path,
    more: Value,
    env: &[(&str, &str)],
) -> Nvim {
    let mut settings =
        json!({ "provider": "openai", "model": "scripted", "base_url": server.url() });
    for (name, value) in more.as_object().unwrap() {
        settings[name] = value.clone();
    }
    let nvim = Nvim::start(Options {
        size: (140, 40),
        settings,
        cwd: Some(workspace.path().to_owned()),
        home: Some(home.to_owned()),
        env: env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..Options::default()
    });
    nvim.lua(COUNT, json!([]));
    nvim
}

/// A text as keys.
pub(crate) fn typed(text: &str) -> String {
    text.replace('<', "<lt>")
}

/// Makes a named pipe; who reads it waits until [`open_gate`].
pub(crate) fn gate(workspace: &Workspace, name: &str) -> PathBuf {
    let path = workspace.path().join(name);
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    path
}

/// Lets the program that reads a named pipe go on.
pub(crate) fn open_gate(path: &Path) {
    let path = path.to_owned();
    let (done, opened) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(std::fs::write(path, "\n")));
    opened.recv_timeout(DEADLINE).unwrap().unwrap();
}

/// Returns the processes below `pid` whose command line has `text`.
pub(crate) fn below(pid: i32, text: &str) -> Vec<i32> {
    let has = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| {
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(text)
        })
    };
    proc::descendants(pid).into_iter().filter(has).collect()
}

/// Waits until none of the processes runs any more.
#[track_caller]
pub(crate) fn wait_gone(pids: &[i32]) {
    proc::wait_until(DEADLINE, &format!("the end of {pids:?}"), || {
        pids.iter().all(|pid| !proc::alive(*pid)).then_some(())
    });
}
