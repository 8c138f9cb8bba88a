//! The inputs of a proxy.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::outer::OuterProxy;
use crate::target::Target;

/// A permission to connect to a target.
pub struct Permission {
    /// The reason why the command may connect to the target, in a few words.
    pub ground: String,
    /// Completes when the permission ends. Then the connections that were made with this permission end too.
    pub end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

pub(crate) type PermissionEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Permission {
    /// Makes a permission that lasts as long as the proxy.
    pub fn lasting(ground: String) -> Self {
        Self {
            ground,
            end: Box::pin(std::future::pending()),
        }
    }
}

/// Decides about the hosts that the command may connect to.
#[async_trait]
pub trait Decider: Send + Sync {
    /// Returns the permission to connect to a target. The connection is not made before this function returns. The proxy calls
    /// this function for each connection and each request, and several calls may wait at once.
    ///
    /// # Errors
    /// The command may not connect to the target. The error is the reason, which the command sees.
    async fn decide(&self, target: &Target) -> Result<Permission, String>;

    /// Returns the reason why the command must no longer connect to a forwarded port, or `None` if it may. The proxy calls this
    /// function for each connection.
    async fn refuses_port(&self, address: SocketAddr) -> Option<String>;

    /// Returns the reason why the command must not connect to an allowed target at this address, or `None` if it may. The proxy
    /// calls this function after [`Self::decide`].
    fn denies_address(&self, target: &Target, address: IpAddr) -> Option<String>;

    /// Returns true if an allowed name may resolve to this address, which is not on the internet.
    fn allows_address(&self, target: &Target, address: IpAddr) -> bool;
}

/// Resolves names to addresses.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// Returns the addresses of a name.
    ///
    /// # Errors
    /// The name has no address, or it cannot be resolved.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// Limits the number of look-ups at a time. A look-up whose caller has given up keeps its thread until the system gives up too.
static LOOKUPS: Semaphore = Semaphore::const_new(32);

/// The file with the names of hosts that this machine knows.
const HOSTS_FILE: &str = "/etc/hosts";

/// Resolves names with the system's resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let permit = LOOKUPS.acquire().await.map_err(io::Error::other)?;
        let name = name.to_owned();
        let lookup = move || {
            let _permit = permit;
            // A name without a dot is one of the local network, which only the search domains of the system complete.
            if !name.contains('.') {
                return addresses(&name);
            }
            let known = std::fs::read_to_string(HOSTS_FILE).unwrap_or_default();
            match in_hosts_file(&known, &name) {
                // The dot keeps the resolver from these domains: the person allowed this name, not a longer one.
                none if none.is_empty() => addresses(&format!("{name}.")),
                found => Ok(found),
            }
        };
        tokio::task::spawn_blocking(lookup).await?
    }
}

fn addresses(name: &str) -> io::Result<Vec<IpAddr>> {
    Ok((name, 0).to_socket_addrs()?.map(|it| it.ip()).collect())
}

/// Returns the addresses of a name in the text of a file such as `/etc/hosts`.
fn in_hosts_file(text: &str, name: &str) -> Vec<IpAddr> {
    let of_line = |line: &str| {
        let line = line.split('#').next()?;
        let mut words = line.split_ascii_whitespace();
        let address = words.next()?.parse().ok()?;
        let is_meant = words.any(|it| it.trim_end_matches('.').eq_ignore_ascii_case(name));
        is_meant.then_some(address)
    };
    text.lines().filter_map(of_line).collect()
}

/// The limits of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// The largest number of connections of the command at a time. Further connections wait in the kernel's queue.
    pub connections: usize,
    /// The time-out for the head of a request, and for the first message of TLS.
    pub head: Duration,
    /// The time-out for resolving a name, and again for connecting to one of its addresses.
    pub connect: Duration,
    /// The time-out between a plain HTTP request and the head of its response.
    pub answer: Duration,
    /// The time after which a client that closed its connection during a decision counts as gone. A client that retries connects
    /// again within this time, so the question about the target stays open.
    pub left: Duration,
    /// The largest number of targets that a command may connect to. Also the largest number of refused targets that are recorded.
    pub targets: usize,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections: 64,
            head: Duration::from_secs(30),
            connect: Duration::from_secs(20),
            answer: Duration::from_secs(300),
            left: Duration::from_secs(5),
            targets: 200,
        }
    }
}

/// A port of this machine that the command can connect to at its own loopback interface.
#[derive(Debug)]
pub struct ForwardedPort {
    pub listener: TcpListener,
    /// The addresses of this machine to connect to. The first one at which a server listens is taken.
    pub leads_to: Vec<SocketAddr>,
}

/// The inputs of a [`Proxy`](crate::Proxy).
pub struct ProxySetup {
    /// The listening socket of the proxy. Only the command may be able to connect to it.
    pub listener: TcpListener,
    pub ports: Vec<ForwardedPort>,
    pub decider: Arc<dyn Decider>,
    pub resolver: Arc<dyn Resolver>,
    /// The person's own proxies. Connections go through them.
    pub outer: OuterProxy,
    pub limits: ProxyLimits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_hosts_file_are_found() {
        let text = "127.0.0.1 localhost\n# 10.0.0.9 a.example\n10.0.0.1\tb.example A.Example. # c.example\n::1 a.example\n";
        let found = |name| {
            in_hosts_file(text, name)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(found("a.example"), ["10.0.0.1", "::1"]);
        assert_eq!(found("b.example"), ["10.0.0.1"]);
        assert!(found("c.example").is_empty() && found("example").is_empty());
    }
}
