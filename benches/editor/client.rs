//! A Neovim with a screen attached, as thin a client as can be: what it costs is in every measurement.

use std::ffi::OsString;
use std::io::{BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rmpv::Value;
use tempfile::TempDir;

use super::grid::Grid;
use super::ms;

const COLUMNS: usize = 120;
const ROWS: usize = 40;
/// Nothing measured here takes as long.
const DEADLINE: Duration = Duration::from_secs(120);

/// What Neovim said, other than in reply.
pub(super) struct Notice {
    pub(super) name: String,
    pub(super) args: Vec<Value>,
    pub(super) at: Instant,
}

/// A running Neovim; ended with its home when dropped.
pub(super) struct Nvim {
    process: Child,
    input: ChildStdin,
    said: mpsc::Receiver<(Instant, Value)>,
    next: u64,
    grid: Grid,
    watched: Option<(String, Option<Instant>)>,
    notices: Vec<Notice>,
    frames: Vec<Instant>,
    _home: TempDir,
}

impl Nvim {
    /// Starts Neovim with the plugin, the release backend and `settings`, and attaches a screen.
    pub(super) fn start(settings: &serde_json::Value) -> Self {
        let home = tempfile::tempdir().expect("a home");
        let mut process = command(home.path())
            .spawn()
            .expect("CO_TEST_NVIM is a Neovim");
        let input = process.stdin.take().expect("a pipe");
        let output = process.stdout.take().expect("a pipe");
        let (send, said) = mpsc::channel();
        std::thread::spawn(move || {
            let mut output = BufReader::with_capacity(1 << 16, output);
            while let Ok(value) = rmpv::decode::read_value(&mut output) {
                if send.send((Instant::now(), value)).is_err() {
                    return;
                }
            }
        });
        let mut nvim = Self {
            process,
            input,
            said,
            next: 1,
            grid: Grid::new(COLUMNS, ROWS),
            watched: None,
            notices: Vec::new(),
            frames: Vec::new(),
            _home: home,
        };
        let mut settings = settings.clone();
        settings["bin"] = env!("CARGO_BIN_EXE_co-nvim").into();
        let settings = rmpv::ext::to_value(&settings).expect("a table");
        nvim.call("nvim_set_var", vec!["co".into(), settings]);
        let wants = vec![
            ("rgb".into(), true.into()),
            ("ext_linegrid".into(), true.into()),
        ];
        let size = [COLUMNS as u64, ROWS as u64].map(Value::from);
        nvim.call(
            "nvim_ui_attach",
            vec![size[0].clone(), size[1].clone(), Value::Map(wants)],
        );
        nvim.until("Neovim to start", |nvim| {
            nvim.lua("return vim.v.vim_did_enter", vec![]).as_u64() == Some(1)
        });
        nvim.lua(include_str!("contestants.lua"), vec![]);
        nvim
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The screen's text.
    pub(super) fn screen(&self) -> String {
        self.grid.text()
    }

    /// Calls an API function and waits for what it returns.
    pub(super) fn call(&mut self, method: &str, args: Vec<Value>) -> Value {
        let id = self.next;
        self.next += 1;
        self.write(&[0.into(), id.into(), method.into(), Value::Array(args)]);
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some((error, result)) = self.receive(end, id) {
                assert!(error.is_nil(), "{method}: {error}\n{}", self.screen());
                return result;
            }
        }
    }

    pub(super) fn lua(&mut self, code: &str, args: Vec<Value>) -> Value {
        self.call("nvim_exec_lua", vec![code.into(), Value::Array(args)])
    }

    /// Does not wait for anything.
    pub(super) fn tell(&mut self, method: &str, args: Vec<Value>) {
        self.write(&[2.into(), method.into(), Value::Array(args)]);
    }

    /// From now on the screen is watched for `text`.
    pub(super) fn watch(&mut self, text: &str) {
        self.watched = Some((text.to_owned(), None));
    }

    /// Returns when what is watched for was on the screen, if it was.
    pub(super) fn shown(&self) -> Option<Instant> {
        self.watched.as_ref()?.1
    }

    /// Waits until what is watched for is on the screen.
    pub(super) fn wait_shown(&mut self) -> Instant {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(at) = self.shown() {
                return at;
            }
            self.receive(end, 0);
        }
    }

    /// The longest time between two frames, in milliseconds.
    pub(super) fn longest_gap(&self, from: Instant, to: Instant) -> f64 {
        let inside = |at: &&Instant| (from..=to).contains(*at);
        let frames: Vec<_> = self.frames.iter().filter(inside).collect();
        let gaps = frames.windows(2).map(|pair| ms(*pair[1] - *pair[0]));
        gaps.fold(0.0, f64::max)
    }

    /// Waits for a notification.
    pub(super) fn wait(&mut self, name: &str) -> Notice {
        let end = Instant::now() + DEADLINE;
        loop {
            if let Some(notice) = self.noticed(name) {
                return notice;
            }
            self.receive(end, 0);
        }
    }

    /// Returns a notification that has come.
    pub(super) fn noticed(&mut self, name: &str) -> Option<Notice> {
        let at = self.notices.iter().position(|notice| notice.name == name)?;
        Some(self.notices.remove(at))
    }

    /// Takes in what comes within a time.
    pub(super) fn idle(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Ok((at, value)) = self
            .said
            .recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            self.take(at, value);
        }
    }

    pub(super) fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let end = Instant::now() + DEADLINE;
        while !holds(self) {
            assert!(Instant::now() < end, "no {what}\n{}", self.screen());
            self.idle(Duration::from_millis(1));
        }
    }

    fn write(&mut self, message: &[Value]) {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &Value::Array(message.to_vec())).expect("a vector");
        self.input.write_all(&bytes).expect("Neovim reads");
    }

    /// Takes in one message; returns the reply to `id` if it is that.
    fn receive(&mut self, end: Instant, id: u64) -> Option<(Value, Value)> {
        let left = end.saturating_duration_since(Instant::now());
        let Ok((at, value)) = self.said.recv_timeout(left) else {
            panic!("Neovim says nothing more\n{}", self.screen());
        };
        let (of, error, result) = self.take(at, value)?;
        (of == id).then_some((error, result))
    }

    fn take(&mut self, at: Instant, value: Value) -> Option<(u64, Value, Value)> {
        let Value::Array(mut parts) = value else {
            return None;
        };
        let kind = parts.first().and_then(Value::as_u64)?;
        if kind == 1 {
            let (result, error) = (parts.pop()?, parts.pop()?);
            return Some((parts.get(1)?.as_u64()?, error, result));
        }
        let args = parts.pop()?;
        let name = parts.pop()?.as_str()?.to_owned();
        let Value::Array(args) = args else {
            return None;
        };
        if name != "redraw" {
            self.notices.push(Notice { name, args, at });
        } else if self.grid.redraw(&args) {
            self.frame(at);
        }
        None
    }

    /// Takes note of a whole frame.
    fn frame(&mut self, at: Instant) {
        self.frames.push(at);
        if let Some((text, shown @ None)) = &mut self.watched
            && self.grid.text().contains(text.as_str())
        {
            *shown = Some(at);
        }
    }
}

