//! HTTP/1.1, one request a connection, and the events of a streamed answer.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::Request;
use super::reply::{Gate, Reply, Step};

/// How an answer ended.
pub(super) enum Ended {
    Said,
    /// The other side closed the connection before the end.
    HungUp,
}

/// Reads one request; none where the connection closes first.
pub(super) fn read(stream: &TcpStream) -> Option<Request> {
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(Ok(0), |(_, value)| value.parse()).ok()?;
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some(Request {
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

/// Sends a whole response.
pub(super) fn plain(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(String, String)],
    body: &str,
) -> io::Result<()> {
    let kind = if serde_json::from_str::<Value>(body).is_ok() {
        "application/json"
    } else {
        "text/plain"
    };
    head(stream, status, headers, kind)?;
    write!(stream, "content-length: {}\r\n\r\n{body}", body.len())?;
    stream.flush()
}

fn head(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(String, String)],
    kind: &str,
) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status} Scripted\r\nconnection: close\r\n"
    )?;
    // A reply may say itself what it is: a web page, for one.
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        write!(stream, "content-type: {kind}\r\n")?;
    }
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    Ok(())
}

/// Says `reply`; `closing` tells whether the server is going away.
pub(super) fn answer(
    stream: &mut TcpStream,
    reply: &Reply,
    closing: &dyn Fn() -> bool,
) -> io::Result<Ended> {
    if reply.status != 200 {
        plain(stream, reply.status, &reply.headers, &reply.body)?;
        return Ok(Ended::Said);
    }
    head(stream, 200, &reply.headers, "text/event-stream")?;
    write!(stream, "transfer-encoding: chunked\r\n\r\n")?;
    stream.flush()?;
    for step in &reply.steps {
        match step {
            Step::Delta(delta) => event(stream, &choice(delta, None))?,
            Step::Raw(bytes) => chunk(stream, bytes)?,
            Step::LimitEnforcement(gate) if !held(stream, gate, closing)? => {
                return Ok(Ended::HungUp);
            }
            Step::LimitEnforcement(_) => {}
            Step::Pause(time) => std::thread::sleep(*time),
        }
    }
    event(stream, &choice(&json!({}), Some(reply.reason())))?;
    event(
        stream,
        &json!({ "id": "scripted", "model": "scripted", "choices": [], "usage": reply.tokens() }),
    )?;
    chunk(stream, b"data: [DONE]\n\n")?;
    write!(stream, "0\r\n\r\n")?;
    stream.flush()?;
    Ok(Ended::Said)
}

fn choice(delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": "scripted", "object": "chat.completion.chunk", "created": 0, "model": "scripted",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    })
}

fn event(stream: &mut TcpStream, value: &Value) -> io::Result<()> {
    chunk(stream, format!("data: {value}\n\n").as_bytes())
}

fn chunk(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    // In one write, so that pieces arrive as they were scripted.
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    stream.write_all(&framed)?;
    stream.flush()
}

/// Waits for the gate. False where the other side hangs up first.
fn held(stream: &mut TcpStream, gate: &Gate, closing: &dyn Fn() -> bool) -> io::Result<bool> {
    stream.set_read_timeout(Some(Duration::from_millis(20)))?;
    while !gate.is_open() {
        match stream.read(&mut [0; 64]) {
            Ok(0) => return Ok(false),
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                ) =>
            {
                return Ok(false);
            }
            _ if closing() => return Ok(false),
            _ => {}
        }
    }
    Ok(true)
}
