//! 1 GB from a server on this machine through the proxy of a confined command, beside the same without confinement, and what a
//! key meets meanwhile.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Client;
use super::{median, ms, report};

const BYTES: usize = 1_000_000_000;
const ROUNDS: usize = 5;
/// Between two keys.
const PROBE: Duration = Duration::from_micros(500);

/// One download.
struct Download {
    took: f64,
    key: f64,
}

pub(super) fn run() {
    // Not the address that clients reach without a proxy.
    let listener = TcpListener::bind("127.0.0.2:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(&stream));
        }
    });
    let url = format!("http://{address}/");
    let fetch = format!("curl -sSf -o /dev/null {url}");
    let tunnel = format!("curl -sSf --proxytunnel -o /dev/null {url}");
    let nvim = Client::start(&json!({
        "sandbox_backend": "landlock",
        "sandbox_network": "ask",
        "allow_hosts": [address],
    }));
    // Nothing runs confined in a home directory.
    let workspace = tempfile::tempdir().expect("a directory");
    nvim.lua("vim.cmd.cd(...)", json!([workspace.path()]));
    // The window, the backend and all modules are there.
    nvim.lua("bench.co(...)", json!(["true"]));
    nvim.wait("exit");
    let (mut direct, mut plain, mut tunnelled) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        direct.push(alone(&fetch));
        plain.push(download(&nvim, &fetch));
        tunnelled.push(download(&nvim, &tunnel));
    }
    let base = median(&mut direct);
    let speed = f64::from(u32::try_from(BYTES / 1_000_000).expect("a small number")) / base;
    println!("  1 GB takes {base:.0} ms without the proxy ({speed:.1} GB/s)");
    for (name, all) in [("CONNECT", tunnelled), ("plain HTTP", plain)] {
        let pick =
            |field: fn(&Download) -> f64| median(&mut all.iter().map(field).collect::<Vec<_>>());
        let took = pick(|it| it.took) / base;
        report(
            &format!("1 GB through the proxy, {name}, to none"),
            took,
            "x",
            2.0,
        );
        report("  worst key meanwhile", pick(|it| it.key), "ms", 10.0);
    }
}

/// Answers each request of a connection.
fn serve(stream: &TcpStream) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let mut output = stream;
    let block = vec![b'x'; 1 << 16];
    while lines.by_ref().take_while(|line| !line.is_empty()).count() > 0 {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n");
        let mut left = BYTES;
        let mut sent = output.write_all(head.as_bytes());
        while left > 0 && sent.is_ok() {
            let length = left.min(block.len());
            sent = output.write_all(&block[..length]);
            left -= length;
        }
        if sent.is_err() {
            return;
        }
    }
}

/// Returns the time of a command outside of co.
fn alone(command: &str) -> f64 {
    let began = Instant::now();
    let status = Command::new("/bin/bash").args(["-c", command]).status();
    assert!(status.is_ok_and(|it| it.success()));
    ms(began.elapsed())
}

/// Runs a command in co, and types keys until it ends.
fn download(nvim: &Client, command: &str) -> Download {
    nvim.lua("bench.co(...)", json!([command]));
    let mut key: f64 = 0.0;
    loop {
        let typed = Instant::now();
        nvim.type_keys("<F2>");
        key = key.max(ms(nvim.wait("key").at - typed));
        if let Some(exit) = nvim.noticed("exit") {
            let screen = nvim.screen().join("\n");
            assert_eq!(exit.args[1].as_i64(), Some(0), "{screen}");
            let took = exit.args[0].as_f64().expect("a time") / 1e6;
            return Download { took, key };
        }
        std::thread::sleep(PROBE);
    }
}
