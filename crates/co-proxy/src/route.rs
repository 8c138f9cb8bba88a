//! Connects to an allowed target.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::header::{HOST, PROXY_AUTHORIZATION};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use crate::address;
use crate::context::ProxyContext;
use crate::outer::OuterHop;
use crate::refusal::ProxyRefusal;
use crate::target::{Host, Target};

/// The largest number of addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// The time-out for resolving a name that the person's proxy resolves too. It is short, because this machine may have no DNS.
const OUTER_LOOKUP: Duration = Duration::from_secs(2);

/// A connection in both directions.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl ProxyContext {
    /// Connects to an allowed target, to exchange bytes of any protocol.
    pub(crate) async fn connect(&self, target: &Target) -> Result<Box<dyn Stream>, ProxyRefusal> {
        match self.outer.hop("https", target)? {
            Some(hop) => {
                self.check_for_outer(target).await?;
                self.connect_through(&hop, target).await
            }
            None => Ok(Box::new(self.connect_directly(target).await?)),
        }
    }

    /// Connects to an allowed target without the person's proxy, at one of its checked addresses.
    pub(crate) async fn connect_directly(
        &self,
        target: &Target,
    ) -> Result<TcpStream, ProxyRefusal> {
        let addresses = self.checked_addresses(target, self.limits.connect).await?;
        let began = Instant::now();
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        let mut left = addresses.len().min(MAX_ADDRESSES);
        for address in addresses.into_iter().take(MAX_ADDRESSES) {
            // One that does not answer leaves time for the next ones.
            let time = self.limits.connect.saturating_sub(began.elapsed());
            let time = if left > 1 { time / 3 } else { time };
            left -= 1;
            match connect(SocketAddr::new(address, target.port), time).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(ProxyRefusal::Unreachable {
            target: target.clone(),
            source: last,
        })
    }

    /// Checks the addresses of a target whose name the person's proxy will resolve. If this machine cannot resolve the name, the
    /// target passes the check.
    pub(crate) async fn check_for_outer(&self, target: &Target) -> Result<(), ProxyRefusal> {
        match self.check_addresses(target, OUTER_LOOKUP).await {
            // That one may choose any address of the name.
            Ok((_, Some(refusal))) | Err(refusal) if refusal.is_denial() => Err(refusal),
            _ => Ok(()),
        }
    }

    /// Returns the addresses of a target to which the command may connect. There is at least one.
    async fn checked_addresses(
        &self,
        target: &Target,
        limit: Duration,
    ) -> Result<Vec<IpAddr>, ProxyRefusal> {
        let (checked, refused) = self.check_addresses(target, limit).await?;
        match refused {
            Some(refused) if checked.is_empty() => Err(refused),
            _ => Ok(checked),
        }
    }

    /// Returns the addresses of a target to which the command may connect, and the refusal of one of its other addresses. There
    /// is at least one address or a refusal. If the target is itself an IP address, only deny rules are checked.
    async fn check_addresses(
        &self,
        target: &Target,
        limit: Duration,
    ) -> Result<(Vec<IpAddr>, Option<ProxyRefusal>), ProxyRefusal> {
        let denied = |address: IpAddr| {
            // A rule about this machine is about all of its addresses.
            let own = address::is_this_machine(address);
            let own = own.then_some([Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
            let mut forms = address::forms(address).chain(own.into_iter().flatten());
            forms.find_map(|form| self.decider.denies_address(target, form))
        };
        let name = match &target.host {
            Host::Address(address) => match denied(*address) {
                None => return Ok((vec![*address], None)),
                Some(why) => return Err(target.denied(why)),
            },
            Host::Name(name) => name,
        };
        let found = tokio::time::timeout(limit, self.resolver.resolve(name)).await;
        let found = found.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let found = found.map_err(|source| ProxyRefusal::Unresolved {
            target: target.clone(),
            source,
        })?;
        let mut refused = None;
        let mut checked = Vec::new();
        for address in found {
            let special = address::special(address);
            if let Some(why) = denied(address) {
                refused = Some(target.denied(format!("its address is {address}, and {why}")));
            } else if let Some(special) = special
                && !self.decider.allows_address(target, address)
            {
                refused = Some(ProxyRefusal::Special {
                    target: target.clone(),
                    address,
                    special,
                });
            } else {
                checked.push(address);
            }
        }
        if checked.is_empty() && refused.is_none() {
            return Err(ProxyRefusal::Unresolved {
                target: target.clone(),
                source: io::ErrorKind::NotFound.into(),
            });
        }
        Ok((checked, refused))
    }

    /// Connects to the person's proxy.
    pub(crate) async fn connect_to_outer(
        &self,
        hop: &OuterHop,
        target: &Target,
    ) -> Result<TcpStream, ProxyRefusal> {
        // The person chose it, so its address may be any.
        let limit = self.limits.connect;
        let connected = match &hop.proxy.host {
            Host::Address(address) => {
                connect(SocketAddr::new(*address, hop.proxy.port), limit).await
            }
            Host::Name(name) => {
                let connecting = TcpStream::connect((name.as_str(), hop.proxy.port));
                timely(connecting, limit).await
            }
        };
        connected.map_err(|error| hop.refusal(target, error.to_string()))
    }

    /// Connects to a target through the person's proxy, which resolves the name of the target.
    async fn connect_through(
        &self,
        hop: &OuterHop,
        target: &Target,
    ) -> Result<Box<dyn Stream>, ProxyRefusal> {
        let stream = self.connect_to_outer(hop, target).await?;
        let asked = ask_outer(stream, hop, target);
        let answered = tokio::time::timeout(self.limits.connect, asked).await;
        let answered = answered.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        answered.map_err(|why| hop.refusal(target, why))
    }
}

impl OuterHop {
    fn refusal(&self, target: &Target, why: String) -> ProxyRefusal {
        ProxyRefusal::Outer {
            proxy: self.proxy.to_string(),
            target: target.clone(),
            why,
        }
    }
}

/// Sends a CONNECT request for a target to the person's proxy.
async fn ask_outer(
    stream: TcpStream,
    hop: &OuterHop,
    target: &Target,
) -> Result<Box<dyn Stream>, String> {
    let told = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
    let connection = AbortOnDropHandle::new(tokio::spawn(connection.with_upgrades()));
    let mut request = Request::builder()
        .method(Method::CONNECT)
        .uri(target.to_string())
        .header(HOST, target.to_string());
    if let Some(authorization) = &hop.authorization {
        request = request.header(PROXY_AUTHORIZATION, authorization);
    }
    let request = request.body(Empty::<Bytes>::new());
    let request = request.map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await.map_err(told)?;
    if !response.status().is_success() {
        return Err(format!("it answers {}", response.status()));
    }
    let upgraded = hyper::upgrade::on(response).await.map_err(told)?;
    drop(connection);
    Ok(Box::new(TokioIo::new(upgraded)))
}

async fn connect(address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    timely(TcpStream::connect(address), limit).await
}

async fn timely<T>(
    connecting: impl Future<Output = io::Result<T>>,
    limit: Duration,
) -> io::Result<T> {
    let connected = tokio::time::timeout(limit, connecting).await;
    connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
