//! Rules about the hosts that commands may connect to.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The ports that an allow rule without a port allows: the ports of HTTP and HTTPS.
const WEB_PORTS: [u16; 2] = [80, 443];

/// The name of this machine's loopback interface. It stands for both addresses of the interface.
const LOCALHOST: &str = "localhost";

/// The two addresses of this machine's loopback interface. Programs connect to them without a proxy.
const LOOPBACK: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// A rule about hosts: `example.org`, `*.example.org` for all its subdomains, or an IP address. Each may end with a colon and a
/// port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    /// The host in lower case, without a dot at the end. An IPv6 address has brackets.
    host: String,
    /// True if the rule applies to all subdomains of the host, but not to the host itself.
    below: bool,
    port: Option<u16>,
}

/// The error for a text that is not a rule about hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no rule about hosts: write it like example.org, *.example.org, example.org:8080 or 10.0.0.1:5432"
)]
pub struct HostPatternError(String);

/// The rules about hosts of one workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRules {
    pub allow: Vec<HostPattern>,
    pub deny: Vec<HostPattern>,
}

/// The decision of the rules about a host and port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostVerdict<'a> {
    Allowed(&'a HostPattern),
    Denied(&'a HostPattern),
    /// No rule applies.
    Ask,
}

impl HostPattern {
    /// Makes a rule for exactly this host and port. The host must be in the form of [`HostRules::verdict`].
    pub fn exact(host: &str, port: u16) -> Self {
        Self {
            host: host.to_owned(),
            below: false,
            port: Some(port),
        }
    }

    fn is_of(&self, host: &str) -> bool {
        match self.below {
            false => host == self.host,
            true => {
                let rest = host.strip_suffix(&self.host);
                rest.is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
            }
        }
    }

    /// Returns true if this pattern, as an allow rule, applies to the host and port. Without a port, it applies only to the ports
    /// of HTTP and HTTPS.
    fn allows(&self, host: &str, port: u16) -> bool {
        let covers = match self.port {
            Some(own) => own == port,
            None => WEB_PORTS.contains(&port),
        };
        covers && self.is_of(host)
    }

    /// Returns true if this pattern, as a deny rule, applies to the host and port. Without a port, it applies to all ports.
    fn denies(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|own| own == port) && self.is_of(host)
    }
}

impl HostRules {
    /// Returns the decision of the rules about a host and port. A deny rule wins over every allow rule.
    ///
    /// `host` is a name in lower case without a dot at the end, or an IP address; an IPv6 address has brackets. If it is a name,
    /// check its addresses too, with [`Self::denied`].
    pub fn verdict(&self, host: &str, port: u16) -> HostVerdict<'_> {
        if let Some(rule) = self.denied(host, port) {
            return HostVerdict::Denied(rule);
        }
        match self.allow.iter().find(|it| it.allows(host, port)) {
            Some(rule) => HostVerdict::Allowed(rule),
            None => HostVerdict::Ask,
        }
    }

    /// Returns the rule that denies a host. A rule about `localhost` also denies each address of the loopback interface, and
    /// addresses that Linux treats as such, like 0.0.0.0.
    pub fn denied(&self, host: &str, port: u16) -> Option<&HostPattern> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback = bare.parse().is_ok_and(|address: IpAddr| match address {
            IpAddr::V4(address) => matches!(address.octets()[0], 0 | 127),
            IpAddr::V6(address) => address.is_loopback() || address.is_unspecified(),
        });
        let denies =
            |it: &&HostPattern| it.denies(host, port) || is_loopback && it.denies(LOCALHOST, port);
        self.deny.iter().find(denies)
    }

    /// Returns the addresses of the loopback interface that the rules allow. The value of each address lists the addresses to
    /// connect to, in the order in which to try them.
    ///
    /// A rule about `localhost` allows both addresses of the interface, and the server may listen on only one of them. A rule
    /// about an address allows only this address.
    pub fn loopback_ports(&self) -> BTreeMap<SocketAddr, Vec<SocketAddr>> {
        let mut allowed: BTreeMap<SocketAddr, Vec<SocketAddr>> = BTreeMap::new();
        let rules = self.allow.iter().filter(|it| !it.below);
        for (rule, port) in rules.filter_map(|it| Some((it, it.port?))) {
            let is_meant = |address: &IpAddr| match rule.host == LOCALHOST {
                true => self.denied(LOCALHOST, port).is_none(),
                false => rule.host == text_of(*address),
            };
            let may = |address: &IpAddr| self.denied(&text_of(*address), port).is_none();
            let meant = LOOPBACK.into_iter().filter(is_meant).filter(may);
            let meant: Vec<_> = meant.map(|it| SocketAddr::new(it, port)).collect();
            for at in &meant {
                let reached = allowed.entry(*at).or_insert_with(|| vec![*at]);
                let others = meant.iter().filter(|it| *it != at);
                reached.extend(
                    others
                        .filter(|_| reached.len() == 1)
                        .copied()
                        .collect::<Vec<_>>(),
                );
            }
        }
        allowed
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let error = || HostPatternError(text.to_owned());
        let trimmed = text.trim();
        let (host, port) = match trimmed.rsplit_once(':') {
            // The colons of an address of IPv6 without brackets.
            Some((host, _)) if host.contains(':') && !host.ends_with(']') => (trimmed, None),
            Some((host, port)) => (host, Some(port)),
            None => (trimmed, None),
        };
        let port = match port {
            None => None,
            Some(port) if port.bytes().all(|it| it.is_ascii_digit()) => {
                let port = port.parse().ok().filter(|port| *port > 0);
                Some(port.ok_or_else(error)?)
            }
            Some(_) => return Err(error()),
        };
        let (below, host) = match host.strip_prefix("*.") {
            Some(host) => (true, host),
            None => (false, host),
        };
        let host = match address(host) {
            Some(address) if !below => address,
            Some(_) => return Err(error()),
            None => name(host).ok_or_else(error)?,
        };
        Ok(Self { host, below, port })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = if self.below { "*." } else { "" };
        write!(to, "{below}{}", self.host)?;
        match self.port {
            Some(port) => write!(to, ":{port}"),
            None => Ok(()),
        }
    }
}

