//! A real Neovim with a screen of its own, in a home of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rmpv::Value as Msgpack;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::rpc::{Failed, Observer, Rpc};
use super::screen::Shown;
use super::{BACKEND, DEADLINE, ROOT, proc};

/// The options of a Neovim.
pub(crate) struct Options {
    /// Columns and rows.
    pub(crate) size: (u16, u16),
    /// The value of `vim.g.co`. With the plugin, the path of the backend under test is added to it.
    pub(crate) settings: Value,
    /// co is on the runtime path.
    pub(crate) plugin: bool,
    /// Variables on top of PATH, LANG and the directories.
    pub(crate) env: Vec<(String, String)>,
    /// More arguments, such as files to open.
    pub(crate) args: Vec<String>,
    pub(crate) cwd: Option<PathBuf>,
    /// The directory with the configuration, the data and the state. A Neovim and its successor may share it.
    pub(crate) home: Option<PathBuf>,
    pub(crate) observer: Observer,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            size: (100, 30),
            settings: json!({}),
            plugin: true,
            env: Vec::new(),
            args: Vec::new(),
            cwd: None,
            home: None,
            observer: Box::new(|_| {}),
        }
    }
}

/// Neovim's mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mode {
    /// As `nvim_get_mode()` names it: `n`, `i`, `c`, `no`, ...
    pub(crate) name: String,
    /// It waits for a key and answers nothing else.
    pub(crate) blocking: bool,
}

/// A running Neovim; ended with all it started when dropped.
pub(crate) struct Nvim {
    process: Child,
    rpc: Rpc,
    home: PathBuf,
    /// In the environment of all it starts that inherits its environment.
    mark: String,
    _own: TempDir,
}

