//! The way of one command to the hosts that the person allows.
//!
//! A [`HostAccess`] has the rules. The command gets variables that lead programs to a proxy at its own loopback interface. The
//! proxy is in this process, so the command reaches no other host, and no address. A host that no rule names is asked about.

mod attempt;
mod decider;
mod environment;

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use co_exec::{CommandSpec, Executor, RunningCommand, Streams, TimeLimit, size_text};
use co_policy::HostRules;
use co_proxy::{
    ForwardedPort, OuterProxy, Proxy, ProxyLimits, ProxySetup, SystemResolver, Target,
    TargetTraffic,
};

pub use attempt::try_ways;
pub use decider::HostAsker;

/// The port of the proxy in the command's own network, or the next one that no rule takes. It is one that servers seldom use.
const PROXY_PORT: u16 = 17_480;

/// The most ports of this machine that a command reaches.
pub const MAX_LOOPBACK_PORTS: usize = 24;

/// The hosts that a command may reach, and how.
#[derive(Debug, Clone)]
pub struct HostAccess {
    rules: HostRules,
    outer: OuterProxy,
    certificates: Vec<(String, String)>,
}

/// The open way of a running command. The way ends when this is dropped.
pub struct OpenAccess {
    proxy: Proxy,
}

/// A running command with its way to hosts, if it has one.
pub type OpenCommand = (RunningCommand, Option<OpenAccess>);

/// A command with a way to hosts did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Command(#[from] co_exec::Error),
    #[error(
        "the command was ended, because co could not start the proxy for its network ({0}): close a few files, or end a few programs"
    )]
    Proxy(io::Error),
}

impl HostAccess {
    /// `environment` is that of this process: it may name a proxy and certificates of the person.
    pub fn new(rules: HostRules, environment: &[(OsString, OsString)]) -> Self {
        Self {
            rules,
            outer: OuterProxy::from_environment(environment),
            certificates: environment::certificates(environment),
        }
    }

    /// Returns the ports of the command's own loopback interface that need a listening socket. The first one is that of the proxy.
    fn ports(&self) -> Vec<u16> {
        let forwarded = self.forwarded();
        let mut ports = vec![proxy_port(&forwarded)];
        ports.extend(forwarded);
        ports
    }

    /// Returns the variables that lead the programs of the command to the proxy.
    fn environment(&self) -> Vec<(String, String)> {
        let mut variables = environment::proxy(proxy_port(&self.forwarded()));
        variables.extend(self.certificates.iter().cloned());
        variables
    }

    /// Starts a command that has a network of its own, and opens its way to the hosts. `asker` is asked about each host that no rule
    /// names. The command may run for any time; the way ends with the result.
    ///
    /// # Errors
    /// The command did not start, or was ended because its way could not be opened.
    pub async fn start(
        &self,
        executor: &Executor,
        mut spec: CommandSpec,
        streams: Streams,
        asker: Arc<dyn HostAsker>,
    ) -> Result<OpenCommand, StartError> {
        spec.extra_env.extend(self.environment());
        let ports = self.ports();
        let started = executor.start_listening(spec, streams, &ports).await;
        let (running, listeners) = started?;
        let open = self.open(listeners, asker, running.time_limit());
        Ok((running, open.map_err(StartError::Proxy)?))
    }

    /// Opens the way of a command. `listeners` are the sockets for [`Self::ports`]. While a question is open, the time of the command
    /// stands still.
    fn open(
        &self,
        listeners: Vec<TcpListener>,
        asker: Arc<dyn HostAsker>,
        time_limit: TimeLimit,
    ) -> io::Result<Option<OpenAccess>> {
        let mut listeners = listeners.into_iter();
        // A command that did not start has none.
        let Some(listener) = listeners.next() else {
            return Ok(None);
        };
        let ports = self.forwarded().into_iter().zip(listeners);
        let ports = ports.map(|(port, listener)| ForwardedPort { port, listener });
        let decider = decider::RuleDecider::new(self.rules.clone(), asker, time_limit);
        let proxy = Proxy::start(ProxySetup {
            listener,
            ports: ports.collect(),
            decider: Arc::new(decider),
            resolver: Arc::new(SystemResolver),
            outer: self.outer.clone(),
            limits: ProxyLimits::default(),
        })?;
        Ok(Some(OpenAccess { proxy }))
    }

    fn forwarded(&self) -> Vec<u16> {
        let mut ports = self.rules.loopback_ports();
        ports.truncate(MAX_LOOPBACK_PORTS);
        ports
    }
}