impl Drop for Nvim {
    fn drop(&mut self) {
        self.tell("nvim_command", vec!["qall!".into()]);
        let end = Instant::now() + Duration::from_secs(5);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < end {
            self.idle(Duration::from_millis(5));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a Neovim, and all that starts from it, has as environment: little, but what every login has.
pub(super) fn environment(home: &Path) -> Vec<(String, OsString)> {
    let dirs = [
        "CONFIG_HOME",
        "DATA_HOME",
        "STATE_HOME",
        "CACHE_HOME",
        "RUNTIME_DIR",
    ];
    let dirs = dirs.map(|name| (format!("XDG_{name}"), home.join(name).into()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let fixed: [(&str, OsString); 6] = [
        ("PATH", path),
        ("HOME", home.into()),
        ("SHELL", "/bin/bash".into()),
        ("LANG", "C.UTF-8".into()),
        ("TERM", "xterm-256color".into()),
        ("OPENAI_API_KEY", "none".into()),
    ];
    let fixed = fixed.map(|(name, value)| (name.to_owned(), value));
    fixed.into_iter().chain(dirs).collect()
}

fn command(home: &Path) -> Command {
    let nvim =
        std::env::var_os("CO_TEST_NVIM").expect("CO_TEST_NVIM names a Neovim: see `make bench`");
    let environment = environment(home);
    for (name, value) in &environment {
        if name.starts_with("XDG_") {
            std::fs::create_dir_all(value).expect("a directory");
        }
    }
    let mut command = Command::new(nvim);
    let root = env!("CARGO_MANIFEST_DIR");
    command
        .args([
            "--embed",
            "--clean",
            "-n",
            "--cmd",
            &format!("set runtimepath^={root}"),
        ])
        .env_clear()
        .envs(environment)
        .current_dir(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
    command
}
