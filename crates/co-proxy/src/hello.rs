//! The first message of TLS, the ClientHello. It names the host that the client wants to reach.

use std::io;

use bytes::BytesMut;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::target::Host;

/// The largest size of the message, in bytes. It is also the limit of rustls.
const MAX_BYTES: usize = 64 << 10;

/// A TLS record for the client: the fatal alert `unrecognized_name`.
pub(crate) const ALERT: &[u8] = &[21, 3, 1, 0, 2, 2, 112];

/// A parsed ClientHello.
#[derive(Debug)]
pub(crate) struct Hello {
    /// The bytes that were read. They are sent on to the server.
    pub(crate) bytes: BytesMut,
    pub(crate) name: Option<String>,
}

impl Hello {
    /// Reads the ClientHello. Returns `None` if the client sends anything else.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let mut acceptor = Acceptor::default();
        let mut bytes = BytesMut::new();
        while bytes.len() < MAX_BYTES {
            let from = bytes.len();
            if stream.read_buf(&mut bytes).await? == 0 {
                return Ok(None);
            }
            let mut new = &bytes[from..];
            while !new.is_empty() {
                if acceptor.read_tls(&mut new).is_err() {
                    return Ok(None);
                }
                match acceptor.accept() {
                    Ok(Some(accepted)) => {
                        let name = accepted.client_hello().server_name().map(str::to_owned);
                        return Ok(Some(Self { bytes, name }));
                    }
                    Ok(None) => {}
                    Err(_) => return Ok(None),
                }
            }
        }
        Ok(None)
    }

    /// Returns true if the message asks for this host. If the host is an IP address, the message must name no host.
    pub(crate) fn is_for(&self, host: &Host) -> bool {
        match (&self.name, host) {
            (Some(name), Host::Name(_)) => host.is(name),
            (None, Host::Address(_)) => true,
            _ => false,
        }
    }
}
