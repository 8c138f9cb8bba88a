//! The access of one command to the hosts that the person allows.
//!
//! A [`HostAccess`] has the rules. Environment variables make the programs of the command use a proxy at the command's own
//! loopback interface. The proxy runs in this process. The command can connect only to this proxy, so it can reach no other host
//! and no IP address directly. co asks the person about each host that no rule names.

mod attempt;
mod decider;
mod environment;

use std::cmp::Reverse;
use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use co_exec::sandbox::SandboxRefusal;
use co_exec::{CommandSpec, Error, Executor, RunningCommand, Streams, TimeLimit};
use co_policy::HostRules;
use co_proxy::{
    ForwardedPort, OuterProxy, Proxy, ProxyLimits, ProxySetup, SystemResolver, Target,
    TargetTraffic,
};
use co_text::size_text;

pub use attempt::try_access;
pub use decider::HostAsker;

/// The port of the proxy in the command's network namespace. Servers seldom use this port. If a rule uses it, the next free port
/// is taken.
const PROXY_PORT: u16 = 17_480;

/// The largest number of addresses of this machine that a command can connect to at its loopback interface. `localhost:8080`
/// counts as two.
const MAX_LOOPBACK: usize = 48;

/// The largest number of hosts that a text names. Of further hosts, the text says only the number.
const MOST_NAMED: usize = 8;

/// The access of a command to hosts, before the command starts. An asker decides about the hosts.
pub struct HostAccess {
    asker: Arc<dyn HostAsker>,
    outer: OuterProxy,
    certificates: Vec<(String, String)>,
    has_own_port: bool,
}

/// The addresses at the command's own loopback interface that need a listening socket.
#[derive(Debug)]
struct OwnAddresses {
    /// The port of the proxy.
    proxy: u16,
    /// A port that the caller serves itself. It is `None` if the caller asked for none.
    own: Option<u16>,
    /// The addresses at the command's loopback interface that are forwarded to this machine. Each comes with the addresses of
    /// this machine to which connections are forwarded.
    forwarded: Vec<(SocketAddr, Vec<SocketAddr>)>,
}

/// The access of a running command to hosts. Dropping it ends the access.
pub struct OpenAccess {
    proxy: Proxy,
    own_port: Option<TcpListener>,
}

/// A running command with its access to hosts. The access is `None` if the command has none.
pub type OpenCommand = (RunningCommand, Option<OpenAccess>);

/// The reason why a command did not start or has no access to hosts.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Command(#[from] co_exec::Error),
    /// The rules about hosts cannot be read. The text is a sentence.
    #[error("{0}")]
    Rules(String),
    #[error(
        "the command was not started: allow_hosts, `/rules` and --allow-host name more than {MAX_LOOPBACK} addresses of this machine \
         (localhost:8080 has two), so remove some"
    )]
    TooManyPorts,
    #[error(
        "the command was ended, because co could not start the proxy for its network ({0}): close a few files, or end a few programs"
    )]
    Proxy(io::Error),
}

impl HostAccess {
    /// Makes the access for one command. Reads the person's own proxy and certificates from the environment of this process.
    pub fn new(asker: Arc<dyn HostAsker>) -> Self {
        let environment: Vec<_> = std::env::vars_os().collect();
        Self::with_environment(asker, &environment)
    }

    fn with_environment(asker: Arc<dyn HostAsker>, environment: &[(OsString, OsString)]) -> Self {
        Self {
            asker,
            outer: OuterProxy::from_environment(environment),
            certificates: environment::certificates(environment),
            has_own_port: false,
        }
    }

    /// Adds a port at the command's loopback interface. [`OpenAccess::take_own_port`] returns its listening socket.
    #[must_use]
    pub fn with_own_port(self) -> Self {
        Self {
            has_own_port: true,
            ..self
        }
    }

    /// Opens the access of a started command. `listeners` are the sockets for `addresses`. While a question to the person is
    /// open, the time-out of the command is paused.
    fn open(
        self,
        addresses: OwnAddresses,
        listeners: Vec<TcpListener>,
        time_limit: TimeLimit,
    ) -> io::Result<Option<OpenAccess>> {
        let mut listeners = listeners.into_iter();
        // A command that did not start has none.
        let Some(listener) = listeners.next() else {
            return Ok(None);
        };
        let own_port = addresses.own.and_then(|_| listeners.next());
        let ports = addresses.forwarded.into_iter().zip(listeners);
        let ports = ports.map(|((_, leads_to), listener)| ForwardedPort { listener, leads_to });
        let proxy = Proxy::start(ProxySetup {
            listener,
            ports: ports.collect(),
            decider: Arc::new(decider::RuleDecider::new(self.asker, time_limit)),
            resolver: Arc::new(SystemResolver),
            outer: self.outer,
            limits: ProxyLimits::default(),
        })?;
        Ok(Some(OpenAccess { proxy, own_port }))
    }
}

