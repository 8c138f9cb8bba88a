//! The inputs of a proxy.

use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::outer::OuterProxy;
use crate::target::Target;

/// Decides which hosts the command may reach.
#[async_trait]
pub trait Decider: Send + Sync {
    /// Returns whether the command may reach a target. The connection waits for the answer. It is asked at each connection and
    /// each request; several may wait at once.
    ///
    /// # Errors
    /// It may not: the reason, which the command reads.
    async fn decide(&self, target: &Target) -> Result<(), String>;

    /// Returns whether an allowed name may lead to this address, which is not on the internet.
    fn allows_address(&self, address: IpAddr, port: u16) -> bool;
}

/// Finds the addresses of a name.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// # Errors
    /// The name has none, or they cannot be found.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        // The dot keeps the resolver from trying the search domains of the system: the person allowed this name, not a longer one.
        // A name without a dot inside is one of the local network, which only these domains complete.
        let rooted = if name.contains('.') {
            format!("{name}.")
        } else {
            name.to_owned()
        };
        let found = tokio::net::lookup_host((rooted.as_str(), 0)).await;
        let found = match found {
            Ok(found) => found,
            // The file `hosts` has names without the dot.
            Err(_) => tokio::net::lookup_host((name, 0)).await?,
        };
        Ok(found.map(|it| it.ip()).collect())
    }
}

/// The bounds of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// The most connections of the command at once. Further ones wait in the kernel's queue.
    pub connections: usize,
    /// The longest time for the head of a request, and for the first message of TLS.
    pub head: Duration,
    /// The longest time to find the addresses of a name, and to connect to one of them.
    pub connect: Duration,
    /// The most targets that are counted. The bytes of others go to one line.
    pub targets: usize,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections: 64,
            head: Duration::from_secs(30),
            connect: Duration::from_secs(20),
            targets: 200,
        }
    }
}

/// A port of this machine that the command reaches at the same number of its own loopback interface.
#[derive(Debug)]
pub struct ForwardedPort {
    pub port: u16,
    pub listener: TcpListener,
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