impl serde::Serialize for HostPattern {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for HostPattern {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Returns an address in the notation of rules.
fn text_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Parses an IP address and returns it in the notation of rules.
fn address(text: &str) -> Option<String> {
    let inner = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let address: IpAddr = inner.unwrap_or(text).parse().ok()?;
    let address = address.to_canonical();
    (address.is_ipv6() || inner.is_none()).then(|| text_of(address))
}

/// Checks a host name and returns it in lower case, without a dot at the end.
fn name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.bytes().all(is_allowed)
    };
    text.split('.')
        .all(is_label)
        .then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> HostRules {
        let read = |texts: &[&str]| texts.iter().map(|it| it.parse().unwrap()).collect();
        HostRules {
            allow: read(allow),
            deny: read(deny),
        }
    }

    fn check(allow: &[&str], deny: &[&str], (host, port): (&str, u16), expected: &str) {
        let rules = rules(allow, deny);
        let found = match rules.verdict(host, port) {
            HostVerdict::Allowed(rule) => format!("allowed by {rule}"),
            HostVerdict::Denied(rule) => format!("denied by {rule}"),
            HostVerdict::Ask => "ask".to_owned(),
        };
        assert_eq!(found, expected, "{allow:?} {deny:?} {host}:{port}");
    }

    #[test]
    fn a_rule_covers_its_host_and_its_port() {
        let one = &["Example.ORG."];
        check(one, &[], ("example.org", 443), "allowed by example.org");
        check(one, &[], ("example.org", 80), "allowed by example.org");
        check(one, &[], ("example.org", 22), "ask");
        check(one, &[], ("www.example.org", 443), "ask");
        check(one, &[], ("badexample.org", 443), "ask");
        let port = &["example.org:22"];
        check(port, &[], ("example.org", 22), "allowed by example.org:22");
        check(port, &[], ("example.org", 443), "ask");
        let below = &["*.example.org"];
        check(
            below,
            &[],
            ("a.b.example.org", 443),
            "allowed by *.example.org",
        );
        for other in [
            "example.org",
            "badexample.org",
            ".example.org",
            "example.org.evil.example",
        ] {
            check(below, &[], (other, 443), "ask");
        }
        let address = &["10.0.0.1", "::1", "[2001:DB8::1]:5432"];
        check(address, &[], ("10.0.0.1", 80), "allowed by 10.0.0.1");
        check(address, &[], ("[::1]", 80), "allowed by [::1]");
        check(
            address,
            &[],
            ("[2001:db8::1]", 5432),
            "allowed by [2001:db8::1]:5432",
        );
    }