impl OpenAccess {
    /// Returns the hosts that the command wanted so far.
    pub fn report(&self) -> HostReport {
        HostReport(self.proxy.traffic())
    }

    /// Ends the way. Returns the hosts that the command wanted.
    pub fn close(self) -> HostReport {
        self.report()
    }
}

/// The hosts that a command reached or was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostReport(Vec<TargetTraffic>);

impl HostReport {
    /// Returns true if the command wanted no host.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the hosts that were reached, with the bytes, in a clause for a person; none if there are none.
    pub fn reached(&self) -> Option<String> {
        let reached = self.0.iter().filter(|it| it.reached);
        let one = |it: &TargetTraffic| {
            let (sent, received) = (size_text(it.sent), size_text(it.received));
            format!("{} ({sent} sent, {received} received)", it.target)
        };
        let reached: Vec<_> = reached.map(one).collect();
        (!reached.is_empty()).then(|| format!("it reached {}", some(&reached)))
    }

    /// Returns the hosts that were refused, each once; none if there are none.
    pub fn refused(&self) -> Option<String> {
        let refused = self.0.iter().filter(|it| it.refused.is_some());
        let refused: Vec<_> = refused.map(|it| it.target.to_string()).collect();
        (!refused.is_empty()).then(|| some(&refused))
    }

    /// Returns the hosts that were reached and those that were refused, in a clause for a person; none if there are none.
    pub fn words(&self) -> Option<String> {
        let refused = self
            .refused()
            .map(|hosts| format!("it was refused {hosts}"));
        let all: Vec<_> = refused.into_iter().chain(self.reached()).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Returns a line for the model about the hosts that were refused; none if none was.
    pub fn for_model(&self) -> Option<String> {
        self.refused().map(|hosts| {
            format!(
                "The person did not allow the command to reach {hosts}. Do not try to reach it in another way."
            )
        })
    }

    /// Returns the reasons why hosts were refused, a sentence for each.
    pub fn refusals(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|it| it.refused.as_deref())
    }

    /// Returns an object for each host.
    pub fn json(&self) -> serde_json::Value {
        let one = |it: &TargetTraffic| {
            serde_json::json!({
                "host": it.target.host.to_string(),
                "port": it.target.port,
                "reached": it.reached,
                "sent": it.sent,
                "received": it.received,
                "refused": it.refused,
            })
        };
        self.0.iter().map(one).collect()
    }
}

/// Returns a host and its port, for a question.
pub fn named(target: &Target) -> String {
    let Target { host, port } = target;
    match host.special() {
        None => format!("{host} (port {port})"),
        Some(special) => format!("{host} (port {port}; the address is of {special})"),
    }
}

/// Names the first ones of a list, and counts the others.
fn some(all: &[String]) -> String {
    const MOST: usize = 8;
    let named = all
        .iter()
        .take(MOST)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match all.len().saturating_sub(MOST) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn proxy_port(taken: &[u16]) -> u16 {
    let free = (PROXY_PORT..).find(|port| !taken.contains(port));
    free.unwrap_or(PROXY_PORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(allow: &[&str]) -> HostAccess {
        let rules = HostRules {
            allow: allow.iter().map(|it| it.parse().unwrap()).collect(),
            deny: Vec::new(),
        };
        let environment = [
            ("SSL_CERT_FILE", "/c.pem"),
            ("HTTPS_PROXY", "http://p:1"),
            ("HOME", "/h"),
        ];
        let environment = environment.map(|(name, value)| (name.into(), value.into()));
        HostAccess::new(rules, &environment)
    }

    #[test]
    fn the_proxy_takes_a_port_that_is_free() {
        assert_eq!(access(&["example.org"]).ports(), [PROXY_PORT]);
        let taken = format!("localhost:{PROXY_PORT}");
        let access = access(&[&taken, "127.0.0.1:80"]);
        assert_eq!(access.ports(), [PROXY_PORT + 1, 80, PROXY_PORT]);
        let variables = access.environment();
        let value = |name| {
            variables
                .iter()
                .find(|(it, _)| it == name)
                .map(|(_, value)| value.as_str())
        };
        let proxy = format!("http://127.0.0.1:{}", PROXY_PORT + 1);
        assert_eq!(value("HTTPS_PROXY"), Some(proxy.as_str()));
        assert_eq!(value("SSL_CERT_FILE"), Some("/c.pem"));
        assert_eq!(value("HOME"), None);
    }
}