/// Starts a command. If `access` is given, the command must have its own network namespace. It can then connect to hosts as long
/// as the returned value lives.
///
/// # Errors
/// The command did not start, or it was ended because its access could not be opened.
pub async fn start(
    executor: &Executor,
    mut spec: CommandSpec,
    streams: Streams,
    access: Option<HostAccess>,
) -> Result<OpenCommand, StartError> {
    let Some(access) = access else {
        return Ok((executor.start_on(spec, streams).await?, None));
    };
    let rules = access.asker.rules().await.map_err(StartError::Rules)?;
    let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
    let addresses = OwnAddresses::new(&rules, has_ipv6, access.has_own_port)?;
    spec.extra_env.extend(environment::proxy(addresses.proxy));
    spec.extra_env.extend(access.certificates.iter().cloned());
    let all = addresses.all();
    let (running, listeners) = executor.start_listening(spec, streams, &all).await?;
    let open = access.open(addresses, listeners, running.time_limit());
    Ok((running, open.map_err(StartError::Proxy)?))
}

impl OwnAddresses {
    /// Finds the addresses that the rules need. `has_ipv6` is true if this machine has the address `::1`. `has_own_port` is true
    /// if the caller needs its own port.
    fn new(rules: &HostRules, has_ipv6: bool, has_own_port: bool) -> Result<Self, StartError> {
        let ports = rules.loopback_ports();
        if ports.len() > MAX_LOOPBACK {
            return Err(StartError::TooManyPorts);
        }
        let ports = ports.into_iter();
        let forwarded: Vec<_> = ports.filter(|(at, _)| at.is_ipv4() || has_ipv6).collect();
        let is_free = |port: &u16| forwarded.iter().all(|(at, _)| at.port() != *port);
        let mut free = (PROXY_PORT..).filter(is_free);
        Ok(Self {
            proxy: free.next().unwrap_or(PROXY_PORT),
            own: free.next().filter(|_| has_own_port),
            forwarded,
        })
    }

    /// Returns all addresses: first the address of the proxy, then the address of the caller's own port, then the forwarded
    /// addresses.
    fn all(&self) -> Vec<SocketAddr> {
        let ports = std::iter::once(self.proxy).chain(self.own);
        let ports = ports.map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
        let forwarded = self.forwarded.iter().map(|(at, _)| *at);
        ports.chain(forwarded).collect()
    }
}

impl StartError {
    /// Returns true if the system refused to run the program for lack of permission.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Command(error) if error.is_permission())
    }

    /// Returns true if the secrets of the workspace could not be hidden from the command. A person may let the command run all
    /// the same.
    pub fn is_unready(&self) -> bool {
        let Self::Command(Error::Sandbox(refusal)) = self else {
            return false;
        };
        matches!(refusal, SandboxRefusal::Unready(_))
    }
}

impl OpenAccess {
    /// Returns the listening socket that [`HostAccess::with_own_port`] asked for. A second call returns `None`.
    pub fn take_own_port(&mut self) -> Option<TcpListener> {
        self.own_port.take()
    }

    /// Returns the hosts that the command has tried to connect to so far.
    pub fn report(&self) -> HostReport {
        HostReport(self.proxy.traffic())
    }

    /// Ends the access. Returns the hosts that the command tried to connect to.
    pub fn close(self) -> HostReport {
        self.report()
    }
}

/// The hosts that a command tried to connect to: those that it reached, and those that were refused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostReport(Vec<TargetTraffic>);

impl HostReport {
    /// Returns true if the command did not try to connect to any host.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the part of this report that is new since an earlier report about the same command.
    pub fn since(self, earlier: &Self) -> Self {
        let news = |it: TargetTraffic| {
            let old = earlier.0.iter().find(|old| old.target == it.target);
            let Some(old) = old else {
                return Some(it);
            };
            let (sent, received) = (it.sent - old.sent, it.received - old.received);
            let connections = it.connections - old.connections;
            let is_new = it.times[1] != old.times[1];
            (is_new || sent > 0 || received > 0).then_some(TargetTraffic {
                sent,
                received,
                connections,
                times: [it.times[1]; 2],
                refused: it.refused.filter(|_| is_new && connections == 0),
                ..it
            })
        };
        Self(self.0.into_iter().filter_map(news).collect())
    }