    #[test]
    fn a_deny_rule_wins_and_covers_every_port() {
        let deny = &["*.example.org"];
        check(
            &["a.example.org:22"],
            deny,
            ("a.example.org", 22),
            "denied by *.example.org",
        );
        check(
            &["example.org"],
            deny,
            ("example.org", 443),
            "allowed by example.org",
        );
        let port = &["a.example.org:25"];
        check(
            &["a.example.org"],
            port,
            ("a.example.org", 443),
            "allowed by a.example.org",
        );
        check(
            &["a.example.org:25"],
            port,
            ("a.example.org", 25),
            "denied by a.example.org:25",
        );
    }

    #[test]
    fn ports_of_this_machine_are_known_before_a_command_starts() {
        let check = |allow: &[&str], deny: &[&str], expected: &[&str]| {
            let found = rules(allow, deny).loopback_ports();
            let words = found.iter().map(|(at, to)| format!("{at} {to:?}"));
            assert_eq!(words.collect::<Vec<_>>(), expected, "{allow:?} {deny:?}");
        };
        let v4 = "127.0.0.1:80 [127.0.0.1:80]";
        let v6 = "[::1]:80 [[::1]:80]";
        check(&["127.0.0.1:80"], &[], &[v4]);
        check(&["[::1]:80"], &[], &[v6]);
        check(&["127.0.0.1:80", "[::1]:80"], &[], &[v4, v6]);
        let both = [
            "127.0.0.1:80 [127.0.0.1:80, [::1]:80]",
            "[::1]:80 [[::1]:80, 127.0.0.1:80]",
        ];
        check(&["localhost:80"], &[], &both);
        check(
            &["127.0.0.1:80", "localhost:80", "127.0.0.1:80"],
            &[],
            &both,
        );
        check(&["localhost", "*.localhost:80", "example.org:80"], &[], &[]);
        // A deny rule wins, however exact the other one is.
        check(&["localhost:80"], &["[::1]"], &[v4]);
        check(&["localhost:80"], &["localhost"], &[]);
        check(&["localhost:80"], &["localhost:81"], &both);
        check(&["127.0.0.1:80", "[::1]:80"], &["localhost:80"], &[]);
        check(&["127.0.0.1:80"], &["[::1]"], &[v4]);
    }

    #[test]
    fn localhost_and_its_addresses_are_three_hosts() {
        let one = &["127.0.0.1:80"];
        check(one, &[], ("127.0.0.1", 80), "allowed by 127.0.0.1:80");
        check(one, &[], ("localhost", 80), "ask");
        check(one, &[], ("[::1]", 80), "ask");
        check(&["localhost:80"], &[], ("127.0.0.1", 80), "ask");
        let deny = &["localhost"];
        for host in ["localhost", "127.0.0.1", "[::1]"] {
            check(
                &["localhost:80", host],
                deny,
                (host, 80),
                "denied by localhost",
            );
        }
        // Linux takes these for the loopback interface.
        for host in ["0.0.0.0", "[::]", "127.0.0.2"] {
            check(&[host], deny, (host, 80), "denied by localhost");
        }
        check(
            &["localhost:80"],
            &["127.0.0.1"],
            ("localhost", 80),
            "allowed by localhost:80",
        );
    }

    #[test]
    fn other_texts_are_no_rules() {
        for text in [
            "",
            "*",
            "*.",
            "*.10.0.0.1",
            "a.*.org",
            "https://example.org",
            "example.org/x",
            "example.org:",
            "example.org:0",
            "example.org:x",
            "example.org:65536",
            "a b",
            "[10.0.0.1]",
            "[::1",
            "user@example.org",
            "10.0.0.0/8",
            "a..b",
        ] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_rule_is_read_as_it_is_written() {
        for text in [
            "example.org",
            "*.example.org:8080",
            "10.0.0.1",
            "[::1]:80",
            "localhost:1",
        ] {
            let rule: HostPattern = text.parse().unwrap();
            assert_eq!(rule.to_string(), text);
        }
        assert_eq!(HostPattern::exact("[::1]", 80), "[::1]:80".parse().unwrap());
    }
}
