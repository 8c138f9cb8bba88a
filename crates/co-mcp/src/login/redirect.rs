//! The address on this machine to which the browser comes back after the login page.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use reqwest::Url;

const PATH: &str = "/callback";

/// The longest wait for the request of a connection, and the most bytes of it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const LONGEST_REQUEST: usize = 32 << 10;

/// The most connections that are open. Browsers open some in advance.
const MOST_CONNECTIONS: usize = 16;

/// Waits for the browser.
pub struct RedirectListener {
    listener: TcpListener,
    port: u16,
}

impl RedirectListener {
    /// Listens on this port of this machine, or on any.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn bind(port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Returns the address.
    pub fn address(&self) -> String {
        format!("http://{}:{}{PATH}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// Returns the address at which a browser ended that has the state of a login. All others are told that theirs is wrong.
    pub async fn next(&self, state: &str) -> String {
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if open.len() < MOST_CONNECTIONS => {
                    if let Ok((stream, _)) = accepted {
                        let (base, state) = (self.address(), state.to_owned());
                        open.spawn(async move {
                            let answer = answer(stream, &base, &state);
                            tokio::time::timeout(REQUEST_TIMEOUT, answer).await.ok().flatten()
                        });
                    }
                }
                Some(ended) = open.join_next() => {
                    if let Ok(Some(found)) = ended {
                        return found;
                    }
                }
            }
        }
    }
}

/// Reads the request of a browser and answers it. Returns its address if it has the state.
async fn answer(mut stream: TcpStream, base: &str, state: &str) -> Option<String> {
    let mut request = Vec::new();
    while !request.windows(4).any(|it| it == b"\r\n\r\n") {
        let read = stream.read_buf(&mut request).await.ok()?;
        if read == 0 || request.len() > LONGEST_REQUEST {
            return None;
        }
    }
    let line = request.split(|it| *it == b'\r').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let url = Url::parse(base).ok()?.join(target).ok()?;
    let is_here = url.as_str().starts_with(base) && url.path() == PATH && method == "GET";
    let has_state = is_here
        && url
            .query_pairs()
            .any(|(key, it)| key == "state" && it == state);
    let (status, words) = match (is_here, has_state) {
        (true, true) => (
            "200 OK",
            "co has the answer of the login page. Go back to Neovim: it says whether you are logged in. You can close this page.",
        ),
        (true, false) => (
            "400 Bad Request",
            "This address belongs to no login that co waits for. Start again in Neovim with /mcp login.",
        ),
        (false, _) => ("404 Not Found", "There is nothing here."),
    };
    let page = format!("<!doctype html><meta charset=utf-8><title>co</title><p>{words}</p>\n");
    let reply = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\ncontent-security-policy: default-src 'none'\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    // A browser that has gone needs no page.
    stream.write_all(reply.as_bytes()).await.ok();
    stream.shutdown().await.ok();
    has_state.then(|| url.to_string())
}
