//! The Neovim of the tests, with the times at which it draws and notifies.

use std::ffi::CString;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use rmpv::Value;
use serde_json::json;

use super::ms;
use super::support::nvim::{Nvim, Options};
use super::support::rpc::Event;
use super::support::{DEADLINE, proc};

/// A notification of Neovim.
pub(super) struct Notice {
    name: String,
    pub(super) args: Vec<Value>,
    pub(super) at: Instant,
}

#[derive(Default)]
struct Log {
    /// A text, and the time of the first frame that has it.
    watched: (String, Option<Instant>),
    notices: Vec<Notice>,
    frames: Vec<Instant>,
}

impl Log {
    fn notice(&mut self, name: &str) -> Option<Notice> {
        let at = self.notices.iter().position(|notice| notice.name == name)?;
        Some(self.notices.remove(at))
    }

    fn take(&mut self, event: &Event<'_>) {
        let at = Instant::now();
        match event {
            Event::Notification(name, args) => self.notices.push(Notice {
                name: (*name).to_owned(),
                args: args.to_vec(),
                at,
            }),
            Event::Frame(shown) => {
                self.frames.push(at);
                let (text, seen) = &mut self.watched;
                if seen.is_none() && shown.lines().iter().any(|line| line.contains(&*text)) {
                    *seen = Some(at);
                }
            }
        }
    }
}

/// A running Neovim.
pub(super) struct Client {
    nvim: Nvim,
    log: Arc<(Mutex<Log>, Condvar)>,
}

impl Deref for Client {
    type Target = Nvim;

    fn deref(&self) -> &Nvim {
        &self.nvim
    }
}

impl Client {
    /// Starts Neovim with the plugin, the release backend and `settings`.
    pub(super) fn start(settings: &serde_json::Value) -> Self {
        let log = Arc::<(Mutex<Log>, Condvar)>::default();
        let for_reader = Arc::clone(&log);
        let env = [("SHELL", "/bin/bash"), ("OPENAI_API_KEY", "none")];
        let nvim = Nvim::start(Options {
            size: (120, 40),
            settings: settings.clone(),
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            observer: Box::new(move |event| {
                for_reader.0.lock().unwrap().take(&event);
                for_reader.1.notify_all();
            }),
            ..Options::default()
        });
        nvim.lua(include_str!("contestants.lua"), json!([]));
        Self { nvim, log }
    }

    /// Returns the environment that Neovim was started with.
    pub(super) fn environment(&self) -> Vec<CString> {
        let environ = std::fs::read(format!("/proc/{}/environ", self.pid())).unwrap();
        let variables = environ.split(|byte| *byte == 0).filter(|it| !it.is_empty());
        variables.map(|it| CString::new(it).unwrap()).collect()
    }

    /// Returns the process of the backend.
    pub(super) fn backend(&self) -> i32 {
        let status = "return require('co.backend').status().pid";
        let guard = self.nvim.lua(status, json!([]));
        let guard = guard.as_i64().expect("a process");
        // Neovim knows the guard; the backend is its child.
        proc::children(guard as i32)[0]
    }

    /// Returns the memory of the backend (PSS), in MB.
    pub(super) fn backend_memory(&self) -> f64 {
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", self.backend()));
        let rollup = rollup.expect("the backend runs");
        let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
        let number = pss.and_then(|it| it.trim().trim_end_matches(" kB").parse::<f64>().ok());
        number.unwrap_or(f64::NAN) / 1024.0
    }

    /// Watches the screen for `text` from now on.
    pub(super) fn watch(&self, text: &str) {
        self.log.0.lock().unwrap().watched = (text.to_owned(), None);
    }

    /// Returns the time of the first frame with the watched text.
    pub(super) fn shown(&self) -> Option<Instant> {
        self.log.0.lock().unwrap().watched.1
    }

    /// Waits until the watched text is on the screen.
    pub(super) fn wait_shown(&self) -> Instant {
        self.wait_log("the watched text", |log| log.watched.1)
    }

    /// Waits for a notification.
    pub(super) fn wait(&self, name: &str) -> Notice {
        self.wait_log(name, |log| log.notice(name))
    }

    /// Returns a notification that has come.
    pub(super) fn noticed(&self, name: &str) -> Option<Notice> {
        self.log.0.lock().unwrap().notice(name)
    }

    /// Returns the longest time between two frames, in milliseconds.
    pub(super) fn longest_gap(&self, from: Instant, to: Instant) -> f64 {
        let frames = &self.log.0.lock().unwrap().frames;
        let inside: Vec<_> = frames
            .iter()
            .filter(|at| (from..=to).contains(*at))
            .collect();
        let gaps = inside.windows(2).map(|pair| ms(*pair[1] - *pair[0]));
        gaps.fold(0.0, f64::max)
    }

    fn wait_log<T>(&self, what: &str, mut find: impl FnMut(&mut Log) -> Option<T>) -> T {
        let (log, changed) = &*self.log;
        let end = Instant::now() + DEADLINE;
        let mut log = log.lock().unwrap();
        loop {
            if let Some(found) = find(&mut log) {
                return found;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no {what}\n{}", self.screen().join("\n"));
            log = changed.wait_timeout(log, left).unwrap().0;
        }
    }
}
