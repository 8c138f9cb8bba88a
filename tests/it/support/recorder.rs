//! A proxy on 127.0.0.1 that records what is sent through it, byte for byte.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The proxy; it takes no more connections once it is dropped.
pub(crate) struct Recorder {
    port: u16,
    /// The bytes of each connection.
    sent: Arc<Mutex<Vec<Vec<u8>>>>,
    closing: Arc<Mutex<bool>>,
}

impl Recorder {
    /// Starts a proxy before the server at `upstream`, a host and port.
    pub(crate) fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let recorder = Self {
            port: listener.local_addr().unwrap().port(),
            sent: Arc::default(),
            closing: Arc::default(),
        };
        let (sent, closing) = (Arc::clone(&recorder.sent), Arc::clone(&recorder.closing));
        let upstream = upstream.to_owned();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if *closing.lock().unwrap() {
                    return;
                }
                let Ok(server) = TcpStream::connect(&upstream) else {
                    continue;
                };
                let mut all = sent.lock().unwrap();
                all.push(Vec::new());
                let (sent, number) = (Arc::clone(&sent), all.len() - 1);
                drop(all);
                pipe(&client, &server, move |bytes| {
                    sent.lock().unwrap()[number].extend_from_slice(bytes);
                });
                pipe(&server, &client, |_| {});
            }
        });
        recorder
    }

    /// Returns the proxy's host and port.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the bodies of the requests so far, in their order; requests without a body are left out.
    pub(crate) fn bodies(&self) -> Vec<Vec<u8>> {
        let sent = self.sent.lock().unwrap();
        sent.iter().flat_map(|bytes| bodies(bytes)).collect()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        *self.closing.lock().unwrap() = true;
        // Wakes the listener.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn pipe(from: &TcpStream, to: &TcpStream, mut record: impl FnMut(&[u8]) + Send + 'static) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    std::thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            record(&buffer[..count]);
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Returns the bodies of the requests of one connection.
fn bodies(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
        let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
            .unwrap_or(0);
        let Some(body) = bytes.get(head + 4..head + 4 + length) else {
            break;
        };
        if !body.is_empty() {
            found.push(body.to_owned());
        }
        bytes = &bytes[head + 4 + length..];
    }
    found
}