    /// Returns a clause for the person about the hosts that the command reached, with their numbers of bytes. The hosts that got
    /// most data come first. Returns `None` if there are no such hosts.
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

    /// Returns a list of the hosts that were refused, without duplicates, or `None` if there are none.
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

    /// Returns a clause for the person about the refused and the reached hosts, or `None` if there are none.
    pub fn words(&self) -> Option<String> {
        let refused = self
            .refused()
            .map(|hosts| format!("it was refused {hosts}"));
        let all: Vec<_> = refused.into_iter().chain(self.reached()).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Returns a sentence for the model about the refused hosts, or `None` if there are none.
    pub fn for_model(&self) -> Option<String> {
        self.refused().map(|hosts| {
            format!(
                "The command was not allowed to reach {hosts}. Do not try to reach it in another way."
            )
        })
    }

    /// Returns a sentence for each refused host about the reason.
    pub fn refusals(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|it| it.refused.as_deref())
    }

    /// Returns the hosts as a JSON array of objects.
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

/// Returns a host and its port in the wording for a question.
pub fn named(target: &Target) -> String {
    let Target { host, port } = target;
    match host.special() {
        None => format!("{host} (port {port})"),
        Some(special) => format!("{host} (port {port}; the address is of {special})"),
    }
}

/// Returns a time in the format of the audit file: seconds since 1970.
fn seconds(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:03}", since.as_secs(), since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(allow: &[&str], has_ipv6: bool) -> Result<OwnAddresses, StartError> {
        let rules = HostRules {
            allow: allow.iter().map(|it| it.parse().unwrap()).collect(),
            deny: Vec::new(),
        };
        OwnAddresses::new(&rules, has_ipv6, false)
    }

    #[test]
    fn the_proxy_takes_a_port_that_is_free() {
        let at = |allow: &[&str]| {
            let all = addresses(allow, true).unwrap().all().into_iter();
            all.map(|it| it.to_string()).collect::<Vec<_>>()
        };
        let one = format!("127.0.0.1:{PROXY_PORT}");
        assert_eq!(at(&["example.org"]), std::slice::from_ref(&one));
        let proxy = format!("127.0.0.1:{}", PROXY_PORT + 1);
        let expected = [&proxy, "127.0.0.1:80", &one];
        assert_eq!(at(&[&one, "127.0.0.1:80"]), expected);
        let own = OwnAddresses::new(&HostRules::default(), true, true).unwrap();
        let expected = [one.parse().unwrap(), proxy.parse().unwrap()];
        assert_eq!(own.all(), expected);
    }

    #[test]
    fn localhost_has_the_addresses_that_this_machine_has() {
        for (has_ipv6, count) in [(true, 3), (false, 2)] {
            let addresses = addresses(&["localhost:80"], has_ipv6).unwrap();
            assert_eq!(addresses.all().len(), count);
        }
    }

    #[test]
    fn a_command_reaches_only_so_many_addresses_of_this_machine() {
        let many = |count: usize| {
            let all: Vec<_> = (1..=count).map(|it| format!("localhost:{it}")).collect();
            addresses(&all.iter().map(String::as_str).collect::<Vec<_>>(), true)
        };
        assert!(many(MAX_LOOPBACK / 2).is_ok());
        let why = many(MAX_LOOPBACK / 2 + 1).unwrap_err().to_string();
        assert!(
            why.contains("more than 48 addresses of this machine"),
            "{why}"
        );
    }

    #[test]
    fn a_later_report_has_what_is_new() {
        let at = |seconds| UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let traffic =
            |host: &str, [sent, connections, last]: [u64; 3], refused: bool| TargetTraffic {
                target: Target::parse(&format!("{host}.example:443"), None).unwrap(),
                sent,
                received: 0,
                connections,
                times: [at(0), at(last)],
                allowed: None,
                refused: refused.then(|| "why".to_owned()),
            };
        let old = HostReport(vec![
            traffic("a", [5, 1, 1], false),
            traffic("b", [0, 0, 2], true),
            traffic("c", [0, 0, 3], true),
        ]);
        let new = HostReport(vec![
            traffic("a", [7, 1, 1], false),
            traffic("b", [0, 0, 2], true),
            traffic("c", [0, 0, 9], true),
            traffic("d", [1, 1, 9], false),
        ]);
        let since = new.since(&old);
        assert_eq!(since.refused().as_deref(), Some("c.example:443"));
        let bytes: Vec<_> = since.0.iter().map(|it| it.sent).collect();
        assert_eq!(bytes, [2, 0, 1]);
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
