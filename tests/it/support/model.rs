//! A real model, small enough for a test, shared by all tests of the binary.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::Duration;

/// A server that ends when its standard input closes, at the latest with this process.
pub(crate) struct Model {
    address: String,
    server: Child,
    stdin: Option<ChildStdin>,
}

impl Model {
    /// Starts `python script 0` and waits for the address, its first line.
    ///
    /// # Panics
    /// If it ends, or says nothing for two minutes.
    #[track_caller]
    pub(crate) fn start(python: &Path, script: &Path) -> Self {
        let mut server = Command::new(python)
            .arg(script)
            .arg("0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Its own log would drown the tests'.
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", python.display()));
        let stdin = server.stdin.take();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = send.send(lines.next());
            // Read on, or the server would stop at a full pipe.
            lines.for_each(drop);
        });
        let first = receive.recv_timeout(Duration::from_secs(120));
        let Ok(Some(Ok(address))) = first else {
            let _ = server.kill();
            let _ = server.wait();
            panic!("{} gave no address: {first:?}", script.display());
        };
        Self {
            address,
            server,
            stdin,
        }
    }

    /// Returns where it listens, such as `http://127.0.0.1:40123`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.stdin.take();
        super::proc::wait_until(super::DEADLINE, "the model to end", || {
            self.server.try_wait().ok().flatten()
        });
    }
}

/// Returns the address of the model of this test run. Nobody drops it: the pipe closes with the process.
pub(crate) fn shared() -> &'static str {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL
        .get_or_init(|| {
            let python = super::tool("CO_TEST_MODEL_PYTHON");
            let script = super::tool("CO_TEST_MODEL_SCRIPT");
            Model::start(python.as_ref(), script.as_ref())
        })
        .address()
}
