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

/// A permission to reach a target.
pub struct Permission {
    /// The ground on which the command may reach the target, in a few words.
    pub ground: String,
    /// Ends when the permission does. Connections that were made with it end then too.
    pub end: Pin<Box<dyn Future<Output = ()> + Send>>,
}

pub(crate) type PermissionEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Permission {
    /// Returns a permission that lasts as long as the proxy.
    pub fn lasting(ground: String) -> Self {
        Self {
            ground,
            end: Box::pin(std::future::pending()),
        }
    }
}

/// Decides which hosts the command may reach.
#[async_trait]
pub trait Decider: Send + Sync {
    /// Returns the permission to reach a target. The connection waits for the answer. The decider is asked at each connection and
    /// each request; several may wait at once.
    ///
    /// # Errors
    /// The command may not reach the target: the reason, which the command reads.
    async fn decide(&self, target: &Target) -> Result<Permission, String>;

    /// Returns why the command must not reach a forwarded port any more, if it must not. It is called at each connection.
    async fn refuses_port(&self, address: SocketAddr) -> Option<String>;

    /// Returns why the command must not reach an allowed target at this address, if it must not. It is called after
    /// [`Self::decide`].
    fn denies_address(&self, target: &Target, address: IpAddr) -> Option<String>;

    /// Returns whether an allowed name may lead to this address, which is not on the internet.
    fn allows_address(&self, target: &Target, address: IpAddr) -> bool;
}

/// Finds the addresses of a name.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// # Errors
    /// The name has no address, or its addresses cannot be found.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The lookups that go on at once. One that nobody waits for any more keeps its thread until the system gives up.
static LOOKUPS: Semaphore = Semaphore::const_new(32);

/// The file with names of hosts on this machine.
const HOSTS_FILE: &str = "/etc/hosts";

/// The resolver of the system.
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

/// Returns the addresses that the text of a file such as `/etc/hosts` gives a name.
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

/// The bounds of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// The most connections of the command at once. Further ones wait in the kernel's queue.
    pub connections: usize,
    /// The longest time for the head of a request, and for the first message of TLS.
    pub head: Duration,
    /// The longest time to find the addresses of a name, and then to connect to one of them.
    pub connect: Duration,
    /// The longest time from a request of plain HTTP to the head of its response.
    pub answer: Duration,
    /// The time after which a client that closed its end during a decision counts as gone. A client that tries again comes
    /// sooner, so the question about the target stays.
    pub left: Duration,
    /// The most targets that a command may reach, and the most refused targets that are noted.
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

/// A port of this machine that the command reaches at its own loopback interface.
#[derive(Debug)]
pub struct ForwardedPort {
    pub listener: TcpListener,
    /// The addresses of this machine to connect to; the first one at which a server listens counts.
    pub leads_to: Vec<SocketAddr>,
}

/// The inputs of a [`Proxy`](crate::Proxy).
pub struct ProxySetup {
    /// The socket at which the command reaches the proxy. Nobody else may reach it.
    pub listener: TcpListener,
    pub ports: Vec<ForwardedPort>,
    pub decider: Arc<dyn Decider>,
    pub resolver: Arc<dyn Resolver>,
    /// The person's own proxy, if there is one: connections go through it.
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
