//! Between two requests nothing is held: no connection, no timer.

use std::time::Duration;

use co_llm::{Delta, Stop};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::wire::{Said, WIRES, go, key};

const HOURS: Duration = Duration::from_secs(3 * 3600);
/// The longest time until the idle connection to a local server is closed. The pool looks every four seconds.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(9);

/// Answers what comes over one connection, and says when the other side closed it.
async fn answer(listener: TcpListener, kind: &'static str, body: Vec<u8>) -> Instant {
    let (mut stream, _) = listener.accept().await.unwrap();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    loop {
        let mut request = Vec::new();
        while !is_whole(&request) {
            if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                return Instant::now();
            }
        }
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().unwrap())
    });
    body.len() >= length.unwrap_or(0)
}

/// Returns the number of times that the runtime slept in three hours: once for each time something woke it.
async fn sleeps() -> u64 {
    let metrics = Handle::current().metrics();
    let before = metrics.worker_park_count(0);
    tokio::time::sleep(HOURS).await;
    metrics.worker_park_count(0) - before
}

#[tokio::test]
async fn an_idle_client_lets_go_of_its_connection_and_wakes_nobody() {
    for wire in WIRES {
        let said = Said {
            texts: &["Yes."],
            ..Said::default()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = answer(listener, wire.content_type(), wire.frames(&said).concat());
        let server = tokio::spawn(server);
        let provider = co_llm::make_provider(&wire.settings(&url), &key).unwrap();
        let answer = go(provider.as_ref()).await;
        assert_eq!(
            answer.last(),
            Some(&Ok(Delta::Stop(Stop::Done))),
            "{wire:?}: {answer:?}"
        );
        assert!(
            !server.is_finished(),
            "{wire:?}: it is kept for the next request"
        );
        // From here on the clock goes as fast as nothing happens.
        tokio::time::pause();
        let answered = Instant::now();
        let closed = tokio::time::timeout(HOURS, server).await;
        let closed = closed.unwrap_or_else(|_| panic!("{wire:?}: it was never closed"));
        let held = closed.unwrap() - answered;
        assert!(held <= CLOSE_TIMEOUT, "{wire:?}: held for {held:?}");
        let with_client = sleeps().await;
        drop(provider);
        let without = sleeps().await;
        assert!(
            with_client <= without + 1,
            "{wire:?}: {with_client} for {without}"
        );
        tokio::time::resume();
    }
}
