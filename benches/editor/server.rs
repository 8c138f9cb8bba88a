//! A model that answers each request with the same tokens, as fast as they are taken or at a pace.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use super::text::token;

/// The answer's last word.
pub(super) const LAST: &str = "lastword";

/// The server; its thread ends with the process.
pub(super) struct Server {
    pub(super) url: String,
    /// When the last token of the last answer was sent.
    sent: Arc<Mutex<Option<Instant>>>,
}

impl Server {
    pub(super) fn start(tokens: usize, pause: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1/", listener.local_addr().expect("a port"));
        let sent = Arc::new(Mutex::new(None));
        let told = Arc::clone(&sent);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // One who hangs up has heard enough.
                let _ = answer(stream, tokens, pause, &told);
            }
        });
        Self { url, sent }
    }

    pub(super) fn sent(&self) -> Instant {
        let sent = self.sent.lock().expect("nothing panics with it");
        sent.expect("an answer was given")
    }
}

fn answer(
    stream: TcpStream,
    tokens: usize,
    pause: Duration,
    told: &Mutex<Option<Instant>>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(&stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    input.read_exact(&mut vec![0; length])?;
    let mut output = &stream;
    output.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
    )?;
    for number in 0..tokens {
        chunk(output, &delta(&token(number), None))?;
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
    chunk(output, &delta(&format!("\n\n{LAST}"), None))?;
    *told.lock().expect("nothing panics with it") = Some(Instant::now());
    chunk(output, &delta("", Some("stop")))?;
    chunk(output, "data: [DONE]\n\n")?;
    output.write_all(b"0\r\n\r\n")
}

fn delta(text: &str, finish: Option<&str>) -> String {
    let event = json!({
        "id": "1", "object": "chat.completion.chunk", "created": 0, "model": "scripted",
        "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": finish }],
    });
    format!("data: {event}\n\n")
}

fn chunk(mut output: &TcpStream, text: &str) -> std::io::Result<()> {
    output.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}
