//! A chat in a real Neovim, in a workspace of its own, with a model that follows a script.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::http::Server;
use super::nvim::{Nvim, Options};
use super::workspace::Workspace;
use super::{DEADLINE, proc};

/// A question takes no keys for answers until it has had the focus for longer.
const SWALLOWED: Duration = Duration::from_millis(300);

const COUNT: &str = "_G.co_seen = {}
    vim.api.nvim_create_autocmd('User', { pattern = 'Co*', callback = function(event)
        co_seen[event.match] = (co_seen[event.match] or 0) + 1
    end })";

/// Neovim, the model's server, and what they work on.
pub(crate) struct Chat {
    pub(crate) nvim: Nvim,
    pub(crate) server: Server,
    pub(crate) workspace: Workspace,
    home: TempDir,
}

impl Chat {
    /// Starts Neovim in `workspace` with `settings` on top of the model's.
    pub(crate) fn start(workspace: Workspace, settings: &Value) -> Self {
        let server = Server::start();
        let home = tempfile::tempdir().unwrap();
        let mut all =
            json!({ "provider": "openai", "model": "scripted", "base_url": server.url() });
        for (name, value) in settings.as_object().unwrap() {
            all[name] = value.clone();
        }
        let nvim = Nvim::start(Options {
            size: (140, 40),
            settings: all,
            cwd: Some(workspace.path().to_owned()),
            home: Some(home.path().to_owned()),
            ..Options::default()
        });
        nvim.lua(COUNT, json!([]));
        Self {
            nvim,
            server,
            workspace,
            home,
        }
    }

    /// Types `:Co` and what follows it.
    #[track_caller]
    pub(crate) fn co(&self, text: &str) {
        self.nvim
            .type_keys(&format!(":Co{}<CR>", text.replace('<', "<lt>")));
    }

    /// Waits until `text` stands in the buffer `name`, and returns all of it.
    #[track_caller]
    pub(crate) fn wait_buffer(&self, name: &str, text: &str) -> String {
        let end = Instant::now() + DEADLINE;
        loop {
            let said = self.nvim.buffer_text(name).unwrap_or_default();
            if said.contains(text) {
                return said;
            }
            let screen = || self.nvim.screen().join("\n");
            assert!(
                Instant::now() < end,
                "{name} lacks {text:?}\n{said}\n---\n{}",
                screen()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until that many turns have ended.
    #[track_caller]
    pub(crate) fn wait_turns(&self, count: u64) {
        let enough = format!("(co_seen.CoTurnDone or 0) >= {count}");
        self.nvim.wait_for(&enough, &format!("turn {count} to end"));
    }

    /// Returns how often an event was raised.
    #[track_caller]
    pub(crate) fn events(&self, name: &str) -> u64 {
        let count = self.nvim.lua("return co_seen[...] or 0", json!([name]));
        count.as_u64().unwrap()
    }

    /// Waits for a question that says `text`, answers it with a key, and returns the screen it was on.
    #[track_caller]
    pub(crate) fn answer(&self, text: &str, key: &str) -> Vec<String> {
        let screen = self.nvim.wait_text(text);
        self.co(" /approve");
        let focus = "vim.bo.filetype == 'co-approval'";
        self.nvim.wait_for(focus, "the question to have the focus");
        let since = Instant::now();
        proc::wait_until(DEADLINE, "the question to take keys", || {
            (since.elapsed() > SWALLOWED).then_some(())
        });
        self.nvim.type_keys(key);
        screen
    }

    /// Returns the items of the only session, as they are on disk.
    #[track_caller]
    pub(crate) fn items(&self) -> Vec<Value> {
        let directory = self.home.path().join("data/co-nvim/sessions");
        let entries = std::fs::read_dir(directory).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        let found: Vec<_> = files
            .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        let text = std::fs::read_to_string(&found[0]).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .filter(|line: &Value| line["item"].is_string())
            .collect()
    }
}
