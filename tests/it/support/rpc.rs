//! msgpack-RPC with an embedded Neovim, over threads: one reads, whoever calls writes.

use std::collections::HashMap;
use std::io::{BufReader, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use rmpv::Value;

use super::screen::{Screen, Shown};

type Reply = Result<Value, Value>;

/// A message that Neovim sends by itself.
#[allow(dead_code, reason = "the benchmark of the editor reads the fields")]
pub(crate) enum Event<'a> {
    Frame(&'a Shown),
    /// A notification by its name and arguments.
    Notification(&'a str, &'a [Value]),
}

/// Called by the thread that reads, as soon as something comes.
pub(crate) type Observer = Box<dyn FnMut(Event<'_>) + Send>;

type Output = Arc<Mutex<Box<dyn Write + Send>>>;

/// The state that the reading thread and the callers share.
#[derive(Default)]
struct Shared {
    /// None once Neovim has closed its end.
    waiting: Mutex<Option<HashMap<u64, mpsc::Sender<Reply>>>>,
    screen: Mutex<Screen>,
    drawn: Condvar,
}

/// The connection.
pub(super) struct Rpc {
    output: Output,
    next: AtomicU64,
    shared: Arc<Shared>,
}

/// The failure of a call.
#[derive(Debug)]
pub(super) enum Failed {
    /// An error of Neovim.
    Error(String),
    Gone,
    /// It may be waiting for a key.
    Deadline,
}

impl Rpc {
    pub(super) fn new(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
        observer: Observer,
    ) -> Self {
        let output: Output = Arc::new(Mutex::new(Box::new(output)));
        let shared = Arc::new(Shared {
            waiting: Mutex::new(Some(HashMap::new())),
            ..Shared::default()
        });
        let (for_reader, back) = (Arc::clone(&shared), Arc::clone(&output));
        std::thread::spawn(move || read(input, &for_reader, &back, observer));
        Self {
            output,
            next: AtomicU64::new(1),
            shared,
        }
    }

    /// Calls an API function and waits for what it returns.
    pub(super) fn call(
        &self,
        method: &str,
        args: Vec<Value>,
        deadline: Duration,
    ) -> Result<Value, Failed> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (send, receive) = mpsc::channel();
        match self.shared.waiting.lock().unwrap().as_mut() {
            Some(waiting) => waiting.insert(id, send),
            None => return Err(Failed::Gone),
        };
        let message = Value::Array(vec![0.into(), id.into(), method.into(), Value::Array(args)]);
        if !write(&self.output, &message) {
            return Err(Failed::Gone);
        }
        match receive.recv_timeout(deadline) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(Failed::Error(told(&error))),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(Failed::Gone),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(Failed::Deadline),
        }
    }

    pub(super) fn shown(&self) -> Shown {
        self.shared.screen.lock().unwrap().shown().clone()
    }

    /// Waits for a frame that `cond` accepts. The error is the last frame, if none came in time.
    pub(super) fn wait_shown(
        &self,
        deadline: Duration,
        mut cond: impl FnMut(&Shown) -> bool,
    ) -> Result<Shown, Shown> {
        let end = Instant::now() + deadline;
        loop {
            // Judged without the lock: `cond` may look at the screen itself.
            let shown = self.shown();
            if cond(&shown) {
                return Ok(shown);
            }
            let mut screen = self.shared.screen.lock().unwrap();
            while screen.shown().frame == shown.frame {
                let left = end.saturating_duration_since(Instant::now());
                let gone = self.shared.waiting.lock().unwrap().is_none();
                if left.is_zero() || gone {
                    return Err(shown);
                }
                screen = self.shared.drawn.wait_timeout(screen, left).unwrap().0;
            }
        }
    }
}

fn write(output: &Output, message: &Value) -> bool {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, message).unwrap();
    let mut output = output.lock().unwrap();
    output
        .write_all(&bytes)
        .and_then(|()| output.flush())
        .is_ok()
}

fn read(input: impl Read, shared: &Shared, output: &Output, mut observer: Observer) {
    let mut input = BufReader::new(input);
    while let Ok(Value::Array(message)) = rmpv::decode::read_value(&mut input) {
        match (message[0].as_u64(), &message[1..]) {
            (Some(1), [id, error, result]) => {
                let reply = if error.is_nil() {
                    Ok(result.clone())
                } else {
                    Err(error.clone())
                };
                let mut waiting = shared.waiting.lock().unwrap();
                let caller = waiting.as_mut().zip(id.as_u64());
                if let Some(caller) = caller.and_then(|(all, id)| all.remove(&id)) {
                    // The caller may have given up.
                    let _ = caller.send(reply);
                }
            }
            (Some(2), [method, Value::Array(events)]) if method.as_str() == Some("redraw") => {
                let mut screen = shared.screen.lock().unwrap();
                let before = screen.shown().frame;
                screen.redraw(events);
                if screen.shown().frame > before {
                    observer(Event::Frame(screen.shown()));
                    shared.drawn.notify_all();
                }
            }
            (Some(2), [method, Value::Array(args)]) => {
                observer(Event::Notification(
                    method.as_str().unwrap_or_default(),
                    args,
                ));
            }
            (Some(0), [id, ..]) => {
                let refused = "the test's terminal answers no requests".into();
                let reply = vec![1.into(), id.clone(), refused, Value::Nil];
                write(output, &Value::Array(reply));
            }
            _ => {}
        }
    }
    shared.waiting.lock().unwrap().take();
    // With the screen held, or one about to wait would miss it.
    drop(shared.screen.lock().unwrap());
    shared.drawn.notify_all();
}

/// Neovim's errors are `[kind, text]`.
fn told(error: &Value) -> String {
    let text = error.as_array().and_then(|parts| parts.get(1)?.as_str());
    text.map_or_else(|| error.to_string(), str::to_owned)
}
