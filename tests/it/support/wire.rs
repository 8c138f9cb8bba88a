//! A backend on two pipes; the test plays Neovim.

use std::io::{Read, Write};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rmpv::Value;
use tempfile::TempDir;

use super::{BACKEND, DEADLINE, proc};

/// A running backend; killed when dropped.
pub(crate) struct Wire {
    process: Child,
    stderr: ChildStderr,
    said: mpsc::Receiver<Value>,
    _home: TempDir,
}

/// The exit status and standard error of a backend.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
}

impl Wire {
    /// Starts a backend and sends nothing.
    pub(crate) fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut process = Command::new(BACKEND)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", home.path())
            .current_dir(home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = process.stdout.take().unwrap();
        let (say, said) = mpsc::channel();
        std::thread::spawn(move || {
            while let Ok(message) = rmpv::decode::read_value(&mut stdout) {
                if say.send(message).is_err() {
                    return;
                }
            }
        });
        let stderr = process.stderr.take().unwrap();
        Self {
            process,
            stderr,
            said,
            _home: home,
        }
    }

    /// Starts a backend and performs the handshake.
    pub(crate) fn greeted() -> Self {
        Self::greeted_with(false)
    }

    /// Starts a backend for a person who is about to begin a chat, and performs the handshake.
    pub(crate) fn greeted_for_chat() -> Self {
        Self::greeted_with(true)
    }

    fn greeted_with(begins_chat: bool) -> Self {
        let mut wire = Self::start();
        let hello = [
            ("type", Value::from("hello")),
            ("protocol", co::protocol::PROTOCOL.into()),
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("begins_chat", begins_chat.into()),
        ];
        wire.tell(map(hello));
        wire.wait_for("ready");
        wire
    }

    /// Writes bytes to its standard input. Returns false if it reads no more.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> bool {
        let stdin = self.process.stdin.as_mut().unwrap();
        stdin.write_all(bytes).and_then(|()| stdin.flush()).is_ok()
    }

    /// Sends the same as Lua's `vim.rpcnotify(channel, 'co', message)`.
    pub(crate) fn tell(&mut self, message: Value) -> bool {
        self.write(&notification("co", vec![message]))
    }

    /// Answers its requests until it sends a message of that type; returns that message.
    pub(crate) fn wait_for(&mut self, kind: &str) -> Value {
        loop {
            let call = self.said.recv_timeout(DEADLINE);
            let call = call.unwrap_or_else(|_| panic!("the backend says no {kind:?}"));
            let (id, messages) = request(&call);
            let response = Value::Array(vec![1.into(), id, Value::Nil, Value::Nil]);
            self.write(&packed(&response));
            let is_it = |message: &&Value| message["type"].as_str() == Some(kind);
            if let Some(found) = messages.iter().find(is_it) {
                return found.clone();
            }
        }
    }

    /// Waits for its response to the request `id`.
    pub(crate) fn wait_response(&mut self, id: u64) -> Value {
        loop {
            let message = self.said.recv_timeout(DEADLINE);
            let message = message.unwrap_or_else(|_| panic!("no response to {id}"));
            if message[0].as_u64() == Some(1) && message[1].as_u64() == Some(id) {
                return message;
            }
        }
    }

    /// Closes its standard input and waits for its end.
    pub(crate) fn close(mut self) -> Ended {
        drop(self.process.stdin.take());
        self.ended()
    }

    /// Waits for its end while its standard input stays open.
    pub(crate) fn ended(mut self) -> Ended {
        let status = proc::wait_until(Duration::from_secs(20), "the backend to end", || {
            self.process.try_wait().unwrap()
        });
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).unwrap();
        Ended {
            code: status.code(),
            stderr,
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the id of a request of the backend and the messages in it.
fn request(call: &Value) -> (Value, Vec<Value>) {
    let messages = call[3][1][0].as_array().cloned().unwrap_or_default();
    (call[1].clone(), messages)
}

pub(crate) fn notification(name: &str, args: Vec<Value>) -> Vec<u8> {
    packed(&Value::Array(vec![
        2.into(),
        name.into(),
        Value::Array(args),
    ]))
}

pub(crate) fn packed(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, value).unwrap();
    bytes
}

pub(crate) fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Map(fields.map(|(name, value)| (name.into(), value)).into())
}