impl Nvim {
    /// Starts Neovim, attaches a screen and waits until it has started up.
    #[track_caller]
    pub(crate) fn start(mut options: Options) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let own = tempfile::Builder::new()
            .prefix("co-nvim-")
            .tempdir()
            .unwrap();
        let home = options
            .home
            .clone()
            .unwrap_or_else(|| own.path().join("home"));
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("CO_TEST_MARK={}-{count}", std::process::id());
        let mut process = command(&options, &home, &mark).spawn().unwrap();
        let rpc = Rpc::new(
            process.stdout.take().unwrap(),
            process.stdin.take().unwrap(),
            std::mem::replace(&mut options.observer, Box::new(|_| {})),
        );
        let nvim = Self {
            process,
            rpc,
            home,
            mark,
            _own: own,
        };
        nvim.attach(&options);
        nvim
    }

    /// Until a screen is attached, an embedded Neovim holds back its start-up.
    #[track_caller]
    fn attach(&self, options: &Options) {
        if options.plugin {
            let mut settings = options.settings.clone();
            let named = settings
                .as_object_mut()
                .map(|map| map.entry("bin").or_insert(BACKEND.into()));
            assert!(named.is_some(), "settings are a table");
            self.call("nvim_set_var", json!(["co", settings]));
        }
        let (columns, rows) = options.size;
        let wants = json!({ "rgb": true, "ext_linegrid": true, "ext_hlstate": true });
        self.call("nvim_ui_attach", json!([columns, rows, wants]));
        self.wait_for("vim.v.vim_did_enter == 1", "Neovim to start");
        self.wait_shown(|shown| shown.frame > 0, "the first frame");
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).unwrap()
    }

    /// Types `keys`, in `<C-x>` notation, as a person would; returns before they take effect.
    #[track_caller]
    pub(crate) fn type_keys(&self, keys: &str) {
        let mut rest = keys;
        proc::wait_until(DEADLINE, "room for keys", || {
            // Neovim takes what its input buffer has room for.
            let took = self.call("nvim_input", json!([rest])).as_u64().unwrap();
            rest = &rest[usize::try_from(took).unwrap()..];
            rest.is_empty().then_some(())
        });
    }

    /// Returns the lines of the screen, without the spaces at their ends.
    pub(crate) fn screen(&self) -> Vec<String> {
        self.rpc.shown().lines()
    }

    /// Returns the highlight groups at the first cell of `text` on the screen, if it is there.
    pub(crate) fn groups(&self, text: &str) -> Option<Vec<String>> {
        let shown = self.rpc.shown();
        let lines = shown.lines();
        let row = lines.iter().position(|line| line.contains(text))?;
        let before = lines[row].split(text).next()?;
        Some(shown.groups(row, shown.column(row, before.len())))
    }

    /// Waits for a screen that `cond` accepts, and returns it.
    #[track_caller]
    pub(crate) fn wait_screen(
        &self,
        mut cond: impl FnMut(&[String]) -> bool,
        what: &str,
    ) -> Vec<String> {
        self.wait_shown(|shown| cond(&shown.lines()), what).lines()
    }

    /// Waits until `text` is on the screen, and returns the screen.
    #[track_caller]
    pub(crate) fn wait_text(&self, text: &str) -> Vec<String> {
        self.wait_screen(|lines| lines.iter().any(|line| line.contains(text)), text)
    }

    /// Waits until `text` is not on the screen.
    #[track_caller]
    pub(crate) fn wait_no_text(&self, text: &str) {
        let absent = |lines: &[String]| !lines.iter().any(|line| line.contains(text));
        self.wait_screen(absent, &format!("no {text}"));
    }

    #[track_caller]
    fn wait_shown(&self, cond: impl FnMut(&Shown) -> bool, what: &str) -> Shown {
        match self.rpc.wait_shown(DEADLINE, cond) {
            Ok(shown) => shown,
            Err(_) => panic!("waited {DEADLINE:?} for {what}\n{}", self.state()),
        }
    }

    /// Waits until the Lua expression is neither nil nor false, and returns its value.
    #[track_caller]
    pub(crate) fn wait_for(&self, expression: &str, what: &str) -> Value {
        let end = std::time::Instant::now() + DEADLINE;
        loop {
            let value = self.eval(expression);
            if !matches!(value, Value::Null | Value::Bool(false)) {
                return value;
            }
            let late = std::time::Instant::now() > end;
            assert!(
                !late,
                "waited {DEADLINE:?} for {what}: {expression}\n{}",
                self.state()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Runs Lua with `args` (a list) as its `...` and returns what it returns.
    #[track_caller]
    pub(crate) fn lua(&self, code: &str, args: Value) -> Value {
        self.call("nvim_exec_lua", json!([code, args]))
    }

    /// Returns the value of a Lua expression.
    #[track_caller]
    pub(crate) fn eval(&self, expression: &str) -> Value {
        self.lua(&format!("return {expression}"), json!([]))
    }

    /// Runs an Ex command, not as typed.
    #[track_caller]
    pub(crate) fn command(&self, command: &str) {
        self.call("nvim_command", json!([command]));
    }

    /// Returns the text of the buffer that is named exactly `name`, if there is one.
    #[track_caller]
    pub(crate) fn buffer_text(&self, name: &str) -> Option<String> {
        let code = "for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
            local name = vim.api.nvim_buf_get_name(buffer):gsub('/co: .*', '')
            if name == ... then
                return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\\n')
            end
        end";
        self.lua(code, json!([name])).as_str().map(str::to_owned)
    }

    /// Changes the size of the screen, and waits until Neovim has drawn it.
    #[track_caller]
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.call("nvim_ui_try_resize", json!([columns, rows]));
        let size = (usize::from(rows), usize::from(columns));
        self.wait_shown(|shown| shown.size() == size, "the screen's new size");
    }

    /// Returns the mode; answers even while Neovim waits for a key.
    #[track_caller]
    pub(crate) fn mode(&self) -> Mode {
        let mode = self.call("nvim_get_mode", json!([]));
        Mode {
            name: mode["mode"].as_str().unwrap().to_owned(),
            blocking: mode["blocking"] == true,
        }
    }

    /// Waits for a mode.
    #[track_caller]
    pub(crate) fn wait_mode(&self, name: &str) {
        proc::wait_until(DEADLINE, &format!("mode {name}"), || {
            (self.mode().name == name).then_some(())
        });
    }

    /// Returns the processes that Neovim started, and their descendants.
    pub(crate) fn descendants(&self) -> Vec<i32> {
        proc::descendants(self.pid())
    }

    /// Returns the processes, itself too, that have its mark in their environment.
    pub(crate) fn marked(&self) -> Vec<i32> {
        proc::holding(&format!("{}\0", self.mark))
    }

    /// Ends Neovim alone, as a crash would, and waits until it is gone.
    pub(crate) fn kill9(&mut self) {
        proc::kill9(self.pid());
        self.process.wait().unwrap();
    }

    /// Waits until Neovim has ended by itself.
    #[track_caller]
    pub(crate) fn wait_exit(&mut self) -> ExitStatus {
        let process = &mut self.process;
        proc::wait_until(DEADLINE, "Neovim to end", || process.try_wait().unwrap())
    }

    /// Calls an API function; `args` is a list.
    ///
    /// # Panics
    /// If it fails, with the screen.
    #[track_caller]
    pub(crate) fn call(&self, method: &str, args: Value) -> Value {
        let Value::Array(args) = args else {
            panic!("arguments are a list, not {args}");
        };
        let args = args.iter().map(|arg| rmpv::ext::to_value(arg).unwrap());
        match self.rpc.call(method, args.collect(), DEADLINE) {
            Ok(value) => plain(&value),
            Err(Failed::Error(error)) => panic!("{method}: {error}\n{}", self.state()),
            Err(why) => panic!("{method}: {why:?}\n{}", self.state()),
        }
    }

    /// The state of Neovim, for the message of a failed test.
    fn state(&self) -> String {
        let told = std::fs::read_to_string(self.home.join("stderr")).unwrap_or_default();
        let screen = self.screen().join("\n");
        format!("--- the screen\n{screen}\n--- Neovim's standard error\n{told}")
    }
}

/// Lets a window that the person asked for take the focus however late, until they press a key. The machine of the tests may be
/// slow.
const AWAITS_LONG: &str =
    "lua local focus = require('co.ui.focus') focus.awaited = focus.is_waiting";

impl Drop for Nvim {
    fn drop(&mut self) {
        let below = self.descendants();
        // The editor first: it would start new ones.
        proc::kill9(self.pid());
        let _ = self.process.wait();
        for pid in below.into_iter().chain(self.marked()) {
            proc::kill9(pid);
        }
    }
}

fn command(options: &Options, home: &Path, mark: &str) -> Command {
    let mut command = Command::new(super::tool("CO_TEST_NVIM"));
    command.args(["--embed", "--clean", "-n"]);
    if options.plugin {
        command.args(["--cmd", &format!("set runtimepath^={ROOT}")]);
        command.args(["--cmd", AWAITS_LONG]);
    }
    command.args(&options.args).env_clear();
    for name in ["config", "data", "state", "cache", "runtime"] {
        let dir = home.join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let variable = match name {
            "runtime" => "XDG_RUNTIME_DIR".to_owned(),
            other => format!("XDG_{}_HOME", other.to_uppercase()),
        };
        command.env(variable, dir);
    }
    let (name, value) = mark.split_once('=').unwrap();
    let inherited = ["PATH", "VIMRUNTIME"];
    command
        .envs(
            inherited
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        )
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .env("TERM", "xterm-256color")
        .env(name, value)
        .envs(options.env.iter().cloned())
        .current_dir(options.cwd.as_deref().unwrap_or(home))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(File::create(home.join("stderr")).unwrap());
    command
}

/// Handles of buffers, windows and tabs become their numbers.
fn plain(value: &Msgpack) -> Value {
    match value {
        Msgpack::Ext(_, bytes) => {
            rmpv::decode::read_value(&mut &bytes[..]).map_or(Value::Null, |handle| plain(&handle))
        }
        Msgpack::Array(list) => list.iter().map(plain).collect(),
        Msgpack::Map(map) => {
            let name = |key: &Msgpack| key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            map.iter()
                .map(|(key, value)| (name(key), plain(value)))
                .collect()
        }
        Msgpack::String(text) => String::from_utf8_lossy(text.as_bytes()).into(),
        Msgpack::Binary(bytes) => String::from_utf8_lossy(bytes).into(),
        Msgpack::Integer(number) => match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_u64().into(),
        },
        Msgpack::Boolean(flag) => (*flag).into(),
        Msgpack::F32(number) => (*number).into(),
        Msgpack::F64(number) => (*number).into(),
        Msgpack::Nil => Value::Null,
    }
}
