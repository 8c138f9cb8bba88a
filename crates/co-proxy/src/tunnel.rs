//! Copies bytes between a command and the target of its CONNECT request.

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional_with_sizes};

use crate::context::ProxyContext;
use crate::hello::{ALERT, Hello};
use crate::refusal::ProxyRefusal;
use crate::route::Stream;
use crate::setup::PermissionEnd;
use crate::target::Target;
use crate::traffic::Counted;

/// The port on which the first message must be TLS and must name the host.
pub(crate) const TLS_PORT: u16 = 443;

/// The largest number of bytes that are buffered in each direction of a connection.
pub(crate) const BUFFER: usize = 64 << 10;

/// A connection to an allowed target. It is open before the command gets the response to its CONNECT request.
pub(crate) struct Tunnel {
    pub(crate) target: Target,
    pub(crate) upstream: Counted<Box<dyn Stream>>,
    pub(crate) client: OnUpgrade,
    /// Completes when the permission ends. Then the tunnel ends too.
    pub(crate) end: PermissionEnd,
}

impl Tunnel {
    /// Copies bytes until both ends have closed or the permission ends.
    pub(crate) async fn run(mut self, context: &ProxyContext) {
        let end = std::mem::replace(&mut self.end, Box::pin(std::future::pending()));
        tokio::select! {
            biased;
            () = end => {}
            () = self.carry(context) => {}
        }
    }

    async fn carry(self, context: &ProxyContext) {
        let Self {
            target,
            mut upstream,
            client,
            ..
        } = self;
        let Ok(client) = client.await else {
            return;
        };
        let mut client = TokioIo::new(client);
        if target.port == TLS_PORT {
            let read = tokio::time::timeout(context.limits.head, Hello::read(&mut client)).await;
            let hello = read.ok().and_then(Result::ok).flatten();
            let refusal = match hello {
                Some(hello) if hello.is_for(&target.host) => {
                    if upstream.write_all(&hello.bytes).await.is_err() {
                        return;
                    }
                    None
                }
                Some(hello) => Some(ProxyRefusal::OtherName {
                    target: target.clone(),
                    name: hello.name,
                }),
                None => Some(ProxyRefusal::NoTls(target.clone())),
            };
            if let Some(refusal) = refusal {
                context.traffic.refuse(&target, refusal.to_string());
                // The client may be gone.
                let _ = client.write_all(ALERT).await;
                let _ = client.shutdown().await;
                return;
            }
        }
        copy(&mut client, &mut upstream).await;
    }
}

/// Copies bytes in both directions until both ends have closed or one fails.
pub(crate) async fn copy(
    client: &mut (impl AsyncRead + AsyncWrite + Unpin),
    upstream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) {
    // A connection that breaks is the end of it, which both ends see.
    let _ = copy_bidirectional_with_sizes(client, upstream, BUFFER, BUFFER).await;
}
