//! `co-nvim mcp`: relays bytes between an agent, which starts it as a tool server, and the backend.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::thread;

use crate::agent::tools::{PORT_VARIABLE, TOKEN_VARIABLE};

const NO_AGENT: &str = "co-nvim mcp is a tool server for the agent of a chat of co, which starts it; there is nothing to start by hand";

/// Relays until one side ends.
///
/// # Errors
/// A sentence: no agent of co started it, or the chat has ended.
pub(super) fn run() -> Result<(), String> {
    let variable = |name| std::env::var(name).map_err(|_| NO_AGENT.to_owned());
    let (port, token) = (variable(PORT_VARIABLE)?, variable(TOKEN_VARIABLE)?);
    let port: u16 = port.parse().map_err(|_| NO_AGENT.to_owned())?;
    let gone = |error: io::Error| {
        format!(
            "co does not offer its tools any more ({error}): start the agent again from its chat"
        )
    };
    let mut backend = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(gone)?;
    backend.set_nodelay(true).map_err(gone)?;
    backend
        .write_all(format!("{token}\n").as_bytes())
        .map_err(gone)?;
    let mut to_backend = backend.try_clone().map_err(gone)?;
    // It ends with the process. If the agent closes the input, the backend closes the connection.
    thread::spawn(move || {
        let _ended = relay(io::stdin().lock(), &mut to_backend);
        let _closed = to_backend.shutdown(Shutdown::Write);
    });
    relay(backend, io::stdout().lock()).map_err(gone)
}

/// Copies bytes to the end. Unlike `io::copy`, never by `splice`: while that waits for the socket, it locks the pipe of the
/// agent, which then cannot read what is in it.
fn relay(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&buffer[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
