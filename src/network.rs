//! The way of one command to the hosts that the person allows.
//!
//! A [`HostAccess`] has the rules. The command gets variables that lead programs to a proxy at its own loopback interface. The
//! proxy is in this process, so the command reaches no other host, and no address. A host that no rule names is asked about.

mod attempt;
mod decider;
mod environment;

use std::cmp::Reverse;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

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

/// The most addresses of this machine that a command reaches at its loopback interface. `localhost:8080` has two of them.
const MAX_LOOPBACK: usize = 48;

/// The most hosts that a text names. It counts the others.
const MOST_NAMED: usize = 8;

/// The hosts that a command may reach, and how.
#[derive(Debug, Clone)]
pub struct HostAccess {
    rules: HostRules,
    outer: OuterProxy,
    certificates: Vec<(String, String)>,
    /// This machine has the address ::1.
    has_ipv6: bool,
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
            has_ipv6: TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok(),
        }
    }

    /// Returns the addresses of the command's own loopback interface that need a listening socket. The first one is that of the proxy.
    fn addresses(&self) -> Vec<SocketAddr> {
        let proxy = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.proxy_port());
        let forwarded = self.forwarded().into_iter().map(|(at, _)| at);
        std::iter::once(proxy).chain(forwarded).collect()
    }

    /// Checks that the command does not reach too many addresses of this machine.
    ///
    /// # Errors
    /// A sentence for a person.
    pub fn check(&self) -> Result<(), String> {
        match self.rules.loopback_ports().len() > MAX_LOOPBACK {
            true => Err(format!(
                "a command reaches {MAX_LOOPBACK} addresses of this machine at most, and localhost:8080 has two: allow fewer"
            )),
            false => Ok(()),
        }
    }

    /// Returns the variables that lead the programs of the command to the proxy.
    fn environment(&self) -> Vec<(String, String)> {
        let mut variables = environment::proxy(self.proxy_port());
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
        let addresses = self.addresses();
        let started = executor.start_listening(spec, streams, &addresses).await;
        let (running, listeners) = started?;
        let open = self.open(listeners, asker, running.time_limit());
        Ok((running, open.map_err(StartError::Proxy)?))
    }

    /// Opens the way of a command. `listeners` are the sockets for [`Self::addresses`]. While a question is open, the time of the command
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
        let ports = ports.map(|((_, leads_to), listener)| ForwardedPort { listener, leads_to });
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

    /// Returns the addresses of the command's own loopback interface that lead to this machine, and where they lead.
    fn forwarded(&self) -> Vec<(SocketAddr, Vec<SocketAddr>)> {
        let all = self.rules.loopback_ports().into_iter();
        all.filter(|(at, _)| at.is_ipv4() || self.has_ipv6)
            .take(MAX_LOOPBACK)
            .collect()
    }

    fn proxy_port(&self) -> u16 {
        let taken: Vec<_> = self.forwarded().iter().map(|(at, _)| at.port()).collect();
        let free = (PROXY_PORT..).find(|port| !taken.contains(port));
        free.unwrap_or(PROXY_PORT)
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

    /// Returns the hosts that were reached, with the bytes, in a clause for a person; none if there are none. Those that the command
    /// sent most to come first.
    pub fn reached(&self) -> Option<String> {
        let reached = self.0.iter().filter(|it| it.connections > 0);
        let mut reached: Vec<_> = reached.collect();
        reached.sort_by_key(|it| Reverse(it.sent));
        let bytes = |sent, received| {
            let (sent, received) = (size_text(sent), size_text(received));
            format!("({sent} sent, {received} received)")
        };
        let (named, others) = reached.split_at(reached.len().min(MOST_NAMED));
        let one = |it: &&TargetTraffic| format!("{} {}", it.target, bytes(it.sent, it.received));
        let mut all: Vec<_> = named.iter().map(one).collect();
        if !others.is_empty() {
            let sent = others.iter().map(|it| it.sent).sum();
            let received = others.iter().map(|it| it.received).sum();
            all.push(format!(
                "{} other hosts {}",
                others.len(),
                bytes(sent, received)
            ));
        }
        (!all.is_empty()).then(|| format!("it reached {}", all.join(", ")))
    }

    /// Returns the hosts that were refused, each once; none if there are none.
    pub fn refused(&self) -> Option<String> {
        let refused = self.0.iter().filter(|it| it.refused.is_some());
        let refused: Vec<_> = refused.map(|it| it.target.to_string()).collect();
        let (named, others) = refused.split_at(refused.len().min(MOST_NAMED));
        let mut all = named.to_vec();
        if !others.is_empty() {
            all.push(format!("{} other hosts", others.len()));
        }
        (!all.is_empty()).then(|| all.join(", "))
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
                "reached": it.connections > 0,
                "connections": it.connections,
                "first": seconds(it.times[0]),
                "last": seconds(it.times[1]),
                "sent": it.sent,
                "received": it.received,
                "allowed": it.allowed,
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

/// Returns a time as the audit file has it.
fn seconds(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:03}", since.as_secs(), since.subsec_millis())
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
        let at = |access: &HostAccess| {
            let all = access.addresses().into_iter();
            all.map(|it| it.to_string()).collect::<Vec<_>>()
        };
        let one = format!("127.0.0.1:{PROXY_PORT}");
        assert_eq!(at(&access(&["example.org"])), std::slice::from_ref(&one));
        let access = access(&[&one, "127.0.0.1:80"]);
        let proxy = format!("127.0.0.1:{}", PROXY_PORT + 1);
        assert_eq!(at(&access), [&proxy, "127.0.0.1:80", &one]);
        let variables = access.environment();
        let value = |name| {
            variables
                .iter()
                .find(|(it, _)| it == name)
                .map(|(_, value)| value.as_str())
        };
        let proxy = format!("http://{proxy}");
        for name in ["HTTPS_PROXY", "CARGO_HTTP_PROXY", "npm_config_https_proxy"] {
            assert_eq!(value(name), Some(proxy.as_str()), "{name}");
        }
        assert_eq!(value("SSL_CERT_FILE"), Some("/c.pem"));
        assert_eq!(value("HOME"), None);
    }

    #[test]
    fn localhost_has_the_addresses_that_this_machine_has() {
        let mut access = access(&["localhost:80"]);
        access.has_ipv6 = true;
        assert_eq!(access.addresses().len(), 3);
        access.has_ipv6 = false;
        assert_eq!(access.addresses().len(), 2);
        assert!(access.check().is_ok());
        let many: Vec<_> = (1..=25).map(|port| format!("localhost:{port}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert!(self::access(&many).check().is_err());
    }

    #[test]
    fn a_summary_counts_the_hosts_that_it_does_not_name() {
        let traffic = |number: u64| TargetTraffic {
            target: Target::parse(&format!("h{number}.example:443"), None).unwrap(),
            sent: number,
            received: 1,
            connections: u64::from(number < 20),
            times: [UNIX_EPOCH; 2],
            allowed: None,
            refused: (number >= 20).then(String::new),
        };
        let report = HostReport((0..30).map(traffic).collect());
        let reached = report.reached().unwrap();
        assert!(
            reached.starts_with("it reached h19.example:443 (19 bytes sent, 1 byte"),
            "{reached}"
        );
        assert!(
            reached.contains("12 other hosts (66 bytes sent, 12 bytes received)"),
            "{reached}"
        );
        let refused = report.refused().unwrap();
        assert!(
            refused.ends_with("h27.example:443, 2 other hosts"),
            "{refused}"
        );
        let words = report.words().unwrap();
        assert!(words.starts_with("it was refused h20"), "{words}");
    }
}
